"""Runs a pyparsing grammar that is somebody else's: reads its elements, never changes them, compiles them to plain functions.

rdflib's grammar says what SPARQL 1.1 is; run by pyparsing itself it loses places, reports errors where an alternative began, and
needs seconds for long expressions (22 s for 64 KiB of sums). Compiled here

- each terminal named in `Plan.leaves` becomes a `Leaf` and each ``Comp`` a `Node`, with their places;
- an alternative, option or repetition is tried only where the next character can begin it (SPARQL is nearly LL(1));
- `Run` keeps the furthest place where a terminal was tried, with all that was tried there: the "expected" of a message;
- terminals tried are counted and bounded: a count, not a clock, so that the outcome is repeatable.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import pyparsing
from rdflib.plugins.sparql.parserutils import Comp, Param

from grammar import combinators
from grammar.combinators import First, Function


@dataclass(frozen=True, slots=True)
class LeafPlan:
    """How a terminal is told: its kind, its readable name, the characters it can begin with."""

    kind: str
    readable: str
    first: str


@dataclass(frozen=True, slots=True)
class Terminal:
    """A terminal of the grammar: its pattern, its readable name, the characters it can begin with (none: any), and its result where that
    is not the text."""

    pattern: re.Pattern[str]
    readable: str
    first: str = ""
    result: str | None = None

    @classmethod
    def of(cls, element: Any) -> Terminal | None:
        """What a key word (in any case, not part of a longer word), a mark or a regular expression is."""
        match element:
            case pyparsing.Keyword(match=word):
                pattern = re.compile(rf"(?<![A-Za-z0-9_$]){re.escape(word)}(?![A-Za-z0-9_$])", re.IGNORECASE)
                return cls(pattern, word, word[0].lower() + word[0].upper(), word)
            case pyparsing.Literal(match=mark):
                return cls(re.compile(re.escape(mark)), f"'{mark}'", mark[0], mark)
            case pyparsing.Regex():
                return cls(element.re, element.name)
        return None


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do with a grammar's elements, by their ``id``. `leaves` become Leaf; copies that pyparsing made are known by parse action or
    composite name. `nodes` become a Node of that name with all results as `items`. `replaced` has what stands for an element."""

    leaves: Mapping[int, LeafPlan]
    leaf_actions: Mapping[int, LeafPlan]
    leaf_names: Mapping[str, LeafPlan]
    nodes: Mapping[int, str]
    replaced: Mapping[int, Any]

    def leaf(self, element: Any) -> LeafPlan | None:
        known = self.leaves.get(id(element))
        if known is None and element.parseAction:
            known = self.leaf_actions.get(id(element.parseAction[0]))
        if known is None and isinstance(element, Comp):
            known = self.leaf_names.get(element.name)
        return known


_NOTHING = First(frozenset(), frozenset(), True)


@dataclass(frozen=True, slots=True, eq=False)
class Element:
    """An element written by hand: a compiled function with its beginnings."""

    function: Callable[[Machine], Function]
    begins_like: Any


class Machine:
    """Compiles the elements of a grammar, each once, as a `Plan` says."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._functions: dict[int, Function] = {}
        self._firsts: dict[int, First] = {}
        self._kept: list[Any] = []      # elements stay alive, since they are known by their id

    def first(self, element: Any) -> First:
        known = self._firsts.get(id(element))
        if known is None:
            known = self._firsts[id(element)] = self._find_first(element)
            self._kept.append(element)
        return known

    def _find_first(self, element: Any) -> First:
        if id(element) in self._plan.replaced:
            return self.first(self._plan.replaced[id(element)])
        if isinstance(element, Element):
            return self.first(element.begins_like)
        terminal = self._plan.leaf(element) or Terminal.of(element)
        if terminal is not None:
            return First(frozenset(terminal.first) or None, frozenset((terminal.readable,)))
        match element:
            case pyparsing.And():
                result = _NOTHING
                for part in element.exprs:
                    if not result.empty:    # what comes later may contain this element again
                        break
                    result = result.then(self.first(part))
                return result
            case pyparsing.MatchFirst():
                return reduce(First.either, map(self.first, element.exprs))
            case pyparsing.Opt() | pyparsing.ZeroOrMore():
                return self.first(element.expr).either(_NOTHING)
            case pyparsing.ParseElementEnhance():
                return self.first(element.expr)
        raise TypeError(f"no way to run {type(element).__name__}")

    def compile(self, element: Any) -> Function:
        """The function of an element; elements that contain themselves are resolved when first run."""
        key = id(element)
        if key not in self._functions:
            self._kept.append(element)
            self._functions[key] = lambda run, place, out: self._functions[key](run, place, out)
            self._functions[key] = self._build(element)
        return self._functions[key]

    def _build(self, element: Any) -> Function:
        plan = self._plan
        if id(element) in plan.replaced:
            return self.compile(plan.replaced[id(element)])
        if isinstance(element, Element):
            return element.function(self)
        leaf = plan.leaf(element)
        if leaf is not None:
            return combinators.leaf(self._plain(element), leaf.kind, leaf.readable, element.skipWhitespace)
        if id(element) in plan.nodes:
            inner = element.expr if isinstance(element, pyparsing.Group) else element
            return combinators.composite(self._plain(inner), plan.nodes[id(element)])
        return self._plain(element)

    def _plain(self, element: Any) -> Function:
        if (terminal := Terminal.of(element)) is not None:
            return combinators.terminal(terminal.pattern, terminal.readable, terminal.result, element.skipWhitespace)
        match element:
            case Comp():
                return combinators.composite(self.compile(element.expr), element.name)
            case Param():
                return combinators.part(self.compile(element.expr), element.name, element.isList)
            case pyparsing.And():
                return combinators.sequence(tuple(self.compile(e) for e in element.exprs))
            case pyparsing.MatchFirst():
                alternatives = tuple((self.first(e), self.compile(e)) for e in element.exprs)
                return combinators.first_of(alternatives, element.skipWhitespace)
            case pyparsing.Opt() | pyparsing.ZeroOrMore() | pyparsing.OneOrMore():
                least, most = int(isinstance(element, pyparsing.OneOrMore)), 1 if isinstance(element, pyparsing.Opt) else None
                return combinators.repeat(self.compile(element.expr), self.first(element.expr), least, most, element.skipWhitespace)
            case pyparsing.Suppress():
                return combinators.gathered(self.compile(element.expr), lambda results: [])
            case pyparsing.Group():
                return combinators.gathered(self.compile(element.expr), lambda results: [results])
            case pyparsing.ParseElementEnhance():
                return self.compile(element.expr)
        raise TypeError(f"no way to run {type(element).__name__}")

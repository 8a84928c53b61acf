"""Runs a pyparsing grammar that is somebody else's: reads its elements, never changes them, compiles them to plain functions.

rdflib's grammar says what SPARQL 1.1 is; run by pyparsing itself it loses places, reports errors where an alternative began, and
needs seconds for long expressions (22 s for 64 KiB of sums). Compiled here

- each terminal named in `Plan.leaves` becomes a `Leaf` and each ``Comp`` a `Node`, with their places;
- an alternative, option or repetition is tried only where the next character can begin it (SPARQL is nearly LL(1));
- `Run` keeps the furthest place where a terminal was tried, with all that was tried there: the "expected" of a message;
- terminals tried are counted and bounded: a count, not a clock, so that the outcome is repeatable.

A compiled function takes a run, an offset and the list of results so far; it returns the offset behind what it read, or -1.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyparsing
from rdflib.plugins.sparql.parserutils import Comp, Param

Function = Callable[["Run", int, list[Any]], int]

FAILED = -1
MAX_EFFORT = 500_000

FOREIGN = "\x80"

_SPACE = re.compile(r"[ \t\r\n]*")
_WORD = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$")


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """A terminal as written; `kind` is its name in `Plan.leaves`."""

    kind: str
    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """A composite by its name in the grammar; `parts` are its named parts, `items` the results without a name, in order."""

    name: str
    start: int
    end: int
    parts: Mapping[str, Any]
    items: tuple[Any, ...] = ()

    def get(self, part: str) -> Any:
        """The named part; None where the text has none."""
        return self.parts.get(part)

    def all(self, part: str) -> list[Any]:
        """The named part as a list, empty where the text has none."""
        return self.parts.get(part) or []


@dataclass(slots=True)
class Run:
    """One parse: the text, its effort, and the furthest place reached with what was tried there."""

    text: str
    effort: int = 0
    furthest: int = -1
    tried: set[str] = field(default_factory=set)
    quiet: bool = False
    _space: tuple[int, int] = (-1, -1)

    def skip(self, place: int) -> int:
        """The next place that is no white space."""
        if self._space[0] == place:
            return self._space[1]
        match = _SPACE.match(self.text, place)
        end = match.end() if match else place
        self._space = (place, end)
        return end

    def note(self, place: int, *names: str) -> None:
        """Terminals of these readable names are tried at `place`."""
        if self.quiet:
            return
        self.effort += 1
        if self.effort > MAX_EFFORT:
            raise TooMuchEffort(place)
        if place > self.furthest:
            self.furthest = place
            self.tried = set(names)
        elif place == self.furthest:
            self.tried.update(names)


class TooMuchEffort(Exception):
    """The text needs more work than one statement may; `place` is where the parse was given up."""

    def __init__(self, place: int) -> None:
        super().__init__(place)
        self.place = place


@dataclass(frozen=True, slots=True)
class LeafPlan:
    """How a terminal is told: its kind, its readable name, the characters it can begin with."""

    kind: str
    readable: str
    first: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do with a grammar's elements, by their ``id``.

    `leaves` become Leaf; copies that pyparsing made of them are known by their parse action or composite name. `nodes` become a
    Node of that name with all results as `items`. `replaced` has what stands for an element.
    """

    leaves: Mapping[int, LeafPlan]
    leaf_actions: Mapping[int, LeafPlan]
    leaf_names: Mapping[str, LeafPlan]
    nodes: Mapping[int, str]
    replaced: Mapping[int, Any]

    def leaf(self, element: Any) -> LeafPlan | None:
        """The plan of a terminal, or None."""
        known = self.leaves.get(id(element))
        if known is None and element.parseAction:
            known = self.leaf_actions.get(id(element.parseAction[0]))
        if known is None and isinstance(element, Comp):
            known = self.leaf_names.get(element.name)
        return known


@dataclass(frozen=True, slots=True)
class First:
    """What an element can begin with: characters (None: any), readable names, and whether it can be nothing at all."""

    characters: frozenset[str] | None
    names: frozenset[str]
    empty: bool = False

    def either(self, other: First) -> First:
        """Of two alternatives."""
        known = None if self.characters is None or other.characters is None else self.characters | other.characters
        return First(known, self.names | other.names, self.empty or other.empty)

    def then(self, other: First) -> First:
        """Of two elements in sequence."""
        if not self.empty:
            return self
        both = self.either(other)
        return First(both.characters, both.names, other.empty)

    def admits(self, character: str) -> bool:
        """Whether an element may begin here; beyond ASCII all characters are as FOREIGN."""
        return self.characters is None or character in self.characters or self.empty


_NOTHING = First(frozenset(), frozenset(), True)


class Element:
    """An element written by hand: a compiled function with its beginnings."""

    def __init__(self, function: Callable[[Machine], Function], begins_like: Any) -> None:
        self.function = function
        self.begins_like = begins_like


class Machine:
    """A grammar compiled by a plan."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._functions: dict[int, Function] = {}
        self._firsts: dict[int, First] = {}
        self._kept: list[Any] = []      # elements stay alive, since they are known by their id

    # ------------------------------------------------------------------ beginnings

    def first(self, element: Any) -> First:
        """What an element can begin with."""
        known = self._firsts.get(id(element))
        if known is None:
            known = self._firsts[id(element)] = self._find_first(element)
            self._kept.append(element)
        return known

    def _find_first(self, element: Any) -> First:
        if id(element) in self._plan.replaced:
            return self.first(self._plan.replaced[id(element)])
        leaf = self._plan.leaf(element) if not isinstance(element, Element) else None
        if leaf is not None:
            return First(frozenset(leaf.first) or None, frozenset((leaf.readable,)))
        match element:
            case Element():
                return self.first(element.begins_like)
            case pyparsing.Keyword():
                start = element.match[0]
                return First(frozenset((start.lower(), start.upper())), frozenset((element.match,)))
            case pyparsing.Literal():
                return First(frozenset(element.match[0]), frozenset((f"'{element.match}'",)))
            case pyparsing.Regex():
                return First(None, frozenset((element.name,)))
            case pyparsing.And():
                result = _NOTHING
                for part in element.exprs:
                    if not result.empty:    # what comes later may contain this element again
                        break
                    result = result.then(self.first(part))
                return result
            case pyparsing.MatchFirst():
                result = self.first(element.exprs[0])
                for part in element.exprs[1:]:
                    result = result.either(self.first(part))
                return result
            case pyparsing.Opt() | pyparsing.ZeroOrMore():
                return self.first(element.expr).either(_NOTHING)
            case pyparsing.ParseElementEnhance():
                return self.first(element.expr)
        raise TypeError(f"no way to run {type(element).__name__}")

    # ------------------------------------------------------------------ functions

    def compile(self, element: Any) -> Function:
        """The function of an element; elements that contain themselves are resolved when first run."""
        known = self._functions.get(id(element))
        if known is not None:
            return known
        self._kept.append(element)
        cell: list[Function] = []

        def later(run: Run, place: int, out: list[Any]) -> int:
            return cell[0](run, place, out)

        self._functions[id(element)] = later
        cell.append(self._build(element))
        self._functions[id(element)] = cell[0]
        return cell[0]

    def _build(self, element: Any) -> Function:
        plan = self._plan
        if id(element) in plan.replaced:
            return self.compile(plan.replaced[id(element)])
        if isinstance(element, Element):
            return element.function(self)
        leaf = plan.leaf(element)
        if leaf is not None:
            return _leaf(self._plain(element), leaf, element.skipWhitespace)
        if id(element) in plan.nodes:
            inner = element.expr if isinstance(element, pyparsing.Group) else element
            return _node(self._plain(inner), plan.nodes[id(element)])
        return self._plain(element)

    def _plain(self, element: Any) -> Function:
        match element:
            case Comp():
                return _comp(self.compile(element.expr), element.name)
            case Param():
                return _param(self.compile(element.expr), element.name, element.isList)
            case pyparsing.Keyword():
                return _keyword(element.match, element.skipWhitespace)
            case pyparsing.Literal():
                return _literal(element.match, element.skipWhitespace)
            case pyparsing.Regex():
                return _regex(element.re, element.name, element.skipWhitespace)
            case pyparsing.And():
                return _and(tuple(self.compile(e) for e in element.exprs))
            case pyparsing.MatchFirst():
                return _first_of(tuple((self.first(e), self.compile(e)) for e in element.exprs), element.skipWhitespace)
            case pyparsing.Opt():
                return _repeat(self.compile(element.expr), self.first(element.expr), 0, 1, element.skipWhitespace)
            case pyparsing.ZeroOrMore():
                return _repeat(self.compile(element.expr), self.first(element.expr), 0, None, element.skipWhitespace)
            case pyparsing.OneOrMore():
                return _repeat(self.compile(element.expr), self.first(element.expr), 1, None, element.skipWhitespace)
            case pyparsing.Suppress():
                return _suppress(self.compile(element.expr))
            case pyparsing.Group():
                return _group(self.compile(element.expr))
            case pyparsing.ParseElementEnhance():
                return self.compile(element.expr)
        raise TypeError(f"no way to run {type(element).__name__}")


def _leaf(inner: Function, plan: LeafPlan, skips: bool) -> Function:
    kind, readable = plan.kind, plan.readable

    def parse(run: Run, place: int, out: list[Any]) -> int:
        if skips:
            place = run.skip(place)
            run.note(place, readable)
        outer, run.quiet = run.quiet, True      # what a terminal is made of is of no interest to a reader
        end = inner(run, place, [])
        run.quiet = outer
        if end >= 0:
            out.append(Leaf(kind, run.text[place:end], place, end))
        return end

    return parse


def _comp(inner: Function, name: str) -> Function:
    def parse(run: Run, place: int, out: list[Any]) -> int:
        place = run.skip(place)
        results: list[Any] = []
        end = inner(run, place, results)
        if end >= 0:
            end = _trim(run.text, place, end)
            parts: dict[str, Any] = {}
            for result in results:
                if type(result) is _Named:
                    if result.is_list:
                        parts.setdefault(result.name, []).append(result.value)
                    else:
                        parts[result.name] = result.value
            items = tuple(result for result in results if type(result) is not _Named)
            out.append(Node(name, place, end, parts, items))
        return end

    return parse


def _trim(text: str, start: int, end: int) -> int:
    """`end` without the white space before it."""
    while end > start and text[end - 1] in " \t\r\n":
        end -= 1
    return end


@dataclass(frozen=True, slots=True, eq=False)
class _Named:
    name: str
    value: Any
    is_list: bool


def _param(inner: Function, name: str, is_list: bool) -> Function:
    def parse(run: Run, place: int, out: list[Any]) -> int:
        results: list[Any] = []
        end = inner(run, place, results)
        if end >= 0:
            out.append(_Named(name, results[0] if len(results) == 1 else results, is_list))
        return end

    return parse


def _node(inner: Function, name: str) -> Function:
    def parse(run: Run, place: int, out: list[Any]) -> int:
        place = run.skip(place)
        results: list[Any] = []
        end = inner(run, place, results)
        if end >= 0:
            end = _trim(run.text, place, end)
            out.append(Node(name, place, end, {}, tuple(results)))
        return end

    return parse


def _keyword(word: str, skips: bool) -> Function:
    size, upper = len(word), word.upper()

    def parse(run: Run, place: int, out: list[Any]) -> int:
        if skips:
            place = run.skip(place)
            run.note(place, word)
        end = place + size
        text = run.text
        if text[place:end].upper() != upper or text[end:end + 1] in _WORD or (place and text[place - 1] in _WORD):
            return FAILED
        out.append(word)
        return end

    return parse


def _literal(mark: str, skips: bool) -> Function:
    size, readable = len(mark), f"'{mark}'"

    def parse(run: Run, place: int, out: list[Any]) -> int:
        if skips:
            place = run.skip(place)
            run.note(place, readable)
        if not run.text.startswith(mark, place):
            return FAILED
        out.append(mark)
        return place + size

    return parse


def _regex(pattern: re.Pattern[str], readable: str, skips: bool) -> Function:
    def parse(run: Run, place: int, out: list[Any]) -> int:
        if skips:
            place = run.skip(place)
            run.note(place, readable)
        found = pattern.match(run.text, place)
        if found is None:
            return FAILED
        out.append(found[0])
        return found.end()

    return parse


def _and(parts: tuple[Function, ...]) -> Function:
    def parse(run: Run, place: int, out: list[Any]) -> int:
        mark = len(out)
        for part in parts:
            place = part(run, place, out)
            if place < 0:
                del out[mark:]
                return FAILED
        return place

    return parse


def _first_of(parts: tuple[tuple[First, Function], ...], skips: bool) -> Function:
    by_character: dict[str, tuple[tuple[Function, ...], frozenset[str]]] = {}

    def choose(character: str) -> tuple[tuple[Function, ...], frozenset[str]]:
        chosen = tuple(function for first, function in parts if first.admits(character))
        names: frozenset[str] = frozenset().union(*(first.names for first, _ in parts if not first.admits(character)))
        by_character[character] = chosen, names
        return chosen, names

    def parse(run: Run, place: int, out: list[Any]) -> int:
        if skips:
            place = run.skip(place)
        character = _character(run.text, place)
        chosen, names = by_character.get(character) or choose(character)
        if skips and place >= run.furthest:
            run.note(place, *names)
        for function in chosen:
            end = function(run, place, out)
            if end >= 0:
                return end
        return FAILED

    return parse


def _character(text: str, place: int) -> str:
    character = text[place:place + 1]
    return character if character < FOREIGN else FOREIGN


def _repeat(inner: Function, first: First, least: int, most: int | None, skips: bool) -> Function:
    names = first.names

    def parse(run: Run, place: int, out: list[Any]) -> int:
        count = 0
        while most is None or count < most:
            start = run.skip(place)
            if not first.admits(_character(run.text, start)):
                if start >= run.furthest:
                    run.note(start, *names)
                break
            end = inner(run, place, out)
            if end < 0 or end == place:
                break
            place = end
            count += 1
        if count < least:
            return FAILED
        return place if count or not skips else run.skip(place)

    return parse


def _suppress(inner: Function) -> Function:
    def parse(run: Run, place: int, out: list[Any]) -> int:
        return inner(run, place, [])

    return parse


def _group(inner: Function) -> Function:
    def parse(run: Run, place: int, out: list[Any]) -> int:
        results: list[Any] = []
        end = inner(run, place, results)
        if end >= 0:
            out.append(results)
        return end

    return parse

"""Conjunctions in a safe order (RIF-Core section 6.1): each conjunct finds bound what it needs, or is reported.

An atom or frame binds its variables. ``=`` binds a variable to the other side, ``pred:iri-string`` one of its arguments to the other
(the binding patterns of DTB); all other built-ins need all their arguments.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush

from engine.ir.builtins import IDENTICAL, IRI_STRING
from engine.ir.expressions import Call, Expression, variables_of
from engine.ir.rules import Assign, Atom, Formula, Test
from engine.ir.terms import Constant, Variable


@dataclass(frozen=True, slots=True)
class Equality:
    """``left = right``."""

    left: Expression
    right: Expression


Conjunct = Atom | Equality | Test | Assign      # a Test is an external predicate


@dataclass(frozen=True, slots=True)
class Ordered:
    """A conjunction in a safe order; `unbound` are the variables that nothing binds, `bound` all others."""

    body: tuple[Formula, ...]
    bound: frozenset[Variable]
    unbound: frozenset[Variable]


def in_order(conjuncts: tuple[Conjunct, ...]) -> Ordered:
    """The atoms in the order of the text, then everything else as soon as its variables are bound. An Assign binds a new variable."""
    body: list[Formula] = [c for c in conjuncts if isinstance(c, Atom)]
    waiting = {place: c for place, c in enumerate(conjuncts) if not isinstance(c, Atom)}
    bound = {v for c in conjuncts if isinstance(c, Atom) for v in variables(c)}
    asking: dict[Variable, list[int]] = defaultdict(list)
    for place, conjunct in waiting.items():
        for variable in variables(conjunct):
            asking[variable].append(place)
    to_try = list(waiting)
    while to_try:
        place = heappop(to_try)
        found = _ready(waiting[place], bound) if place in waiting else None
        if found is None:
            continue
        del waiting[place]
        body += found
        for formula in found:
            if isinstance(formula, Assign):
                bound.add(formula.variable)
                for other in asking[formula.variable]:
                    heappush(to_try, other)
    missing = frozenset(v for conjunct in waiting.values() for v in variables(conjunct)) - bound
    return Ordered(tuple(body), frozenset(bound), missing)


def variables(conjunct: Conjunct) -> Iterator[Variable]:
    """The variables of a conjunct, left to right as far as it is a call."""
    match conjunct:
        case Atom(terms=terms):
            yield from (t for t in terms if isinstance(t, Variable))
        case Equality(left, right):
            yield from sorted(variables_of(left) | variables_of(right))
        case Test(call):
            yield from sorted(variables_of(call))
        case Assign(variable, expression):
            yield variable
            yield from sorted(variables_of(expression))


def _ready(conjunct: Conjunct, bound: set[Variable]) -> tuple[Formula, ...] | None:
    """What a conjunct becomes where these variables are bound; None where it has to wait."""
    match conjunct:
        case Assign(left, right) | Equality(left, right):
            return _equality(left, right, bound)
        case Test(Call(function=name, args=(first, second)) as call) if name == IRI_STRING:
            return _iri_string(call, first, second, bound)
        case Test(call):
            return (conjunct,) if variables_of(call) <= bound else None
        case Atom():
            return (conjunct,)


def _equality(left: Expression, right: Expression, bound: set[Variable]) -> tuple[Formula, ...] | None:
    if variables_of(left) | variables_of(right) <= bound:
        # With an IRI SPARQL's = is the same, and known to SQL.
        iri = any(isinstance(side, Constant) and side.token[0] == "<" for side in (left, right))
        return (Test(Call("=" if iri else IDENTICAL, (left, right))),)
    for side, other in ((left, right), (right, left)):
        if isinstance(side, Variable) and side not in bound and variables_of(other) <= bound:
            return (Assign(side, other),)
    return None


def _iri_string(call: Call, first: Expression, second: Expression, bound: set[Variable]) -> tuple[Formula, ...] | None:
    if variables_of(call) <= bound:
        return (Test(call),)
    for side, other, function in ((first, second, "IRI"), (second, first, "STR")):
        if isinstance(side, Variable) and side not in bound and variables_of(other) <= bound:
            return Assign(side, Call(function, (other,), call.span)), Test(call)
    return None

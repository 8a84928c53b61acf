"""Safety of Datalog rules: each variable is bound by a positive atom, by ``@T`` before one, or by ``=`` with a bound side."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush

from engine.ir.expressions import Call, variables_of
from engine.ir.rules import Assign, Formula, Head, Negation, Test, rule_variables
from engine.ir.spans import Span
from engine.ir.terms import Variable
from grammar.datalog.comparisons import Equality
from grammar.rule_text import Report


def resolved(parts: Sequence[Formula | Equality]) -> tuple[tuple[Formula, ...], frozenset[Variable]]:
    """A body in its order, each equality a test or an assignment; and the variables that it binds.

    The first equality, in the order of the text, that finds one side bound and the other a variable that is not assigns it.
    """
    bound = {v for part in parts if not isinstance(part, (Equality, Negation, Test)) for v in rule_variables(part)}
    waiting = {place: part for place, part in enumerate(parts) if isinstance(part, Equality)}
    asking: dict[Variable, list[int]] = defaultdict(list)
    for place, part in waiting.items():
        for variable in variables_of(part.left) | variables_of(part.right):
            asking[variable].append(place)
    found: dict[int, Formula] = {}
    to_try = list(waiting)
    heapify(to_try)
    while to_try:
        place = heappop(to_try)
        assigned = _assigned(waiting[place], bound) if place not in found else None
        if assigned is not None:
            found[place] = assigned
            bound.add(assigned.variable)
            for other in asking[assigned.variable]:
                heappush(to_try, other)
    tests = {place: Test(Call("=", (part.left, part.right), part.span)) for place, part in waiting.items()}
    body = tuple(part if not isinstance(part, Equality) else found.get(place, tests[place]) for place, part in enumerate(parts))
    return body, frozenset(bound)


def _assigned(equality: Equality, bound: set[Variable]) -> Assign | None:
    for side, other in ((equality.left, equality.right), (equality.right, equality.left)):
        if isinstance(side, Variable) and side not in bound and variables_of(other) <= bound:
            return Assign(side, other)
    return None


def report_unsafe(head: Head, body: Sequence[Formula], bound: frozenset[Variable], places: Mapping[Variable, Span], report: Report) -> None:
    """Say which variables of a rule nothing binds, each where it stands first."""
    asked = set(rule_variables(head)).union(*(_asked(part) for part in body))
    for variable in sorted(asked - bound, key=lambda v: places[v].start):
        span = places[variable]
        fact = "" if body else ": a fact has no variables"
        report.error(f"Nothing binds {span.text}{fact}.", span, code="rules-unsafe",
                     hint=f"let an atom of the body that is not under 'not' hold {span.text}" if body else
                     "a constant begins with a lower-case letter, or stands in quotes")


def _asked(part: Formula) -> frozenset[Variable]:
    match part:
        case Test(condition=expression) | Assign(expression=expression):
            return variables_of(expression)
    return rule_variables(part)

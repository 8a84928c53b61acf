"""Rules that say only that one relation holds where another does (subclasses, subproperties), without those that others imply: a hierarchy
comes with all its ancestors, and an interval relation needs its parents only."""

from __future__ import annotations

from collections.abc import Sequence

from engine.ir.rules import Atom, Rule
from engine.ir.terms import Constant, Term, Variable

Shape = tuple[str, tuple[Term | int, ...]]
"""An atom with numbers in the place of its variables."""


def without_implied_copies(rules: Sequence[Rule]) -> tuple[Rule, ...]:
    """The rules without each ``p(x) <- r(x)`` for which ``p(x) <- q(x)`` and ``q(x) <- r(x)`` stay, through any number of relations."""
    above: dict[Shape, set[Shape]] = {}
    for rule in rules:
        if (copy := _copy(rule)) is not None:
            above.setdefault(copy[1], set()).add(copy[0])
    kept = []
    for rule in rules:
        if (copy := _copy(rule)) is not None:
            head, body = copy
            above[body].discard(head)
            if head != body and _reaches(above, body, head):
                continue
            above[body].add(head)
        kept.append(rule)
    return tuple(kept)


def _copy(rule: Rule) -> tuple[Shape, Shape] | None:
    """Head and body of a rule that copies one relation into another."""
    if not isinstance(rule.head, Atom) or len(rule.body) != 1 or not isinstance(body := rule.body[0], Atom) or rule.window_ms is not None:
        return None
    places: dict[Variable, int] = {}
    head = rule.head.predicate, tuple(_term(term, places) for term in rule.head.terms)
    count = len(places)
    found = body.predicate, tuple(_term(term, places) for term in body.terms)
    distinct = sum(isinstance(term, Variable) for term in body.terms)
    return (head, found) if len(places) == count == distinct else None


def _term(term: Term, places: dict[Variable, int]) -> Term | int:
    return term if isinstance(term, Constant) else places.setdefault(term, len(places))


def _reaches(above: dict[Shape, set[Shape]], start: Shape, end: Shape) -> bool:
    seen, waiting = {start}, [start]
    while waiting:
        for found in above.get(waiting.pop(), ()):
            if found == end:
                return True
            if found not in seen:
                seen.add(found)
                waiting.append(found)
    return False

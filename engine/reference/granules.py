"""LARS programs, granule by granule: at each time point every rule on what is known by then, until nothing new comes (Laser, Algorithm 1).
`Timeline` says what formulas mean on granules; proofs of such programs (engine/why/granular.py) stand on it, too.

The timeline begins at ``START AT`` or at the first event; points before it are looked at by box only, which takes them to be like the
first. An atom that is derived for a past point is known from the point of its derivation on; one for a future point holds when that
comes. Tuple windows count the events of the input.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from engine.functions.expressions import Context
from engine.functions.terms import integer, number_of
from engine.ir.rules import (Assign, At, Atom, BoxMinus, BoxPlus, DiamondMinus, Fact, Falsum, Formula, Head, Negation, Rule, RuleSet,
                             Table, Test, WindowFormula, relation_of)
from engine.ir.strata import rounds
from engine.ir.terms import Variable
from engine.reference.formulas import (Ground, Inconsistency, Intervals, Model, Row, computed, ground, headed, layers, shapes,
                                       unify, value_of)
from engine.timeline import ALWAYS, MAX, Interval, coalesce, granule


@dataclass(frozen=True, slots=True)
class View:
    """What is seen from granule `now`: a LARS window leaves the granules from `first` on, or the events `only`."""

    now: int
    first: int | None = None
    only: frozenset[tuple[int, Ground]] | None = None


V = TypeVar("V", bound=View)


class Timeline(Generic[V]):
    """What formulas mean on granules of `length` ms from the granule `start` on; `events` are the facts of the input at theirs."""

    context: Context
    length: int
    start: int
    events: list[tuple[int, Ground]]

    def _atom(self, pattern: Atom, row: Row, k: int, view: V) -> Iterator[Row]:
        """The extensions of `row` by the facts that match at granule `k`."""
        raise NotImplementedError

    def _under_not(self, view: V) -> V:
        """How what stands under ``not`` is seen."""
        return view

    def _solve(self, formula: Formula, row: Row, k: int, view: V) -> Iterator[Row]:
        """The extensions of `row` under which a formula holds at granule `k`, as seen in `view`."""
        match formula:
            case Atom():
                yield from self._atom(formula, row, k, view)
            case DiamondMinus(body=body):
                for point in self._looked(formula, k, view):
                    yield from self._solve(body, row, point, view)
            case BoxMinus(body=body):
                rows = [row]
                for point in self._looked(formula, k, view):
                    rows = distinct(extended for found in rows for extended in self._solve(body, found, point, view))
                yield from rows
            case At(instant=term, body=body):   # by itself it holds at the instant only; in a window at any of its points
                for point in range(k if view.first is None else view.first, k + 1):
                    if isinstance(term, Variable) and term.name not in row:
                        yield from self._solve(body, {**row, term.name: integer(point)}, point, view)
                    elif number_of(value_of(term, row)) == point:
                        yield from self._solve(body, row, point, view)
            case WindowFormula(body=body):
                yield from self._solve(body, row, k, self._through(formula, k, view))
            case Negation(body=body):
                if not any(True for _ in self._solve(body, row, k, self._under_not(view))):
                    yield row
            case Test() | Assign() | Table():
                yield from computed(formula, row, self.context)

    def _looked(self, formula: DiamondMinus | BoxMinus, k: int, view: V) -> range:
        """The granules that an operator looks at from `k`, within its distance, the timeline and the window; to a box those before the
        first one are like it."""
        furthest = [] if formula.distance.hi == MAX else [k - self._steps(formula.distance.hi)]
        first = max([self.start, *furthest, *([] if view.first is None else [view.first])])
        last = k - self._steps(formula.distance.lo)
        return range(first, (last if isinstance(formula, DiamondMinus) else max(last, self.start)) + 1)

    def _through(self, window: WindowFormula, k: int, view: V) -> V:
        if window.unit == "time":
            return replace(view, first=max(k - window.size, self.start), only=None)
        last = sorted({(point, fact) for point, fact in self.events if point <= k})[-window.size:]
        return replace(view, first=last[0][0] if len(last) == window.size else self.start, only=frozenset(last))

    def _told(self, head: Head, row: Row, now: int) -> Sequence[int]:
        """The granules at which the atom of a head holds, where its body does at `now`."""
        match head:
            case At(instant=term):
                k = number_of(value_of(term, row))
                return () if k is None else (k,)
            case BoxPlus(distance=distance):
                return range(now + self._steps(distance.lo), now + self._steps(distance.hi) + 1)
        return (now,)

    def _steps(self, distance: int) -> int:
        """An encoded distance in granules."""
        if distance % (2 * self.length):
            raise ValueError("the distances of a program with granules are whole granules")
        return distance // (2 * self.length)


def distinct(rows: Iterable[Row]) -> list[Row]:
    """Each row once, in their order."""
    return [dict(key) for key in dict.fromkeys(tuple(sorted(row.items())) for row in rows)]


class Granules(Timeline[View]):
    """Evaluates one LARS program; `known` says from which granule on an atom is known to hold at another. What is `derived` by others is
    there, and is no event of the input."""

    def __init__(self, program: RuleSet, facts: Iterable[Fact], context: Context, derived: Iterable[Fact] = ()) -> None:
        if program.granularity_ms <= 0:
            raise ValueError("a program of granules has a granularity")
        self.program = program
        self.context = context
        self.length = program.granularity_ms
        self.known: dict[Ground, dict[int, int]] = {}
        self.always: dict[Ground, None] = {}
        self._about: dict[tuple[str, str | None], dict[Ground, None]] = {}   # what is known or always holds (formulas.shapes)
        self.events: list[tuple[int, Ground]] = []
        start = None if program.start_at_ms is None else program.start_at_ms // self.length
        for fact in (*program.facts, *facts):
            self._take(fact, start)
        self.start = min((k for k, _ in self.events), default=0) if start is None else start
        for fact in derived:
            atom = ground(fact.atom, {})
            self._points(atom).update((k, k) for k in self._covered(fact) if k >= self.start)
        self.inconsistencies: dict[tuple[str, tuple[tuple[str, str], ...]], list[Interval]] = {}

    def run(self, until: int) -> Model:
        """The model after granule `until`. Raises Unending."""
        ordered = layers(self.program.rules)
        for now in range(self.start, until + 1):
            for layer, unending in ordered:
                for _ in rounds(unending):
                    if not any([self._apply(rule, body, now) for rule, body in layer]):
                        break
        facts = {atom: tuple(coalesce(granule(k, self.length) for k in points)) for atom, points in self.known.items()}
        facts |= {atom: (ALWAYS,) for atom in self.always}
        found = tuple(Inconsistency(name, dict(row), tuple(coalesce(i))) for (name, row), i in self.inconsistencies.items())
        return Model(dict(sorted(facts.items())), found)

    def final(self) -> dict[Ground, Intervals]:
        """When atoms hold, as known in each granule itself; what always does, from the first one on."""
        found = {atom: tuple(coalesce(granule(k, self.length) for k, known in points.items() if known <= k))
                 for atom, points in self.known.items()}
        return found | {atom: (Interval(granule(self.start, self.length).lo, MAX),) for atom in self.always}

    def _take(self, fact: Fact, start: int | None) -> None:
        """An input fact, at every granule that it covers; events before the start are not on the timeline."""
        atom = ground(fact.atom, {})
        if fact.interval == ALWAYS:
            self.always[atom] = None
            self._note(atom)
            return
        for k in self._covered(fact):
            if start is None or k >= start:
                self._points(atom)[k] = k
                self.events.append((k, atom))

    def _covered(self, fact: Fact) -> Iterable[int]:
        return range(fact.interval.lo // (2 * self.length), fact.interval.hi // (2 * self.length) + 1)

    def _apply(self, rule: Rule, body: Sequence[Formula], now: int) -> bool:
        rows: list[Row] = [{}]
        for formula in body:
            rows = [extended for row in rows for extended in self._solve(formula, row, now, View(now))]
        new = False
        for row in rows:
            if isinstance(rule.head, Falsum):
                key = rule.name or "", tuple(sorted(row.items()))
                self.inconsistencies.setdefault(key, []).append(granule(now, self.length))
                continue
            atom = ground(headed(rule.head), row)
            for k in self._told(rule.head, row, now):
                points = self._points(atom)
                if k not in points:
                    points[k] = now
                    new = True
        return new

    def _points(self, atom: Ground) -> dict[int, int]:
        """The granules at which an atom is known to hold."""
        if atom not in self.known:
            self.known[atom] = {}
            self._note(atom)
        return self.known[atom]

    def _note(self, atom: Ground) -> None:
        for key in shapes(*atom):
            self._about.setdefault(key, {})[atom] = None

    def _atom(self, pattern: Atom, row: Row, k: int, view: View) -> Iterator[Row]:
        if view.first is not None and k < view.first:
            return
        for atom in tuple(self._about.get(relation_of(pattern), ())):
            holds = k in self.known.get(atom, ()) and self.known[atom][k] <= view.now and (view.only is None or (k, atom) in view.only)
            if holds or atom in self.always:
                extended = unify(pattern, atom, row)
                if extended is not None:
                    yield extended

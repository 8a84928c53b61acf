"""Proofs on a timeline of granules: what follows by a LARS program (docs/lars.md).

The rules are applied granule by granule, in rounds (engine/reference/granules.py says what each formula means); every fact has the round
since which it is known. An atom that is derived for another granule than the present one is seen from the present one on.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from engine.functions.expressions import Context
from engine.functions.terms import number_of
from engine.ir.rules import Assign, At, Atom, BoxMinus, BoxPlus, DiamondMinus, Formula, Negation, Rule, RuleSet, Table, Test, WindowFormula
from engine.ir.strata import endless, rounds, strata
from engine.reference import granules
from engine.reference.formulas import Ground, Row, ground, headed, in_quick_order, unify, value_of
from engine.reference.granules import Timeline, distinct
from engine.timeline import ALWAYS, MAX, Interval, coalesce, granule
from engine.why import timed
from engine.why.index import LAST, Given, Index
from engine.why.timed import Path, Search, Way, step
from engine.why.trees import Absent, Budget, Derived, Holds, Operator, Proof, Source, asserted, depth


@dataclass(frozen=True, slots=True)
class Point:
    """A fact at granule `k`, as known at granule `by`."""

    fact: Ground
    k: int
    by: int


@dataclass(frozen=True, slots=True)
class View(granules.View):
    """What is seen as known after a round."""

    known: int = LAST


class Granular(Search[Point], Timeline[View]):
    """All that follows by granule `until`, and its proofs; rules are applied from granule `since` on, of None from the first. Raises
    Unstratified, Unending, TooMuchError, ValueError."""

    def __init__(self, program: RuleSet, given: Iterable[Given], until: int, context: Context, budget: Budget,
                 since: int | None = None, derived: Iterable[Given] = ()) -> None:
        """What is `derived` by others is no event, for windows of tuples."""
        super().__init__(program.rules, budget)
        self.length, self.context = program.granularity_ms, context
        self.given: dict[Ground, dict[Interval, tuple[Source, ...]]] = defaultdict(dict)
        self._known: dict[Ground, dict[int, tuple[int, int]]] = defaultdict(dict)
        self._always, self._at = Index(), defaultdict[int, Index](Index)
        self.events: list[tuple[int, Ground]] = []
        self._last = 0
        start = None if program.start_at_ms is None else program.start_at_ms // self.length
        for fact, source in given:
            self._take(ground(fact.atom, {}), fact.interval, source, start)
        self.events.sort()
        self.start = self.events[0][0] if self.events and start is None else start or 0
        for fact, source in derived:
            self._take(ground(fact.atom, {}), fact.interval, source, self.start, is_event=False)
        self._until, first = until, self.start if since is None else max(self.start, since)
        self._derive([(layer, endless(layer)) for layer in strata(self.rules)], range(first, until + 1))

    def _take(self, fact: Ground, when: Interval, source: Source, start: int | None, is_event: bool = True) -> None:
        """An input fact at every granule that it covers; events before the start are not on the timeline."""
        first, last = when.lo // (2 * self.length), when.hi // (2 * self.length)
        covered = range(first if start is None else max(first, start), last + 1) if when != ALWAYS else range(0)
        if when == ALWAYS:
            self._always.add(fact)
        elif not covered:
            return
        piece = ALWAYS if when == ALWAYS else self.granules(covered[0], last)
        self.given[fact][piece] = tuple(dict.fromkeys((*self.given[fact].get(piece, ()), source)))
        self.budget.spend(len(covered))
        for k in covered:
            self._know(fact, k, k)
        self.events += ((k, fact) for k in covered if is_event)

    def _know(self, fact: Ground, k: int, now: int) -> bool:
        if k in self._known[fact]:
            return False
        self._known[fact][k] = now, self._last
        self._at[k].add(fact)
        return True

    def granules(self, first: int, last: int) -> Interval:
        return Interval(granule(first, self.length).lo, granule(last, self.length).hi)

    def during(self, fact: Ground) -> tuple[Interval, ...]:
        if ALWAYS in self.given.get(fact, ()):
            return (ALWAYS,)
        return tuple(coalesce(granule(k, self.length) for k in self._known.get(fact, ())))

    def all(self) -> Iterable[Ground]:
        return dict.fromkeys((*self._known, *self.given))

    def goal(self, fact: Ground, point: int) -> Point:
        """A fact at the granule of a point, as known there."""
        k = point // (2 * self.length)
        return Point(fact, k, k)

    def whole(self, fact: Ground, when: Interval) -> Iterator[tuple[Proof, ...]]:
        """Proofs that one after the other show that a fact holds during all of an interval, as known in the end."""
        def following(tree: Proof) -> int | None:
            end = timed.during(tree).hi
            return None if end >= when.hi else (end + 1) // (2 * self.length)

        first = max(when.lo // (2 * self.length), self.start)
        return self.cover(lambda k: self.proofs(Point(fact, k, self._until)), first, following)

    def final(self, fact: Ground) -> tuple[Interval, ...]:
        """When a fact holds, as known in each granule itself; what always does, from the first one on."""
        if ALWAYS in self.given.get(fact, ()):
            return (Interval(granule(self.start, self.length).lo, MAX),)
        return tuple(coalesce(granule(k, self.length) for k, (now, _) in self._known.get(fact, {}).items() if now <= k))

    # --- rounds

    def _derive(self, layers: Sequence[tuple[Sequence[Rule], Sequence[str]]], granules: range) -> None:
        for now in granules:
            for layer, unending in layers:
                self.budget.spend()
                for _ in rounds(unending):
                    found = [derived for rule in layer for row in self.body(rule, {}, View(now)) for derived in self._heads(rule, row, now)]
                    self._last += 1
                    if not any([self._know(fact, k, now) for fact, k in found]):
                        break

    def _heads(self, rule: Rule, row: Row, now: int) -> Iterator[tuple[Ground, int]]:
        fact, told = ground(headed(rule.head), row), self._told(rule.head, row, now)
        if isinstance(rule.head, BoxPlus):
            self.budget.spend(len(told))
        return ((fact, k) for k in told)

    # --- solutions

    def body(self, rule: Rule, row: Row, view: View) -> list[Row]:
        """The extensions of `row` that satisfy a body at the present granule."""
        rows = [row]
        for formula in in_quick_order(rule.body, row):
            rows = distinct(extended for found in rows for extended in self._solve(formula, found, view.now, view))
        return rows

    def _atom(self, pattern: Atom, row: Row, k: int, view: View) -> Iterator[Row]:
        if view.first is not None and k < view.first:
            return
        here = [fact for fact in self._at[k].facts(pattern, row) if self._seen(fact, k, view)] if k in self._at else []
        always = self._always.facts(pattern, row)
        self.budget.spend(1 + len(here) + len(always))
        for fact in dict.fromkeys((*here, *always)):
            if (extended := unify(pattern, fact, row)) is not None:
                yield extended

    def _seen(self, fact: Ground, k: int, view: View) -> bool:
        now, number = self._known[fact][k]
        return now <= view.now and number <= view.known and (view.only is None or (k, fact) in view.only)

    def _under_not(self, view: View) -> View:
        return replace(view, known=LAST)

    # --- proofs

    def key(self, goal: Point) -> tuple[Ground, int]:
        return goal.fact, goal.k

    def round_of(self, goal: Point) -> int | None:
        if ALWAYS in self.given.get(goal.fact, ()):
            return 0
        now, number = self._known.get(goal.fact, {}).get(goal.k, (goal.by + 1, 0))
        return number if now <= goal.by else None

    def leaves(self, goal: Point) -> Iterator[Proof]:
        pieces = self.given.get(goal.fact, {})
        here = granule(goal.k, self.length).lo
        for piece in sorted((p for p in pieces if here in p), key=lambda p: -p.hi):
            yield from asserted(goal.fact, pieces[piece], piece, goal.k)

    def ways(self, goal: Point, number: int | None) -> Iterator[Way]:
        by = LAST if number is None else number
        for rule, begun in self.about(goal.fact):
            for now in self._presents(rule, goal, number):
                for row in self.body(rule, begun, View(now, known=by)):
                    if (goal.fact, goal.k) in self._heads(rule, row, now):
                        yield Way(rule, tuple(sorted(row.items())), now, self._least(rule, row, now, min(by, self._last)))

    def _presents(self, rule: Rule, goal: Point, number: int | None) -> Iterable[int]:
        """The granules at which a rule may give a goal."""
        match rule.head:
            case At():
                return range(self.start, goal.by + 1) if number is None else (self._known[goal.fact][goal.k][0],)
            case BoxPlus(distance=distance):
                first, last = goal.k - self._steps(distance.hi), goal.k - self._steps(distance.lo)
                return range(min(last, goal.by), max(first, self.start) - 1, -1)
        return (goal.k,) if self.start <= goal.k <= goal.by else ()

    def _least(self, rule: Rule, row: Row, now: int, by: int) -> int:
        """The round after which a body is known to be true, `by` at the latest."""
        return bisect_left(range(by), True, key=lambda number: bool(self.body(rule, row, View(now, known=number))))

    def part(self, formula: Formula, way: Way, path: Path) -> Iterator[Proof] | None:
        view = View(way.where, known=way.number)
        return None if isinstance(formula, (Assign, Table)) else self._true(formula, dict(way.row), way.where, view, path)

    def _true(self, formula: Formula, row: Row, k: int, view: View, path: Path) -> Iterator[Proof]:
        """The trees of a formula at a granule, as seen in a view."""
        here = granule(k, self.length)
        match formula:
            case Atom():
                yield from self.trees(Point(ground(formula, row), k, view.now), path)
            case DiamondMinus(body=body):
                looked = self._looked(formula, k, view)
                for point in reversed(looked):
                    if row in self._solve(body, row, point, view):
                        for tree in self._true(body, row, point, view, path):
                            yield step("diamond-minus", formula, row, [tree], here, self.granules(looked[0], looked[-1]))
            case BoxMinus(body=body):
                looked = self._looked(formula, k, view)
                for pieces in self._pieces(body, row, looked, view, path):
                    yield step("box-minus", formula, row, pieces, here, self.granules(looked[0], looked[-1]) if looked else here)
            case At(instant=term, body=body):
                moment = number_of(value_of(term, row))
                assert moment is not None
                for tree in self._true(body, row, moment, view, path):
                    yield step("at", formula, row, [tree], here, granule(moment, self.length))
            case WindowFormula(unit=unit, body=body):
                seen = self._through(formula, k, view)
                for tree in self._true(body, row, k, seen, path):
                    over = self.granules(min(seen.first or k, k), k) if seen.first is not None else here
                    yield step("window" if unit == "time" else "tuple-window", formula, row, [tree], here, over)
            case Negation():
                yield Absent(timed.shown(formula.body, row), during=here)
            case Test():
                yield Holds(timed.shown(formula, row))

    def _pieces(self, body: Formula, row: Row, looked: range, view: View, path: Path) -> Iterator[tuple[Proof, ...]]:
        """Trees that one after the other are true at all these granules."""
        def following(piece: Proof) -> int | None:
            point = (timed.during(piece).hi + 1) // (2 * self.length)
            return point if point < looked.stop else None

        return self.cover(lambda point: self._true(body, row, point, view, path), looked.start, following) if looked else iter([()])

    def conclude(self, goal: Point, way: Way, premises: tuple[Proof, ...]) -> Proof:
        here, row, head = granule(goal.k, self.length), dict(way.row), way.rule.head
        if not isinstance(head, Atom):
            operator: Operator = "at" if isinstance(head, At) else "box-plus"
            premises = (step(operator, head, row, premises, here, granule(way.where, self.length)),)
        return Derived(goal.fact, way.rule, row, premises, 1 + depth(premises), timed.size(premises), here)

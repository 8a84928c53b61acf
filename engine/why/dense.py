"""Proofs on dense time: what follows by rules over facts with intervals (docs/architecture.md, "Temporal operators").

The rules are applied in rounds, each to what was known before it, so that every interval of a fact has a round since which it is known;
then proofs are searched for backwards from a point.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from engine.functions.expressions import Context
from engine.functions.terms import number_of
from engine.ir.rules import Assign, At, Atom, BoxMinus, BoxPlus, DiamondMinus, Formula, Head, Negation, Rule, Table, Test, atoms
from engine.ir.strata import endless, rounds, strata
from engine.reference.formulas import Ground, Row, ground, headed, in_quick_order, unify, value_of
from engine.reference.temporal import DenseTime, Solutions, reached
from engine.timeline import (MIN, Interval, box_minus, coalesce, common, diamond_minus, instant,
                             intersect, interval, looked_back, reached_from)
from engine.why import timed
from engine.why.index import LAST, Given, Index
from engine.why.timed import Path, Search, Way, during, step
from engine.why.trees import Absent, Asserted, Budget, Derived, Holds, Proof, Source, asserted, depth

Intervals = tuple[Interval, ...]
View = tuple[int | None, int]
"""The Window of the rule that looks, and the round after which something is known."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A fact at a point, as a rule with this Window sees it."""

    fact: Ground
    point: int
    window_ms: int | None = None


class Dense(Search[Moment], DenseTime[View]):
    """All that follows from `given` up to the point `until`, and its proofs; these may reach further, where nothing must be absent.
    Raises Unstratified, Unending, TooMuchError, ValueError."""

    def __init__(self, rules: Iterable[Rule], given: Iterable[Given], until: int, context: Context, budget: Budget,
                 derived: Iterable[Given] = ()) -> None:
        """What is `derived` by others is no event, for rules with a Window."""
        super().__init__(rules, budget)
        self.given: dict[Ground, dict[Interval, tuple[Source, ...]]] = defaultdict(dict)
        self.context = context
        # By fact: the rounds in which something became known of it, ascending, and all that was known after each.
        self._rounds: dict[Ground, list[int]] = {}
        self._known: dict[Ground, list[Intervals]] = {}
        self._index = Index()
        self._horizon = Interval(MIN, until)
        self._last = 0
        listed = list(given)
        self._events = {(ground(fact.atom, {}), fact.interval) for fact, _ in listed if fact.interval.lo == fact.interval.hi}
        for fact, source in (*listed, *derived):
            pieces = self.given[ground(fact.atom, {})]
            pieces[fact.interval] = tuple(dict.fromkeys((*pieces.get(fact.interval, ()), source)))
        for atom, pieces in self.given.items():
            self._know(atom, pieces)
        for layer in strata(self.rules):
            self._close(layer)

    def _know(self, fact: Ground, when: Iterable[Interval]) -> bool:
        """Note that a fact holds `when`, since the round `_last` (0: it is given). Gives whether that is new."""
        before = self._known[fact][-1] if fact in self._known else ()
        after = tuple(coalesce([*before, *when]))
        if after == before:
            return False
        if fact not in self._known:
            self._known[fact], self._rounds[fact] = [], []
            self._index.add(fact)
        self._known[fact].append(after)
        self._rounds[fact].append(self._last)
        return True

    def all(self) -> Iterable[Ground]:
        return self._known

    def during(self, fact: Ground, window_ms: int | None = None, by: int = LAST) -> Intervals:
        """When a fact holds as known after the round `by`; for a rule with a Window each event counts from its instant on so long."""
        rounds = self._rounds.get(fact, [])
        place = bisect_right(rounds, by)
        found = self._known[fact][place - 1] if place else ()
        return tuple(coalesce([*found, *(seen for _, seen in self._seen(fact, window_ms))])) if window_ms is not None else found

    def _seen(self, fact: Ground, window_ms: int | None) -> Iterator[tuple[Interval, Interval]]:
        """The events of a fact, each with when a rule with this Window sees it."""
        if window_ms is None:
            return
        for piece in self.given.get(fact, ()):
            if (fact, piece) in self._events:
                seen = interval(piece.lo // 2, piece.lo // 2 + window_ms, closed_end=False)
                assert seen is not None
                yield piece, seen

    final = during

    def goal(self, fact: Ground, point: int) -> Moment:
        """A fact at a point, by all that is known then."""
        return Moment(fact, point)

    def whole(self, fact: Ground, when: Interval) -> Iterator[tuple[Proof, ...]]:
        """Proofs that one after the other show that a fact holds during all of an interval."""
        return self.pieces(lambda point: self.proofs(Moment(fact, point)), when)

    # --- rounds

    def _close(self, layer: Sequence[Rule]) -> None:
        triggers = [(rule, atom) for rule in layer for part in rule.body if not isinstance(part, Negation) for atom in atoms(part)]
        changed: list[Ground] = []
        for number in rounds(endless(layer)):
            found: dict[Ground, list[Interval]] = defaultdict(list)
            rows = timed.touched(triggers, changed) if number else [(rule, dict[str, str]()) for rule in layer]
            for rule, row in rows:
                for fact, when in self._derived(rule, row):
                    found[fact] += when
            self._last += 1
            changed = [fact for fact, when in found.items() if when and self._know(fact, when)]
            if not changed:
                return

    def _derived(self, rule: Rule, row: Row) -> Iterator[tuple[Ground, list[Interval]]]:
        for found, held in self.body(rule, row):
            fact = ground(headed(rule.head), found)
            yield fact, [inside for when in reached(rule.head, found, held) if (inside := intersect(when, self._horizon)) is not None]

    # --- solutions

    def body(self, rule: Rule, row: Row, by: int = LAST) -> Solutions:
        """The extensions of `row` that satisfy a body, each with when, as known after the round `by`."""
        solutions: Solutions = [(row, (self._horizon,))]
        view = rule.window_ms, by
        for formula in in_quick_order(rule.body, row):
            solutions = [(extended, both) for found, held in solutions for extended, when in self.solve(formula, found, view)
                         if (both := common(held, when))]
        return solutions

    def _atom(self, pattern: Atom, row: Row, view: View) -> Solutions:
        facts = self._index.facts(pattern, row)
        self.budget.spend(len(facts))
        return [(extended, when) for fact in facts if (extended := unify(pattern, fact, row)) is not None
                and (when := self.during(fact, *view))]

    def _under_not(self, view: View) -> View:
        return view[0], LAST

    # --- proofs

    def round_of(self, goal: Moment) -> int | None:
        if any(goal.point in seen for _, seen in self._seen(goal.fact, goal.window_ms)):
            return 0
        known = zip(self._rounds.get(goal.fact, ()), self._known.get(goal.fact, ()))
        return next((number for number, held in known if any(goal.point in when for when in held)), None)

    def leaves(self, goal: Moment) -> Iterator[Proof]:
        pieces = self.given.get(goal.fact, {})
        for piece in sorted((p for p in pieces if goal.point in p), key=lambda p: -p.hi):
            yield from asserted(goal.fact, pieces[piece], piece, goal.point)
        for piece, seen in self._seen(goal.fact, goal.window_ms):
            if goal.point in seen and goal.point not in piece:
                leaf = Asserted(goal.fact, pieces[piece], during=piece)
                yield timed.window(leaf, goal.window_ms or 0, seen)

    def ways(self, goal: Moment, number: int | None) -> Iterator[Way]:
        by = LAST if number is None else number
        for rule, begun in self.about(goal.fact):
            for row, held in self.body(rule, begun, by):
                where = _origin(rule.head, row, held, goal.point)
                if where is not None:
                    yield Way(rule, tuple(sorted(row.items())), where, self._least(rule, row, where, min(by, self._last)))

    def _least(self, rule: Rule, row: Row, point: int, by: int) -> int:
        """The round after which a body is known to be true at a point, `by` at the latest."""
        def is_true(number: int) -> bool:
            return any(point in when for _, held in self.body(rule, row, number) for when in held)

        return bisect_left(range(by), True, key=is_true)

    def part(self, formula: Formula, way: Way, path: Path) -> Iterator[Proof] | None:
        return None if isinstance(formula, (Assign, Table)) else self._true(formula, way, way.where, path)

    def _true(self, formula: Formula, way: Way, point: int, path: Path) -> Iterator[Proof]:
        """The trees of a formula at a point."""
        row, window_ms = dict(way.row), way.rule.window_ms
        match formula:
            case Atom():
                yield from self.trees(Moment(ground(formula, row), point, window_ms), path)
            case DiamondMinus(distance=distance, body=body):
                held = (when for _, found in self.solve(body, row, (window_ms, way.number)) for when in found)
                for when in sorted(held, reverse=True):
                    if (seen := reached_from(point, distance, when)) is not None:
                        for tree in self._true(body, way, seen, path):
                            true = diamond_minus(during(tree), distance)
                            yield step("diamond-minus", formula, row, [tree], true, _over(true, distance))
            case BoxMinus(distance=distance, body=body):
                looked = looked_back(point, distance)
                for pieces in self.pieces(lambda seen: self._true(body, way, seen, path), looked):
                    boxed = box_minus(timed.joined(pieces), distance)
                    assert boxed is not None
                    yield step("box-minus", formula, row, pieces, boxed, _over(boxed, distance))
            case At(body=body):
                moment = Interval(point, point)
                for tree in self._true(body, way, point, path):
                    yield step("at", formula, row, [tree], moment, moment)
            case Negation():
                [(_, without)] = self.solve(formula, row, (window_ms, LAST))
                gap = next(when for when in without if point in when)
                yield Absent(timed.shown(formula.body, row), during=intersect(gap, self._horizon))
            case Test():
                yield Holds(timed.shown(formula, row))

    def pieces(self, at: Callable[[int], Iterator[Proof]], when: Interval) -> Iterator[tuple[Proof, ...]]:
        """Trees that one after the other hold during all of an interval; `at` gives those of a point."""
        return self.cover(at, when.lo, lambda tree: None if (end := during(tree).hi) >= when.hi else end + 1)

    def conclude(self, goal: Moment, way: Way, premises: tuple[Proof, ...]) -> Proof:
        true, row = timed.meeting(premises), dict(way.row)
        match way.rule.head:
            case BoxPlus(distance=distance):
                made = diamond_minus(true, distance)
                premises = (step("box-plus", way.rule.head, row, premises, made, true),)
                true = made
            case At():
                moment = Interval(goal.point, goal.point)
                premises = (step("at", way.rule.head, row, premises, moment, true),)
                true = moment
        return Derived(goal.fact, way.rule, row, premises, 1 + depth(premises), timed.size(premises), true)


def _origin(head: Head, row: Row, held: Intervals, point: int) -> int | None:
    """Where the body is true for the head to hold at a point: the latest, of ``@`` the earliest such."""
    match head:
        case BoxPlus(distance=distance):
            found = [seen for when in held if (seen := reached_from(point, distance, when)) is not None]
            return max(found, default=None)
        case At(instant=term):
            ms = number_of(value_of(term, row))
            return held[0].lo if ms is not None and instant(ms) == point else None
    return point if any(point in when for when in held) else None


def _over(true: Interval, distance: Interval) -> Interval:
    """All that an operator looks at from the points of an interval."""
    return Interval(looked_back(true.lo, distance).lo, looked_back(true.hi, distance).hi)

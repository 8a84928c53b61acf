"""Proofs of what a Streaming RIF-Core program reports: a fact from the latest begin of what it uses to the earliest end
(engine/reference/program.py has the definitions). Nothing coalesces: each begin of a fact is an instance of its own."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from engine.functions.expressions import Context
from engine.ir.rules import Assign, Atom, Formula, Rule, Table, Test, atoms
from engine.ir.strata import endless, rounds
from engine.reference.formulas import Ground, Row, computed, ground, headed, in_quick_order, unify
from engine.timeline import MAX, MIN, Interval
from engine.why import timed
from engine.why.index import LAST, Index
from engine.why.timed import Path, Search, Way
from engine.why.trees import Budget, Derived, Holds, Proof, depth


@dataclass(frozen=True, slots=True)
class Instance:
    """A fact from `begin` to before `end`, in ms; MIN and MAX where it always holds."""

    fact: Ground
    begin: int
    end: int

    @property
    def during(self) -> Interval:
        """The same as points."""
        return Interval(MIN if self.begin == MIN else 2 * self.begin, MAX if self.end == MAX else 2 * self.end - 1)


_ALWAYS = Instance(("", ()), MIN, MAX)
Used = tuple[tuple[int, Instance], ...]
"""The instances that parts of a body are true by, each with the number of its part."""
Solution = tuple[Row, int, int, Used]


class Streamed(Search[Instance]):
    """All instances that follow from `given`, and their proofs. Raises Unending, TooMuchError, ValueError."""

    def __init__(self, rules: Sequence[Rule], given: Mapping[Instance, tuple[Proof, ...]], context: Context, budget: Budget) -> None:
        """`given` has the leaves of each instance of the input."""
        super().__init__(rules, budget)
        self.given, self._context = given, context
        self._index = Index()
        self._known: dict[Ground, dict[int, tuple[list[int], list[int]]]] = defaultdict(dict)
        self._last = 0
        for instance in given:
            self._know(instance.fact, instance.begin, instance.end)
        self._derive()

    def _know(self, fact: Ground, begin: int, end: int) -> bool:
        if fact not in self._known:
            self._index.add(fact)
        numbers, ends = self._known[fact].setdefault(begin, ([], []))
        if ends and ends[-1] >= end:
            return False
        numbers.append(self._last)
        ends.append(end)
        return True

    # --- rounds

    def _derive(self) -> None:
        triggers = [(rule, atom) for rule in self.rules for part in rule.body for atom in atoms(part)]
        changed: list[Ground] = []
        for number in rounds(endless(self.rules)):
            rows = timed.touched(triggers, changed) if number else ((rule, dict[str, str]()) for rule in self.rules)
            found = [(ground(headed(rule.head), bound), begin, end) for rule, row in rows for bound, begin, end, _ in self.body(rule, row)]
            self._last += 1
            changed = list(dict.fromkeys(fact for fact, begin, end in found if self._know(fact, begin, end)))
            if not changed:
                return

    def body(self, rule: Rule, row: Row, by: int = LAST) -> list[Solution]:
        """The extensions of `row` that satisfy a body, from when to when, as known after the round `by`."""
        solutions: list[Solution] = [(row, MIN, MAX, ())]
        for formula in in_quick_order(rule.body, row):
            place = next(i for i, part in enumerate(rule.body) if part is formula)
            solutions = [(extended, max(begin, one.begin), min(end, one.end), (*used, (place, one)) if isinstance(formula, Atom) else used)
                         for found, begin, end, used in solutions for extended, one in self._solve(formula, found, by)
                         if max(begin, one.begin) < min(end, one.end)]
        return solutions

    def _solve(self, formula: Formula, row: Row, by: int) -> Iterator[tuple[Row, Instance]]:
        match formula:
            case Atom():
                facts = self._index.facts(formula, row)
                self.budget.spend(1 + len(facts))
                for fact in facts:
                    if (extended := unify(formula, fact, row)) is not None:
                        yield from ((extended, one) for one in self._instances(fact, by))
            case Test() | Assign() | Table():
                yield from ((extended, _ALWAYS) for extended in computed(formula, row, self._context))
            case _:
                raise ValueError(f"a program has no {type(formula).__name__}")

    def _instances(self, fact: Ground, by: int) -> Iterator[Instance]:
        for begin, (numbers, ends) in self._known.get(fact, {}).items():
            if (place := bisect_right(numbers, by)):
                yield Instance(fact, begin, ends[place - 1])

    # --- proofs

    def reported(self, goal: Instance, rules: Sequence[Rule]) -> Iterator[Proof]:
        """The trees of an instance whose last rule is one of these."""
        for way in self.ways(goal, None):
            if way.rule in rules:
                yield from self.by(goal, way, frozenset())

    def key(self, goal: Instance) -> tuple[Ground, int]:
        return goal.fact, goal.begin

    def round_of(self, goal: Instance) -> int | None:
        numbers, ends = self._known.get(goal.fact, {}).get(goal.begin, ([], []))
        return numbers[ends.index(goal.end)] if goal.end in ends else None

    def leaves(self, goal: Instance) -> Iterator[Proof]:
        yield from self.given.get(goal, ())

    def ways(self, goal: Instance, number: int | None) -> Iterator[Way]:
        for rule, begun in self.about(goal.fact):
            for row, begin, end, used in self.body(rule, begun, LAST if number is None else number):
                if (begin, end) == (goal.begin, goal.end):
                    after = max((self.round_of(one) or 0 for _, one in used), default=0)
                    yield Way(rule, tuple(sorted(row.items())), goal.begin, after, used)

    def part(self, formula: Formula, way: Way, path: Path) -> Iterator[Proof] | None:
        match formula:
            case Atom():
                place = next(i for i, part in enumerate(way.rule.body) if part is formula)
                return self.trees(dict(way.uses)[place], path)
            case Test():
                return iter([Holds(timed.shown(formula, dict(way.row)))])
        return None

    def conclude(self, goal: Instance, way: Way, premises: tuple[Proof, ...]) -> Proof:
        return Derived(goal.fact, way.rule, dict(way.row), premises, 1 + depth(premises), timed.size(premises), goal.during)

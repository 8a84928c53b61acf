"""Proofs of facts with time checked without the code that finds them: each step by the definition of its operator, point by point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice

from engine.functions.expressions import Context, evaluate, test
from engine.functions.terms import number_of
from engine.ir.rules import (Assign, At, Atom, BoxMinus, BoxPlus, DiamondMinus, Fact, Formula, Negation, Rule, RuleSet, Table, Test,
                             WindowFormula)
from engine.ir.terms import Constant
from engine.reference.formulas import Ground, Model, Row, ground, unify, value_of
from engine.reference.granules import Granules, View as Seen
from engine.timeline import ALWAYS, Interval
from engine.why.timed import G, Search
from engine.why.trees import Absent, Asserted, Budget, Derived, Holds, Proof, Step, TooMuchError
from tests.unit.reference.test_temporal import CELLS, looked_at


@dataclass
class Checker:
    """What a proof may rest on; `model` is the oracle's, in which what is absent must be absent."""

    program: RuleSet
    facts: Sequence[Fact]
    model: Model
    context: Context = field(default_factory=lambda: Context(0))

    def check(self, proof: Proof, above: tuple[Ground, ...] = ()) -> None:
        """Assert that a tree proves what it says."""
        match proof:
            case Asserted(fact=fact, during=during):
                assert any(ground(given.atom, {}) == fact and given.interval == during for given in (*self.program.facts, *self.facts))
                assert proof.sources
            case Derived():
                self._check_rule(proof)
            case _:
                raise AssertionError(proof)

    def _check_rule(self, proof: Derived) -> None:
        rule, row, during = proof.rule, proof.row, proof.during
        assert rule in self.program.rules and during is not None
        assert all(self._holds(proof.fact, cell) for cell in cells(during)), "the oracle does not have it"
        match rule.head:
            case Atom() as head:
                true, premises = cells(during), proof.premises
            case BoxPlus(distance=distance, body=head):
                [step] = proof.premises
                assert isinstance(step, Step) and step.operator == "box-plus"
                true, premises = cells(step.over), step.premises
                assert all(true & set(looked_at(cell, distance)) for cell in cells(during) & cells(step.during))
                assert cells(during) <= cells(step.during)
            case At(instant=term, body=Atom() as head):
                [step] = proof.premises
                assert isinstance(step, Step) and step.operator == "at"
                ms = number_of(value_of(term, row))
                assert ms is not None and during == step.during == Interval(2 * ms, 2 * ms)
                true, premises = cells(step.over), step.premises
        assert ground(head, row) == proof.fact
        assert proof.depth == 1 + max((part.depth for part in proof.premises), default=0)
        shown = [part for part in rule.body if not isinstance(part, (Assign, Table))]
        assert len(shown) == len(premises)
        for part, premise in zip(shown, premises):
            self._check_part(part, row, true, premise, rule)
        for other in rule.body:
            match other:
                case Assign(variable=variable, expression=expression):
                    assert row[variable.name] == evaluate(expression, row, self.context)
                case Table(variables=variables, rows=rows):
                    assert tuple(Constant(row[v.name]) for v in variables) in rows

    def _check_part(self, part: Formula, row: Row, true: set[int], premise: Proof, rule: Rule) -> None:
        """Assert that a premise shows a part of a body to be true at these cells."""
        match part, premise:
            case Atom(), Asserted() | Derived():
                assert premise.fact == ground(part, row) and premise.during is not None and true <= cells(premise.during)
                self.check(premise)
            case DiamondMinus(distance=distance, body=body), Step(operator="diamond-minus", premises=(inner,)):
                assert true <= cells(premise.during)
                for cell in cells(premise.during):
                    assert set(looked_at(cell, distance)) & _when(inner)
                self._check_part(body, row, _when(inner), inner, rule)
            case BoxMinus(distance=distance, body=body), Step(operator="box-minus", premises=inners):
                assert true <= cells(premise.during) and inners
                covered = set().union(*map(_when, inners))
                for cell in cells(premise.during):
                    assert set(looked_at(cell, distance)) <= covered
                for inner in inners:
                    self._check_part(body, row, _when(inner), inner, rule)
            case At(instant=term, body=body), Step(operator="at", premises=(inner,)):
                ms = number_of(value_of(term, row))
                assert ms is not None and premise.during == Interval(2 * ms, 2 * ms) and true <= {2 * ms}
                self._check_part(body, row, {2 * ms}, inner, rule)
            case Negation(body=body), Absent(during=during):
                assert during is not None and true <= cells(during)
                assert not any(self._true(body, row, cell) for cell in cells(during))
            case Test(condition=condition), Holds():
                assert test(condition, row, self.context)
            case _:
                raise AssertionError(f"{premise} is no proof of {part}")

    def _holds(self, fact: Ground, cell: int) -> bool:
        return any(cell in when for when in self.model.facts.get(fact, ()))

    def _true(self, formula: Formula, row: Row, cell: int) -> bool:
        match formula:
            case Atom():
                return any(self._holds(fact, cell) for fact in self.model.facts if unify(formula, fact, row) is not None)
            case DiamondMinus(distance=distance, body=body):
                return any(self._true(body, row, other) for other in looked_at(cell, distance))
            case BoxMinus(distance=distance, body=body):
                return all(self._true(body, row, other) for other in looked_at(cell, distance))
        raise AssertionError(formula)


def cells(when: Interval) -> set[int]:
    """The cells of an interval that are looked at."""
    return {cell for cell in CELLS if cell in when}


def _when(proof: Proof) -> set[int]:
    during = getattr(proof, "during", None)
    return set(CELLS) if during is None else cells(during)


def some(search: Search[G], goal: G) -> list[Proof]:
    """Up to three trees of a goal: the first is found in few steps, others as far as the steps go."""
    search.budget = Budget(500_000)
    found: list[Proof] = []
    try:
        for proof in islice(search.proofs(goal), 3):
            found.append(proof)
    except TooMuchError:
        assert found
    return found


def leaves(proof: Proof) -> list[Asserted]:
    """What a tree rests on."""
    if isinstance(proof, Asserted):
        return [proof]
    return [leaf for part in getattr(proof, "premises", ()) for leaf in leaves(part)]


# --- granules


@dataclass(frozen=True)
class View:
    """What a rule at granule `now` sees: the granules from `first` on, or the events `only`."""

    now: int
    first: int | None = None
    only: frozenset[tuple[int, Ground]] | None = None


@dataclass
class GranuleChecker:
    """The same on a timeline of granules; `oracle` has been run."""

    oracle: Granules

    def check(self, proof: Proof, by: int) -> None:
        """Assert that a tree proves what it says to who looks at granule `by`."""
        assert isinstance(proof, (Asserted, Derived)) and proof.during is not None
        if isinstance(proof, Asserted):
            assert proof.sources and self._is_given(proof)
            return
        rule, row = proof.rule, proof.row
        assert rule in self.oracle.program.rules
        [k], premises, now = self._points(proof), proof.premises, None
        assert proof.fact in self.oracle.always or self.oracle.known[proof.fact][k] <= by, f"{proof.fact} does not hold at {k}"
        match rule.head:
            case Atom() as head:
                now = k
            case BoxPlus(distance=distance, body=head):
                [step] = premises
                assert isinstance(step, Step) and step.operator == "box-plus"
                [now], premises = self._points(step.over), step.premises
                assert distance.lo <= (k - now) * 2 * self.oracle.length <= distance.hi
            case At(instant=term, body=Atom() as head):
                [step] = premises
                assert isinstance(step, Step) and step.operator == "at" and number_of(value_of(term, row)) == k
                [now], premises = self._points(step.over), step.premises
        assert ground(head, row) == proof.fact and now is not None and now <= by
        shown = [part for part in rule.body if not isinstance(part, (Assign, Table))]
        assert len(shown) == len(premises)
        for part, premise in zip(shown, premises):
            self._check_part(part, row, now, View(now), premise)
        for other in rule.body:
            match other:
                case Assign(variable=variable, expression=expression):
                    assert row[variable.name] == evaluate(expression, row, self.oracle.context)
                case Table(variables=variables, rows=rows):
                    assert tuple(Constant(row[v.name]) for v in variables) in rows

    def _check_part(self, part: Formula, row: Row, k: int, view: View, premise: Proof) -> None:
        match part, premise:
            case Atom(), Asserted() | Derived():
                fact = ground(part, row)
                assert premise.fact == fact and self._holds(fact, k, view) and k in self._points(premise)
                self.check(premise, view.now)
            case DiamondMinus(body=body), Step(operator="diamond-minus", premises=(inner,)):
                [point] = [j for j in self._looked(part, k, view) if j in self._points(inner)][-1:]
                self._check_part(body, row, point, view, inner)
            case BoxMinus(body=body), Step(operator="box-minus", premises=inners):
                looked = self._looked(part, k, view)
                assert all(any(j in self._points(inner) for inner in inners) for j in looked)
                for inner in inners:
                    for j in looked:
                        if j in self._points(inner):
                            self._check_part(body, row, j, view, inner)
            case At(instant=term, body=body), Step(operator="at", premises=(inner,)):
                moment = number_of(value_of(term, row))
                assert moment is not None and (moment == k if view.first is None else view.first <= moment <= k)
                assert self._points(premise) == [k]
                self._check_part(body, row, moment, view, inner)
            case WindowFormula(unit="time", size=size, body=body), Step(operator="window", premises=(inner,)):
                self._check_part(body, row, k, View(view.now, max(k - size, self.oracle.start)), inner)
            case WindowFormula(unit="tuple", size=size, body=body), Step(operator="tuple-window", premises=(inner,)):
                last = sorted({event for event in self.oracle.events if event[0] <= k})[-size:]
                first = last[0][0] if len(last) == size else self.oracle.start
                self._check_part(body, row, k, View(view.now, first, frozenset(last)), inner)
            case Negation(body=body), Absent():
                assert not list(self.oracle._solve(body, row, k, Seen(view.now, view.first, view.only)))
            case Test(condition=condition), Holds():
                assert test(condition, row, self.oracle.context)
            case _:
                raise AssertionError(f"{premise} is no proof of {part}")

    def _holds(self, fact: Ground, k: int, view: View) -> bool:
        if view.first is not None and k < view.first:
            return False
        known = k in self.oracle.known.get(fact, {}) and self.oracle.known[fact][k] <= view.now
        return fact in self.oracle.always or known and (view.only is None or (k, fact) in view.only)

    def _looked(self, formula: DiamondMinus | BoxMinus, k: int, view: View) -> list[int]:
        """The granules at a distance; a box takes what lies before the first one to be like it."""
        start, unit = self.oracle.start, 2 * self.oracle.length
        found = {j for j in range(start - 50, k + 1) if formula.distance.lo <= (k - j) * unit <= formula.distance.hi}
        if isinstance(formula, BoxMinus):
            found = {max(j, start) for j in found}
        return sorted(j for j in found if j >= start and (view.first is None or j >= view.first))

    def _points(self, of: Proof | Interval) -> list[int]:
        """The granules of an interval, up to the last that is looked at."""
        when = of if isinstance(of, Interval) else getattr(of, "during", None) or ALWAYS
        unit = 2 * self.oracle.length
        return [k for k in range(-60, 60) if when.lo <= k * unit and (k + 1) * unit - 1 <= when.hi]

    def _is_given(self, proof: Asserted) -> bool:
        if proof.during == ALWAYS:
            return proof.fact in self.oracle.always
        return all((k, proof.fact) in self.oracle.events for k in self._points(proof))

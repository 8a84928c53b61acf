"""A program over interval relations run in DuckDB, in one step or in many, and its model beside that of the reference evaluator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

import duckdb
import pytest

from engine.ir.rules import Fact, RuleSet
from engine.plan import derivations, intervals
from engine.reference.formulas import Ground, Model
from engine.reference.temporal import evaluate
from engine.rewrite.temporal import normal_form
from engine.sql.steps import Statements
from engine.timeline import ALWAYS, MIN, Interval, coalesce, granule, instant, intersect
from engine.worker.functions import register_duckdb
from engine.worker.program import ProgramState, _Step
from engine.worker.tables import tables

Held = dict[Ground, tuple[Interval, ...]]


def planned(program: RuleSet) -> intervals.Program:
    """The plan of a program."""
    made = normal_form(program)
    return derivations.build(program, made.rules, made.checks)


@lru_cache(maxsize=1)
def connection() -> duckdb.DuckDBPyConnection:
    """A database with the functions that plans call."""
    made = duckdb.connect(":memory:", config={"threads": 1})
    register_duckdb(made)
    return made


def merges_of(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How often steps have looked for something new for a relation since this was called."""
    calls, merge = list[str](), _Step._merge

    def counted(step: _Step, relation: intervals.Relation, *given: Any) -> bool:
        calls.append(relation.name)
        return merge(step, relation, *given)

    monkeypatch.setattr(_Step, "_merge", counted)
    return lambda: len(calls)


_ALIVE: list[ProgramState] = []


class Run:
    """A program that is taken on step by step; what it tells is gathered. There is one at a time: the next one takes its place."""

    def __init__(self, program: RuleSet, facts: Iterable[Fact], statements: Statements | None = None) -> None:
        for made in _ALIVE:
            made.drop()
        _ALIVE.clear()
        statements = statements or Statements(planned(program))
        self.program = program
        self.plan = statements.program
        self.late = {late: name for name, late in self.plan.late}
        checks = {name for name, _ in self.plan.checks}
        shown = [relation.name for relation in self.plan.relations
                 if relation.shown or relation.name in self.late or relation.name.rpartition("/")[0] in checks]
        self.state = ProgramState(connection(), statements, shown)
        _ALIVE.append(self.state)
        self.waiting = [*program.facts, *facts]
        self.found: dict[Ground, list[Interval]] = {}
        self.told: dict[str, list[dict[str, object]]] = {}
        self.most = 0

    def to(self, until_ms: int) -> None:
        """One step up to an instant, or to the end of its granule."""
        length = 2 * self.program.granularity_ms
        point = instant(until_ms) // length * length + length - 1 if length else instant(until_ms)
        due = [fact for fact in self.waiting if fact.interval.lo <= point]
        _ALIVE.append(self.state)
        self.waiting = [fact for fact in self.waiting if fact.interval.lo > point]
        told = self.state.advance(tables(due), point)
        self.most = max(self.most, self.state.held)
        for name, table in told.ended.items():
            rows = table.to_pylist()
            before = self.told.setdefault(name, [])
            assert not any(row in before for row in rows), "told twice"
            before += rows
            self.add(name, rows)

    def add(self, name: str, rows: Sequence[dict[str, object]]) -> None:
        """Take rows into the model; of what became known late the granule that it is about."""
        predicate = self.late.get(name, name).rpartition("/")[0]
        for row in rows:
            *terms, lo, hi = row.values()
            held = Interval(int(str(lo)), int(str(hi)))
            if name in self.late:
                held = granule(int(str(terms.pop()).split('"')[1]), self.program.granularity_ms)
            self.found.setdefault((predicate, tuple(map(str, terms))), []).append(held)

    def model(self, until: Interval) -> Held:
        """What holds, as far as the last step went."""
        before = {atom: list(held) for atom, held in self.found.items()}
        for name in self.state.shown:
            self.add(name, self.state.rows(name).to_pylist())
        found, self.found = self.found, before
        return clipped({atom: tuple(coalesce(held)) for atom, held in found.items()}, until)

    def moved(self) -> None:
        """Go on in new tables, from a snapshot."""
        snapshot = self.state.snapshot()
        self.state.drop()
        self.state = _ALIVE[-1] = ProgramState(connection(), self.state.whole, self.state.shown)
        self.state.restore(snapshot)


def clipped(facts: Held, to: Interval) -> Held:
    """What holds inside an interval."""
    inside = {atom: tuple(i for held in intervals if (i := intersect(held, to)) is not None) for atom, intervals in facts.items()}
    return {atom: held for atom, held in sorted(inside.items()) if held}


def horizon(program: RuleSet, facts: Iterable[Fact], until_ms: int) -> Interval:
    """What is compared: up to the end of the instant or granule, on a timeline of granules from its first on."""
    if not program.granularity_ms:
        return Interval(MIN, instant(until_ms))
    length = 2 * program.granularity_ms
    firsts = [fact.interval.lo for fact in facts if fact.interval != ALWAYS]
    start = instant(program.start_at_ms) if program.start_at_ms is not None else min(firsts, default=0)
    return Interval(start // length * length, instant(until_ms) // length * length + length - 1)


def _clashes(model: Model, program: intervals.Program) -> Held:
    """What rules with head ``false`` found, as atoms of the relations that stand for them; such rules have names of their own."""
    found: dict[Ground, list[Interval]] = {}
    for predicate, rule in program.checks:
        for clash in model.inconsistencies:
            if clash.rule == rule.name:
                found.setdefault((predicate, tuple(clash.row[name] for name in sorted(clash.row))), []).extend(clash.intervals)
    return {atom: tuple(coalesce(held)) for atom, held in found.items()}


def assert_like_the_oracle(program: RuleSet, facts: Sequence[Fact], until_ms: int, cuts: Sequence[int]) -> None:
    """One step, and steps up to each of `cuts` (going on from a snapshot after the second), give what the reference evaluator does."""
    to = horizon(program, [*program.facts, *facts], until_ms)
    model, statements = evaluate(program, facts, until_ms), Statements(planned(program))
    expected = clipped({**model.facts, **_clashes(model, statements.program)}, to)
    asked = {(r.name.rpartition("/")[0], r.arity) for r in statements.program.relations}
    expected = {atom: held for atom, held in expected.items() if (atom[0], len(atom[1])) in asked}
    for steps in ([until_ms], [*(cut for cut in sorted(set(cuts)) if cut < until_ms), until_ms]):
        run = Run(program, facts, statements)
        for number, step in enumerate(steps):
            run.to(step)
            if number == 1:
                run.moved()
        assert run.model(to) == expected, steps

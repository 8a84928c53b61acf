"""Steps of a program with a time of its own, whichever worker makes them: what is told, when something is next, and the file of a state."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from engine.facts import FACTS
from engine.ir import strata
from engine.ir.programs import columns, name_of
from engine.ir.rules import RuleSet
from engine.ir.statement import TimedProgram
from engine.ir.strata import Unending
from engine.limits import LimitExceeded
from engine.plan.timed import timed_plan
from engine.reference.program import TimedState
from engine.runtime.holding import Telling
from engine.timeline import MIN
from engine.worker import timed_task
from engine.worker.program import ProgramState
from engine.worker.state_file import StateLost, read_state, write_state
from engine.worker.timed_task import ABOUT, TimedStep, advance, packed_plan
from grammar.rule_sets import parse_rules
from tests.examples import examples
from tests.interval_runs import connection, planned
from tests.random_programs import Program, programs

Told = list[tuple[int, bool, tuple[tuple[str, str], ...]]]

HELD = """PREFIX ex: <http://ex.org/>
UNIT 1 sec
ex:Here(X) :- Diamondminus[0,3]ex:p(X)
away(X) :- seen(X), not ex:Here(X)
seen(X) :- Diamondminus[0,inf)ex:p(X)
long(X) :- Boxminus[0,2]away(X)
ex:p(ex:a)@[1,2]
ex:p(ex:b)@4
ex:p(ex:a)@9
"""
COUNTED = """START AT 0
last(X) <- [2 #] diamond p(X).
seen(X, T) <- [1] @T p(X).
@N soon(X) <- @T p(X), N = T + 2.
quiet <- not last(a).
always(X) <- kept(X).
kept(b).
@1 p(a). @2 p(b). @4 p(c). @4 p(d).
"""


@dataclass(frozen=True)
class Outcome:
    """What a step gives."""

    rows: pa.Table
    held: int
    next: int | None


class Steps:
    """A program that is taken on, each step perhaps in a worker that has not seen it."""

    def __init__(self, rules: RuleSet, folder: str | Path, mark: str = "m", state_rows: int = 1 << 40) -> None:
        self.program = TimedProgram(rules, None, columns(rules))
        self.plan = packed_plan(timed_plan(rules, planned(rules), self.program.variables))
        self.folder, self.mark, self.state_rows = Path(folder), mark, state_rows
        self.number, self.past, self.file = 0, MIN - 1, ""
        timed_task.forget(connection(), frozenset())

    def step(self, watermark: int) -> TimedStep:
        until = 2 * (watermark // self.program.grain_ms * self.program.grain_ms) - 1
        out = str(self.folder / f"{self.mark}-{self.number + 1}-{until}.arrow")
        return TimedStep(self.mark, self.plan, self.number, self.past, self.file, out, ("none",), (), self.state_rows, until)

    def to(self, watermark: int) -> Outcome:
        """Make final what lies before a watermark (ms)."""
        step = self.step(watermark)
        rows = advance(connection(), step, {"none": FACTS.empty_table()})
        self.number, self.past, self.file = self.number + 1, step.until, step.out
        return Outcome(rows, **json.loads(rows.schema.metadata[ABOUT]))

    def told(self, rows: pa.Table) -> Told:
        """What a step tells, in order."""
        return [(tick - self.program.grain_ms, ceased, tuple(sorted((name, value) for name, value in row.items() if value is not None)))
                for tick, ceased, table in Telling(rows, self.program.grain_ms, lambda tick: False).told() for row in table.to_pylist()]


def oracle(rules: RuleSet, watermarks: Sequence[int]) -> Told:
    """What the reference tells."""
    state, program = TimedState(), TimedProgram(rules, None, columns(rules))
    return [(at, ceased, tuple(sorted(row.items()))) for watermark in watermarks
            for at, result, ceased in state.advance(program, watermark, [], []) for row in result.rows]


def agree(rules: RuleSet, watermarks: Sequence[int], forgotten: Sequence[int] = ()) -> None:
    """One step and many give what the reference does; nothing is told before it was said to be next."""
    expected = sorted(oracle(rules, watermarks[-1:]))
    for cuts in (watermarks[-1:], watermarks):
        with TemporaryDirectory() as folder:
            steps, found, upcoming = Steps(rules, folder), list[tuple[int, bool, tuple[tuple[str, str], ...]]](), MIN
            for place, watermark in enumerate(cuts):
                if place in forgotten:
                    timed_task.forget(connection(), frozenset())
                outcome = steps.to(watermark)
                points = [lo if not ceased else hi + 1 for ceased, lo, hi in zip(*(outcome.rows[name].to_pylist() for name in
                                                                                   ("ceased", "lo", "hi")))]
                assert place == 0 or not points or upcoming is not None and min(points) >= upcoming
                upcoming = outcome.next     # type: ignore[assignment]
                found += steps.told(outcome.rows)
        assert sorted(found) == expected


@examples(20, 40)
@given(programs(negation=True), st.sets(st.integers(1, 40)), st.sets(st.integers(0, 8)))
def test_random_programs_tell_what_the_reference_does(program: Program, cuts: set[int], forgotten: set[int]) -> None:
    rules, facts = program
    whole = RuleSet("r", rules.rules, (*rules.facts, *facts))
    agree(whole, [250 * cut for cut in sorted(cuts | {41})], sorted(forgotten))


@pytest.mark.parametrize("text", [HELD, COUNTED], ids=["dense", "granules"])
def test_each_moment_a_step(text: str) -> None:
    media = "text/x-lars" if text is COUNTED else "text/x-datalogmtl"
    rules = parse_rules(text, media, "r")
    agree(rules, range(1_000, 14_001, 1_000 if rules.granularity_ms else 500), range(0, 30, 3))


def test_what_is_next_comes_without_facts() -> None:
    """A program wakes when a fact ends, when something negated does, and when a box has been held long enough."""
    rules = parse_rules(HELD, "text/x-datalogmtl", "r")
    with TemporaryDirectory() as folder:
        steps, woken = Steps(rules, folder), [1_001]
        while (upcoming := steps.to(woken[-1]).next) is not None and len(woken) < 40:
            woken.append(upcoming // 2 + 1)
        assert upcoming is None, "nothing would be told any more"
        changes = {at for at, _, _ in oracle(rules, [60_000])}
        assert changes <= {tick - 1 for tick in woken} | {1_000}
        assert len(woken) < 2 * len(changes)


def test_a_state_reads_back_whole(tmp_path: Path) -> None:
    rules = parse_rules(COUNTED, "text/x-lars", "r")
    steps = Steps(rules, tmp_path)
    for watermark in (1_000, 3_000, 5_000):
        steps.to(watermark)
    read = read_state(steps.file)
    again = str(tmp_path / "again.arrow")
    write_state(again, read)
    other = read_state(again)
    assert (other.past, other.start, other.events) == (read.past, read.start, read.events) and read.events[0]
    assert {name: table.to_pylist() for name, table in other.relations.items()} == \
        {name: table.to_pylist() for name, table in read.relations.items()}


def test_a_step_of_a_job_that_was_given_up_counts_for_nothing(tmp_path: Path) -> None:
    """Its worker holds a state of the same number that went another way."""
    rules = parse_rules(HELD, "text/x-datalogmtl", "r")
    steps = Steps(rules, tmp_path)
    steps.to(1_500)
    advance(connection(), steps.step(2_500), {"none": FACTS.empty_table()})
    assert sorted(steps.told(steps.to(6_000).rows) + steps.told(steps.to(20_000).rows)) == \
        sorted(row for row in oracle(rules, [20_000]) if row[0] > 1_499)


@pytest.mark.parametrize("damage", ["gone", "empty", "cut"])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, damage: str) -> None:
    steps = Steps(parse_rules(HELD, "text/x-datalogmtl", "r"), tmp_path)
    steps.to(2_000)
    path = Path(steps.file)
    content = path.read_bytes()
    path.unlink()
    if damage != "gone":
        path.write_bytes(b"" if damage == "empty" else content[:len(content) // 2])
    timed_task.forget(connection(), frozenset())
    with pytest.raises(StateLost, match=path.name):
        steps.to(3_000)


def test_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LimitExceeded, match="state_rows is 2"):
        Steps(parse_rules(HELD, "text/x-datalogmtl", "r"), tmp_path, "small", 2).to(2_000)
    monkeypatch.setattr(strata, "MOST_ROUNDS", 40)
    endless = parse_rules("n(Y) :- n(X), Y = X + 1\nn(1)\n", "text/x-datalogmtl", "r")
    with pytest.raises(Unending, match="after 40 rounds"):
        Steps(endless, tmp_path, "endless").to(2_000)


def test_names_of_predicates_are_terms() -> None:
    assert (name_of("<http://ex.org/p>"), name_of('say "x"')) == ("<http://ex.org/p>", '"say \\"x\\""')


def test_a_step_that_is_ended_while_it_makes_its_tables_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = parse_rules(HELD, "text/x-datalogmtl", "held")
    steps, run, calls = Steps(rules, tmp_path), ProgramState.run, list[object]()

    def interrupted(state: ProgramState, key: object, *given: Any) -> list[tuple[int, ...]]:
        found = run(state, key, *given)     # type: ignore[arg-type]
        calls.append(key)
        if len(calls) == 3:
            raise TimeoutError("others wait")
        return found

    monkeypatch.setattr(ProgramState, "run", interrupted)
    with pytest.raises(TimeoutError):
        steps.to(20_000)
    assert all(key[0] == "create" for key in calls if isinstance(key, tuple))
    assert sorted(steps.told(steps.to(20_000).rows)) == sorted(oracle(rules, [20_000]))

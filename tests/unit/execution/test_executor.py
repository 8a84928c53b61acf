"""What an executor does where a worker has not memory enough."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pytest

from engine.compiler import Catalog, compile_statement
from engine.execution.choices import CLOSED_BYTES
from engine.execution.compiled import RESIDENT_BYTES, Compiled
from engine.execution.content import StreamContent
from engine.execution.due import Answer, Due
from engine.execution.executor import Executor
from engine.execution.own_process import own_process
from engine.execution.plan_job import CloseAhead, PlanJob, SqlPlans, Took
from engine.ir.terms import RDF_TYPE
from engine.limits import LimitExceeded, Postponed
from engine.records import Event
from engine.runtime.rows import facts_of, graph_table
from engine.sql import fixpoint
from engine.worker.bundles import Found, Tables, Task
from grammar.statement import parse
from tests.encoded import encode

S = "http://ex.org/s"


class Small:
    """Runs no task: each needs more than there is."""

    def __init__(self, work: Path, memory: int = 2 << 30) -> None:
        self.work, self.memory, self.shards, self.ran, self.may_stay = work, memory, 1, 0, list[bool]()

    def run(self, tasks: Sequence[Task], tables: Tables, alive: frozenset[str] | None, *,
            may_stay: bool = False) -> list[Found | Exception]:
        self.ran += len(tasks)
        self.may_stay.append(may_stay)
        return [LimitExceeded("worker_memory", "the evaluation needs more memory than a worker has")] * len(tasks)

    def cancel(self, query: str) -> None:
        """Nothing runs."""

    def forget(self, query: str) -> None:
        """Nothing is known."""

    def beside(self) -> Small:
        return self


class Sql(SqlPlans):
    """Gives each plan one row, unless closures that are made ahead fail."""

    def run(self, jobs: Sequence[PlanJob], close_ahead: CloseAhead, took: Took) -> None:
        for job in jobs:
            closed = close_ahead([job])[0] if job.ahead and job.closings else []
            failures = [one for one in closed if isinstance(one, Exception)]
            job.answer = failures[0] if failures else Found(pa.table({"tick": [job.due.ticks[0]], "s": ["<n>"]}))


def evaluated(executor: Executor, patience_ms: int | None = None, rules: str = "") -> Answer:
    content = StreamContent()
    content.append(facts_of(encode([Event(1, S, 500, None, (("<n>", "<p>", '"1"'),), 0)])))
    text = f"PREFIX : <http://ex.org/> REGISTER QUERY q AS SELECT ?s FROM STREAM :s [RANGE 1s STEP 1s] {rules} WHERE {{ ?s ?p ?o }}"
    compiled = compile_statement(parse(text), Catalog({S: "event"}, {}), "q")
    [answer] = executor.evaluate([Due("q", compiled, (1000,), 0, {S: content}, {}, patience_ms=patience_ms)])
    return answer


def test_what_is_too_large_for_a_worker_is_evaluated_by_spark(tmp_path: Path) -> None:
    tasks = Small(tmp_path)
    executor = Executor(tasks, Sql())
    for _ in range(2):
        table = evaluated(executor).table
        assert table is not None and table["s"].to_pylist() == ["<n>"]
        assert executor.choices["q"] == ("sql", "recompute")
    assert tasks.ran == 1, "it is not tried again"
    executor.forget("q")
    assert evaluated(executor).error is None and tasks.ran == 2, "another query of that name is"


@pytest.mark.parametrize("forced", [None, "sql"])
def test_closures_too_large_for_a_worker_are_computed_by_spark(tmp_path: Path, forced: Literal["sql"] | None) -> None:
    """They are not made in a worker ahead of a plan of Spark SQL either, once one has had too little memory for them."""
    tasks = Small(tmp_path)
    executor = Executor(tasks, Sql(), force_executor=forced)
    tried = list[int]()
    for _ in range(2):
        assert evaluated(executor, rules="USING RULES owl2rl").error is None and executor.choices["q"][0] == "sql"
        tried.append(tasks.ran)
    assert tried[0] == tried[1] > 0


@pytest.mark.parametrize(("memory", "tried"), [(RESIDENT_BYTES, 1), (RESIDENT_BYTES - 1, 0)])
def test_windows_that_do_not_fit_into_a_worker_are_not_tried_there(tmp_path: Path, memory: int, tried: int) -> None:
    tasks = Small(tmp_path, memory)
    assert evaluated(Executor(tasks, Sql())).error is None and tasks.ran == tried


def test_a_schema_that_entails_very_much_is_joined_where_nobody_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fixpoint, "MOST_INLINE", 0)
    monkeypatch.setattr("engine.execution.executor.MOST_CONSTANTS", 1)
    below = "<http://www.w3.org/2000/01/rdf-schema#subClassOf>"
    graphs = {"http://ex.org/g": graph_table([("<a>", below, "<b>"), ("<b>", below, "<c>")])}
    text = ("PREFIX : <http://ex.org/> REGISTER QUERY q AS SELECT ?s FROM STREAM :s [RANGE 1s STEP 1s] FROM :g USING RULES owl2rl "
            "WHERE { ?s a <c> ; ?p <a> }")
    compiled = compile_statement(parse(text), Catalog({S: "event"}, graphs), "q")
    with own_process() as tasks:
        executor = Executor(tasks)
        for patience_ms in (None, 60_000):
            content = StreamContent()
            content.append(facts_of(encode([Event(1, S, 500, None, (("<n>", RDF_TYPE, "<a>"),), 0)])))
            [answer] = executor.evaluate([Due("q", compiled, (1000,), 0, {S: content}, graphs, patience_ms=patience_ms)])
            if patience_ms is None:
                assert answer.table is not None and answer.table["s"].to_pylist() == ["<n>"]
            else:
                assert isinstance(answer.error, Postponed) and answer.error.stays


def test_what_is_too_large_for_a_worker_waits_where_others_do(tmp_path: Path) -> None:
    executor = Executor(Small(tmp_path), Sql())
    assert isinstance(evaluated(executor, patience_ms=100).error, Postponed)
    assert evaluated(executor).error is None


@pytest.mark.parametrize("forced", ["local", None])
def test_without_spark_what_is_too_large_fails(tmp_path: Path, forced: Literal["local"] | None) -> None:
    answer = evaluated(Executor(Small(tmp_path), None if forced is None else Sql(), force_executor=forced))
    assert isinstance(answer.error, LimitExceeded) and answer.error.limit == "worker_memory"


def test_only_tasks_of_the_pump_may_stay_where_tables_stay(tmp_path: Path) -> None:
    tasks = Small(tmp_path)
    executor = Executor(tasks, Sql())
    for one in (executor, executor.beside(), Executor(tasks, Sql(), forgets=False)):
        one._choices.too_large.clear()
        evaluated(one)
    assert tasks.may_stay == [True, False, False]


@pytest.mark.parametrize(("most", "executor"), [(3, "sql"), (4, "local")])
@pytest.mark.parametrize("rules", ["", "USING RULES owl2rl"], ids=["plain", "closed"])
def test_beside_the_pump_what_windows_show_is_shipped(most: int, executor: str, rules: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However much more is held, as where evaluations lag."""
    monkeypatch.setattr("engine.execution.choices.LOCAL_ROWS", most)
    with own_process() as tasks:
        asked = Executor(tasks, Sql(), pump=Executor(tasks, Sql()))
        asked.evaluate([Due("q", *lagging(rules))])
    assert asked.ran["q"].executor == executor


def lagging(rules: str) -> tuple[Compiled, tuple[int], int, dict[str, StreamContent], dict[str, pa.Table]]:
    """A query at 2 s over a stream of 20 facts, of which four are in its window."""
    text = f"REGISTER QUERY q AS SELECT ?s FROM STREAM <{S}> [RANGE 2s STEP 1s] {rules} WHERE {{ ?s <p> ?o ; ?q ?r }}"
    content = StreamContent()
    for second in range(10):
        item = tuple((f"<n{second}{number}>", "<p>", "<o>") for number in range(2))
        content.append(facts_of(encode([Event(second + 1, S, second * 1000, None, item, 0)])))
    return compile_statement(parse(text), Catalog({S: "event"}, {}), "q"), (2000,), 0, {S: content}, {}


@pytest.mark.parametrize(("memory", "executor"), [(6 * CLOSED_BYTES - 1, "sql"), (6 * CLOSED_BYTES, "local")])
def test_what_windows_do_not_show_yet_makes_no_closure_too_large_for_a_worker(memory: int, executor: str) -> None:
    """Eight rows that are held and not shown count as one."""
    with own_process() as tasks:
        tasks.memory = memory
        asked = Executor(tasks, Sql())
        asked.evaluate([Due("q", *lagging("USING RULES owl2rl"))])
    assert asked.ran["q"].executor == executor

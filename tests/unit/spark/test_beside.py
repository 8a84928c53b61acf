"""Evaluations that others wait for, and those beside the pump: nothing that is kept of a query is lost between them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from engine.compiler import BUILT_IN_RULES
from engine.execution.content import StreamContent
from engine.execution.due import Answer, Due
from engine.execution.executor import Executor
from engine.execution.own_process import own_process
from engine.limits import Cancelled, EvaluationLimits, LimitExceeded, Postponed
from engine.records import Event, Mark, Record, Register
from engine.runtime.batch import Limits
from engine.runtime.pump import Pump
from engine.runtime.results import ResultLog
from engine.runtime.rows import ROWS, facts_of
from engine.runtime.threads import Lane
from engine.runtime.verdicts import Decide
from engine.spark import beside as oneshot, executor as sql_plans
from engine.spark.beside import Beside, OneShots
from engine.spark.executor import Executor as SparkExecutor, SqlPlans as SqlPlans
from engine.spark.session import Session
from engine.spark.workers import ResidentTask
from engine.worker import closures as states
from grammar import parse
from tests.encoded import encode
from tests.sparks import compile_query
from tests.unit.runtime.test_pump import shown
from tests.unit.spark.test_limits import PRODUCT, QUICK, STREAM, due
from tests.unit.spark.test_segments import CLOSED, Query, rows
from tests.waiting import wait_until


class Impatient:
    """An executor with whose `hurried` calls nobody is patient."""

    def __init__(self, executor: Executor) -> None:
        self.executor, self.hurried = executor, False

    def evaluate(self, dues: Sequence[Due]) -> list[Answer]:
        return self.executor.evaluate([replace(due, patience_ms=1) for due in dues] if self.hurried else dues)


SPARK = SimpleNamespace(settings=SimpleNamespace(partitions=1), spark=None)


def without_spark(monkeypatch: pytest.MonkeyPatch) -> SqlPlans:
    """What would run plans as Spark SQL."""
    monkeypatch.setattr(sql_plans, "register_spark", lambda spark: None)
    return SqlPlans(SPARK, None)    # type: ignore[arg-type]


def test_what_takes_longer_than_others_wait_is_postponed_and_no_failure() -> None:
    with own_process() as tasks:
        executor = Executor(tasks, force_strategy="recompute")
        slow = replace(due("product", PRODUCT, ticks=(1_000, 2_000)), patience_ms=300)
        answers = executor.evaluate([slow, replace(due("quick", QUICK), patience_ms=60_000)])
        assert [type(answer.error) for answer in answers] == [Postponed, Postponed, type(None)]
        [failed] = executor.evaluate([replace(due("product", PRODUCT, evaluation_ms=300), patience_ms=300)])
        assert isinstance(failed.error, LimitExceeded) and failed.error.limit == "evaluation_ms"
        executor.close()


def test_a_limit_that_several_evaluations_reach_together_is_postponed_where_others_wait() -> None:
    with own_process() as tasks:
        executor = Executor(tasks, force_strategy="recompute")
        pairs = due("pairs", "SELECT ?a ?b { ?a <urn:p> ?x . ?b <urn:p> ?y }", 100, range(1_000, 9_000, 1_000), evaluation_rows=15_000)
        answers = executor.evaluate([replace(pairs, patience_ms=60_000)])
        assert {type(answer.error) for answer in answers} == {Postponed}
        answers = executor.evaluate([pairs])
        assert [answer.error for answer in answers] == [None] * 8
        executor.close()


def test_a_plan_of_spark_sql_is_not_begun_while_others_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    with own_process() as tasks:
        executor = Executor(tasks, without_spark(monkeypatch), force_executor="sql", force_strategy="recompute")
        [answer] = executor.evaluate([replace(due("quick", QUICK), patience_ms=60_000)])
        assert isinstance(answer.error, Postponed)
        executor.close()


def test_a_closure_that_is_kept_stays_when_its_evaluation_is_postponed() -> None:
    with own_process() as tasks:
        executor = Executor(tasks, force_strategy="incremental")
        impatient = Impatient(executor)
        query = Query(impatient, CLOSED)  # type: ignore[arg-type]
        assert [len(rows(query.next())) for _ in range(3)] == [1, 3, 6]
        [kept] = executor._closures.values()
        impatient.hurried = True
        for _ in range(2):
            assert isinstance(query.next().error, Postponed)
        impatient.hurried = False
        assert [len(rows(query.next())) for _ in range(2)] == [21, 28]
        assert list(executor._closures.values()) == [kept]
        executor.close()


def test_a_one_shot_query_makes_workers_forget_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with own_process() as tasks:
        executor = Executor(tasks, force_strategy="incremental")
        query = Query(executor, CLOSED)
        assert [len(rows(query.next())) for _ in range(3)] == [1, 3, 6]
        before = dict(states._states(tasks._connections[0]))
        assert before
        monkeypatch.setattr(oneshot, "Executor", lambda session, force_executor, **options: Executor(tasks, **options))
        [answer] = OneShots(SPARK)._executor.evaluate([due("one-shot", QUICK)])  # type: ignore[arg-type]
        assert answer.error is None
        assert dict(states._states(tasks._connections[0])) == before
        executor.evaluate([due("quick", QUICK)])
        assert dict(states._states(tasks._connections[0])) == before
        executor.forget("q")
        executor.evaluate([due("quick", QUICK)])
        assert not states._states(tasks._connections[0])
        executor.close()


def test_what_has_not_failed_waits_for_no_plan_of_spark_sql(monkeypatch: pytest.MonkeyPatch) -> None:
    with own_process() as tasks:
        sql = without_spark(monkeypatch)
        executor = Executor(tasks, sql, force_executor="local", force_strategy="recompute")
        answers: list[Answer] = []
        worker = threading.Thread(target=lambda: answers.extend(executor.evaluate([due("quick", QUICK)])), daemon=True)
        with sql._lock:   # as while a plan of another query runs
            worker.start()
            worker.join(20)
        assert [answer.error for answer in answers] == [None]
        worker.join()
        executor.close()


class Together:
    """An executor that waits for `go`, and notes which queries each call was for."""

    def __init__(self, ways: dict[str, tuple[str, str]], failure: Exception | None = None) -> None:
        self.choices, self.failure = ways, failure
        self.go, self.calls = threading.Event(), list[list[str]]()

    def evaluate(self, dues: Sequence[Due]) -> list[Answer]:
        self.calls.append(sorted(due.query for due in dues))
        assert self.go.wait(20)
        if self.failure is not None:
            raise self.failure
        return [Answer(due.query, tick, pa.table({"query": [due.query]})) for due in dues for tick in due.ticks]


def beside_one(executor: Together, dues: Sequence[Due], given_up: Sequence[str] = ()) -> dict[str, list[Answer] | Exception]:
    """What comes of evaluations that wait while the only slot is taken, by query."""
    context = SimpleNamespace(setLocalProperty=lambda name, value: None)
    session: Any = SimpleNamespace(spark=SimpleNamespace(sparkContext=context))
    beside = Beside(executor, session, threading.Semaphore(1))      # type: ignore[arg-type]
    found: dict[str, list[Answer] | Exception] = {}

    def evaluate(one: Due, gone: bool) -> None:
        try:
            found[one.query], _ = beside.evaluate(one, lambda: gone)
        except Exception as failure:
            found[one.query] = failure

    first = threading.Thread(target=evaluate, args=(due("first", QUICK), False))
    first.start()
    wait_until(lambda: bool(executor.calls), 20)
    others = [threading.Thread(target=evaluate, args=(one, one.query in given_up)) for one in dues]
    for thread in others:
        thread.start()
    wait_until(lambda: len(beside._waiting) == len(dues) - len(given_up), 20)
    executor.go.set()
    for thread in (first, *others):
        thread.join(20)
    return found


def closed(name: str, ticks: Sequence[int] = (1_000,)) -> Due:
    """One of some queries that share a closure."""
    text = "SELECT ?s { ?s <urn:p> ?o }".replace("{", f"FROM STREAM <{STREAM}> [RANGE 1000s STEP 1s] USING RULES owl2rl WHERE {{")
    return Due(name, compile_query(parse(f"REGISTER QUERY {name} AS {text}"), name, {}, BUILT_IN_RULES), tuple(ticks), 0, {}, {})


NAMES = ("a", "b", "c", "kept", "later", "plain", "gone")


def sharing() -> list[Due]:
    """Of the queries `NAMES` three whose closure is made once."""
    return [*(closed(name, (2_000,) if name == "later" else (1_000,)) for name in NAMES if name != "plain"), due("plain", QUICK)]


def test_queries_that_share_a_closure_are_evaluated_together_beside_the_pump() -> None:
    ways = {name: ("local", "incremental" if name == "kept" else "recompute") for name in NAMES}
    executor = Together(ways)
    found = beside_one(executor, sharing(), given_up=["gone"])
    assert sorted(executor.calls) == [["a", "b", "c"], ["first"], ["kept"], ["later"], ["plain"]]
    [gone] = found.pop("gone")      # type: ignore[misc]
    assert isinstance(gone.error, Cancelled)        # type: ignore[union-attr]
    assert {name: answers[0].table["query"].to_pylist() for name, answers in found.items()} == {  # type: ignore[index, union-attr]
        name: [name] for name in (*NAMES[:-1], "first")}


def test_all_who_wait_for_evaluations_are_told_why_they_failed() -> None:
    failure = RuntimeError("the JVM is gone")
    executor = Together({name: ("local", "recompute") for name in NAMES}, failure)
    assert beside_one(executor, sharing()) == dict.fromkeys((*NAMES, "first"), failure)


# --- on Spark


def pump(executor: Executor, results: ResultLog, texts: dict[str, str], lane: Lane | None, decide: Decide) -> Pump:
    """A pump over texts."""
    statements = {name: parse(text) for name, text in texts.items()}
    return Pump(executor, results, statements.__getitem__, compile_query, lane=lane, decide=decide,
                limits=Limits(patience_ms=500, evaluation=EvaluationLimits(evaluation_ms=8_000)))


def no_verdict(name: str, epoch: str, tick: int, error: LimitExceeded) -> int:
    raise error


def texts(**bodies: str) -> dict[str, str]:
    return {name: f"REGISTER QUERY {name} AS " + body.replace("{", f"FROM STREAM <{STREAM}> [RANGE 1000s STEP 1s] WHERE {{", 1)
            for name, body in bodies.items()}


def records(queries: Sequence[str], first: int, seconds: int) -> list[Record]:
    """Registrations, an item of `first` triples, and one of one triple at each second."""
    found: list[Record] = [Register(n, name, name, n) for n, name in enumerate(queries, 1)]
    n = len(found)
    for second in range(seconds):
        triples = tuple((f"<urn:s{i}>", "<urn:p>", f'"{i}"') for i in range(first if not second else 1))
        found += [Event(n + 1, STREAM, 1_000 * second + 500, None, triples, 0), Mark(n + 2, STREAM, 1_000 * (second + 1))]
        n += 2
    return found


def upto(table: pa.Table, first: int, last: int) -> pa.Table:
    return table.filter(pc.and_(pc.greater_equal(table["position"], first), pc.less_equal(table["position"], last))).cast(ROWS)


@pytest.mark.spark
def test_on_spark_the_results_of_a_quick_query_go_on_beside_a_product(spark_session: Session) -> None:
    executor = SparkExecutor(spark_session, force_executor="local", force_strategy="recompute")
    executor.evaluate([due("warm", QUICK, evaluation_ms=60_000)])
    ended, verdicts, results = threading.Event(), list[int](), ResultLog(None)

    def decide(name: str, epoch: str, tick: int, error: LimitExceeded) -> int:
        verdicts.append(len(results.read("quick", 0)))
        return 1 << 40

    lane = Lane(executor, Beside(executor.beside(), spark_session, OneShots(spark_session).free).evaluate, decide, ended.set)
    running = pump(executor, results, texts(quick=QUICK, product=PRODUCT), lane, decide)
    table = encode(records(("quick", "product"), 5_000, 12))
    running.process(upto(table, 1, 4))
    assert running.is_beside(running.queries["product"])
    for position in range(5, 27, 2):
        running.process(upto(table, position, position + 1))
    assert len(results.read("quick", 0)) == 12
    assert ended.wait(60)
    running.process(ROWS.empty_table())
    assert running.queries["quick"].state == "running"
    assert running.queries["product"].error is not None and "the limit evaluation_ms is 8000" in running.queries["product"].error
    assert verdicts[0] >= 5 and not results.read("product", 0)
    executor.close()


@pytest.mark.spark
@pytest.mark.parametrize("kind", ["sql", "local"])
def test_on_spark_what_is_evaluated_beside_the_pump_is_the_same(kind: str, spark_session: Session) -> None:
    wanted = texts(quick=QUICK, counted="SELECT (COUNT(*) AS ?n) { ?s <urn:p> ?o }",
                   joined="SELECT ?a ?y { ?a <urn:p> ?x . ?a <urn:p> ?y }")
    table, found = encode(records(tuple(wanted), 50, 6)), []
    last = table["position"][-1].as_py()
    for beside in (False, True):
        executor = SparkExecutor(spark_session, force_executor=kind, force_strategy="recompute")  # type: ignore[arg-type]
        results, ended = ResultLog(None), threading.Semaphore(0)
        alone = Beside(executor.beside(), spark_session, OneShots(spark_session).free) if beside else None
        lane = Lane(executor, alone.evaluate, no_verdict, ended.release) if alone else None
        running = pump(executor, results, wanted, lane, no_verdict)
        running._limits = replace(running._limits, patience_ms=1, evaluation=EvaluationLimits(evaluation_ms=60_000))
        for position in range(1, last + 1, 3):
            running.process(upto(table, position, position + 2))
        while any(running.is_beside(query) for query in running.queries.values()):
            assert ended.acquire(timeout=60)
            running.process(ROWS.empty_table())
        found.append([shown(event) for name in wanted for event in results.read(name, 0)])
        executor.close()
    assert len(found[0]) == 18 and found[0] == found[1]


@pytest.mark.spark
def test_on_spark_closures_are_made_in_shards_beside_the_pump_while_there_are_slots(
        spark_session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    residents = [ResidentTask(spark_session.spark, 1) for _ in range(2)]
    monkeypatch.setattr(spark_session, "residents_beside", residents)
    executor = SparkExecutor(spark_session, force_executor="local", force_strategy="recompute")
    executor._choices.shard_rows = 0
    beside = Beside(executor.beside(), spark_session, threading.Semaphore(1))
    content = StreamContent()
    content.append(facts_of(encode([Event(1, STREAM, 500, None, tuple((f"<urn:s{n}>", "<urn:p>", f"<urn:o{n}>") for n in range(50)), 0)])))
    found = []
    for shards in (2, 2, 1):
        if shards == 1:     # as where an executor is lost
            monkeypatch.setattr(spark_session, "has_slots_beside", lambda: False)
        [answer], _ = beside.evaluate(replace(closed("q"), streams={STREAM: content}), lambda: False)
        assert answer.error is None and answer.table is not None
        found.append((answer.table.num_rows, executor.ran["q"].shards, sum(one._connection is not None for one in residents)))
        for one in residents[:1]:   # as where a worker ends
            one.close()
    assert found == [(50, 2, 2), (50, 2, 2), (50, 1, 0)]
    executor.close()
    for one in residents:
        one.close()

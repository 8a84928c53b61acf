"""Evaluations that take more than they may, and workers that die: one query fails, the others have their answers."""

from __future__ import annotations

import os
import re
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import duckdb
import pytest

from engine.compiler import Catalog, compile_statement
from engine.execution.content import StreamContent
from engine.execution.due import Answer, Due
from engine.limits import Cancelled, EvaluationLimits, LimitExceeded
from engine.records import Event
from engine.runtime.rows import facts_of
from engine.spark.executor import Executor
from engine.spark.jobs import Jobs
from engine.spark.session import Session
from engine.sql.closing import Closing
from engine.worker import guard
from engine.worker.bundles import Found, Task
from engine.worker.database import close, connect
from engine.worker.guard import fetched, guarded, out_of_memory
from grammar import parse
from tests.differential.plans import in_process
from tests.encoded import encode
from tests.sparks import jvm_pid, workers
from tests.waiting import wait_until

STREAM = "http://ex.org/s"
QUICK = "SELECT ?s { ?s <urn:p> ?o } ORDER BY ?s LIMIT 3"
PRODUCT = "SELECT (COUNT(*) AS ?n) { ?a <urn:p> ?x . ?b <urn:p> ?y . ?c <urn:p> ?z }"
JOINED = f'SELECT (GROUP_CONCAT(?y; SEPARATOR="{"-" * 50}") AS ?all) {{ ?a <urn:p> ?x . ?b <urn:p> ?y }}'


def content(rows: int) -> StreamContent:
    found = StreamContent()
    found.append(facts_of(encode([Event(1, STREAM, 1, None, tuple((f"<urn:s{n}>", "<urn:p>", f'"{n}"') for n in range(rows)), 1)])))
    return found


def due(name: str, text: str, rows: int = 5_000, ticks: Sequence[int] = (1_000,), **limits: int) -> Due:
    begin = text.index("{")
    text = f"{text[:begin]} FROM STREAM <{STREAM}> [RANGE 10s STEP 1s] {text[begin:]}".replace("{ ", "WHERE { ", 1)
    statement = parse(f"REGISTER QUERY {name} AS {text}")
    compiled = compile_statement(statement, Catalog({STREAM: "event"}), name)
    return Due(name, compiled, tuple(ticks), -1, {STREAM: content(rows)}, {}, EvaluationLimits(**limits))


def errors(answers: Sequence[Answer]) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for answer in answers:
        if answer.error is not None and not isinstance(answer.error, (LimitExceeded, Cancelled)):
            raise answer.error
        found[answer.query] = answer.error.limit if isinstance(answer.error, LimitExceeded) else answer.error and "cancelled"
    return found


@pytest.fixture
def local() -> Iterator[Executor]:
    with in_process() as executor:
        yield executor


def test_a_product_is_ended_in_time_and_the_query_beside_it_is_answered(local: Executor) -> None:
    began = time.monotonic()
    answers = local.evaluate([due("before", QUICK), due("product", PRODUCT, evaluation_ms=300), due("after", QUICK)])
    assert errors(answers) == {"before": None, "product": "evaluation_ms", "after": None}
    assert "the limit evaluation_ms is 300" in str(answers[1].error)
    assert time.monotonic() - began < 60     # it would take days


def test_rows_and_bytes_of_an_answer_are_bounded_while_it_is_read(local: Executor) -> None:
    pairs = "SELECT ?a ?b { ?a <urn:p> ?x . ?b <urn:p> ?y }"
    answers = local.evaluate([due("rows", pairs, evaluation_rows=100_000), due("bytes", pairs, evaluation_bytes=1 << 20),
                              due("few", QUICK)])
    assert errors(answers) == {"rows": "evaluation_rows", "bytes": "evaluation_bytes", "few": None}


def test_memory_beyond_that_of_a_worker_is_the_failure_of_its_query(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THALWEG_WORKER_MEMORY", "200MB")
    with in_process() as local:
        answers = local.evaluate([due("large", JOINED, 20_000, evaluation_ms=600_000), due("quick", QUICK, 20_000)])
    assert errors(answers) == {"large": "worker_memory", "quick": None}


def test_an_answer_beyond_its_limit_is_not_made_first() -> None:
    """Of 100 million rows: all of them would take gigabytes, which DuckDB's memory limit does not count. In a process of its own."""
    text = "from tests.unit.spark.test_limits import pairs_beyond; print(*pairs_beyond())"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120, check=True)
    limit, grown = done.stdout.split()
    assert limit == "evaluation_rows" and int(grown) < 500_000


def pairs_beyond() -> tuple[str | None, int]:
    """Which limit a product meets, and by how many KiB it lets the process grow."""
    with in_process() as executor:
        executor.evaluate([due("quick", QUICK)])
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        found = errors(executor.evaluate([due("pairs", "SELECT ?a ?b { ?a <urn:p> ?x . ?b <urn:p> ?y }", 10_000)]))
        return found["pairs"], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before


def test_memory_that_an_answer_wants_while_it_is_streamed() -> None:
    """Such a failure comes by Arrow, after the first rows."""
    wide = "SELECT range AS n, repeat('x', CASE WHEN range > 400000 THEN 60000 ELSE 1 END) AS v FROM range(500000)"
    connection = connect("100MB")
    with pytest.raises(LimitExceeded) as caught, guarded(connection, EvaluationLimits()):
        fetched(connection, wide, {}, EvaluationLimits())
    assert caught.value.limit == "worker_memory" and "temp_directory" not in str(caught.value)
    close(connection)


def test_too_little_memory_is_told_with_the_limit_and_without_advice_on_duckdb() -> None:
    connection = duckdb.connect(config={"memory_limit": "20MB", "temp_directory": ""})
    with pytest.raises(LimitExceeded) as caught, guarded(connection, EvaluationLimits()):
        connection.sql("SELECT list(range) FROM range(100_000_000)").fetchall()
    told = str(caught.value)
    assert re.fullmatch(r"the evaluation needs more memory than a worker has: .*MiB used\); the limit workerMemory is set by "
                        "THALWEG_WORKER_MEMORY", told), told
    assert out_of_memory(RuntimeError("Python exception occurred while executing the UDF: ArrowMemoryError: realloc of size 9 failed"))
    assert str(out_of_memory(MemoryError())) == ("the evaluation needs more memory than a worker has; the limit workerMemory is set by "
                                                 "THALWEG_WORKER_MEMORY")


def test_memory_that_a_function_wants_is_the_limit_of_a_worker_too() -> None:
    """A worker may have so much data and no more (`bound_process`); here by a process of its own."""
    text = ("import resource, sys; resource.setrlimit(resource.RLIMIT_DATA, (1 << 30, resource.RLIM_INFINITY)); "
            "from tests.unit.spark.test_limits import doubled; print(doubled(sys.argv[1]))")
    function = "STRDT(CONCAT(STR(?o), STR(?o)), <urn:d>)"      # in Python
    done = subprocess.run([sys.executable, "-c", text, function], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.splitlines()[-1] == "worker_memory"


def doubled(function: str) -> str | None:
    """Which limit a text meets that doubles a term forty times."""
    steps = [f"BIND({function.replace('?o', '?o' if number == 0 else f'?v{number - 1}')} AS ?v{number})" for number in range(40)]
    with in_process() as executor:
        query = f"SELECT (STRLEN(?v39) AS ?n) {{ ?s <urn:p> ?o {' '.join(steps)} }}"
        [answer] = executor.evaluate([due("doubled", query, 1, evaluation_ms=600_000)])
    return answer.error.limit if isinstance(answer.error, LimitExceeded) else str(answer.error)


def test_evaluations_that_are_too_much_together_are_done_one_by_one(local: Executor) -> None:
    one = due("pairs", "SELECT ?a ?b { ?a <urn:p> ?x . ?b <urn:p> ?y }", 100, range(1_000, 9_000, 1_000), evaluation_rows=15_000)
    answers = local.evaluate([one, due("quick", QUICK, 100, (1_000, 2_000))])
    assert errors(answers) == {"pairs": None, "quick": None}
    assert [answer.tick for answer in answers] == [*range(1_000, 9_000, 1_000), 1_000, 2_000]
    assert [answer.table.num_rows for answer in answers if answer.query == "pairs" and answer.table is not None] == [10_000] * 8


def test_a_query_that_is_removed_is_not_evaluated(local: Executor) -> None:
    local.cancel("gone")
    assert errors(local.evaluate([due("quick", QUICK), due("gone", PRODUCT)])) == {"quick": None, "gone": "cancelled"}
    local.forget("gone")


@pytest.mark.spark
def test_on_spark_a_product_is_ended_in_time(spark_session: Session) -> None:
    executor = Executor(spark_session, force_executor="local", force_strategy="recompute")
    executor.evaluate([due("warm", QUICK)])
    began = time.monotonic()
    answers = executor.evaluate([due("product", PRODUCT, evaluation_ms=2_000), due("quick", QUICK, evaluation_ms=60_000)])
    assert errors(answers) == {"product": "evaluation_ms", "quick": None}
    assert time.monotonic() - began < 60
    executor.close()


@pytest.mark.spark
def test_on_spark_only_a_query_that_ends_its_worker_twice_fails(spark_session: Session) -> None:
    def task(query: str, *closings: Closing) -> Task:
        return Task("SELECT 7 AS n", frozenset(), 1, closings, query)

    jobs = Jobs(spark_session)
    found = jobs.run([task("quick"), task("deadly", Deadly()), task("other")], {}, frozenset())  # type: ignore[arg-type]
    assert [answer.table.to_pylist() for answer in (found[0], found[2]) if isinstance(answer, Found)] == [[{"n": 7}]] * 2
    assert isinstance(found[1], LimitExceeded) and found[1].limit == "worker_deaths"


@pytest.mark.spark
def test_on_spark_a_call_that_no_interrupt_ends_is_ended_by_the_signal(spark_session: Session) -> None:
    def task(query: str, *closings: Closing) -> Task:
        return Task("SELECT 7 AS n", frozenset(), 1, closings, query, EvaluationLimits(evaluation_ms=200 if closings else 60_000))

    jobs = Jobs(spark_session)
    found = jobs.run([task("quick"), task("deaf", Deaf()), task("other")], {}, frozenset())  # type: ignore[arg-type]
    assert [answer.table.to_pylist() for answer in (found[0], found[2]) if isinstance(answer, Found)] == [[{"n": 7}]] * 2
    assert isinstance(found[1], LimitExceeded) and found[1].limit == "worker_deaths"


class Deaf:
    """Sleeps where it should be made. The worker that runs it ends, and so its shorter grace with it."""

    static, name, first = False, "deaf", ""

    def __setstate__(self, state: object) -> None:
        guard.GRACE_S = 0.2

    def __getstate__(self) -> tuple[int]:
        return (1,)

    @property
    def kept(self) -> None:
        time.sleep(600)


@pytest.mark.spark
def test_on_spark_a_product_in_spark_sql_is_ended_in_time(spark_session: Session) -> None:
    executor = Executor(spark_session, force_executor="sql", force_strategy="recompute")
    executor.evaluate([due("warm", QUICK)])
    began = time.monotonic()
    tested = 'SELECT (COUNT(*) AS ?n) { ?a <urn:p> ?x . ?b <urn:p> ?y FILTER(REPLACE(?x, "(.)", "$1$1") < ?y) }'     # by Python workers
    answers = executor.evaluate([due("before", QUICK, evaluation_ms=60_000), due("product", tested, evaluation_ms=2_000),
                                 due("after", QUICK, evaluation_ms=60_000)])
    assert errors(answers) == {"before": None, "product": "evaluation_ms", "after": None}
    assert time.monotonic() - began < 60 and spark_session.alive
    executor.close()


class Deadly:
    """Kills the worker that unpickles it."""

    static = True

    def __reduce__(self) -> tuple[object, ...]:
        return eval, ("__import__('os').kill(__import__('os').getpid(), 9)",)


@pytest.mark.spark
def test_on_spark_workers_may_be_killed_at_any_time(spark_session: Session) -> None:
    """One an evaluation: two that die under the same task are its failure."""
    executor = Executor(spark_session, force_executor="local", force_strategy="recompute")
    expected = [answer.table for answer in executor.evaluate([due("a", QUICK), due("b", QUICK)])]
    stopping = threading.Event()
    turn, killed = 0, dict[int, int]()

    def kill() -> None:
        while not stopping.wait(0.3):
            if (now := turn) not in killed and (there := workers(jvm_pid(spark_session))):
                os.kill(there[0], signal.SIGKILL)
                killed[now] = there[0]

    with ThreadPoolExecutor(1) as killer:
        killer.submit(kill)
        try:
            for turn in range(30):
                answers = executor.evaluate([due("a", QUICK, evaluation_ms=60_000), due("b", QUICK, evaluation_ms=60_000)])
                assert errors(answers) == {"a": None, "b": None}
                assert [answer.table for answer in answers] == expected
        finally:
            stopping.set()
    assert killed
    executor.close()


@pytest.mark.spark
def test_on_spark_a_removal_ends_what_is_evaluated_and_nothing_else(spark_session: Session) -> None:
    executor = Executor(spark_session, force_executor="local", force_strategy="recompute")
    executor.evaluate([due("warm", QUICK)])
    with ThreadPoolExecutor(1) as pump:
        began = time.monotonic()
        running = pump.submit(executor.evaluate, [due("quick", QUICK, evaluation_ms=60_000), due("product", PRODUCT, evaluation_ms=60_000)])
        wait_until(lambda: executor._tasks._running, 30)
        executor.cancel("product")
        assert errors(running.result(50)) == {"quick": None, "product": "cancelled"}
        assert time.monotonic() - began < 50
    executor.close()

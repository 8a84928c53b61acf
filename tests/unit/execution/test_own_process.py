"""Tasks in this process: executors do not see each other, a query that is removed is ended, and Spark is not even imported."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

from engine.compiler import Catalog, compile_statement
from engine.execution.content import StreamContent
from engine.execution.due import Due
from engine.execution.executor import Executor
from engine.execution.own_process import OwnProcess, own_process
from engine.limits import UNLIMITED, Cancelled
from engine.records import Event
from engine.runtime.rows import facts_of, graph_table
from engine.worker import closures as states, database
from engine.worker.bundles import Found, QueryFailed, Task
from grammar import parse
from tests.encoded import encode
from tests.unit.spark.test_limits import PRODUCT, QUICK, due
from tests.unit.spark.test_segments import CLOSED, Query, rows
from tests.waiting import wait_until

LONG = {"evaluation_ms": UNLIMITED.evaluation_ms}


def test_nothing_of_spark_is_imported() -> None:
    told = subprocess.run([sys.executable, "-c", "import sys, engine.execution.executor, engine.execution.own_process\n"
                           "print([name for name in sys.modules if name.partition('.')[0] in ('pyspark', 'py4j', 'pandas')])"],
                          capture_output=True, text=True, check=True)
    assert told.stdout == "[]\n"


def test_two_do_not_see_each_other_s_tables() -> None:
    with own_process() as one, own_process() as other:
        executors = [Executor(tasks, force_strategy="incremental") for tasks in (one, other)]
        queries = [Query(executor, CLOSED) for executor in executors]
        for pairs in (1, 3, 6):     # closures of one name are kept in both
            assert [len(rows(query.next())) for query in queries] == [pairs, pairs]
        assert len({state for tasks in (one, other) for state in states._states(tasks._connections[0])}) == 1
        made = Task("SELECT count(*) AS n FROM duckdb_tables()", frozenset(), 1)
        [before], [answer] = (tasks.run([made], {}, None) for tasks in (one, other))
        assert isinstance(before, Found) and isinstance(answer, Found) and before.table == answer.table
        for executor in executors:
            executor.close()


def test_nothing_is_left_of_one_that_is_closed() -> None:
    with own_process() as tasks:
        work, connection = tasks.work, tasks._connections[0]
        assert len(rows(Query(Executor(tasks, force_strategy="incremental"), CLOSED).next())) == 1
        assert connection in database._KEPT
    assert not work.exists() and connection not in database._KEPT


def test_a_query_that_is_removed_is_ended_and_what_runs_beside_it_answered(tmp_path: Path) -> None:
    tasks = OwnProcess(tmp_path)
    executor = Executor(tasks)
    found: list[object] = []
    worker = threading.Thread(target=lambda: found.extend(executor.evaluate([due("product", PRODUCT, **LONG), due("quick", QUICK)])))
    worker.start()
    wait_until(lambda: bool(tasks._running), 30)
    wait_until(lambda: _ended(executor, worker), 60)
    assert [type(answer.error) for answer in found] == [Cancelled, type(None)]     # type: ignore[attr-defined]
    [again] = executor.evaluate([due("product", PRODUCT, **LONG)])
    assert isinstance(again.error, Cancelled)
    executor.forget("product")
    [again] = executor.evaluate([due("product", QUICK)])
    assert again.error is None
    tasks.close()


def _ended(executor: Executor, worker: threading.Thread) -> bool:
    executor.cancel("product")
    return not worker.is_alive()


def test_a_task_that_fails_fails_alone(tmp_path: Path) -> None:
    tasks = OwnProcess(tmp_path)
    found = tasks.run([Task(text, frozenset(), 1) for text in ("SELECT 1 AS a", "SELECT nonsense", "SELECT 2 AS a")], {}, None)
    assert [type(answer) for answer in found] == [Found, QueryFailed, Found]
    assert "tasks" not in [thread.name for thread in threading.enumerate()]
    tasks.close()


def test_what_an_executor_left_in_a_worker_is_not_another_s(tmp_path: Path) -> None:
    """Two that go on one after the other, as where a server stops and starts: each has its own version of a static graph."""
    tasks, graph = OwnProcess(tmp_path), "http://ex.org/g"
    text = f"REGISTER QUERY q AS SELECT ?o FROM STREAM <http://ex.org/s> [RANGE 1s] FROM <{graph}> WHERE {{ ?s <urn:p> ?o }}"
    content = StreamContent()
    content.append(facts_of(encode([Event(1, "http://ex.org/s", 500, None, (("<urn:a>", "<urn:q>", "<urn:b>"),), 500)])))
    for value in ("<urn:one>", "<urn:two>"):
        graphs = {graph: graph_table([("<urn:a>", "<urn:p>", value)])}
        compiled = compile_statement(parse(text), Catalog({"http://ex.org/s": "event"}, graphs), "q")
        executor = Executor(tasks)
        [answer] = executor.evaluate([Due("q", compiled, (1000,), 0, {"http://ex.org/s": content}, graphs)])
        assert answer.table is not None and answer.table["o"].to_pylist() == [value]
    tasks.close()

"""A segment that is gone or cannot be read fails what reads it, by name, and is made again; never is it taken for one without rows."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine.compiler import Catalog, compile_statement
from engine.execution import kept
from engine.execution.content import StreamContent
from engine.execution.due import Answer, Due
from engine.execution.executor import Executor
from engine.execution.own_process import own_process
from engine.facts import FACTS
from engine.records import Event
from engine.runtime.rows import facts_of
from engine.spark.executor import Executor as SparkExecutor
from engine.spark.feed import Feed, FeedSettings
from engine.spark.session import Session
from engine.worker import closures as states
from grammar import parse
from grammar.rif.parse import parse_rules
from tests.encoded import encode

S = "http://ex.org/s"
EDGE, REACHES = "<http://ex.org/edge>", "<http://ex.org/reaches>"
COUNT = f"SELECT (COUNT(*) AS ?n) FROM STREAM <{S}> [RANGE 1m STEP 1s] WHERE {{ ?x ?p ?o }}"
CLOSED = f"SELECT ?x ?y FROM STREAM <{S}> [RANGE 1m STEP 1s] USING RULES reach WHERE {{ ?x {REACHES} ?y }}"
REACH = parse_rules(f"""Document( Group(
    Forall ?x ?y ( ?x[{REACHES} -> ?y] :- ?x[{EDGE} -> ?y] )
    Forall ?x ?y ?z ( ?x[{REACHES} -> ?z] :- And( ?x[{REACHES} -> ?y] ?y[{EDGE} -> ?z] ) ) ) )""", "text/x-rif-ps", "reach")
Break = Callable[[Path], object]
BREAK: list[Break] = [Path.unlink, lambda path: path.write_bytes(path.read_bytes()[:8] + b" and then something else"),
                      lambda path: path.write_bytes(path.read_bytes()[:-20]), lambda path: path.write_bytes(b"")]
HOW = ["gone", "something else", "cut off", "empty"]


class Query:
    """A query over a path of edges, one more at each second."""

    def __init__(self, executor: Executor, text: str) -> None:
        self._executor = executor
        self._compiled = compile_statement(parse(text), Catalog({S: "event"}, {}, {"reach": REACH}), "q")
        self._content, self._seconds = StreamContent(), 0

    def next(self) -> Answer:
        edge = (f"<urn:{self._seconds}>", EDGE, f"<urn:{self._seconds + 1}>")
        self._seconds += 1
        self._content.append(facts_of(encode([Event(self._seconds, S, self._seconds * 1000 - 500, None, (edge,), 0)])))
        [answer] = self._executor.evaluate([Due("q", self._compiled, (self._seconds * 1000,), 0, {S: self._content}, {})])
        return answer


def rows(answer: Answer) -> Sequence[dict[str, str]]:
    assert answer.table is not None, answer.error
    return answer.table.to_pylist()


@pytest.mark.parametrize("mends", [True, False])
@pytest.mark.parametrize("break_", BREAK, ids=HOW)
def test_a_lost_segment_of_a_closure(break_: Break, mends: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """A worker reads it that has not seen it yet: it fails, and the closure is made from what there is. Where no file stays whole, as on
    workers that do not see the folder, each evaluation fails, and none has a row too few."""
    with own_process() as tasks:
        executor = Executor(tasks, force_strategy="incremental")
        query = Query(executor, CLOSED)
        for pairs in (1, 3, 6):
            assert len(rows(query.next())) == pairs
        segment = sorted(tasks.work.rglob("*.arrow"))[-1]
        break_(segment)
        states._states(tasks._connections[0]).clear()    # as in another worker
        if not mends:
            monkeypatch.setattr(executor, "_mended", lambda jobs: ())
            failed = query.next()
            assert failed.table is None and str(segment) in str(failed.error), failed
        else:
            assert len(rows(query.next())) == 10
            assert [str(segment) in record.message for record in caplog.records] == [True]
        assert [len(rows(query.next())) for _ in range(3)] == [15, 21, 28]
        executor.close()


@pytest.mark.parametrize("break_", BREAK, ids=HOW)
def test_a_lost_segment_that_is_merged(break_: Break, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "MOST_SEGMENTS", 3)
    with own_process() as tasks:
        executor = Executor(tasks, force_strategy="incremental")
        query, seconds = Query(executor, CLOSED), 20
        for second in range(1, seconds):
            assert len(rows(query.next())) == second * (second + 1) // 2
            break_(sorted(tasks.work.rglob("*.arrow"))[-1])
        executor.close()


@pytest.mark.parametrize("mends", [True, False])
@pytest.mark.parametrize("break_", BREAK, ids=HOW)
def test_a_lost_segment_of_a_stream(spark_session: Session, break_: Break, mends: bool, monkeypatch: pytest.MonkeyPatch,
                                    caplog: pytest.LogCaptureFixture) -> None:
    """It fails by name even where only rows are counted, for which Spark reads no column, and where the file has no length, which Spark
    takes for one without rows."""
    executor = SparkExecutor(spark_session, force_executor="sql", force_strategy="recompute")
    query = Query(executor, COUNT)
    assert [rows(query.next())[0]["n"][1] for _ in range(3)] == ["1", "2", "3"]
    [mirror] = executor._sql.mirrors.values()
    segment = list(mirror._segments.values())[1]
    break_(segment)
    if not mends:
        monkeypatch.setattr(executor, "_mended", lambda jobs: ())
        for _ in range(2):
            failed = query.next()
            assert failed.table is None and segment.name in str(failed.error), failed
    else:
        assert [rows(query.next())[0]["n"][1] for _ in range(3)] == ["4", "5", "6"]
        assert [segment.name in record.message for record in caplog.records] == [True]
    executor.close()
    assert not list(mirror.folder.glob(f"{mirror.view}-*"))


@pytest.mark.parametrize("break_", BREAK, ids=HOW)
def test_a_segment_that_is_lost_while_it_is_read(spark_session: Session, break_: Break) -> None:
    """After all was found to be there."""
    executor = SparkExecutor(spark_session, force_executor="sql", force_strategy="recompute")
    query = Query(executor, COUNT)
    assert rows(query.next())[0]["n"][1] == "1"
    [mirror] = executor._sql.mirrors.values()
    show = mirror.show

    def broken(spark: object, content: StreamContent) -> None:
        show(spark, content)    # type: ignore[arg-type]
        break_(list(mirror._segments.values())[0])
        mirror.show = show  # type: ignore[method-assign]

    mirror.show = broken    # type: ignore[method-assign]
    assert [rows(query.next())[0]["n"][1] for _ in range(3)] == ["2", "3", "4"]
    executor.close()


def test_the_log_s_source_alone_passes_over_files_that_are_gone(spark_session: Session, tmp_path: Path) -> None:
    """They are merged while it lists them; whatever else reads files is told."""
    folder, found = tmp_path / "log", list[pa.Table]()
    folder.mkdir()
    table = pa.concat_tables([FACTS.empty_table(), facts_of(encode([Event(1, S, 500, None, (("<urn:x>", EDGE, "<urn:y>"),), 0)]))])
    for number in range(2):
        pq.write_table(table, folder / f"{number}.parquet")
    read, failures = threading.Event(), list[BaseException]()

    def on_batch(read_batch: Callable[[], pa.Table] | None) -> None:
        assert read_batch is not None
        (folder / "0.parquet").unlink(missing_ok=True)
        found.append(read_batch())
        read.set()

    feed = Feed(spark_session.spark, FeedSettings(folder, tmp_path / "checkpoints", FACTS), on_batch, failures.append)
    feed.start()
    try:
        assert read.wait(60) and not failures
    finally:
        feed.stop()
    assert [batch.num_rows for batch in found] == [1]
    assert spark_session.spark.conf.get("spark.sql.files.ignoreMissingFiles") == "false"


@pytest.mark.spark
def test_a_plan_of_spark_sql_reads_the_content_that_it_is_given(spark_session: Session) -> None:
    executor = SparkExecutor(spark_session, force_executor="sql")
    query = Query(executor, COUNT.replace("(COUNT(*) AS ?n)", "?x"))
    for second in range(2):
        assert [row["x"] for row in rows(query.next())] == [f"<urn:{second}>"]
        query._content = StreamContent()    # another of the stream, which has as many chunks then
    executor.close()

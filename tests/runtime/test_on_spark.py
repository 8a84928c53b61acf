"""The engine on Spark: through Structured Streaming from the push to the logged result."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from engine.limits import EvaluationLimits
from engine.runtime.backend import Backend
from engine.runtime.log import LogFolder
from engine.runtime.resources import Item
from engine.runtime.rows import ROWS, Control, Kind, control_rows
from engine.runtime.service import Engine
from engine.runtime.settings import Settings
from engine.spark.feed import Feed, FeedSettings
from engine.spark.session import Session
from grammar import parse
from grammar.rule_sets import parse_rules
from tests.waiting import DEADLINE_S

TEXT = """REGISTER QUERY q AS SELECT ?s ?v FROM STREAM <http://ex.org/s> [RANGE 2s STEP 1s]
          WHERE { ?s <http://ex.org/value> ?v FILTER(?v > 3) }"""
NUMBER = "http://www.w3.org/2001/XMLSchema#integer"


class Waiting:
    """Wakes on every notice."""

    def __init__(self) -> None:
        self._changed = threading.Condition()

    def __call__(self, notice: object = None) -> None:
        with self._changed:
            self._changed.notify_all()

    def until(self, condition: Callable[[], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(condition, DEADLINE_S)


def start(folder: Path, session: Session, evaluation_ms: int = 20_000) -> tuple[Engine, Waiting]:
    settings = Settings(data=folder, archive_files=4, warm_up=False, evaluation=EvaluationLimits(evaluation_ms=evaluation_ms))
    engine, waiting = Engine(settings, parse, backend=Backend(settings, session), parse_rules=parse_rules), Waiting()
    engine.subscribe(waiting)
    engine.start()
    waiting.until(lambda: engine.state != "starting")
    assert engine.ready, engine.progress
    return engine, waiting


def push(engine: Engine, second: int) -> None:
    triple = (f"<http://ex.org/s{second}>", "<http://ex.org/value>", f'"{second}"^^<{NUMBER}>')
    engine.push("s", [Item(second * 1_000, None, (triple,))], idempotency_key=str(second))


def values(engine: Engine) -> dict[int, list[str]]:
    return {event.tick: sorted(row["v"]["value"] for row in json.loads(event.payload)["results"]["bindings"])
            for event in engine.results.read("q", 0)}


@pytest.mark.spark
def test_from_push_to_result_and_over_a_restart(tmp_path: Path, spark_session: Session) -> None:
    engine, waiting = start(tmp_path, spark_session)
    engine.put_stream("s", {"iri": "http://ex.org/s", "time": "event"})
    engine.register(TEXT)
    for second in range(6):
        push(engine, second)
    waiting.until(lambda: len(values(engine)) == 5)
    assert engine.sparql("SELECT (COUNT(*) AS ?n) FROM STREAM <http://ex.org/s> [RANGE 1s STEP 1s] { ?s ?p ?v }").table.num_rows == 1
    engine.stop()
    engine, waiting = start(tmp_path, spark_session)
    for second in range(4, 8):
        push(engine, second)
    waiting.until(lambda: len(values(engine)) == 7)
    assert values(engine) == {1_000: [], 2_000: [], 3_000: [], 4_000: [], 5_000: ["4"], 6_000: ["4", "5"], 7_000: ["5", "6"]}
    engine.stop()


@pytest.mark.spark
def test_a_program_with_a_time_of_its_own_goes_on_after_a_restart(tmp_path: Path, spark_session: Session) -> None:
    text = ("PREFIX ex: <http://ex.org/>\nFROM STREAM ex:s\nGRANULARITY 1 sec\n"
            "ex:Big(S) <- [2 sec] diamond ex:value(S, V), V > 3.\nfirst(S) <- diamond ex:value(S, 0).\n")

    def told(engine: Engine) -> list[tuple[int, str | None, int]]:
        return [(event.at_ms, event.stream, event.meta["rows"]) for event in engine.results.read("q", 0)]

    engine, waiting = start(tmp_path, spark_session)
    engine.put_stream("s", {"iri": "http://ex.org/s", "time": "event"})
    engine.register(text, "q", {"media": "text/x-lars"})
    for second in range(6):
        push(engine, second)
    waiting.until(lambda: len(told(engine)) == 2)
    engine.stop()
    assert len(list((tmp_path / "programs").glob("*.arrow"))) == 1
    engine, waiting = start(tmp_path, spark_session)
    push(engine, 6)
    push(engine, 20)
    waiting.until(lambda: len(told(engine)) == 7)
    assert told(engine) == [(0, "p", 1), (4_000, "p", 1), (5_000, "p", 1), (6_000, "p", 1), (7_000, "n", 1), (8_000, "n", 1),
                            (9_000, "n", 1)]
    assert engine.stats("q")["factsHeld"] > 0 and engine.stats("q")["executor"] == "local"
    engine.stop()


@pytest.fixture
def folder(tmp_path: Path) -> LogFolder:
    return LogFolder(tmp_path / "log", tmp_path / "archive")


class Listening:
    """Collects the positions that a feed brings."""

    def __init__(self, session: Session, folder: LogFolder, rotate_files: int = 10_000, open_s: float = 0.0) -> None:
        self.positions: list[int] = []
        self.failures: list[BaseException] = []
        self.refuse = False
        self.told = 0
        self.waiting = Waiting()
        settings = FeedSettings(folder.folder, folder.folder.parent / "checkpoints", ROWS, rotate_files=rotate_files, open_s=open_s)
        self.feed = Feed(session.spark, settings, self._take, self._fail)

    def _take(self, read: Callable[[], pa.Table] | None) -> None:
        if self.refuse:
            raise SystemExit("refused")
        if read is None:
            self.told += 1
        else:
            self.positions += read()["position"].to_pylist()
        self.waiting()

    def _fail(self, failure: BaseException) -> None:
        self.failures.append(failure)
        self.waiting()


@pytest.fixture
def listening(spark_session: Session, folder: LogFolder) -> Iterator[Listening]:
    found = Listening(spark_session, folder)
    found.feed.start()
    yield found
    found.feed.stop()


def note(position: int) -> object:
    return control_rows(Control(position, Kind.NOTE, "", None, {}))


@pytest.mark.spark
def test_a_feed_brings_every_file_and_goes_on_with_a_new_checkpoint(listening: Listening, folder: LogFolder) -> None:
    folder.write(note(1))  # type: ignore[arg-type]
    folder.write(note(2))  # type: ignore[arg-type]
    listening.waiting.until(lambda: set(listening.positions) == {1, 2})
    folder.merge(2, 1)
    listening.feed.seen(1 << 30)
    folder.write(note(3))  # type: ignore[arg-type]
    listening.waiting.until(lambda: 3 in listening.positions)
    assert not listening.failures


@pytest.mark.spark
def test_a_batch_is_kept_open_and_ends_when_the_feed_is_stopped(spark_session: Session, folder: LogFolder) -> None:
    found = Listening(spark_session, folder, open_s=1e6)
    found.feed.start()
    folder.write(note(1))  # type: ignore[arg-type]
    found.waiting.until(lambda: found.positions == [1])
    for number in range(2, 4):
        folder.write(note(number))  # type: ignore[arg-type]
        found.feed.wake()
        found.waiting.until(lambda: found.told == number - 1)
    found.feed.stop()
    assert found.positions == [1] and not found.failures


@pytest.mark.spark
def test_a_callback_that_fails_ends_the_feed(listening: Listening, folder: LogFolder) -> None:
    listening.refuse = True
    folder.write(note(1))  # type: ignore[arg-type]
    listening.waiting.until(lambda: bool(listening.failures))
    assert "refused" in str(listening.failures[0])

"""A record that cannot be applied is set aside: a dead letter, a status event, a line in the log file; not fatal, not even at start."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pyarrow as pa
import pytest

from engine.runtime.resources import ResultEvent
from engine.runtime.rows import Control, Kind, control_rows, item_rows, prepare
from tests.unit.runtime.test_engine import EVENTS, NOW, TEXT, Running, item

IRI = EVENTS["iri"]
RECEIPT = {"key": "k", "until": 1, "digest": None, "accepted": 1, "late": 0, "rejected": 0, "first": "1", "last": "1", "watermark": None,
           "errors": []}
BAD = {
    "a key kept for too long": Control(0, Kind.KEY, IRI, None, {**RECEIPT, "until": NOW + 999_999_999_999_999 * 86_400_000}),
    "a key without an answer": Control(0, Kind.KEY, IRI, None, {"key": "k"}),
    "half a character": Control(0, Kind.REFUSED, IRI, None, {"late": 0, "refused": 1, "letters": [
        {"reason": "\ud800", "t": None, "text": ""}]}),
    "counts that are none": Control(0, Kind.REFUSED, IRI, None, {"late": "many"}),
    "a watermark beyond the calendar": Control(0, Kind.MARK, IRI, 1 << 60, {}),
    "a command without its text": Control(0, Kind.REGISTER, "other", None, {}),
    "rules without a text": Control(0, Kind.RULES, "r", None, {"media": "x"}),
    "a stream without a descriptor": Control(0, Kind.STREAM, "http://ex.org/t", None, {"name": "t"}),
    "a stream with half a descriptor": Control(0, Kind.STREAM, "http://ex.org/t", None, {"name": "t", "descriptor": {}}),
}


def bad_rows(name: str, position: int) -> pa.Table:
    if name in BAD:
        bad = BAD[name]
        return control_rows(Control(position, bad.kind, bad.stream, bad.watermark, bad.payload))
    if name == "an item beyond the calendar":
        prepared = prepare([(1 << 60, None, (("<a>", "<b>", "<c>"),))])
        import numpy as np
        return item_rows(prepared, IRI, np.ones(1, bool), np.array([position]), prepared.times, prepared.times)
    rows = control_rows(Control(position, Kind.NOTE, IRI, None, {"note": 1}))
    if name == "a kind that is not known":
        return rows.set_column(2, rows.schema.field(2), pa.array([99], pa.int8()))
    return rows.set_column(13, rows.schema.field(13), pa.array(["{no json"]))


NAMES = [*BAD, "an item beyond the calendar", "a kind that is not known", "a payload that is no JSON"]


def append(running: Running, name: str) -> int:
    """Append a bad record as an older version may have; its position."""
    def decide(end: object, now: int) -> tuple[list[pa.Table], int]:
        position = end.take()  # type: ignore[attr-defined]
        return [bad_rows(name, position)], position
    return running.engine._machine.writer.call(decide)  # type: ignore[arg-type]


def answers(running: Running, count: int) -> list[ResultEvent]:
    running.until(lambda: len(running.results()) >= count)
    return running.results()


@pytest.mark.parametrize("name", NAMES)
def test_a_record_that_cannot_be_applied_is_set_aside(name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with Running(tmp_path) as running:
        engine = running.engine
        engine.put_stream("s", EVENTS)
        engine.register(TEXT)
        with caplog.at_level(logging.ERROR):
            position = append(running, name)
            engine.push("s", [item(NOW + 100), item(NOW + 1_100, "2")])
            assert answers(running, 1)[0].tick == NOW + 1_000
        assert f"record at {position}" in caplog.text and "is set aside" in caplog.text
        assert ("record", str(position)) in [(t["kind"], t["name"]) for t in engine.health()[1]["degraded"]]
        if name in BAD and BAD[name].stream != IRI:
            return
        running.until(lambda: any(notice.kind == "status" and notice.data.get("reason") == "record-set-aside"
                                  for notice in running.notices))
        assert [letter.position for letter in engine.dead_letters("s") if letter.reason.startswith("set aside")] == [position]


@pytest.mark.parametrize("name", NAMES)
def test_a_record_that_cannot_be_applied_is_none_at_the_next_start(name: str, tmp_path: Path) -> None:
    """Neither where the pump has passed it, nor where it is still before it."""
    with Running(tmp_path) as running:
        engine = running.engine
        engine.put_stream("s", EVENTS)
        engine.register(TEXT)
        running.backend.fed.clear()
        position = append(running, name)
        engine.push("s", [item(NOW + 100)])
        running.backend.fed.set()
    with Running(tmp_path) as running:
        running.engine.push("s", [item(NOW + 1_100, "2")])
        assert answers(running, 1)[0].tick == NOW + 1_000
        assert running.engine.push("s", [item(NOW + 1_200)], idempotency_key="k").accepted in (0, 1)
    with Running(tmp_path, NOW + 10) as running:
        assert running.engine.ready and len(running.results()) == 1
        assert running.engine._machine.writer.appender.position > position


def test_a_retention_that_was_accepted_before_there_was_a_bound(tmp_path: Path) -> None:
    """The descriptor and the key of a push in a data folder of then."""
    with Running(tmp_path) as running:
        running.engine.put_stream("s", EVENTS)
    import sqlite3
    with sqlite3.connect(tmp_path / "thalweg.db") as database:
        descriptor = json.loads(database.execute("select descriptor from streams").fetchone()[0])
        database.execute("update streams set descriptor = ?", (json.dumps({**descriptor, "retention": "PT23999999999999976H"}),))
    with Running(tmp_path) as running:
        assert running.engine.push("s", [item(NOW)], idempotency_key="k").accepted == 1
        assert running.engine.push("s", [item(NOW)], idempotency_key="k").repeated
    with Running(tmp_path) as running:
        assert running.engine.push("s", [item(NOW)], idempotency_key="k").repeated

"""A disk without room: pushes are refused, everything else goes on, and nothing is lost or doubled."""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from engine.runtime.data_folder import Room
from engine.runtime.errors import EngineError
from engine.runtime.resources import Item
from engine.runtime.results import Changes, ResultLog
from engine.runtime.service import Engine
from tests.unit.runtime.test_engine import EVENTS, NOW, TEXT, P, Running, S, item

COUNTING = ("REGISTER QUERY q AS SELECT (COUNT(*) AS ?n) FROM STREAM <http://ex.org/s> [RANGE 2s STEP 1s] "
            "WHERE { ?s <http://ex.org/p> ?o }")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 MB."""
    place = tmp_path / "small"
    place.mkdir()
    try:
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(place)], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no mount command here")
    if done.returncode:
        pytest.skip(f"file systems cannot be mounted here: {done.stderr.strip()}")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def large(number: int) -> Item:
    """An item of about 800 kB that cannot be made smaller."""
    noise = random.Random(number)
    return Item(NOW + number * 1_000, None, tuple((S, P, f'"{noise.randbytes(10_000).hex()}"') for _ in range(40)))


def fill(path: Path) -> None:
    """Take all the room there is."""
    with suppress(OSError), path.open("wb", buffering=0) as sink:
        for size in (1 << 20, 1 << 12):
            with suppress(OSError):
                while True:
                    sink.write(b"x" * size)


def pushed(engine: Engine, numbers: Iterator[int]) -> list[int]:
    """The numbers of the items that were taken until the disk was full."""
    taken = []
    for number in numbers:
        try:
            engine.push("s", [large(number)])
        except EngineError as refused:
            assert (refused.slug, refused.status) == ("disk-full", 507)
            return taken
        taken.append(number)
    raise AssertionError("the disk does not fill")


def logged(running: Running, last: int) -> list[int]:
    """The ticks with results when all up to an item have been processed."""
    running.until(lambda: bool(running.results()) and running.results()[-1].tick >= NOW + last * 1_000)
    return [event.tick for event in running.results()]


def test_a_small_disk_that_fills(small_disk: Path) -> None:
    numbers = iter(range(1, 10_000))
    data, filler = small_disk / "data", small_disk / "filler"
    with Running(data, NOW + 10_000_000) as running:
        engine = running.engine
        engine.put_stream("s", EVENTS)
        engine.register(COUNTING)
        taken = pushed(engine, numbers)
        assert len(taken) > 10
        assert engine.query("q").state == "running" and engine.state == "running"
        assert logged(running, taken[-1])       # what was taken is answered: room was kept for that
        assert "disk" in {entry["kind"] for entry in engine.health()[1]["degraded"]}
        fill(filler)
        assert pushed(engine, numbers) == [] and running.results() and engine.queries()
        filler.unlink()
    with Running(data, NOW + 10_000_000) as again:     # nearly full: there is no room to merge
        assert again.engine.query("q").state in ("running", "idle")
        assert [event.tick for event in again.results()] == [NOW + n * 1_000 for n in range(2, taken[-1] + 1)]
        assert list((data / "staging").iterdir()) == []
        archive = sorted((data / "archive").glob("*.parquet"), key=lambda path: path.stat().st_size)
        fill(filler)    # what closing the database has made room for
        assert pushed(again.engine, numbers) == []
        filler.unlink()
        for path in [*archive, *(data / "log").glob("*.parquet")]:      # as an operator would, not knowing better
            path.unlink(missing_ok=True)
        more = [n for n in range(5_000, 5_003)]
        for number in more:
            again.engine.push("s", [large(number)])
        assert logged(again, more[-1])[-2:] == [NOW + n * 1_000 for n in more[1:]]


def test_the_pump_waits_for_room_under_the_database_and_goes_on(tmp_path: Path) -> None:
    with Running(tmp_path) as running:
        engine = running.engine
        engine.put_stream("s", EVENTS)
        engine.register(TEXT)
        database: Any = running.machine.results._writer
        pages = database.execute("pragma page_count").fetchone()[0]
        database.execute(f"pragma max_page_count = {pages}")
        noise = random.Random(1)
        for number in range(1, 40):
            engine.push("s", [item(NOW + number * 1_000, noise.randbytes(4_000).hex())])
        running.until(lambda: not engine.health()[0])
        ready, body = engine.health()
        assert not ready and "room" in engine.progress and engine.state == "running", body
        assert engine.queries() and engine.sparql("ASK { ?s ?p ?o }").table.num_rows == 0
        engine.push("s", [item(NOW + 40_000)])
        database.execute("pragma max_page_count = 1000000")
        assert running.ticks(39) == [NOW + number * 1_000 for number in range(2, 41)]
        running.until(lambda: engine.health()[0])
        assert engine.progress == "ready"


def test_an_engine_that_waits_for_room_can_be_stopped(tmp_path: Path) -> None:
    running = Running(tmp_path)
    engine = running.start()
    engine.put_stream("s", EVENTS)
    engine.register(TEXT)
    running.machine.results._writer.execute("pragma max_page_count = 1")
    for number in range(1, 40):
        engine.push("s", [item(NOW + number * 1_000, random.Random(1).randbytes(4_000).hex())])
    running.until(lambda: not engine.health()[0])
    engine.stop()
    with Running(tmp_path) as again:
        assert again.ticks(38) == [NOW + number * 1_000 for number in range(2, 40)]


class Refusing:
    """A connection whose next commits find no room."""

    def __init__(self, connection: sqlite3.Connection, times: int) -> None:
        self._connection, self.times = connection, times

    def execute(self, text: str, *values: Any) -> Any:
        if text == "commit" and self.times:
            self.times -= 1
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise error
        return self._connection.execute(text, *values)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


def test_a_commit_that_finds_no_room_can_be_tried_again(tmp_path: Path) -> None:
    log = ResultLog(tmp_path / "db")
    log._writer = Refusing(log._writer, 2)  # type: ignore[assignment]
    for _ in range(2):
        with pytest.raises(EngineError) as error:
            log.commit(Changes(7), 0)
        assert (error.value.slug, error.value.status) == ("disk-full", 507)
    log.commit(Changes(7), 0)
    assert log.position == 7
    log.close()


def test_a_graph_file_without_room_waits_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refusals, write = [1, 2], pq.write_table

    def full(*given: Any, **named: Any) -> None:
        if refusals:
            refusals.pop()
            raise OSError(28, os.strerror(28))
        write(*given, **named)
    with Running(tmp_path) as running:
        monkeypatch.setattr(pq, "write_table", lambda *given, **named: (
            full if "graphs" in str(getattr(given[1], "name", "")) else write)(*given, **named))
        running.engine.put_graph("http://ex.org/g", [(S, P, '"x"')])
        assert running.engine.graph("http://ex.org/g")[0].triples == 1 and not refusals


def test_a_start_without_any_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a note nor a mark can be appended, and nothing merged: the engine runs, and pushes are refused."""
    with Running(tmp_path) as running:
        running.engine.put_stream("s", EVENTS)
        running.engine.register(TEXT)
        running.engine.push("s", [item(NOW + 100), item(NOW + 1_100)], idempotency_key="k")
        running.ticks(1)

    def full(*given: Any, **named: Any) -> None:
        raise OSError(28, os.strerror(28))
    with monkeypatch.context() as patched:
        patched.setattr("engine.runtime.log.pq.write_table", full)
        patched.setattr(Room, "free", lambda self: 0)
        database_full = sqlite3.OperationalError("database or disk is full")
        database_full.sqlite_errorcode = sqlite3.SQLITE_FULL
        with Running(tmp_path) as again:
            engine = again.engine
            assert engine.query("q").state == "running" and len(again.results()) == 1
            with pytest.raises(EngineError) as error:
                engine.push("s", [item(NOW + 2_100)])
            assert error.value.status == 507
            with pytest.raises(EngineError) as error:
                engine.put_graph("http://ex.org/g", [(S, P, '"x"')])
            assert error.value.status == 507
    with Running(tmp_path) as once_more:
        once_more.engine.push("s", [item(NOW + 2_100)])
        assert once_more.ticks(2) == [NOW + 1_000, NOW + 2_000]


def test_the_reserve_is_an_eighth_of_a_small_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.runtime.data_folder.shutil.disk_usage", lambda path: (64 << 20, 0, 9 << 20))
    room = Room(tmp_path, 64 << 20)
    assert room.reserve == 8 << 20 and not room.low and room.fits(1 << 20) and not room.fits(2 << 20)
    room.check()
    monkeypatch.setattr("engine.runtime.data_folder.shutil.disk_usage", lambda path: (64 << 20, 0, 7 << 20))
    with pytest.raises(EngineError, match="8388608"):
        room.check()

"""Files of the input log: group commit, failures, reading back, merging, expiry."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from engine.records import Event
from engine.runtime import log_threads
from engine.runtime.append import Appender
from engine.runtime.data_folder import Room
from engine.runtime.errors import EngineError
from engine.runtime.log import LogFolder, newest_time
from engine.runtime.log_threads import LogKeeper, LogWriter
from engine.runtime.rows import Control, Kind, control_rows, in_order, prepare
from engine.runtime.streams import Source, Terms
from tests.encoded import encode


def notes(first: int, count: int = 1) -> pa.Table:
    return control_rows(*(Control(position, Kind.NOTE, "", None, {}) for position in range(first, first + count)))


def positions(tables: Iterator[pa.Table]) -> list[int]:
    return [position for table in tables for position in table["position"].to_pylist()]


@pytest.fixture
def folder(tmp_path: Path) -> LogFolder:
    return LogFolder(tmp_path / "log", tmp_path / "archive")


@pytest.fixture
def writer(folder: LogFolder) -> Iterator[LogWriter]:
    end = Appender(1, {"a": Source("a"), "b": Source("b"), "e": Source("e", arrival=False)})
    found = LogWriter(folder, end, lambda: 1_000, 0, arrival_streams=lambda: ["a", "b", "e"])
    found.worker.start()
    yield found
    found.stop()


def item(t: int | None = None) -> object:
    return prepare([(t, None, (("<x>", "<p>", "<o>"),))])


def test_files_are_named_by_their_positions_and_read_in_order(folder: LogFolder) -> None:
    for first in (1, 4, 6):
        folder.write(notes(first, 2 if first != 1 else 3))
    assert [(file.first, file.last) for file in folder.files()] == [(1, 3), (4, 5), (6, 7)]
    assert positions(folder.read(0)) == [1, 2, 3, 4, 5, 6, 7]
    assert positions(folder.read(2, 6)) == [3, 4, 5, 6]


@given(st.lists(st.integers(1, 3), max_size=8), st.randoms(use_true_random=False), st.booleans())
def test_rows_are_put_in_order(counts: list[int], random: Random, by_row: bool) -> None:
    """Whether whole files are out of order or single rows."""
    rows = [{"position": position, "row": row} for position, count in enumerate(counts, 1) for row in range(count)]
    cut = random.randint(0, len(rows))
    mixed = rows[cut:] + rows[:cut]
    if by_row:
        random.shuffle(mixed)
    assert in_order(pa.Table.from_pylist(mixed, pa.schema([("position", pa.int64()), ("row", pa.int32())]))).to_pylist() == rows


def test_merged_files_are_read_once_even_if_the_old_ones_are_still_there(folder: LogFolder) -> None:
    files = [folder.write(notes(position)) for position in (1, 2, 3)]
    kept = files[1].path.read_bytes()
    assert folder.merge(2, 3) == 0 and folder.merge(2, 2) == 2
    files[1].path.write_bytes(kept)
    assert positions(folder.read(0)) == [1, 2, 3]
    assert folder.merge(3, 1) == 2 and positions(folder.read(0)) == [1, 2, 3]


def test_what_came_since_a_reader_looked(folder: LogFolder) -> None:
    for first in (1, 3, 5):
        folder.write(notes(first, 2))
    assert positions(iter(folder.some(2, 100))) == [3, 4, 5, 6] and positions(iter(folder.some(2, 1))) == [3, 4]
    assert [file.last for file in folder.waiting(3)] == [4, 6] and folder.waiting(6) == []


def test_history_leaves_out_files_without_items_that_are_needed(folder: LogFolder) -> None:
    old, new = (folder.write(encode([Event(position, "s", t, None, (("<x>", "<p>", "<o>"),), t)])) for position, t in ((1, 10), (2, 20)))
    assert (newest_time(old.path), newest_time(new.path)) == (10, 20)
    old.path.write_bytes(b"would fail if it were read" + old.path.read_bytes()[-4096:])
    assert positions(folder.history({"s": 15}, 2)) == [2]
    assert positions(folder.history({}, 2)) == []


def test_files_may_be_merged_while_they_are_read(folder: LogFolder) -> None:
    for position in range(1, 6):
        folder.write(notes(position))
    tables = folder.read(0)
    found = [next(tables)["position"][0].as_py()]
    assert folder.merge(4, 1) == 4
    assert [*found, *positions(tables)] == [1, 2, 3, 4, 5]


def test_expired_files_go_when_no_window_needs_them(folder: LogFolder) -> None:
    folder.write(encode([Event(1, "s", 10, None, (("<x>", "<p>", "<o>"),), 10)]))
    folder.merge(1, 1)
    assert folder.expire(1e12, 10) == 0
    assert folder.expire(0, 11) == 0
    assert folder.expire(1e12, 11) == 1 and folder.files() == []


def test_half_written_files_of_a_crash_are_swept_away(tmp_path: Path) -> None:
    (tmp_path / "staging").mkdir()
    (tmp_path / "staging" / "log-0.parquet").write_bytes(b"half")
    LogFolder(tmp_path / "log", tmp_path / "archive")
    assert list((tmp_path / "staging").iterdir()) == []


def test_commands_that_wait_together_are_one_file(writer: LogWriter, folder: LogFolder) -> None:
    hold, release = threading.Event(), threading.Event()

    def first(end: Appender, now: int) -> tuple[list[pa.Table], None]:
        hold.set()
        assert release.wait(10)
        return [notes(end.take())], None
    waiting = writer.submit(first)
    assert hold.wait(10)
    replies = [writer.submit(lambda end, now: ([notes(end.take())], None)) for _ in range(5)]
    release.set()
    for reply in (waiting, *replies):
        reply.result(10)
    assert [(file.first, file.last) for file in folder.files()] == [(1, 1), (2, 6)]


def test_commits_are_further_apart_while_files_wait(folder: LogFolder) -> None:
    processed = 0
    writer = LogWriter(folder, Appender(), lambda: 0, 0, processed=lambda: processed)
    writer.worker.start()
    for _ in range(40):
        writer.call(lambda end, now: ([notes(end.take())], None))
    assert writer._slowness() == 5
    processed = 30
    assert writer._slowness() == 1
    writer.stop()


def test_a_refused_command_leaves_the_others_alone(writer: LogWriter, folder: LogFolder) -> None:
    def refused(end: Appender, now: int) -> tuple[list[pa.Table], None]:
        end.take(10)
        raise EngineError("bad-name", 400, "no")
    replies = [writer.submit(refused), writer.submit(lambda end, now: ([notes(end.take())], None))]
    with pytest.raises(EngineError, match="no"):
        replies[0].result(10)
    replies[1].result(10)
    assert positions(folder.read(0)) == [1]


def test_what_cannot_be_written_has_not_happened(writer: LogWriter, folder: LogFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(table: pa.Table) -> None:
        raise OSError(28, "No space left on device")
    with monkeypatch.context() as patched:
        patched.setattr(folder, "write", full)
        with pytest.raises(EngineError) as error:
            writer.call(lambda end, now: end.push("e", item(5), now, Terms(key="k")))  # type: ignore[arg-type]
        assert (error.value.slug, error.value.status) == ("disk-full", 507)
    receipt = writer.call(lambda end, now: end.push("e", item(5), now, Terms(key="k")))  # type: ignore[arg-type]
    assert (receipt.first_id, receipt.repeated) == ("1", False)


def test_items_of_an_arrival_stream_bring_a_clock_mark_for_all_that_are_read(writer: LogWriter, folder: LogFolder) -> None:
    writer.call(lambda end, now: end.push("a", item(), now))  # type: ignore[arg-type]
    rows = [row for table in folder.read(0) for row in table.to_pylist()]
    assert [(row["record"], row["stream"], row["t"], row["watermark"]) for row in rows[1:]] == [
        (Kind.MARK, "a", None, 1_001), (Kind.MARK, "b", None, 1_001)]
    writer.call(lambda end, now: end.push("e", item(3), now))  # type: ignore[arg-type]
    assert writer.appender.position == 5


def test_large_files_are_merged_when_there_is_nothing_else_to_do_or_they_are_too_many(
        folder: LogFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    keeper = LogKeeper(folder, Room(folder.folder, 0), 3, lambda: 4, lambda: None, lambda count: None)
    for position in range(1, 5):
        folder.write(notes(position))

    def left(busy: bool) -> int:
        keeper._tidy_up(busy)
        return len(list(folder.folder.glob("*.parquet")))

    monkeypatch.setattr(log_threads, "_SMALL_BYTES", 1)
    assert left(True) == 4
    monkeypatch.setattr(log_threads, "_MOST_BYTES", 1)
    assert left(True) == 0
    for position in range(5, 8):
        folder.write(notes(position))
    monkeypatch.setattr(log_threads, "_MOST_BYTES", 1 << 30)
    keeper = LogKeeper(folder, Room(folder.folder, 0), 3, lambda: 7, lambda: None, lambda count: None)
    assert left(True) == 3 and left(False) == 0
    for position in range(8, 11):
        folder.write(notes(position))
    keeper = LogKeeper(folder, Room(folder.folder, 0), 3, lambda: 10, lambda: None, lambda count: None)
    monkeypatch.setattr(log_threads, "_SMALL_BYTES", 256 << 10)
    assert left(True) == 0      # small ones

"""The threads on the input log: one owns its end, one appends what is due with time, one tidies.

Commands that wait are decided (append.py) on a fork of the end and written to one file (log.py); only then is the fork adopted and are the
answers given. While files wait for the pump the interval between them grows: each costs whoever reads it some milliseconds."""

import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeVar

import pyarrow as pa

from engine.runtime.append import Appender
from engine.runtime.clock import Clock
from engine.runtime.data_folder import Room
from engine.runtime.errors import EngineError, disk_full, unavailable
from engine.runtime.log import LogFolder, LogUnsureError
from engine.runtime.rows import Kind
from engine.runtime.streams import Source
from engine.supervision import ANY_NUMBER, Worker

_LOG = logging.getLogger(__name__)
Reply = TypeVar("Reply")
DecideAtEnd = Callable[[Appender, int], tuple[list[pa.Table], Reply]]
_STOP = object()
_SWEEP_MS = 60_000
_FILES_AT_ONCE = 8
_MOST_SLOWNESS = 10
_PUSHED = frozenset((Kind.EVENT, Kind.MARK, Kind.IDLE, Kind.REFUSED, Kind.KEY, Kind.OFFSETS))   # kinds of record
_LARGE = 65_536     # rows: a copy of so many takes longer than writing them in pieces


@dataclass(slots=True)
class _Command:
    decide: DecideAtEnd[Any]
    reply: Future[Any]
    soon: bool = False


class LogWriter:
    """The thread that owns the log's end."""

    def __init__(self, folder: LogFolder, appender: Appender, now: Callable[[], int], interval_ms: int,
                 arrival_streams: Callable[[], Iterable[str]] = tuple, processed: Callable[[], int] | None = None,
                 on_failure: Callable[[BaseException], None] | None = None, written: Callable[[bool], None] = lambda _: None) -> None:
        """`arrival_streams` get a clock mark with each commit that holds items of an arrival stream. `processed` is the last position
        that the pump is done with. `on_failure` is told when the log can be written no more, `written` of each file, and whether more
        is in it than what is pushed."""
        self.folder = folder
        self.appender = appender
        self._now, self._interval = now, interval_ms / 1000
        self._arrival_streams, self._processed, self._written = arrival_streams, processed, written
        self._waiting: deque[int] = deque()
        self._swept = now()
        self._commands: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._last = 0.0
        self._stopped = False
        self.worker = Worker("log-writer", self._run, on_failure)

    def stop(self) -> None:
        """Write what waits, then end."""
        self._commands.put(_STOP)
        self.worker.join()

    def submit(self, decide: DecideAtEnd[Reply], soon: bool = False) -> Future[Reply]:
        """Queue a command; the reply is there when its rows are on disk. `soon`: it waits no longer than the usual interval, however slow
        the pump is."""
        reply: Future[Reply] = Future()
        self._commands.put(_Command(decide, reply, soon))
        return reply

    def call(self, decide: DecideAtEnd[Reply], timeout_s: float = 30.0, soon: bool = False) -> Reply:
        if not self.worker.alive:
            raise unavailable("shutting-down", "The input log is closed.")
        try:
            return self.submit(decide, soon).result(timeout_s)
        except TimeoutError:
            raise unavailable("engine-overloaded", f"The input log did not answer within {timeout_s:g} s.") from None

    def _run(self) -> None:
        while not self._stopped:
            group = self._gather(self._last)
            with suppress(queue.Empty):
                while True:
                    group.append(self._commands.get_nowait())
            self._last = time.monotonic()
            self._stopped = any(command is _STOP for command in group)
            commands = [command for command in group if command is not _STOP]
            with self.worker.busy():
                try:
                    self._commit(commands)
                except BaseException:  # the thread's, which is looked after; whoever waits must not wait for ever
                    for command in commands:
                        if not command.reply.done():
                            command.reply.set_exception(EngineError("internal", 500, "The input log could not take this."))
                    raise

    def _gather(self, last: float) -> list[Any]:
        """The next command, and those that come until it is time to write again; `last` is when that was, by the monotonic clock."""
        group = [self._commands.get()]
        slowness = self._slowness()
        while group[-1] is not _STOP:
            slowness = 1 if group[-1].soon else slowness
            left = last + self._interval * slowness - time.monotonic()
            try:
                group.append(self._commands.get(timeout=max(0.0, left)))
            except queue.Empty:
                break
            if left <= 0:
                break
        return group

    def _slowness(self) -> int:
        """By how much the interval is longer than usual: with more than a few files waiting, in proportion to them."""
        processed = self._processed() if self._processed else self.appender.position
        while self._waiting and self._waiting[0] <= processed:
            self._waiting.popleft()
        return max(1, min(_MOST_SLOWNESS, len(self._waiting) // _FILES_AT_ONCE))

    def _commit(self, group: list[_Command]) -> None:
        end, now = self.appender.fork(), self._now()
        rows: list[pa.Table] = []
        replies: list[tuple[Future[Any], Any]] = []
        for command in group:
            trial = end.fork()
            try:
                decided, reply = command.decide(trial, now)
            except Exception as refusal:  # a refused command is its caller's, the rest of the group goes on
                command.reply.set_exception(refusal)
                continue
            end.adopt(trial)
            rows += decided
            replies.append((command.reply, reply))
        try:
            self._write(end, rows, now)
        except LogUnsureError:
            raise
        except Exception as failure:  # nothing of this group has happened
            error = disk_full(f"The input log cannot be written: {failure}.")
            for future, _ in replies:
                future.set_exception(error)
            return
        self.appender.adopt(end)
        if now - self._swept > _SWEEP_MS:
            self._swept = now
            self.appender.keys.forget(now)
        for future, reply in replies:
            future.set_result(reply)
        if rows:
            self._waiting.append(end.position - 1)
            self._written(any(table.num_rows and table["record"][0].as_py() not in _PUSHED for table in rows))

    def _write(self, end: Appender, rows: list[pa.Table], now: int) -> None:
        if not rows:
            return
        if stamps := _stamps(rows, end):
            streams = sorted({*stamps, *self._arrival_streams()})
            rows += end.clock_marks(streams, max(now, max(stamps.values()) + 1))
        table = pa.concat_tables(rows)
        self.folder.write(table if table.num_rows > _LARGE else table.combine_chunks())


def _stamps(rows: Iterable[pa.Table], end: Appender) -> dict[str, int]:
    """By arrival stream: the last stamp given to its items. All items of one push have the same."""
    found: dict[str, int] = {}
    for table in rows:
        if table.num_rows and table["record"][0].as_py() == Kind.EVENT:
            stream, stamp = table["stream"][0].as_py(), int(table["t"][0].as_py())
            if stream in end.sources and end.sources[stream].arrival:
                found[stream] = max(found.get(stream, stamp), stamp)
    return found


_LONGEST_MS = 1_000


class Timer:
    """A thread that appends what is due with time. An arrival stream without items gets a clock mark exactly when the next evaluation of a
    query on it is due, or at a time that was asked for: windows close in time, and an idle server writes nothing."""

    def __init__(self, clock: Clock, writer: LogWriter, on_failure: Callable[[BaseException], None] | None = None) -> None:
        self._clock, self._writer = clock, writer
        self._expected: Sequence[tuple[int, tuple[str, ...]]] = ()
        self._asked: dict[object, Sequence[tuple[int, tuple[str, ...]]]] = {}
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self.worker = Worker("timer", self._run, on_failure)

    def stop(self) -> None:
        """End; nothing is appended afterwards."""
        self._stopping.set()
        self._wake.set()
        self.worker.join()

    def expect(self, ticks: Sequence[tuple[int, tuple[str, ...]]]) -> None:
        """The next ticks of the queries, with the streams of each (`Pump.next_ticks`)."""
        self._expected = ticks
        self._wake.set()

    def ask(self, times: Sequence[tuple[int, tuple[str, ...]]]) -> Callable[[], object]:
        """Mark streams when the clock is at these times, even if no evaluation is due then, until the returned function is called."""
        key = object()
        self._asked[key] = times
        self._wake.set()
        return lambda: self._asked.pop(key, None)

    def _run(self) -> None:
        while not self._stopping.is_set():
            with self.worker.busy():
                until = self._tick()
            self._clock.wait(self._wake, until)
            self._wake.clear()

    def _tick(self) -> int:
        """Append what is due; gives the time at which to look again."""
        now = self._clock.now_ms()
        due, later = waiting(chain(self._expected, *tuple(self._asked.values())), self._writer.appender.sources, now)
        try:
            if due:
                self._writer.call(lambda end, at: (end.clock_marks(due, at), None))
            if self._writer.appender.silent(now):
                self._writer.call(lambda end, at: (end.declare_idle(at), None))
        except EngineError:
            _LOG.warning("the timer could not write to the input log", exc_info=True)
        silence = self._writer.appender.next_silence()
        return min(time for time in (now + _LONGEST_MS, later, silence) if time is not None and time > now)


def waiting(expected: Iterable[tuple[int, tuple[str, ...]]], sources: Mapping[str, Source], now_ms: int) -> tuple[list[str], int | None]:
    """The arrival streams that hold up a tick which is due now, and the time of the next such tick."""
    due: set[str] = set()
    later: list[int] = []
    for tick, streams in expected:
        behind = [stream for stream in streams if stream in sources and sources[stream].arrival and sources[stream].watermark < tick]
        if behind and tick <= now_ms:
            due.update(behind)
        elif behind:
            later.append(tick)
    return sorted(due), min(later, default=None)


_REST_S = 10.0
_EXPIRE_S = 60.0
_MOST_UNMERGED = 1_000     # while the pump is behind, or the files are large, merging waits until there are so many
_MOST_BYTES = 1 << 30      # or they have so many bytes: they are not compressed, and retention does not see them
_SMALL_BYTES = 256 << 10


class LogKeeper:
    """`position` is how far the pump is; `needed` the greatest retention of a stream (ms) and the time from which on items may be read
    again, or None while that is not known; `seen` is told how many files were merged."""

    def __init__(self, folder: LogFolder, room: Room, archive_files: int, position: Callable[[], int],
                 needed: Callable[[], tuple[int, int] | None], seen: Callable[[int], None]) -> None:
        self.worker = Worker("log-keeper", self._run, most=ANY_NUMBER)
        self._folder, self._room, self._archive_files = folder, room, archive_files
        self._position, self._needed, self._seen = position, needed, seen
        self._wake = threading.Event()
        self._closing = False
        self._expired = 0.0

    def wake(self) -> None:
        self._wake.set()

    def stop(self) -> None:
        self._closing = True
        self._wake.set()
        self.worker.join()

    def merge(self, least: int) -> int:
        """Merge what the pump is done with, if there are so many files; what cannot be merged stays as it is, for another time."""
        try:
            return self._folder.merge(self._position(), least, self._room.fits)
        except (OSError, pa.ArrowException):
            _LOG.warning("files of the input log could not be merged", exc_info=True)
            return 0

    def _run(self) -> None:
        while not self._closing:
            busy = self._wake.wait(_REST_S)
            self._wake.clear()
            if not self._closing:
                with self.worker.busy():
                    self._tidy_up(busy)

    def _tidy_up(self, busy: bool) -> None:
        self._seen(self.merge(self._least(busy)))
        needed = self._needed()
        if needed is not None and (time.monotonic() - self._expired > _EXPIRE_S or self._room.low):
            self._expired = time.monotonic()
            self._folder.expire(time.time() - needed[0] / 1000, needed[1])

    def _least(self, busy: bool) -> int:
        """How many files are worth merging: what is waited for comes first, and large files may wait until there is nothing else to do."""
        if not busy or self._room.low:
            return 2
        position = self._position()
        sizes = self._folder.sizes(position)
        if sum(sizes) > _MOST_BYTES:
            return 2
        if self._folder.waiting(position) or sum(size < _SMALL_BYTES for size in sizes) < self._archive_files:
            return _MOST_UNMERGED
        return self._archive_files

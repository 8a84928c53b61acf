"""The thread that owns the end of the input log: it decides what is appended, writes it, and answers.

Commands queue up; every `interval_ms` at most, all that wait are decided (append.py) on a fork of the end, written to one file, synced
and renamed into place (log.py); only then is the fork adopted and are the answers given. What cannot be written has not happened. While
files wait for the pump, the interval grows: each file costs whoever reads it some milliseconds, so that many small ones would make a slow
pump slower.
"""

from __future__ import annotations

import queue
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa

from engine.runtime.append import Appender
from engine.runtime.errors import EngineError, unavailable
from engine.runtime.log import LogFolder, LogUnsureError
from engine.runtime.room import disk_full
from engine.runtime.rows import Kind
from engine.supervision.worker import Worker

Reply = TypeVar("Reply")
DecideAtEnd = Callable[[Appender, int], tuple[list[pa.Table], Reply]]
_STOP = object()
_SWEEP_MS = 60_000
_FILES_AT_ONCE = 8
_MOST_SLOWNESS = 10
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
                 on_failure: Callable[[BaseException], None] | None = None, written: Callable[[], None] = lambda: None) -> None:
        """`arrival_streams` get a clock mark with each commit that holds items of an arrival stream. `processed` is the last position
        that the pump is done with. `on_failure` is told when the log can be written no more, `written` of each file."""
        self.folder = folder
        self.appender = appender
        self.failure: BaseException | None = None
        self._now, self._interval = now, interval_ms / 1000
        self._arrival_streams, self._processed, self._written = arrival_streams, processed, written
        self._waiting: deque[int] = deque()
        self._swept = now()
        self._commands: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._last = 0.0
        self._stopped = False
        self.worker = Worker("log-writer", self._run, on_failure)

    def start(self) -> None:
        self.worker.start()

    def stop(self) -> None:
        """Write what waits, then end."""
        self._commands.put(_STOP)
        self.worker.join()

    def submit(self, decide: DecideAtEnd[Reply], soon: bool = False) -> Future[Reply]:
        """Queue a command; its reply is there when its rows are on disk. One that is wanted `soon` waits no longer than the usual
        interval, however slow the pump is."""
        reply: Future[Reply] = Future()
        self._commands.put(_Command(decide, reply, soon))
        return reply

    def call(self, decide: DecideAtEnd[Reply], timeout_s: float = 30.0, soon: bool = False) -> Reply:
        """Submit a command and wait for its reply."""
        if not self.worker.alive:
            raise unavailable("shutting-down", "The input log is closed.")
        try:
            return self.submit(decide, soon).result(timeout_s)
        except TimeoutError:
            raise unavailable("engine-overloaded", f"The input log did not answer within {timeout_s:g} s.") from None

    def _run(self) -> None:
        while not self._stopped:
            group, more = self._gather(self._last), True
            while more:
                try:
                    group.append(self._commands.get_nowait())
                except queue.Empty:
                    more = False
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
            self.appender.forget_keys(now)
        for future, reply in replies:
            future.set_result(reply)
        if rows:
            self._waiting.append(end.position - 1)
            self._written()

    def _write(self, end: Appender, rows: list[pa.Table], now: int) -> None:
        if not rows:
            return
        stamped = {stream for table in rows for stream in _arrived(table, end)}
        if stamped:
            rows += end.clock_marks(sorted(stamped | set(self._arrival_streams())), max(now, *(_stamp(rows, s) + 1 for s in stamped)))
        table = pa.concat_tables(rows)
        self.folder.write(table if table.num_rows > _LARGE else table.combine_chunks())


def _arrived(table: pa.Table, end: Appender) -> Iterator[str]:
    """The arrival stream whose items a command's rows are, if they are."""
    if table.num_rows and table["record"][0].as_py() == Kind.EVENT:
        stream = table["stream"][0].as_py()
        if stream in end.sources and end.sources[stream].arrival:
            yield stream


def _stamp(rows: Iterable[pa.Table], stream: str) -> int:
    """The last stamp given to items of an arrival stream."""
    return max(int(table["t"][0].as_py()) for table in rows
               if table.num_rows and table["record"][0].as_py() == Kind.EVENT and table["stream"][0].as_py() == stream)

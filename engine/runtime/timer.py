"""What time alone brings about: streams declared idle, and clock marks for arrival streams that fall silent.

An arrival stream without items gets a mark exactly when the next evaluation of some query on it is due, so that windows close on time
and an idle server writes nothing.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence

from engine.runtime.source import Source
from engine.runtime.clock import Clock
from engine.runtime.errors import EngineError
from engine.runtime.log_writer import LogWriter
from engine.supervision.worker import Worker

_LONGEST_MS = 1_000


class Timer:
    """A thread that appends records when their time has come."""

    def __init__(self, clock: Clock, writer: LogWriter, on_failure: Callable[[BaseException], None] | None = None) -> None:
        self._clock, self._writer = clock, writer
        self._expected: Sequence[tuple[int, tuple[str, ...]]] = ()
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self.worker = Worker("timer", self._run, on_failure)

    def start(self) -> None:
        self.worker.start()

    def stop(self) -> None:
        """End; nothing is appended afterwards."""
        self._stopping.set()
        self._wake.set()
        self.worker.join()

    def expect(self, ticks: Sequence[tuple[int, tuple[str, ...]]]) -> None:
        """The next ticks of the queries, with the streams of each (`Pump.next_ticks`)."""
        self._expected = ticks
        self._wake.set()

    def _run(self) -> None:
        while not self._stopping.is_set():
            with self.worker.busy():
                until = self._tick()
            self._clock.wait(self._wake, until)
            self._wake.clear()

    def _tick(self) -> int:
        """Append what is due; gives the time at which to look again."""
        now = self._clock.now_ms()
        due, later = waiting(self._expected, self._writer.appender.sources, now)
        try:
            if due:
                self._writer.call(lambda end, at: (end.clock_marks(due, at), None))
            if self._writer.appender.silent(now):
                self._writer.call(lambda end, at: (end.declare_idle(at), None))
        except EngineError:
            logging.getLogger(__name__).warning("the timer could not write to the input log", exc_info=True)
        silence = self._writer.appender.next_silence()
        return min(time for time in (now + _LONGEST_MS, later, silence) if time is not None and time > now)


def waiting(expected: Sequence[tuple[int, tuple[str, ...]]], sources: Mapping[str, Source], now_ms: int) -> tuple[list[str], int | None]:
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

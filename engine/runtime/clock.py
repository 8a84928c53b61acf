"""The clock is injected: the system's, or one that a test moves by hand."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Protocol


_LOG = logging.getLogger(__name__)
_TOLD_MS = 1_000


class Clock(Protocol):
    """Time in ms since the epoch that never runs backwards, and waiting for it."""

    def now_ms(self) -> int:
        """The time now."""

    def not_before(self, ms: int) -> None:
        """Go on from `ms` if it is later than now: the clock stood there once."""

    @property
    def ahead_ms(self) -> int:
        """By how much this clock is ahead of the machine's, which was set back; 0 where that is too little to tell."""

    def wait(self, wake: threading.Event, until_ms: int | None) -> None:
        """Return when `wake` is set or the time `until_ms` has come (None: never)."""


class SystemClock:
    """The time of the machine. Where that is set back, time goes on from where it was, as fast as it passes, until the machine's has
    caught up: stamps do not decrease, and windows, idle times and keys end when they should."""

    def __init__(self, wall: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
                 passed: Callable[[], int] = lambda: time.monotonic_ns() // 1_000_000) -> None:
        """Both in ms: `wall` since the epoch, `passed` since whenever, which is never set."""
        self._wall, self._passed = wall, passed
        self._lock = threading.Lock()
        self._last, self._at = 0, passed()
        self._told = False
        self.ahead_ms = 0

    def now_ms(self) -> int:
        with self._lock:
            wall, passed = self._wall(), self._passed()
            if wall < self._last:
                self._last += max(0, passed - self._at)
            else:
                self._last = wall
            self._at = passed
            self._tell(self._last - wall)
            return self._last

    def not_before(self, ms: int) -> None:
        with self._lock:
            if ms > self._last:
                self._last, self._at = ms, self._passed()
        self.now_ms()

    def _tell(self, ahead_ms: int) -> None:
        """Warn once each time that the machine's clock was set back."""
        self.ahead_ms = ahead_ms if ahead_ms >= _TOLD_MS else 0
        if self.ahead_ms and not self._told:
            _LOG.warning("the machine's clock was set back: it is %s ms behind the times given out; these go on from the last", ahead_ms)
        self._told = bool(self.ahead_ms)

    def wait(self, wake: threading.Event, until_ms: int | None) -> None:
        wake.wait(None if until_ms is None else max(0.0, (until_ms - self.now_ms()) / 1000))


class ManualClock:
    """Stands still until it is moved."""

    def __init__(self, now_ms: int = 0) -> None:
        self._now = now_ms
        self._lock = threading.Lock()
        self._waiting: set[threading.Event] = set()

    def now_ms(self) -> int:
        return self._now

    @property
    def ahead_ms(self) -> int:
        return 0

    def not_before(self, ms: int) -> None:
        self.advance(max(0, ms - self._now))

    def advance(self, ms: int) -> None:
        """Move the time on and wake all who wait for it."""
        with self._lock:
            self._now += ms
            for event in self._waiting:
                event.set()

    def wait(self, wake: threading.Event, until_ms: int | None) -> None:
        with self._lock:
            if until_ms is not None and until_ms <= self._now:
                return
            self._waiting.add(wake)
        wake.wait()
        with self._lock:
            self._waiting.discard(wake)

"""The clock is injected: the system's, or one that a test moves by hand."""

from __future__ import annotations

import threading
import time
from typing import Protocol


class Clock(Protocol):
    """Wall time in ms since the epoch, and waiting for it."""

    def now_ms(self) -> int:
        """The time now."""

    def wait(self, wake: threading.Event, until_ms: int | None) -> None:
        """Return when `wake` is set or the time `until_ms` has come (None: never)."""


class SystemClock:
    """The time of the machine, never running backwards."""

    def __init__(self) -> None:
        self._last = 0

    def now_ms(self) -> int:
        self._last = max(self._last, time.time_ns() // 1_000_000)
        return self._last

    def wait(self, wake: threading.Event, until_ms: int | None) -> None:
        wake.wait(None if until_ms is None else max(0.0, (until_ms - time.time_ns() / 1_000_000) / 1000))


class ManualClock:
    """Stands still until it is moved."""

    def __init__(self, now_ms: int = 0) -> None:
        self._now = now_ms
        self._lock = threading.Lock()
        self._waiting: set[threading.Event] = set()

    def now_ms(self) -> int:
        return self._now

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

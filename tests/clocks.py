"""A clock that a test moves by hand."""

from __future__ import annotations

import threading


class ManualClock:
    """Stands still until it is moved; in place of engine.runtime.clock.Clock."""

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

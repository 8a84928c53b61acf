"""The clock, which is injected: a test has one that it moves by hand."""

import logging
import threading
import time
from collections.abc import Callable

_LOG = logging.getLogger(__name__)
_TOLD_MS = 1_000


class Clock:
    """The time of the machine, in ms since the epoch. Where that is set back, time goes on from where it was, as fast as it passes, until
    the machine's has caught up: stamps do not decrease, and windows, idle times and keys end when they should. `ahead_ms` is by how much
    it is ahead of the machine's then; 0 where that is too little to tell."""

    def __init__(self, wall: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
                 passed: Callable[[], int] = lambda: time.monotonic_ns() // 1_000_000) -> None:
        """Both in ms: `wall` since the epoch, `passed` since whenever, which is never set."""
        self._wall, self._passed = wall, passed
        self._lock = threading.Lock()
        self._last, self._at = 0, passed()
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
        """Go on from `ms` if it is later than now: the clock stood there once."""
        with self._lock:
            if ms > self._last:
                self._last, self._at = ms, self._passed()
        self.now_ms()

    def _tell(self, ahead_ms: int) -> None:
        told = self.ahead_ms > 0    # one warning each time that the clock was set back
        self.ahead_ms = ahead_ms if ahead_ms >= _TOLD_MS else 0
        if self.ahead_ms and not told:
            _LOG.warning("the machine's clock was set back: it is %s ms behind the times given out; these go on from the last", ahead_ms)

    def wait(self, wake: threading.Event, until_ms: int | None) -> None:
        """Return when `wake` is set or the time `until_ms` has come (None: never)."""
        wake.wait(None if until_ms is None else max(0.0, (until_ms - self.now_ms()) / 1000))

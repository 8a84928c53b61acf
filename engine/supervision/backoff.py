"""How often what failed is begun again, and after how long: at once, then each time after twice as long, until it is given up."""

from __future__ import annotations

import time
from collections.abc import Callable

_LONGEST_S = 30.0


class Backoff:
    """Counts failures in a row. A failure is the first again once what was begun has lasted `steady_s` and got further than before."""

    def __init__(self, most: int, wait_s: float, steady_s: float = 60.0, now: Callable[[], float] = time.monotonic) -> None:
        """`most` failures in a row are borne. The second is followed by a wait of `wait_s`."""
        self.failures = 0
        self._most, self._wait_s, self._steady_s, self._now = most, wait_s, steady_s, now
        self._began: float | None = None
        self._reached = -1

    def began(self) -> None:
        """What had failed works again."""
        self._began = self._now()

    def failed(self, reached: int) -> float | None:
        """It has failed, having got as far as `reached`: the seconds to wait before it is begun again, None to give up."""
        lasted = self._began is not None and self._now() - self._began >= self._steady_s
        if lasted and reached > self._reached:
            self.failures = 0
        self._began, self._reached = None, max(reached, self._reached)
        self.failures += 1
        if self.failures > self._most:
            return None
        return 0.0 if self.failures == 1 else min(_LONGEST_S, self._wait_s * 2 ** (self.failures - 2))

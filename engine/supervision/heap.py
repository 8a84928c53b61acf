"""What stays is kept from the collector of cyclic garbage: a thousand queries are millions of objects, and to walk them all takes 0.15 s or
more, in which nothing else runs, several times a minute (docs/decisions.md)."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

LEAST = 10          # so many queries more or fewer
SHARE = 0.1         # or so large a share of them
REST_S = 3.0        # and none since


class Heap:
    """Of one process, whose queries are the most that stays. Belongs to one thread."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._frozen = self._last = 0
        self._since = now()

    def holds(self, queries: int) -> bool:
        """There are so many queries. Where that has changed much, and then rested, collect what is garbage and freeze all else; whether
        that was done."""
        if queries != self._last:
            self._last, self._since = queries, self._now()
        if abs(queries - self._frozen) < max(LEAST, SHARE * self._frozen) or self._now() - self._since < REST_S:
            return False
        self._frozen = queries
        gc.unfreeze()       # of queries that are gone, too
        gc.collect()
        gc.freeze()
        return True

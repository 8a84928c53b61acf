"""What keeps Python from the threads of one process (docs/decisions.md). The collector of cyclic garbage: a thousand queries are millions
of objects, and to walk them all takes 0.15 s or more, in which nothing else runs, several times a minute; so what stays is kept from it.
And a thread that computes."""

from __future__ import annotations

import gc
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

LEAST = 10          # so many plans were made or dropped
SHARE = 0.1         # or so many for each query that there is
REST_S = 3.0        # and none since
OLD = 10            # walks of what is young until all is walked: Python's own
YOUNG = 5_000       # objects more than before until the youngest are walked (Python's own 700 take 20 ms of a T of a thousand queries)

NEVER = 1 << 30
LONG_S = 1.0        # who makes plans for so long has made much that stays

SWITCH_S = 0.0005   # seconds until a thread that computes lets another have Python
"""With Python's own 0.005 s a batch of the pump, which asks some hundred times, takes seconds beside a statement that is compiled."""


_filling = threading.Lock()
_fillers = 0


@contextmanager
def filling(now: Callable[[], float] = time.monotonic) -> Iterator[None]:
    """While a statement is compiled nothing but the youngest objects is walked: a schema of 100,000 axioms makes three millions that stay,
    and to walk all of them takes a second, ten times on the way. They are frozen in the end. For several threads at once."""
    global _fillers
    with _filling:
        _fillers += 1
        gc.set_threshold(*gc.get_threshold()[:2], NEVER)
    began = now()
    try:
        yield
    finally:
        with _filling:
            _fillers -= 1
            if now() - began > LONG_S:
                gc.freeze()
            if not _fillers:
                gc.set_threshold(*gc.get_threshold()[:2], OLD)


class Heap:
    """Of one process, in which plans are the most that stays. Belongs to one thread at a time."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._before, self._switch_s = gc.get_threshold(), sys.getswitchinterval()
        gc.set_threshold(YOUNG, *self._before[1:])
        sys.setswitchinterval(SWITCH_S)
        self._now = now
        self._frozen = self._last = 0
        self._since = now()

    def settle(self, plans: int, queries: int) -> bool:
        """So many plans have been made or dropped up to now, and so many queries there are. Where that were many since the last time, and
        none for a while, collect what is garbage and freeze all else; whether that was done."""
        if plans != self._last:
            self._last, self._since = plans, self._now()
        if _fillers or plans - self._frozen < max(LEAST, SHARE * queries) or self._now() - self._since < REST_S:
            return False
        self._frozen = plans
        gc.unfreeze()       # of plans that were dropped, too
        gc.collect()
        gc.freeze()
        return True

    def thaw(self) -> None:
        """All that there is goes: let the collector see it, as often as before."""
        self._frozen = self._last = 0
        gc.unfreeze()
        gc.set_threshold(*self._before)
        sys.setswitchinterval(self._switch_s)

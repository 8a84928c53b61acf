"""What keeps a process going: threads that are looked after, time limits, waits before what failed is begun again, and what keeps Python
from threads (`filling`, `Heap`). Used by the engine and the server alike.

Every thread of the engine is a `Worker`: what fails in it is logged and begun again, and what it does, and since when, can be asked. Its
body is written so that it may be run again: what it was at when it failed is lost to whoever asked for it, and to nobody else."""

import gc
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Generic, Protocol, TypeVar

_LOG = logging.getLogger(__name__)
_LONGEST_S = 30.0
_WAIT_S = 0.1
_DOUBLINGS = 32
MOST_FAILURES = 5
"""So many failures of a thread in a row are borne, where it is one that the engine cannot do without."""
ANY_NUMBER = 1 << 30
"""As many, where the thread is one whose failures do no harm."""
LEAST = 10          # so many plans were made or dropped
SHARE = 0.1         # or so many for each query that there is
REST_S = 3.0        # and none since
OLD = 10            # walks of what is young until all is walked: Python's own
NEVER = 1 << 30
LONG_S = 1.0        # who makes plans for so long has made much that stays
YOUNG = 5_000       # objects more than before until the youngest are walked (Python's own 700 take 20 ms of a T of a thousand queries)
SWITCH_S = 0.0005   # seconds until a thread that computes lets another have Python
FILLING_S = 0.0002  # and while a statement is compiled
"""With Python's own 0.005 s a batch of the pump, which asks some hundred times, takes seconds beside a statement that is compiled. The
shorter one takes a tenth more of the processor beside a thousand queries."""


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
        return 0.0 if self.failures == 1 else min(_LONGEST_S, self._wait_s * 2 ** min(self.failures - 2, _DOUBLINGS))


@contextmanager
def deadline(seconds: float, end: Callable[[], object]) -> Iterator[None]:
    """Call `end`, in a thread of its own, if the block has not ended after so many seconds."""
    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


class FatalError(RuntimeError):
    """A failure after which the body of a thread must not be run again."""


class Worker:
    """A thread that runs `body` until it returns. `state`: ``waiting`` for its start, ``running``, ``ended`` or ``failed``."""

    def __init__(self, name: str, body: Callable[[], None], on_failure: Callable[[BaseException], None] | None = None,
                 most: int = MOST_FAILURES) -> None:
        """After `most` failures in a row, or a FatalError, the thread ends and `on_failure` is called in it."""
        self.name, self.state = name, "waiting"
        self.failures = 0
        self._body, self._on_failure = body, on_failure
        self._backoff = Backoff(most, _WAIT_S)
        self._busy_since: float | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self.state = "running"
        self._thread.start()

    def join(self, within_s: float | None = None) -> bool:
        """Wait for the end, if it was ever started; whether it has come."""
        if self._thread.ident is not None and self._thread is not threading.current_thread():
            self._thread.join(within_s)
        return not self._thread.is_alive()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    @contextmanager
    def busy(self) -> Iterator[None]:
        """While it is at one piece of work."""
        self._busy_since = time.monotonic()
        try:
            yield
        finally:
            self._busy_since = None

    @property
    def busy_s(self) -> float:
        """For how many seconds it has been at the same piece of work; 0 while it waits for some."""
        since = self._busy_since
        return 0.0 if since is None else time.monotonic() - since

    def trouble(self, most_busy_s: float) -> str | None:
        """What is wrong with it: that it has ended, or does not come back from its work."""
        gone = self.state == "running" and self._thread.ident is not None and not self._thread.is_alive()
        if self.state == "failed" or gone:
            return f"the thread {self.name} has failed"
        busy_s = self.busy_s
        return f"the thread {self.name} has been at the same work for {busy_s:.0f} s" if busy_s > most_busy_s else None

    def to_json(self) -> dict[str, Any]:
        return {"state": self.state, "failures": self.failures, "busySeconds": round(self.busy_s, 1)}

    def _run(self) -> None:
        while True:
            self._backoff.began()
            try:
                self._body()
                self.state = "ended"
                return
            except BaseException as failure:  # whatever it is, nobody else would see it
                self.failures += 1
                _LOG.exception("the thread %s failed", self.name)
                wait_s = None if isinstance(failure, FatalError) else self._backoff.failed(self.failures)
                if wait_s is None:
                    self.state = "failed"
                    if self._on_failure is not None:
                        self._on_failure(failure)
                    return
            time.sleep(wait_s)


class Persistent:
    """A thread that runs `body` again and again until it is stopped, where that fails after longer and longer waits. `ended` is set then.
    `error` says why it waits; None while it does not."""

    def __init__(self, name: str, body: Callable[[], None], told: Callable[[Exception, float], str], wait_s: float,
                 done: Callable[[], int]) -> None:
        """`told` of a failure, and of how long is waited, says what it is in a line; `done` counts what was done."""
        self.ended = threading.Event()
        self.error: str | None = None
        self.worker = Worker(name, self._run, most=ANY_NUMBER)
        self._body, self._told, self._wait_s, self._done = body, told, wait_s, done
        self._backoff = Backoff(ANY_NUMBER, wait_s)

    def began(self) -> None:
        """Told by the body: it works."""
        self.error = None
        self._backoff.began()

    def stop(self) -> None:
        self.ended.set()

    def _run(self) -> None:
        while not self.ended.is_set():
            try:
                self._body()
            except Exception as failure:  # whatever it has to do with
                if self.ended.is_set():
                    return
                wait_s = max(self._wait_s, self._backoff.failed(self._done()) or 0.0)
                self.error = self._told(failure, wait_s)
                self.ended.wait(wait_s)


class Kept(Protocol):
    """What `Keeper` begins and ends: a `Persistent` and what is around it."""

    thread: Persistent

    def stop(self) -> None: ...


Key = TypeVar("Key")
Given = TypeVar("Given")
Made = TypeVar("Made", bound=Kept)


class Keeper(Generic[Key, Given, Made]):
    """Keeps one thread going for each thing that is wanted: it is begun when that comes, and ended when it goes or is another."""

    def __init__(self, name: str, wanted: Callable[[], Mapping[Key, Given]], make: Callable[[Key, Given], Made], every_s: float) -> None:
        """What is `wanted` is looked at every so many seconds."""
        self.worker = Worker(name, self._run, most=ANY_NUMBER)
        self._wanted, self._make, self._every_s = wanted, make, every_s
        self._made: dict[Key, tuple[Given, Made]] = {}
        self._ended = threading.Event()
        self._lock = threading.Lock()

    def get(self, key: Key) -> Made | None:
        known = self._made.get(key)
        return None if known is None else known[1]

    @property
    def workers(self) -> list[Worker]:
        with self._lock:
            return [self.worker, *(made.thread.worker for _, made in self._made.values())]

    def stop(self, within_s: float) -> bool:
        """End all; whether they have ended in time."""
        self._ended.set()
        deadline = time.monotonic() + within_s
        with self._lock:
            parts = [made for _, made in self._made.values()]
        for made in parts:
            made.stop()
        workers = [self.worker, *(made.thread.worker for made in parts)]
        return all([worker.join(max(0.0, deadline - time.monotonic())) for worker in workers])

    def _run(self) -> None:
        while not self._ended.is_set():
            self._settle()
            self._ended.wait(self._every_s)

    def _settle(self) -> None:
        """One thing's successor begins once it has ended: both would be at the same files and topics."""
        wanted = self._wanted()
        with self._lock:
            if self._ended.is_set():
                return
            for key, (given, made) in [*self._made.items()]:
                if key not in wanted or wanted[key] != given:
                    made.stop()
                    if not made.thread.worker.alive:
                        del self._made[key]
            for key, given in wanted.items():
                if key not in self._made:
                    made = self._make(key, given)
                    self._made[key] = given, made
                    made.thread.worker.start()


def troubles(workers: Iterable[Worker], most_busy_s: float) -> list[str]:
    """What is wrong with some threads."""
    return [found for worker in workers if (found := worker.trouble(most_busy_s)) is not None]


_filling = threading.Lock()
_fillers = _long_fills = 0


@contextmanager
def filling(now: Callable[[], float] = time.monotonic) -> Iterator[None]:
    """While a statement is compiled nothing but the youngest objects is walked: a schema of 100,000 axioms makes three millions that stay,
    and to walk all of them takes a second, ten times on the way. They are frozen in the end. For several threads at once."""
    global _fillers, _long_fills
    with _filling:
        _fillers += 1
        gc.set_threshold(*gc.get_threshold()[:2], NEVER)
        sys.setswitchinterval(FILLING_S)
    began = now()
    try:
        yield
    finally:
        with _filling:
            _fillers -= 1
            if now() - began > LONG_S:
                _long_fills += 1
                gc.freeze()
            if not _fillers:
                gc.set_threshold(*gc.get_threshold()[:2], OLD)
                sys.setswitchinterval(SWITCH_S)


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
        plans += LEAST * _long_fills    # what was frozen then may be garbage by now
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

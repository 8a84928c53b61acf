"""Threads that are looked after: what fails in one is logged and begun again, and what each does, and since when, can be asked.

Every thread of the engine is a `Worker`. Its body is written so that it may be run again: what it was at when it failed is lost to
whoever asked for it, and to nobody else.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from engine.supervision.backoff import Backoff

_LOG = logging.getLogger(__name__)
_WAIT_S = 0.1
MOST_FAILURES = 5
"""So many failures of a thread in a row are borne, where it is one that the engine cannot do without."""
ANY_NUMBER = 1 << 30
"""As many, where the thread is one whose failures do no harm."""


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


def troubles(workers: Iterable[Worker], most_busy_s: float) -> list[str]:
    """What is wrong with some threads."""
    return [found for worker in workers if (found := worker.trouble(most_busy_s)) is not None]

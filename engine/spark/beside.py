"""Registered queries that are evaluated beside the pump since they are slow: one at a time of a query, in the slots of one-shot queries."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from engine.execution.due import Answer, Due, failures
from engine.execution.executor import Executor
from engine.limits import Cancelled
from engine.spark.sql_plans import BESIDE

if TYPE_CHECKING:
    from engine.spark.session import Session

_LOOK_S = 0.2


class Beside:
    """Evaluates over values that nobody changes, by `executor`, which shares with the pump's what is kept of queries. `free` are the
    slots of the session that the pump leaves."""

    def __init__(self, executor: Executor, session: Session, free: threading.Semaphore) -> None:
        self._executor, self._session, self._free = executor, session, free

    def evaluate(self, due: Due, given_up: Callable[[], bool]) -> tuple[list[Answer], float]:
        """The answers, and the ms that they took once there was a slot. For a thread that does nothing else: what it starts in Spark is
        in a pool of its own. Nothing is begun once it is `given_up`."""
        while not self._free.acquire(timeout=_LOOK_S):
            if given_up():
                break
        else:
            try:
                if not given_up():
                    return self._timed(due)
            finally:
                self._free.release()
        return failures(due, Cancelled("nobody waits for it")), 0.0

    def _timed(self, due: Due) -> tuple[list[Answer], float]:
        began = time.monotonic()
        self._session.spark.sparkContext.setLocalProperty("spark.scheduler.pool", BESIDE)
        answers = self._executor.evaluate([due])
        return answers, (time.monotonic() - began) * 1000

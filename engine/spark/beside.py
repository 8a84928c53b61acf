"""What is evaluated beside the pump: one-shot queries, each in a thread of its own and cancelled when its time is over, and registered
queries that are slow.

A task of Spark is not pre-empted. So at most one less of them run at once than Spark has slots: the pump always finds one.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from engine.execution.due import Answer, Due, failures
from engine.limits import Cancelled
from engine.spark.executor import BESIDE, Executor

if TYPE_CHECKING:
    from engine.execution.executor import Executor as AnyExecutor
    from engine.spark.session import Session

_LOOK_S = 0.2


class Beside:
    """Evaluates over values that nobody changes, by `executor`, which shares with the pump's what is kept of queries. `free` are the
    slots of the session that the pump leaves."""

    def __init__(self, executor: AnyExecutor, session: Session, free: threading.Semaphore) -> None:
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
                    began = time.monotonic()
                    self._session.spark.sparkContext.setLocalProperty("spark.scheduler.pool", BESIDE)
                    answers = self._executor.evaluate([due])
                    return answers, (time.monotonic() - began) * 1000
            finally:
                self._free.release()
        return failures(due, Cancelled("nobody waits for it")), 0.0


class OneShots:
    """Evaluates over values that nobody changes (`Due.streams` must be snapshots); any number of threads. `free` are the slots."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._numbers = itertools.count(1)
        self._executor = Executor(session, force_executor="local", force_strategy="recompute", forgets=False)
        self.free = threading.Semaphore(max(1, session.settings.partitions - 1))

    def evaluate(self, due: Due, timeout_s: float) -> Answer:
        """The answer of one evaluation; TimeoutError after `timeout_s`, the jobs are then cancelled. What waits for others waits within
        its time."""
        ends_at = time.monotonic() + timeout_s
        if not self.free.acquire(timeout=timeout_s):
            raise TimeoutError(f"others took the {timeout_s:g} s that it had")
        tag = f"one-shot-{next(self._numbers)}"
        answers: list[Answer] = []
        worker = threading.Thread(target=self._work, args=(due, tag, answers), name=tag, daemon=True)
        worker.start()
        worker.join(max(0.0, ends_at - time.monotonic()))
        if worker.is_alive():
            self._session.spark.sparkContext.cancelJobsWithTag(tag)
            raise TimeoutError(f"no answer within {timeout_s:g} s")
        return answers[0]

    def _work(self, due: Due, tag: str, answers: list[Answer]) -> None:
        context = self._session.spark.sparkContext
        try:
            context.setLocalProperty("spark.scheduler.pool", BESIDE)
            context.addJobTag(tag)
            answers += self._executor.evaluate([due])
        except Exception as failure:  # told to whoever asked
            answers.append(Answer(due.query, due.ticks[0], None, failure))
        finally:
            self.free.release()
            context.clearJobTags()

"""One-shot queries: evaluated beside the pump, each in a thread of its own, cancelled when their time is over.

A task of Spark is not pre-empted. So at most one less of them, and of the registered queries that are evaluated beside the pump
(beside.py), run at once than Spark has slots: the pump always finds one.
"""

from __future__ import annotations

import itertools
import threading
import time
from typing import TYPE_CHECKING

from engine.execution.due import Answer, Due
from engine.spark.executor import Executor
from engine.spark.sql_plans import BESIDE

if TYPE_CHECKING:
    from engine.spark.session import Session


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

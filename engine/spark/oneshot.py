"""One-shot queries: evaluated beside the pump, in a thread and a scheduler pool of their own, cancelled when their time is over."""

from __future__ import annotations

import itertools
import threading
from typing import TYPE_CHECKING

from engine.spark.due import Answer, Due
from engine.spark.executor import Executor

if TYPE_CHECKING:
    from engine.spark.session import Session


class OneShots:
    """Evaluates over values that nobody changes (`Due.streams` must be snapshots); any number of threads."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._numbers = itertools.count(1)
        self._executor = Executor(session, force_executor="local", force_strategy="recompute")

    def evaluate(self, due: Due, timeout_s: float) -> Answer:
        """The answer of one evaluation; TimeoutError after `timeout_s`, the jobs are then cancelled."""
        tag = f"one-shot-{next(self._numbers)}"
        answers: list[Answer] = []
        worker = threading.Thread(target=self._work, args=(due, tag, answers), name=tag, daemon=True)
        worker.start()
        worker.join(timeout_s)
        if worker.is_alive():
            self._session.spark.sparkContext.cancelJobsWithTag(tag)
            raise TimeoutError(f"no answer within {timeout_s:g} s")
        return answers[0]

    def _work(self, due: Due, tag: str, answers: list[Answer]) -> None:
        context = self._session.spark.sparkContext
        try:
            context.setLocalProperty("spark.scheduler.pool", "one-shot")
            context.addJobTag(tag)
            answers += self._executor.evaluate([due])
        except Exception as failure:  # told to whoever asked
            answers.append(Answer(due.query, due.ticks[0], None, failure))
        finally:
            context.clearJobTags()

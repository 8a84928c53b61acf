"""What is evaluated beside the pump: one-shot queries, each in a thread of its own and cancelled when its time is over, and registered
queries that are slow.

A task of Spark is not pre-empted. So at most one less of them run at once than Spark has slots: the pump always finds one. Queries that
share a closure, and are slow since it is, are evaluated together: it is made once.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.execution.due import Answer, Due, failures
from engine.limits import Cancelled
from engine.spark.executor import BESIDE, Executor

if TYPE_CHECKING:
    from engine.execution.executor import Executor as AnyExecutor
    from engine.spark.session import Session

_LOOK_S = 0.2
_OTHERS_S = 0.1     # that an evaluation waits for others with its closures, which come at nearly the same time


@dataclass(eq=False, slots=True)
class _Asked:
    """Evaluations that a thread waits for. `closures` are the names of those that a task makes anew for it; `found` are their answers, and
    the ms that they took."""

    due: Due
    given_up: Callable[[], bool]
    closures: frozenset[str]
    found: Future[tuple[list[Answer], float]] = field(default_factory=Future)


class Beside:
    """Evaluates over values that nobody changes, by `executor`, which shares with the pump's what is kept of queries. `free` are the
    slots of the session that the pump leaves."""

    def __init__(self, executor: AnyExecutor, session: Session, free: threading.Semaphore) -> None:
        self._executor, self._session, self._free = executor, session, free
        self._waiting: list[_Asked] = []
        self._lock = threading.Lock()   # of what waits

    def evaluate(self, due: Due, given_up: Callable[[], bool]) -> tuple[list[Answer], float]:
        """The answers, and the ms that they took once there was a slot, those of others with which they were made included. For a thread
        that does nothing else: what it starts in Spark is in a pool of its own. Nothing is begun once it is `given_up`."""
        asked = _Asked(due, given_up, self._closures(due))
        with self._lock:
            self._waiting.append(asked)
        if asked.closures:
            time.sleep(_OTHERS_S)
        while self._waits(asked):
            if self._free.acquire(timeout=_LOOK_S):
                try:
                    self._evaluate(self._taken(asked))
                finally:
                    self._free.release()
            elif given_up():
                self._evaluate(self._taken(asked, alone=True))
        return asked.found.result()

    def _closures(self, due: Due) -> frozenset[str]:
        """None where they are kept, or the plan is one of Spark SQL, and where that is not known yet."""
        if self._executor.choices.get(due.query) != ("local", "recompute"):
            return frozenset()
        return frozenset(closure.name for closure in due.compiled.closures if not closure.is_static)

    def _waits(self, asked: _Asked) -> bool:
        with self._lock:
            return asked in self._waiting

    def _taken(self, asked: _Asked, alone: bool = False) -> list[_Asked]:
        """What waits and is evaluated with `asked`, or that `alone`, which is nothing where another thread has taken it; it waits no
        more."""
        with self._lock:
            taken = [one for one in self._waiting if one is asked or not alone and _share(one, asked)]
            if asked not in taken:
                return []
            self._waiting = [one for one in self._waiting if one not in taken]
        return taken

    def _evaluate(self, together: list[_Asked]) -> None:
        wanted = [one for one in together if not one.given_up()]
        for one in together:
            if one not in wanted:
                one.found.set_result((failures(one.due, Cancelled("nobody waits for it")), 0.0))
        if not wanted:
            return
        began = time.monotonic()
        try:
            self._session.spark.sparkContext.setLocalProperty("spark.scheduler.pool", BESIDE)
            answers = self._executor.evaluate([one.due for one in wanted])
        except BaseException as failure:
            if len(wanted) == 1:
                wanted[0].found.set_exception(failure)
                return
            for one in wanted:      # it may be due to one of them
                self._evaluate([one])
            return
        ms = (time.monotonic() - began) * 1000
        for one in wanted:
            one.found.set_result(([answer for answer in answers if answer.query == one.due.query], ms))


def _share(one: _Asked, other: _Asked) -> bool:
    """Whether a task makes a closure for both."""
    return one.due.ticks == other.due.ticks and not one.closures.isdisjoint(other.closures)


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

"""The threads of the pump: the one that owns it, to which everyone else hands functions to run, in order; the one that watches whether the
engine does its work; and the lane beside it, evaluations of queries that are too slow for a batch, each in a thread of its own.

What an evaluation at T sees is final once the query's watermark is at T. So it may come at any time, over values that nobody changes; only
what changes the query itself, or what it uses, has to wait for it (Evaluations.settle)."""

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from engine.execution.due import Answer, Due, failures
from engine.limits import LimitExceeded
from engine.records import Verdict
from engine.runtime.batch import Beside, EvaluatorDownError, Executor
from engine.runtime.errors import EngineError, unavailable
from engine.runtime.settings import Settings
from engine.runtime.verdicts import Decide
from engine.supervision import ANY_NUMBER, Worker, troubles

_LOG = logging.getLogger(__name__)
Result = TypeVar("Result")


class Owner:
    """A thread that runs commands one after another. A command must not call the owner again."""

    def __init__(self, on_failure: Callable[[BaseException], None] | None = None) -> None:
        self._commands: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = queue.SimpleQueue()
        self._closed = False
        self._lock = threading.Lock()
        self.worker = Worker("owner", self._run, on_failure)
        self.worker.start()

    def submit(self, command: Callable[[], Result]) -> Future[Result]:
        reply: Future[Result] = Future()
        with self._lock:
            if self._closed:
                raise unavailable("shutting-down", "The engine is stopping.")
            self._commands.put((command, reply))
        return reply

    def call(self, command: Callable[[], Result]) -> Result:
        return self.submit(command).result()

    def stop(self, within_s: float | None = None) -> bool:
        """Run what waits, then end; whether it has ended in time."""
        with self._lock:
            self._closed = True
            self._commands.put(None)
        return self.worker.join(within_s)

    def _run(self) -> None:
        while (entry := self._commands.get()) is not None:
            with self.worker.busy():
                try:
                    self._carry_out(*entry)
                except BaseException as failure:  # the thread's, which is looked after; whoever asked must not wait for ever
                    if not entry[1].done():
                        entry[1].set_exception(failure)
                    raise

    def _carry_out(self, command: Callable[[], Any], reply: Future[Any]) -> None:
        try:
            reply.set_result(command())
        except BaseException as failure:  # handed to whoever asked
            reply.set_exception(failure)


class StalledError(RuntimeError):
    """Records wait, and nothing brings them to the pump."""


@dataclass(frozen=True, slots=True)
class Sight:
    """The engine at a glance; `life` numbers the starts of its evaluator. The pump was `idle` just before it was at `position`."""

    running: bool
    life: int
    position: int
    backlog: int
    idle: bool


class Watch:
    """Looks once in `watch_s`. `broken` is told of an evaluator that has not answered for `silence_s`, or whose feed brings nothing for
    `stall_s` though records wait. What evaluations wait for (`lacks`) is only told, by `reasons`."""

    def __init__(self, settings: Settings, sight: Callable[[], Sight], alive: Callable[[], bool], lacks: Callable[[], str],
                 broken: Callable[[int, BaseException], None], now: Callable[[], float] = time.monotonic) -> None:
        self.worker = Worker("evaluator-watch", self._run, most=ANY_NUMBER)
        self._settings, self._sight, self._alive, self._lacks, self._broken = settings, sight, alive, lacks, broken
        self._now = now
        self._closing = threading.Event()
        self._life = -1
        self._position = -1
        self._moved = now()
        self._silent_since: float | None = None
        self._lacking = ""

    def stop(self) -> None:
        self._closing.set()
        self.worker.join()

    def reasons(self, workers: Sequence[Worker]) -> list[str]:
        found = troubles(workers, self._settings.stall_s)
        now, sight = self._now(), self._sight()
        if (since := self._silent_since) is not None:
            found.append(f"Spark has not answered for {now - since:.0f} s")
        if self._lacking:
            found.append(f"{self._lacking}: evaluations wait")
        if sight.running and sight.backlog and sight.position == self._position and now - self._moved > self._settings.stall_s:
            found.append(f"{sight.backlog} records wait, and none has been processed for {now - self._moved:.0f} s")
        return found

    def _run(self) -> None:
        while not self._closing.wait(self._settings.watch_s):
            self._look()

    def _look(self) -> None:
        sight, now = self._sight(), self._now()
        if not sight.running or sight.life != self._life:
            self._life, self._silent_since, self._moved, self._lacking = sight.life, None, now, ""
            return
        if not sight.backlog or sight.position != self._position:
            self._position, self._moved = sight.position, now
        if self._alive():
            self._silent_since, self._lacking = None, self._lacks()
        elif self._silent_since is None:
            self._silent_since, self._lacking = now, ""
        elif now - self._silent_since >= self._settings.silence_s:
            self._broken(sight.life, EvaluatorDownError(f"Spark has not answered for {now - self._silent_since:.0f} s"))
        if now - self._moved > self._settings.stall_s and sight.idle:
            self._broken(sight.life, StalledError(f"{sight.backlog} records wait, and the feed brings none"))


@dataclass(eq=False, slots=True)
class Task:
    """Evaluations of the query `name`; `floor` is how far its ticker is with them, `decided` what the log says about the one after them.
    The answers took so many `ms`; `verdict` is what was recorded about one of them."""

    name: str
    due: Due
    floor: int
    decided: Answer | None = None
    answers: Sequence[Answer] = ()
    ms: float = 0.0
    verdict: Verdict | None = None
    ended: threading.Event = field(default_factory=threading.Event)
    given_up: bool = False


class Lane:
    """At most one task of each query, by its epoch. Belongs to the pump's thread but for `close`; `wake` is called, from any thread, when
    a task has ended."""

    def __init__(self, executor: Executor, beside: Beside, decide: Decide, wake: Callable[[], object]) -> None:
        """`executor` is the pump's, which cancels and forgets for both; `decide` as the pump has it, from any thread."""
        self._executor, self._beside, self._decide, self._wake = executor, beside, decide, wake
        self._tasks: dict[str, Task] = {}
        self._lock = threading.Lock()   # a task ends, is given up, or is begun while the lane is closed
        self._closed = False

    def __contains__(self, epoch: str) -> bool:
        return epoch in self._tasks

    def begin(self, task: Task) -> None:
        """Evaluate. The query has no other task."""
        with self._lock:
            if self._closed:
                raise EvaluatorDownError("the evaluator is stopped")
            self._tasks[task.due.query] = task
        threading.Thread(target=self._work, args=(task,), name=f"beside-{task.due.query}", daemon=True).start()

    @property
    def has_ended(self) -> bool:
        return not self._closed and any(task.ended.is_set() for task in self._tasks.values())

    def take_ended(self) -> Iterator[Task]:
        """The tasks that have ended; they are the caller's. None once the lane is closed: such a task may have no answers."""
        for epoch, task in list(self._tasks.items()):
            if task.ended.is_set() and not self._closed:
                del self._tasks[epoch]
                yield task

    def wait(self, epoch: str) -> Task:
        """The task of a query, once it has ended; it is the caller's. EvaluatorDownError where the lane is closed before."""
        task = self._tasks[epoch]
        task.ended.wait()
        if self._closed:
            raise EvaluatorDownError("the evaluator is stopped")
        del self._tasks[epoch]
        return task

    def forget(self, epoch: str) -> None:
        """The executor forgets a query; what it evaluates of it is ended first, and no one hears of that."""
        task = self._tasks.pop(epoch, None)
        with self._lock:
            if task is not None and not task.ended.is_set():
                task.given_up = True
                self._executor.cancel(epoch)
                return
        self._executor.forget(epoch)

    def close(self, cancel: bool) -> None:
        """Give up everything, and let go who waits; what is evaluated is cancelled if there is an evaluator. From any thread."""
        with self._lock:
            self._closed = True
        for epoch, task in list(self._tasks.items()):
            if cancel:
                task.given_up = True
                self._executor.cancel(epoch)
            task.ended.set()

    def _recorded(self, task: Task, answers: Sequence[Answer]) -> Verdict | None:
        """The verdict on what failed by a limit, which is recorded before anything else: it counts even where the evaluator has ended."""
        bad = next((answer for answer in answers if answer.error is not None), None)
        if bad is None or not isinstance(bad.error, LimitExceeded):
            return None
        try:
            position = self._decide(task.name, bad.query, bad.tick, bad.error)
        except Exception:   # the log is closed, or there is no room: who takes the answers decides
            _LOG.warning("the verdict on the query %r is not recorded yet", task.name, exc_info=True)
            return None
        return Verdict(position, task.name, bad.query, bad.tick, bad.error.limit, bad.error.detail)

    def _work(self, task: Task) -> None:
        try:
            answers, ms = self._beside(task.due, lambda: task.given_up)
        except Exception as failure:  # that of a dead JVM, which is found out when the answers are taken
            answers, ms = failures(task.due, failure), 0.0
        if not task.given_up:
            task.verdict = self._recorded(task, answers)
        with self._lock:
            task.answers, task.ms = answers, ms
            task.ended.set()
        if self._closed:
            return
        if task.given_up:   # after `ended`, before which `forget` leaves it to this thread; outside the lock, for Spark may be slow
            self._executor.forget(task.due.query)
        with suppress(EngineError):     # the owner has ended
            self._wake()

"""What an executor runs on Spark: jobs, and bundles of the resident task (workers.py). Told apart by tags, so that one can be ended; run
again where a worker died under one.

The failure of a job is nobody's fault yet: its tasks are run again, each alone, and only one that ends its worker twice is given up. Those
that share closures are run together once more before: alone, each would make its own. An executor may end for reasons of its own: then all
are run again together, and only one that ends several is given up.
"""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError

from engine.limits import Cancelled, EvaluationLimits, LimitExceeded, Postponed
from engine.spark.workers import ExecutorLost, NoWorker, TooLarge, WorkerDied, lost_executors, run_in_pool, run_side_by_side
from engine.supervision import deadline
from engine.worker.bundles import Found, QueryFailed, Tables, Task, balanced, follows, run_bundled, run_bundles, run_in_shards
from engine.worker.exchange import ShareLost
from engine.worker.guard import GRACE_S, check_size, memory_bytes, out_of_memory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from engine.spark.session import Session

MOST_DEATHS = 2
MOST_LOST = 4       # executors, as spark.task.maxFailures is
_NO_SHARDS_S = 600.0        # so long nothing is evaluated in shards beside the pump, once no worker came for it
_LONGEST_REASON = 200       # in a line of the log: Spark's have stack traces
_LOG = logging.getLogger(__name__)
_NUMBERS = itertools.count(1)
_DEATHS = ("Python worker exited unexpectedly", "java.io.EOFException", "java.net.SocketException",
           "EOFException occurred while reading the port number")   # of the process that workers are forked from
_LOST = "ExecutorLostFailure"
_CANCELLED = "[SPARK_JOB_CANCELLED]"
_TOO_LARGE = "spark.driver.maxResultSize"


class Jobs:
    """`run` and `limited` are called by the executor's threads, `cancel` by any."""

    def __init__(self, session: Session, pump: Jobs | None = None) -> None:
        """`pump` has the jobs of the pump, where these run beside them: in one slot, or in workers of their own where tables stay."""
        self._session = session
        self._residents = session.residents if pump is None else session.residents_beside
        self._workers = session.settings.partitions if pump is None else 1
        self._running: dict[str, _Running] = {} if pump is None else pump._running
        self._cancelled: set[str] = set() if pump is None else pump._cancelled
        self._told: dict[int, frozenset[str] | None] = {}   # by shard, what it heard to be alive
        self._is_beside, self._no_shards_until = pump is not None, 0.0

    def beside(self) -> Jobs:
        """What runs beside these; to cancel and forget a query is for both."""
        return Jobs(self._session, self)

    @property
    def memory(self) -> int:
        """How many bytes the database of a worker may take."""
        return memory_bytes(self._session.settings.worker_memory)

    @property
    def shards(self) -> int:
        """How many workers have tables that stay."""
        return max(1, len(self._residents))

    @property
    def work(self) -> Path:
        """A folder that every worker sees."""
        return self._session.work

    def cancel(self, query: str) -> None:
        """End the jobs of a query; what runs beside it in one is run again. It runs no more until it is forgotten."""
        self._cancelled.add(query)
        tags = [tag for tag, running in list(self._running.items()) if query in running.queries]
        if tags:
            threading.Thread(target=self._end, args=(tags,), name="job-ender", daemon=True).start()

    def _end(self, tags: Sequence[str]) -> None:
        """End what has such a tag, again and again until nothing will: Spark does not remember it for a job that is about to begin, and an
        interrupt between two statements ends nothing."""
        until = time.monotonic() + GRACE_S
        while left := [running for tag in tags if (running := self._running.get(tag)) is not None]:
            try:
                for running in left:
                    (running.end if time.monotonic() < until else running.kill)()
            except Exception:  # a dead JVM raises any of Py4J's and the socket's errors
                if self._session.alive:
                    _LOG.warning("a job cannot be cancelled", exc_info=True)
                return
            time.sleep(0.2)

    def forget(self, query: str) -> None:
        self._cancelled.discard(query)

    def run(self, tasks: Sequence[Task], tables: Tables, alive: frozenset[str] | None, *,
            may_stay: bool = False, deaths: int = 0, lost: int = 0) -> list[Found | Exception]:
        """What the tasks give, all run together, where one worker can do them by the one where tables stay, if they `may_stay` there;
        `deaths` is how often they have ended a worker, `lost` how many executors have ended under all of them."""
        cancelled = frozenset(self._cancelled)      # one that is forgotten meanwhile was so all the same
        left = [task for task in tasks if not task.is_of(cancelled)]
        if len(left) < len(tasks):
            found = iter(self.run(left, tables, alive, may_stay=may_stay, deaths=deaths, lost=lost))
            return [Cancelled("its query is removed") if task.is_of(cancelled) else next(found) for task in tasks]
        if not tasks and not may_stay:
            return []
        try:
            if may_stay and (self.shards > 1 or follows(tables) or any(task.gathers for task in tasks)
                             or len(balanced(tasks, self._workers)) == 1):
                answers = self._run_resident(tasks, tables, alive, deaths, lost)
                # What stays there takes memory, too.
                lacks = any(isinstance(one, LimitExceeded) and one.limit == "worker_memory" for one in answers)
                return answers if follows(tables) or not lacks else self.run(tasks, tables, alive, deaths=deaths, lost=lost)
            with self._tagged(_queries(tasks), f"evaluation-{next(_NUMBERS)}"):
                return run_local(self._session.spark, tasks, tables, self._workers, alive)
        except Exception as failure:  # Spark's and Py4J's errors have no common base
            return self._again(failure, tasks, tables, alive, may_stay, deaths, lost)

    def _run_resident(self, tasks: Sequence[Task], tables: Tables, alive: frozenset[str] | None, deaths: int,
                      lost: int) -> list[Found | Exception]:
        """What the tasks give in the workers where tables stay. Where none come, executors are waited for; beside the pump one worker is to
        do it then, for some time, as where executors that were lost leave no slot beside these workers."""
        if self._is_beside and (time.monotonic() < self._no_shards_until or not self._session.has_slots_beside()):
            return self._without_shards(tasks)
        number, residents, ended = next(_NUMBERS), self._residents, threading.Event()

        def end() -> None:
            ended.set()
            for resident in residents:
                resident.interrupt(number)

        def kill() -> None:
            for resident in residents:
                resident.close()

        with self._noted(_queries(tasks), f"resident-{number}", end, kill):
            found = None
            while found is None:
                try:
                    found = run_in_shards(tasks, tables, len(residents), alive, self._told,
                                          lambda bundles: run_side_by_side(residents, number, bundles))
                except NoWorker as lacking:
                    if ended.is_set() or not self._session.alive:
                        raise
                    if self._is_beside:
                        self._no_shards_until = time.monotonic() + _NO_SHARDS_S
                        return self._without_shards(tasks)
                    _LOG.warning("%s: %d tasks wait", lacking, len(tasks))
        return self.run(tasks, tables, alive, may_stay=True, deaths=deaths, lost=lost) if ended.is_set() else found

    def _without_shards(self, tasks: Sequence[Task]) -> list[Found | Exception]:
        """Leave the slots to others."""
        for resident in self._residents:
            resident.close()
        return [ShareLost(task.query) for task in tasks]

    def _again(self, failure: Exception, tasks: Sequence[Task], tables: Tables, alive: frozenset[str] | None, may_stay: bool,
               deaths: int, lost: int) -> list[Found | Exception]:
        if not tasks:       # workers that have ended need not hear of what has gone
            return []
        if any(task.is_of(self._cancelled) for task in tasks):
            return self.run(tasks, tables, alive, may_stay=may_stay, deaths=deaths, lost=lost)
        if len(tasks) == 1 and (isinstance(failure, TooLarge) or _TOO_LARGE in str(failure)):
            return [LimitExceeded.of("evaluation_bytes", tasks[0].limits.evaluation_bytes, "the answer has more bytes")]
        died = isinstance(failure, WorkerDied) or isinstance(failure, Py4JJavaError) and any(sign in str(failure) for sign in _DEATHS)
        has_lost = isinstance(failure, ExecutorLost) or _LOST in str(failure)
        if not self._session.alive or not died and not has_lost and len(tasks) == 1:
            cancelled = _CANCELLED in str(failure)      # by whoever waited for it, who knows
            _LOG.log(logging.DEBUG if cancelled else logging.ERROR, "a job of %d tasks failed: %s", len(tasks), failure)
            return [QueryFailed(str(failure))] * len(tasks)
        if has_lost and lost + 1 < MOST_LOST:
            _LOG.warning("an executor was lost; a job of %d tasks is run again", len(tasks))
            return self.run(tasks, tables, alive, may_stay=may_stay, deaths=deaths, lost=lost + 1)
        together = died and not deaths and _share_closures(tasks)
        then = "it is run again" if together or len(tasks) == 1 else "each is run alone"
        _LOG.warning("a job of %d tasks failed; %s: %s", len(tasks), then, str(failure).partition("\n")[0][:_LONGEST_REASON])
        may_stay &= follows(tables)     # whatever ends a worker ends none again that has tables of others
        if together:
            return self.run(tasks, tables, alive, may_stay=may_stay, deaths=1, lost=lost)
        if len(tasks) > 1:
            return [found for task in tasks for found in self.run([task], tables, alive, may_stay=may_stay)]
        if tasks[0].patience_ms is not None:
            return [Postponed("its evaluation ended a worker process")]
        if has_lost:
            return [LimitExceeded("worker_deaths", f"its evaluation ended {MOST_LOST} executors")]
        if deaths + 1 >= MOST_DEATHS:
            return [LimitExceeded("worker_deaths", f"its evaluation ended {MOST_DEATHS} worker processes: by memory, or a function that "
                                  "does not end")]
        return self.run(tasks, tables, alive, may_stay=may_stay, deaths=deaths + 1, lost=lost)

    def limited(self, query: str, limits: EvaluationLimits, work: Callable[[], Found]) -> Found:
        """What some Spark SQL gives within its time. Where executors ended meanwhile it is run again with all of its time, `MOST_LOST` runs
        at most; where none is left, until some come. Raises LimitExceeded, Cancelled, or what Spark does."""
        lost = 0
        while True:
            began = time.time()
            try:
                return self._limited(query, limits, work)
            except LimitExceeded as over:
                if over.limit != "evaluation_ms" or self._session.settings.local:
                    raise
                found = lost_executors(self._session.spark, began, within_s=0)
                lost += found == "some"
                if not found or lost >= MOST_LOST:
                    raise
                _LOG.warning("%s executors were lost; a plan of Spark SQL is run again", found)

    def _limited(self, query: str, limits: EvaluationLimits, work: Callable[[], Found]) -> Found:
        over, tag = threading.Event(), f"evaluation-{next(_NUMBERS)}"
        try:
            with self._tagged(frozenset({query}), tag):
                def end() -> None:
                    over.set()
                    self._end([tag])

                with deadline(limits.evaluation_ms / 1000, end):
                    found = work()
        except Exception as failure:  # as above
            if query in self._cancelled:
                self._end_stuck(tag)
                raise Cancelled("its query is removed") from failure
            if _TOO_LARGE in str(failure):
                raise LimitExceeded.of("evaluation_bytes", limits.evaluation_bytes, "the answer has more bytes") from failure
            if not over.is_set():
                raise out_of_memory(failure) or failure
        if over.is_set():
            self._end_stuck(tag)
            raise LimitExceeded.of("evaluation_ms", limits.evaluation_ms, "the evaluation took longer")
        check_size(found.table.num_rows, found.table.nbytes, limits)
        return found

    def _end_stuck(self, tag: str) -> None:
        """A task of Spark SQL that is cancelled ends where it asks; one inside a nested loop does not, and would keep a core for ever. Then
        the JVM is ended, and the server starts it again."""
        until = time.monotonic() + GRACE_S
        try:
            while self._has_active_tasks(tag):
                if time.monotonic() > until:
                    _LOG.error("a task of Spark does not end; its JVM is ended")
                    self._session.kill()
                    return
                time.sleep(0.1)
        except Exception:  # a dead JVM, as above: it has no tasks
            if self._session.alive:
                raise

    def _has_active_tasks(self, tag: str) -> bool:
        context = self._session.spark.sparkContext
        tracker = context.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in context._jsc.sc().statusTracker().getJobIdsForTag(tag)]
        stages = [tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds]
        return any(stage.numActiveTasks for stage in stages if stage is not None)

    @contextmanager
    def _tagged(self, queries: frozenset[str], tag: str) -> Iterator[None]:
        """Tag the jobs that this thread starts."""
        context = self._session.spark.sparkContext
        context.addJobTag(tag)
        try:
            with self._noted(queries, tag, cancel := partial(context.cancelJobsWithTag, tag), cancel):
                yield
        finally:
            context.removeJobTag(tag)

    @contextmanager
    def _noted(self, queries: frozenset[str], tag: str, end: Callable[[], object], kill: Callable[[], object]) -> Iterator[None]:
        """Know what runs, and how it is ended; `kill` is for what does not end."""
        self._running[tag] = _Running(queries, end, kill)
        try:
            if queries & self._cancelled:     # since the tag was known
                raise Cancelled("its query is removed")
            yield
        finally:
            del self._running[tag]


@dataclass(frozen=True, slots=True)
class _Running:
    """Tasks that run for some queries."""

    queries: frozenset[str]
    end: Callable[[], object]
    kill: Callable[[], object]


def _share_closures(tasks: Sequence[Task]) -> bool:
    """Whether some of them need one closure of windows."""
    users = Counter(closing.name for task in tasks for closing in task.closings if not closing.static)
    return any(count > 1 for count in users.values())


def _queries(tasks: Sequence[Task]) -> frozenset[str]:
    return frozenset(query for task in tasks for query in (task.query, *task.beside))


def run_local(spark: SparkSession, tasks: Sequence[Task], tables: Tables, workers: int,
              alive: frozenset[str] | None = frozenset()) -> list[Found | Exception]:
    """Run every task in one Spark job of at most so many `workers`."""
    return run_bundled(tasks, tables, workers, alive, lambda bundles: run_in_pool(spark, run_bundles, bundles, None))

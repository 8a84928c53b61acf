"""The executor on Spark: tasks in its workers (jobs.py), and plans as Spark SQL, a job per plan, over views of the segments that the
streams' contents have on disk."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from engine.execution import executor, plan_job
from engine.execution.choices import StrategyName
from engine.execution.plan_job import CloseAhead, ExecutorName, PlanJob, Took
from engine.facts import FACTS
from engine.plan.graphs import Way
from engine.spark.graphs import Graphs, with_piece
from engine.spark.jobs import Jobs
from engine.spark.mirror import Mirror
from engine.spark.udf_spark import register_spark
from engine.sql.closing import Closing, Round, SeenRow, all_seen, saturate, seen_text
from engine.sql.sources import graph_table, stream_table
from engine.worker.bundles import FINDINGS, Found

if TYPE_CHECKING:
    from engine.spark.session import Session

BESIDE = "beside"       # the scheduler's pool of what is evaluated beside the pump, one-shot queries too


class SqlPlans(plan_job.SqlPlans):
    """`mirrors` go by view, `graph_choices` by query."""

    def __init__(self, session: Session, jobs: Jobs, force_graphs: Way | None = None, pool: str | None = None) -> None:
        """`pool` is the scheduler's pool of its jobs, where it is not the pump's."""
        super().__init__()
        self._session, self._jobs, self._force_graphs = session, jobs, force_graphs
        self.mirrors: dict[str, Mirror] = {}
        self._graphs = Graphs(session, force_graphs)
        self._views: dict[str, frozenset[str]] = {}
        self._constants: set[str] = set()   # the views of constants that are there
        self._threads = ThreadPoolExecutor(session.settings.partitions, "plan", self._begin, (pool,))
        self._lock = threading.Lock()   # of the views; those that run beside the pump take turns
        self._gone: queue.SimpleQueue[str] = queue.SimpleQueue()
        register_spark(session.spark)

    def beside(self) -> SqlPlans:
        """The same Spark with views and segments of its own, in the pool of what is beside the pump."""
        return SqlPlans(self._session.beside(), self._jobs, self._force_graphs, BESIDE)

    def _begin(self, pool: str | None) -> None:
        if pool is not None:
            self._session.spark.sparkContext.setLocalProperty("spark.scheduler.pool", pool)

    def run(self, jobs: Sequence[PlanJob], close_ahead: CloseAhead, took: Took) -> None:
        """A Spark job per plan, as many at a time as Spark has cores: small ones wait more than they work."""
        if not jobs:
            return
        with self._lock:
            self._run(jobs, close_ahead, took)
        self._forget_gone()

    def _run(self, jobs: Sequence[PlanJob], close_ahead: CloseAhead, took: Took) -> None:
        for job in jobs:
            try:
                self._show(job)
            except Exception as failure:  # Spark's and Py4J's errors have no common base; the query fails with it
                job.answer = failure
        ahead = [job for job in jobs if job.answer is None and job.ahead and job.closings]
        closed = dict(zip(map(id, ahead), close_ahead(ahead)))
        ready = [job for job in jobs if job.answer is None]
        for job, answer in zip(ready, self._threads.map(lambda job: self._collect(job, closed.get(id(job), []), took), ready)):
            job.answer = answer

    def mend(self, failed: Mapping[str, str]) -> frozenset[str]:
        if not failed:      # nor is there a reason to wait for a plan that runs
            return frozenset()
        with self._lock:
            views = frozenset().union(*(self._views.get(query, frozenset()) for query in failed)) & self.mirrors.keys()
            mended = {view for view in views if self.mirrors[view].mend("\n".join(failed.values()))}
            return frozenset(query for query in failed if mended & self._views.get(query, frozenset()))

    def forget(self, query: str) -> None:
        self._gone.put(query)
        self._forget_gone()

    def _forget_gone(self) -> None:
        while not self._gone.empty() and self._lock.acquire(blocking=False):
            try:
                self._drop_views(self._gone.get_nowait())
            except queue.Empty:     # another thread has done it
                pass
            finally:
                self._lock.release()

    def _drop_views(self, query: str) -> None:
        self.graph_choices.pop(query, None)
        for view in self._views.pop(query, frozenset()) - frozenset().union(*self._views.values()):
            if mirror := self.mirrors.pop(view, None):
                mirror.close()
            if view in self._constants:
                self._constants.remove(view)
                self._session.spark.catalog.dropTempView(view)

    def end(self) -> None:
        self._threads.shutdown()

    def close(self) -> None:
        for mirror in self.mirrors.values():
            mirror.close()

    def abandon(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _show(self, job: PlanJob) -> None:
        """Bring the views that a plan reads up to date."""
        spark, streams = self._session.spark, job.due.compiled.statement.windows
        self._views[job.due.query] = frozenset(stream_table(source.stream) for source in streams) | job.constants.keys()
        for source in streams:
            view = stream_table(source.stream)
            mirror = self.mirrors.get(view)
            if mirror is None:
                mirror = self.mirrors[view] = Mirror(view, self._session.work / "segments")
            mirror.show(spark, job.due.streams[source.stream])
        for name, table in job.own.items():
            _frame(spark, table).createOrReplaceTempView(name)
        for name, table in job.constants.items():
            if name not in self._constants:
                _frame(spark, table).createOrReplaceTempView(name)
                self._constants.add(name)
        for iri, table in job.due.graphs.items():
            if graph_table(iri) in job.tables:
                _frame(spark, table.select(FACTS.names)).createOrReplaceTempView(graph_table(iri))

    def _collect(self, job: PlanJob, ahead: Sequence[Found | Exception], took: Took) -> Found | BaseException:
        def work() -> Found:
            began = time.perf_counter()
            findings = self._close(job, ahead)
            table = self._run_rounds(job)
            return Found(table, findings, (time.perf_counter() - began) * 1000)

        spark = self._session.spark
        try:
            found = self._jobs.limited(job.due.query, job.due.limits, work)
            took(job.due, found.ms)
            return found
        except Exception as failure:  # as above
            return failure
        finally:
            closings = (view for c in job.closings for view in (c.all, c.new))
            for view in (*job.own, *(rounds.view for rounds, _, _ in job.rounds), *closings):
                spark.catalog.dropTempView(view)

    def _run_rounds(self, job: PlanJob) -> pa.Table:
        """What a plan gives, once its graph problems are solved."""
        spark = self._session.spark
        chosen = []
        for rounds, edges, base in job.rounds:
            closed, how = self._graphs.reach(spark.sql(edges), spark.sql(base) if rounds.seeded else None, rounds.within,
                                             job.due.paths)
            closed.createOrReplaceTempView(rounds.view)
            chosen.append(how)
        self.graph_choices[job.due.query] = tuple(chosen)
        return spark.sql(job.write()).toArrow()

    def _close(self, job: PlanJob, ahead: Sequence[Found | Exception]) -> pa.Table | None:
        """Make a plan's closures views, those made ahead as they are; what is inconsistent in them."""
        spark, findings = self._session.spark, None
        for closing, found in zip(job.closings, ahead):
            if isinstance(found, Exception):
                raise found
            _frame(spark, found.table).createOrReplaceTempView(closing.all)
            findings = found.findings   # of the last: a task's are those of all closures that it stands on
        if not job.ahead:
            made = [table for closing in job.closings if (table := close(spark, closing)) is not None]
            findings = pa.concat_tables([table.cast(FINDINGS) for table in made]) if made else None
        return findings


def _frame(spark: SparkSession, table: pa.Table) -> DataFrame:
    """A table of Arrow in Spark, as one chunk: of a few that begin with empty ones Spark 4.0 takes none."""
    return spark.createDataFrame(table.combine_chunks())


@dataclass(slots=True)
class _InSpark:
    """A closure's tables as temporary views over checkpointed relations."""

    spark: SparkSession
    closing: Closing
    pieces: list[DataFrame]

    def seen(self, table: str) -> list[SeenRow]:
        return [(row["p"], row["c"], row["d"], row["l"]) for row in self.spark.sql(seen_text(table)).toArrow().to_pylist()]

    def begin(self) -> None:
        reduce(DataFrame.union, self.pieces).createOrReplaceTempView(self.closing.new)

    def advance(self, due: Round) -> bool:
        new = self.spark.sql(due.text).localCheckpoint(eager=False)
        if not new.count():
            return False
        self.pieces = with_piece(self.pieces, new)
        reduce(DataFrame.union, self.pieces).createOrReplaceTempView(self.closing.all)
        new.createOrReplaceTempView(self.closing.new)
        return True


def close(spark: SparkSession, closing: Closing) -> pa.Table | None:
    """Compute a closure under rules, which is then the view `closing.all`; what is inconsistent in it."""
    first = spark.sql(closing.first).localCheckpoint()
    first.createOrReplaceTempView(closing.all)
    tables = _InSpark(spark, closing, [first])
    check = saturate(closing, tables, all_seen(tables, closing.behind))
    return spark.sql(check).toArrow() if check else None


class Executor(executor.Executor):
    """One whose tasks and plans run on a session."""

    _tasks: Jobs
    _sql: SqlPlans

    def __init__(self, session: Session, *, force_executor: ExecutorName | None = None, force_strategy: StrategyName | None = None,
                 force_graphs: Way | None = None, closed_rows: int | None = None, forgets: bool = True, states: Path | None = None) -> None:
        jobs = Jobs(session)
        super().__init__(jobs, SqlPlans(session, jobs, force_graphs), force_executor=force_executor, force_strategy=force_strategy,
                         closed_rows=closed_rows, forgets=forgets, states=states)

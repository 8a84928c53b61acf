"""Evaluates the plans that are due: chooses executor and strategy by size, runs everything small together, isolates failures.

``local`` takes all plans whose windows fit into a worker as tasks, by Spark's workers or in this process; ``sql`` runs a Spark job per plan
over Parquet segments, where there is a Spark. ``recompute`` evaluates the content at each T anew, all due T in one job; ``incremental``
keeps what patterns find, and closures with intervals, and adds what is new.
"""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from engine.execution.choices import NO_LIMIT, SHARD_ROWS, Choices, StrategyName
from engine.execution.content import Following, StreamContent
from engine.execution.due import Answer, Due, ProgramPosition, failures, inconsistencies_at, split
from engine.execution.exchange import Exchanged, alike, exchange
from engine.execution.homes import Homes
from engine.execution.kept import QueryClosures
from engine.execution.pace import Paces
from engine.execution.plan_job import ExecutorName, PlanJob, Ran, SqlPlans, Tasks
from engine.execution.plan_writer import kept_steps, written
from engine.execution.program_steps import TimedPrograms, behind, state_at, taken_on
from engine.execution.shapes import Shapes
from engine.ir.rules import NOT_UNIQUE
from engine.ir.statement import Program
from engine.limits import Cancelled, LimitExceeded, Postponed
from engine.plan.graphs import Chosen
from engine.plan.nodes import KEYS, Key
from engine.sql.closing import FINDINGS_READ
from engine.sql.dialect import UNDECIDED
from engine.sql.sources import graph_table, needed, stream_table
from engine.worker.bundles import Found, QueryFailed, Shown, Task
from engine.worker.exchange import ShareLost
from engine.worker.resident import Followed, KeptStep

AHEAD_ROWS = 4_000      # so many new rows are brought to workers before an evaluation is due: fewer are not worth a bundle
AT_ONCE_ROWS = 15_000   # where an evaluation takes in no more, nothing is brought before: it costs more than the evaluation waits
WIDEST_ROWS = 4_000_000     # what the windows of all evaluations that are made together may have
MOST_CONSTANTS = 200_000    # rows of what a schema entails: to bring workers more, and to join it, takes half a second and more
_NOTHING = "SELECT CAST(0 AS BIGINT) AS tick WHERE FALSE"

_Content = tuple[StreamContent, Key, frozenset[str]]
"""A content, the key by which it is shared out, and the properties of which facts are brought by object (empty: the whole content)."""


@dataclass(frozen=True, slots=True)
class _Sampled:
    """The last evaluation of a query that sampled kept relations: these, the tables that it read, and whether shards did it. (Its job
    would hold its answer.)"""

    due: Due
    tables: frozenset[str]
    kept: tuple[KeptStep, ...]
    in_shards: bool


class Executor:
    """Belongs to the pump's thread; one that is made by `beside` to any others, a query at a time to one of them. The `force_` options
    take a choice away, for tests and benchmarks."""

    def __init__(self, tasks: Tasks, sql: SqlPlans | None = None, *, force_executor: ExecutorName | None = None,
                 force_strategy: StrategyName | None = None, closed_rows: int | None = None, shard_rows: int = SHARD_ROWS,
                 forgets: bool = True, states: Path | None = None, pump: Executor | None = None,
                 free: threading.Semaphore | None = None) -> None:
        """`tasks` runs what is `local`, `sql` the rest; without it all is `local`. Closures of more than `closed_rows` (None: than a worker
        has memory for) are made by rounds of Spark jobs; from `shard_rows` on plans are evaluated in shards. `forgets`: workers forget
        the closures that it does not keep. `states` is the folder for what programs with a time of their own hold (None: one of its own).
        `pump` is the executor with which this one shares what is kept of each query; `free` are the slots of Spark for what its callers
        evaluate, of which each has one."""
        self._tasks = tasks if pump is None else tasks.beside()
        self._sql: SqlPlans = sql or SqlPlans()
        self._forgets = forgets
        self._beside: Executor | None = None
        self._closures: QueryClosures = QueryClosures(tasks.work / "closures") if pump is None else pump._closures
        self._paces: Paces = Paces(self._evaluate, self._closures.drop, _fitting, None if pump is None else pump._paces.known)
        self._stays = pump is None and forgets
        self._choices: Choices = Choices(
            self._tasks, self._closures, force_executor=force_executor if sql is not None else "local", force_strategy=force_strategy,
            closed_rows=closed_rows if sql is not None else NO_LIMIT, shard_rows=shard_rows, stays=self._stays,
            divides=self._stays or pump is not None, shared=None if pump is None else pump._choices)
        self.ran: dict[str, Ran] = {} if pump is None else pump.ran
        self._shapes = Shapes()
        self._following = Following(self._tasks.shards)
        self._homes = Homes(self._tasks.shards)
        self._free = free
        self._turn = threading.Lock()   # beside the pump one thread at a time has the shards
        self._brought: Mapping[str, StreamContent] = {}   # what these are brought for it, by stream
        self._sampled: dict[str, _Sampled] = {}   # by query, of its last evaluation
        self._made_together = frozenset[str]()     # the closures that shards make together now
        own = states or tasks.work / f"programs-{secrets.token_hex(4)}"
        self.programs: TimedPrograms = TimedPrograms(own) if pump is None else pump.programs

    def beside(self, free: threading.Semaphore | None = None) -> Executor:
        """One for other threads, each of which has one of the slots `free`: it shares what is kept of each query, and has views, segments
        and shards of its own, in which nothing stays."""
        self._beside = Executor(self._tasks, self._sql.beside(), force_executor=self._choices.force_executor,
                                force_strategy=self._choices.force_strategy, closed_rows=self._choices.closed_rows,
                                shard_rows=self._choices.shard_rows, pump=self, free=free)
        return self._beside

    @property
    def choices(self) -> dict[str, tuple[ExecutorName, StrategyName]]:
        """By which executor and strategy each query was evaluated last."""
        return self._choices.made

    @property
    def graph_choices(self) -> dict[str, tuple[Chosen, ...]]:
        """How the graph problems of each query were solved last."""
        return self._sql.graph_choices | ({} if self._beside is None else self._beside.graph_choices)

    def evaluate(self, dues: Sequence[Due]) -> list[Answer]:
        """One Answer per due tick, in the order of `dues`; a query that fails has answers with `error`, the others are not touched."""
        dues, failed = taken_on(dues, self.programs, self._run_local)
        found: dict[str, list[Answer]] = {due.query: [] for due in dues}
        for answer in self._paces.evaluate([due for due in dues if due.ticks]):
            found[answer.query].append(answer)
        for due in dues:
            found[due.query] += behind(due, found[due.query])
            if not found[due.query] or found[due.query][-1].error is None:
                found[due.query] += failed.get(due.query, [])
        return [answer for due in dues for answer in found[due.query]]

    def _evaluate(self, dues: Sequence[Due]) -> list[Answer]:
        jobs: list[PlanJob] = []
        failed: dict[int, BaseException] = {}
        ready: dict[int, Due] = {}
        for number, due in enumerate(dues):
            try:
                general = due.compiled.schema_words and any(c.mentions(due.compiled.schema_words) for c in due.streams.values())
                ready[number] = replace(due, compiled=due.compiled.general) if general else due
            except Exception as failure:  # a plan that cannot be made is that query's failure
                failed[number] = failure
        self._choices.begin(ready.values())
        for number, due in ready.items():
            try:
                if due.compiled.timed:
                    jobs.append(self._timed_job(due))
                    continue
                job = self._job(due)
                if job.executor == "sql" and due.patience_ms is not None:   # to cancel it may take long, and end the JVM
                    failed[number] = Postponed("its plan is one of Spark SQL", stays=True)
                elif due.patience_ms is not None and sum(table.num_rows for table in job.constants.values()) > MOST_CONSTANTS:
                    failed[number] = Postponed("its schema entails more than others wait for", stays=True)
                else:
                    jobs.append(job)
            except Exception as failure:  # as above
                failed[number] = failure
        self._settle(jobs)
        self._under_all_rules(jobs)
        remaining = iter(jobs)
        return [answer for number, due in enumerate(dues)
                for answer in (failures(due, failed[number]) if number in failed else self._answer(next(remaining)))]

    def bring_ahead(self, queries: Collection[str], patience_ms: int) -> None:
        """Bring workers what has come of the streams that they follow, and let what is kept for these queries take it in, while nothing is
        due: else an answer would wait for all of it. What takes longer than `patience_ms`, or fails, is left to the evaluation."""
        if not self._stays:
            return
        following = self._following
        lacking: dict[str, int] = {}
        tables: dict[str, pa.Table | Followed] = {}
        tasks: dict[str, Task] = {}
        for query in queries:
            sampled = self._sampled.get(query)
            if sampled is None:
                continue
            due = sampled.due
            contents = _contents(due.streams, sampled.tables)
            lacking |= {name: following.lacking(name, content) for name, (content, *_) in contents.items() if name not in lacking}
            new, rows = sum(lacking[name] for name in contents), sum(content.rows for content, *_ in contents.values())
            if new < AHEAD_ROWS or max(new, due.compiled.changing * rows) <= AT_ONCE_ROWS:
                continue
            tables |= {name: following.stream(name, *found) for name, found in contents.items()}
            for step in kept_steps(due, [kept.text for kept in sampled.kept]):
                tasks[step.text.name] = Task(_NOTHING, frozenset(contents), 0, query=query, limits=due.limits, patience_ms=patience_ms,
                                             kept=(step,), in_shards=sampled.in_shards)
        if tasks:
            for name, found in zip(tasks, self._run_tasks([*tasks.values()], tables), strict=True):
                if not isinstance(found, Found):
                    readers = [query for query, one in self._sampled.items() if name in (step.text.name for step in one.kept)]
                    for query in readers:   # until they are evaluated again
                        del self._sampled[query]

    def forget(self, query: str) -> None:
        """Drop what is kept for a query."""
        self._closures.drop(query)
        self._sampled.pop(query, None)
        self._tasks.forget(query)
        self._paces.forget(query)
        self._choices.forget(query)
        self.ran.pop(query, None)
        self._shapes.forget(query)
        self._homes.forget(query)
        self._sql.forget(query)
        self.programs.forget(query)
        self._following.forget(query)
        if self._beside is not None:
            self._beside._sql.forget(query)
            self._beside._choices.forget(query)

    def retain(self, states: Mapping[str, ProgramPosition | None]) -> None:
        """What programs with a time of their own hold is needed from these positions on, by query: what came before goes."""
        self.programs.retain(states)

    def cancel(self, query: str) -> None:
        """End the evaluations of a query that is removed, here and beside, now and until it is forgotten. From any thread."""
        self._tasks.cancel(query)

    def close(self) -> None:
        """Drop the views and end the threads. What is evaluated beside is not waited for."""
        if self._beside is not None:
            self._beside.abandon()
        self._sql.end()
        self._closures.close()
        self._sql.close()
        self._end_following()

    def abandon(self) -> None:
        """End the threads where Spark has gone: there is nothing to drop."""
        if self._beside is not None:
            self._beside.abandon()
        self._sql.abandon()
        self._end_following()

    def _end_following(self) -> None:
        if self._turn.acquire(blocking=False):      # else a thread beside the pump is at it
            self._following.close()
            self._turn.release()

    # -- choosing

    def _job(self, due: Due) -> PlanJob:
        """A plan as the executor and the strategy that are chosen run it."""
        choice = self._choices.of(due)
        job = written(choice)
        relations = tuple(step.text.name for step in job.all_kept)
        self.ran[due.query] = Ran(choice.executor, choice.strategy, choice.form, choice.why, job.cost, relations,
                                  shards=self._tasks.shards if job.parts else 1,
                                  home=1 + (self._home(job) if job.executor == "local" else 0))
        self._sampled.pop(due.query, None)
        if job.all_kept and not job.own and not job.closings:
            self._sampled[due.query] = _Sampled(job.due, job.read, job.all_kept, bool(job.parts))
        return job

    def _home(self, job: PlanJob) -> int:
        """The shard whose worker runs a job that is not divided: closures, and rules with a time of their own, are spread over all."""
        if not self._stays or job.kept or job.parts or job.step is None and not job.closings:
            return 0
        own = {closing.name for closing in job.closings if not closing.static} or {closing.name for closing in job.closings}
        return self._homes.of(job.due.query, frozenset(own or {job.due.query}))

    def _timed_job(self, due: Due) -> PlanJob:
        """A step of a program with a time of its own, from what is new."""
        job = self.programs.job(due)
        self._choices.made[due.query] = ("local", "incremental")
        self.ran[due.query] = Ran("local", "incremental", "plain", "a program goes on from what it holds", job.cost)
        return job

    # -- running

    def _under_all_rules(self, jobs: list[PlanJob]) -> None:
        """Run jobs under all rules in the places of those for which rules that were left out may matter."""
        places, again = list[int](), list[PlanJob]()
        for number, job in enumerate(jobs):
            if _needs_all_rules(job):
                self._choices.use_all_rules(job.due.query)
                if made := self._made_again(jobs, number, "rules that were left out may matter"):
                    places.append(number)
                    again += made
        self._settle(again)
        for number, job in zip(places, again):
            jobs[number] = job

    def _settle(self, jobs: list[PlanJob]) -> None:
        """Run jobs, and others in the places of those that failed for what another way to run them does without."""
        self._run(jobs)
        for again in (self._undecided, self._lost, self._lost_again, self._undivided, self._unkept, self._by_sql, self._mended):
            self._run(list(again(jobs)))

    def _run(self, jobs: list[PlanJob]) -> None:
        self._run_local([job for job in jobs if job.executor == "local"])
        self._sql.run([job for job in jobs if job.executor == "sql"], self._close_ahead, self._took)

    def _took(self, due: Due, ms: float, together: int = 1) -> None:
        """The evaluations of `due` took so many ms, of a statement for so many queries."""
        self._paces.took(due, ms)
        if due.query in self.ran:
            self.ran[due.query] = replace(self.ran[due.query], ms=ms, together=together)

    def _undecided(self, jobs: list[PlanJob]) -> Iterator[PlanJob]:
        """Jobs in place of those whose text met a value that SQL does not decide; such a query is left to Python from then on."""
        for number, job in enumerate(jobs):
            if isinstance(job.answer, BaseException) and UNDECIDED in str(job.answer):
                job.due.compiled.undecided = True
                yield from self._made_again(jobs, number)

    def _lost(self, jobs: list[PlanJob]) -> Iterator[PlanJob]:
        """Jobs in place of those whose shares of closures went with a worker, once."""
        for number, job in enumerate(jobs):
            if isinstance(job.answer, ShareLost):
                yield from self._made_again(jobs, number)

    def _lost_again(self, jobs: list[PlanJob]) -> Iterator[PlanJob]:
        """Jobs in one shard in place of those that lose shares each time: they may end workers."""
        for number, job in enumerate(jobs):
            if isinstance(job.answer, ShareLost):
                self._choices.keep_whole(job.due.query)
                yield from self._made_again(jobs, number)

    def _undivided(self, jobs: list[PlanJob]) -> Iterator[PlanJob]:
        """Jobs in one shard in place of those for which shards found more than an answer may have: all of it need not be in the answer."""
        for number, job in enumerate(jobs):
            if job.parts and isinstance(job.answer, LimitExceeded) and job.answer.limit in ("evaluation_rows", "evaluation_bytes"):
                self._choices.keep_whole(job.due.query)
                yield from self._made_again(jobs, number, "shards find more than an answer may have")

    def _unkept(self, jobs: list[PlanJob]) -> Iterator[PlanJob]:
        """Jobs over their windows alone in place of those for which what is kept needed more time or memory than one evaluation has: other
        queries may need much more of a stream than these windows show. Nothing is kept for such a query from then on."""
        for number, job in enumerate(jobs):
            query, failure = job.due.query, job.answer
            if not job.all_kept:
                continue
            if isinstance(failure, Found):
                self._choices.is_kept(query)
            elif isinstance(failure, Postponed):
                self._choices.was_over(query, failure)
            elif isinstance(failure, LimitExceeded) and (
                    failure.limit == "worker_memory" or failure.limit == "evaluation_ms" and len(job.due.ticks) == 1):
                self._choices.was_over(query, failure)
                yield from self._made_again(jobs, number, "what its patterns find needs more than an evaluation has")

    def _by_sql(self, jobs: list[PlanJob]) -> Iterator[PlanJob]:
        """Jobs of Spark SQL alone, which has the disk too, in place of those that needed more memory than a worker has, for closures or for
        all; the query stays there."""
        for number, job in enumerate(jobs):
            over = isinstance(job.answer, LimitExceeded) and job.answer.limit == "worker_memory"
            if over and job.step is None and (job.ahead or job.executor == "local" and self._choices.force_executor is None):
                self._choices.too_large.add(job.due.query)
                self._closures.drop(job.due.query)
                yield from self._made_again(jobs, number, "it needs more memory than a worker has")

    def _made_again(self, jobs: list[PlanJob], number: int, postponed: str = "") -> list[PlanJob]:
        """The job in the place of one that failed; none where it cannot be made, or where others wait and it is to be `postponed` then."""
        due = jobs[number].due
        if due.patience_ms is not None and postponed:
            jobs[number].answer = Postponed(postponed)
            return []
        try:
            jobs[number] = self._job(due)
        except Exception as failure:    # that query's, as in `_evaluate`
            jobs[number].answer = failure
            return []
        return [jobs[number]]

    def _mended(self, jobs: list[PlanJob]) -> Iterator[PlanJob]:
        """Jobs in place of those that failed since a segment cannot be read, once: it is written anew, or the closure that kept it begins
        anew. An answer does not depend on what became of a file; where it cannot be mended the failure names it."""
        failed = {number: str(job.answer) for number, job in enumerate(jobs) if isinstance(job.answer, BaseException)}
        mended = self._sql.mend({jobs[number].due.query: failure for number, failure in failed.items()})
        for number, failure in failed.items():
            job = jobs[number]
            if job.due.query in mended or job.closures is not None and job.closures.lacks(failure):
                logging.getLogger(__name__).warning("the evaluation of %s is made again: %s", job.due.query, failure)
                self._closures.drop(job.due.query)
                yield from self._made_again(jobs, number)

    def _run_local(self, jobs: list[PlanJob], together: bool = True) -> None:
        """Run tasks in one go, those of one shape `together`."""
        if not jobs:
            return
        in_shards, whole = [job for job in jobs if job.parts], [job for job in jobs if not job.parts]
        if not self._stays or not in_shards:
            self._run_bundled([], whole, Exchanged({}, {}), together)
            whole = []
        for group in alike(in_shards):
            with self._at_shards(group), self._exchanged(group) as exchanged:
                self._run_bundled([job for job in group if job.answer is None], whole, exchanged, together)
            whole = []

    @contextmanager
    def _at_shards(self, jobs: Sequence[PlanJob]) -> Iterator[None]:
        """Within it a thread has the shards. Those beside the pump have slots of their own: meanwhile others may have the one of the
        thread. They are brought what windows show, and nothing of it stays there."""
        if self._stays:
            yield
            return
        if self._free is not None:
            self._free.release()
        try:
            with self._turn:
                self._brought = _shown_by(jobs)
                try:
                    yield
                finally:
                    self._brought = {}
                    for job in jobs:
                        self._following.forget(job.due.query)
                    self._tasks.run([], {}, self._following.used, may_stay=True)
        finally:
            if self._free is not None:
                self._free.acquire()

    @contextmanager
    def _exchanged(self, jobs: Sequence[PlanJob]) -> Iterator[Exchanged]:
        """Within it, workers have the closures that shards make together for some jobs."""
        def run(tasks: list[Task], tables: Mapping[str, pa.Table]) -> Sequence[Found | Exception]:
            return self._in_one_job(jobs, tasks, tables)

        before = self._made_together
        made = frozenset(closing.name for job in jobs for closing in job.closings if closing.exchange is not None)
        self._made_together |= made
        try:
            yield exchange(jobs, run) if made else Exchanged({}, {})
        finally:
            self._made_together = before

    def _run_bundled(self, in_shards: list[PlanJob], whole: list[PlanJob], exchanged: Exchanged, together: bool) -> None:
        jobs = [*in_shards, *whole]
        if not jobs:
            return
        groups, alone = self._shapes.divided(whole) if together else ([], whole)
        parts = [Task(part.write(), part.tables, job.cost, job.closings, job.due.query, job.due.limits, job.due.patience_ms,
                      exchanges=exchanged.numbers, kept=part.kept, panes=part.panes(), shown=_shown(job.due) if job.is_part else None,
                      given=part.given(), in_shards=True) for job in in_shards for part in job.parts]
        tasks = [Task(job.write(), job.tables, job.cost, job.closings, job.due.query, job.due.limits, job.due.patience_ms, job.step,
                      job.kept, job.panes(), shown=_shown(job.due), given=job.given(), home=self._home(job)) for job in alone]
        found = self._in_one_job(jobs, [*(group.task for group in groups), *tasks, *parts])
        self._gather(in_shards, found[len(groups) + len(tasks):], exchanged)
        for job, answer in zip(alone, found[len(groups):]):
            job.answer = answer
        again: list[PlanJob] = []
        for group, answer in zip(groups, found):
            if isinstance(answer, Found):
                group.divide(answer)
                continue
            if not isinstance(answer, Cancelled):   # one of its queries is removed
                logging.getLogger(__name__).info("%d queries of one shape are evaluated one by one: %s", len(group.jobs), answer)
                self._shapes.separate(group)
            if isinstance(answer, Postponed):
                for job in group.jobs:
                    job.answer = answer
            else:
                again += group.jobs
        beside = {id(job): len(group.jobs) for group in groups for job in group.jobs}
        for job in jobs:
            if isinstance(job.answer, Found):
                self._took(job.due, job.answer.ms, beside.get(id(job), 1))
        self._run_local(again, together=False)

    def _gather(self, jobs: Sequence[PlanJob], found: Sequence[Found | Exception], exchanged: Exchanged) -> None:
        """Evaluate what is above the parts of plans, over what shards have found."""
        rest = iter(found)
        ready, tasks = list[tuple[PlanJob, float, pa.Table | None]](), list[Task]()
        tables: dict[str, pa.Table | Followed] = {}
        for job in jobs:
            answers = [next(rest) for _ in job.parts]
            job.answer = next((answer for answer in answers if not isinstance(answer, Found)), None)
            if job.answer is not None:
                continue
            given = [answer for answer in answers if isinstance(answer, Found)]
            ms = max(answer.ms for answer in given) + exchanged.ms.get(job.due.query, 0.0)
            if job.is_part:
                job.answer = replace(given[0], ms=ms)
                continue
            gathered = {part.name: answer.table for part, answer in zip(job.parts, given)}
            static = tuple(closing for closing in job.closings if closing.static)
            ready.append((job, ms, given[0].findings))
            tasks.append(Task(job.write(), job.tables | gathered.keys(), job.cost, static, job.due.query, job.due.limits,
                              job.due.patience_ms, shown=_shown(job.due), gathers=True))
            tables |= gathered
        if tasks:
            tables |= {name: table for name, table in self._tables([job for job, *_ in ready]).items()
                       if any(name in job.tables for job, *_ in ready)}
            for (job, ms, findings), answer in zip(ready, self._run_tasks(tasks, tables), strict=True):
                job.answer = replace(answer, ms=answer.ms + ms, findings=findings) if isinstance(answer, Found) else answer

    def _in_one_job(self, jobs: Sequence[PlanJob], tasks: Sequence[Task],
                    tables: Mapping[str, pa.Table] | None = None) -> Sequence[Found | Exception]:
        """What the tasks of some jobs give, all run in one go, beside `tables` of their own."""
        if self._follows(jobs):
            for job in jobs:
                self._following.use(job.due.query, job.read | {step.text.name for step in job.all_kept})
        return self._run_tasks(tasks, {**self._tables(jobs), **(tables or {})})

    def _follows(self, jobs: Sequence[PlanJob]) -> bool:
        """Whether workers have tables that are brought what is new."""
        return self._stays or any(job.parts for job in jobs)

    def _run_tasks(self, tasks: Sequence[Task], tables: Mapping[str, pa.Table | Followed]) -> Sequence[Found | Exception]:
        alive = self._made_together.union(self.programs.marks, *(closures.states for closures in self._closures.values()))
        if not self._stays and not any(task.in_shards or task.gathers for task in tasks):
            return self._tasks.run(tasks, tables, alive if self._forgets else None)
        found = self._tasks.run(tasks, tables, alive | self._following.used, may_stay=True)
        for name, table in tables.items():
            if isinstance(table, Followed):
                readers = frozenset(shard for task in tasks if name in task.tables for shard in task.shards(self._tasks.shards))
                self._following.brought(name, table, readers)
        return found

    def _tables(self, jobs: Sequence[PlanJob]) -> dict[str, pa.Table | Followed]:
        """What the jobs may see, by table name: all that is followed, else the slices of content that they need."""
        following = self._following if self._follows(jobs) else None
        found: dict[str, pa.Table | Followed] = {}
        contents: dict[str, _Content] = {}
        for job in jobs:
            found.update(job.own)
            for name, table in job.constants.items():
                found[name] = table if following is None else following.constants(name, table)
            if job.step is not None:
                continue
            streams = {**job.due.streams, **self._brought} if following is not None else job.due.streams
            contents |= _contents(streams, job.read)
            contents |= {name: (streams[iri], "o", properties) for name, (iri, properties) in job.by_object.items()}
            for iri, table in job.due.graphs.items():
                for key in KEYS:
                    if not key or graph_table(iri, key) in job.read:
                        name = graph_table(iri, key)
                        found[name] = table if following is None else following.graph(name, table, key)
        shown = {stream_table(iri): range_ for iri, range_ in _shown_ranges(jobs).items()} if following is None else {}
        for name, (content, key, by_object) in contents.items():
            found[name] = (content.between(*shown[name], -1) if following is None
                           else following.stream(name, content, key, by_object))
        return found

    def _close_ahead(self, jobs: list[PlanJob]) -> list[list[Found | Exception]]:
        """The closures of some jobs, made in one go by tasks, as for `local`: rounds of Spark jobs pay for large ones only."""
        if not jobs:
            return []
        tasks = [Task(f"SELECT * FROM {closing.all}", job.tables, job.cost, job.closings[:number], job.due.query, job.due.limits,
                      home=self._home(job)) for job in jobs for number, closing in enumerate(job.closings, 1)]
        found = iter(self._in_one_job(jobs, tasks))
        return [[next(found) for _ in job.closings] for job in jobs]

    # -- answering

    def _answer(self, job: PlanJob) -> list[Answer]:
        try:
            return self._answers_of(job)
        except Exception as failure:  # an answer that cannot be read is that query's failure
            self._closures.drop(job.due.query)
            return failures(job.due, failure)

    def _answers_of(self, job: PlanJob) -> list[Answer]:
        if isinstance(job.answer, Postponed):   # what was kept before it stays
            return failures(job.due, job.answer)
        if isinstance(job.answer, BaseException) or job.answer is None:
            self._closures.drop(job.due.query)
            return failures(job.due, job.answer or QueryFailed("no answer"))
        if job.step is not None:
            return [self.programs.answer(job.due, job.answer.table)]
        if job.closures is not None:
            job.closures.adopt(max((c.last for s in job.due.streams.values() for c in s.chunks), default=0))
        if job.answer.written is not None:
            answers = [Answer(job.due.query, job.due.ticks[0], job.answer.table, written=job.answer.written)]
        else:
            answers = split(job.due, job.answer.table, is_in_order=job.answer.is_in_order)
        if job.answer.findings is None and job.due.reached is None:
            return answers
        return [replace(answer, inconsistencies=inconsistencies_at(answer.tick, job.answer.findings), state=state_at(job.due, answer.tick))
                for answer in answers]


def _contents(streams: Mapping[str, StreamContent], names: frozenset[str]) -> dict[str, _Content]:
    """The contents that tables of these names follow."""
    return {name: (content, key, frozenset[str]()) for iri, content in streams.items() for key in KEYS
            if (name := stream_table(iri, key)) in names}


def _shown_ranges(jobs: Sequence[PlanJob]) -> dict[str, tuple[int, int]]:
    """The times ``low <= t < high`` of each stream that windows of the jobs show."""
    ranges: dict[str, tuple[int, int]] = {}
    for job in jobs:
        for iri, (low, high) in needed(job.due.compiled.statement.windows, job.evaluation).items() if job.step is None else ():
            before = ranges.get(iri, (low, high))
            ranges[iri] = min(low, before[0]), max(high, before[1])
    return ranges


def _shown_by(jobs: Sequence[PlanJob]) -> dict[str, StreamContent]:
    """Of the streams of jobs that are made together, each of which has its content of them, the chunks that their windows show."""
    contents = {iri: content for job in jobs for iri, content in job.due.streams.items()}
    return {iri: contents[iri].overlapping(*range_) for iri, range_ in _shown_ranges(jobs).items()}


def _needs_all_rules(job: PlanJob) -> bool:
    """Whether the closures of a job found that rules which were left out may matter (engine/rewrite/unique_names.py): a name that is equal
    to another term, or so much that is inconsistent that not all of it was read."""
    if job.due.compiled.under_all_rules is None or not isinstance(job.answer, Found) or job.answer.findings is None:
        return False
    findings = job.answer.findings["finding"]
    return len(findings) >= FINDINGS_READ or bool(pc.any(pc.starts_with(findings, f"{NOT_UNIQUE}:")).as_py())


def _shown(due: Due) -> Shown | None:
    """How a task may write its answer."""
    return None if due.shown is None or len(due.ticks) > 1 else Shown(due.compiled.statement.columns, due.shown)


def _fitting(due: Due) -> int:
    """How many evaluations can be made together: each has the rows of all windows, but for plans that have no row for each T."""
    if due.compiled.timed or isinstance(due.compiled.statement.query, Program):
        return len(due.ticks)
    return WIDEST_ROWS // max(1, sum(content.rows for content in due.streams.values()))

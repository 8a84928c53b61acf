"""Evaluates the plans that are due: chooses executor and strategy by size, runs everything small together, isolates failures.

``local`` takes all plans whose windows fit into a worker as tasks, by Spark's workers or in this process; ``sql`` runs a Spark job per plan
over Parquet segments, where there is a Spark. ``recompute`` evaluates the content at each T anew, all due T in one job; ``incremental``
keeps what patterns find, and closures with intervals, and adds what is new.
"""

from __future__ import annotations

import hashlib
import itertools
import logging
import math
import secrets
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import pyarrow as pa

from engine.execution.compiled import LOCAL_ROWS, RESIDENT_BYTES, Compiled, Form
from engine.execution.content import Following, StreamContent, merge_estimates, table_estimate
from engine.execution.due import Answer, Due, ProgramPosition, failures, inconsistencies_at, split
from engine.execution.equality import EqualTerms
from engine.execution.homes import Homes
from engine.execution.kept import KeptClosures
from engine.execution.pace import Paces
from engine.execution.plan_job import ExecutorName, Part, PlanJob, Ran, SqlPlans, Tasks
from engine.execution.program_steps import TimedPrograms, behind, state_at, taken_on
from engine.execution.shapes import Shapes, Sharing
from engine.functions.typed import ANY_KIND, Kinds
from engine.ir.statement import Program, StreamSource
from engine.ir.terms import SAME_AS
from engine.limits import Cancelled, LimitExceeded, Postponed
from engine.plan.graphs import WORDS, Chosen
from engine.plan.nodes import KEYS, KeptSource, Key, StaticSource, ValiditySource
from engine.sql.dialect import DIALECTS, UNDECIDED
from engine.sql.emit import PlanText
from engine.sql.kept import KeptText
from engine.sql.sources import Evaluation, graph_table, needed, numbers_of, source_texts, stream_table, tables, timed_table
from engine.worker.bundles import Found, QueryFailed, Shown, Task
from engine.worker.panes import PaneStep
from engine.worker.resident import Followed, KeptStep

StrategyName = Literal["recompute", "incremental"]

INCREMENTAL_ROWS = 20_000
MOST_OVER = 2           # after so many postponed evaluations in a row nothing is kept for a query
SHARED_BY = 4           # so many queries share what patterns find without their constants and filters
MOST_NEW = 0.25         # the share of a window that may be new at each evaluation, where what its patterns find is kept
KEPT_ROWS = 4_000       # above so many rows of windows closures are kept, if little changes (`_keeps`)
SHARD_ROWS = 20_000     # from so many rows of windows on a query is evaluated in shards, where there are several and it can be
AHEAD_ROWS = 4_000      # so many new rows are brought to workers before an evaluation is due: fewer are not worth a bundle
AT_ONCE_ROWS = 15_000   # where an evaluation takes in no more, nothing is brought before: it costs more than the evaluation waits
WIDEST_ROWS = 4_000_000     # what the windows of all evaluations that are made together may have
MOST_CONSTANTS = 200_000    # rows of what a schema entails: to bring workers more, and to join it, takes half a second and more
NO_LIMIT = 1 << 60
_NOTHING = "SELECT CAST(0 AS BIGINT) AS tick WHERE FALSE"
CLOSED_ROWS = 2_000_000    # a round of Spark jobs costs more than a whole closure in one task (docs/decisions.md)


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
                 force_strategy: StrategyName | None = None, closed_rows: int = CLOSED_ROWS, shard_rows: int = SHARD_ROWS,
                 forgets: bool = True, states: Path | None = None, pump: Executor | None = None) -> None:
        """`tasks` runs what is `local`, `sql` the rest; without it all is `local`. `closed_rows`: above it the closures of `sql` are made
        by rounds of Spark jobs; `shard_rows`: from then on plans are evaluated in shards. `forgets`: workers forget the closures that it
        does not keep. `states` is the folder for what programs with a time of their own hold (None: one of its own). `pump` is
        the executor with which this one shares what is kept of each query."""
        self._tasks = tasks
        self._sql: SqlPlans = sql or SqlPlans()
        self._paces: Paces = Paces(self._evaluate, self._drop, _fitting, None if pump is None else pump._paces.known)
        self._forgets = forgets
        self._beside: Executor | None = None
        self.closed_rows = closed_rows if sql is not None else NO_LIMIT
        self._shard_rows = shard_rows
        self._in_shards: dict[str, bool] = {}   # by query, whether it may be; known from its first evaluation over `shard_rows`
        self.force_executor: ExecutorName | None = force_executor if sql is not None else "local"
        self.force_strategy = force_strategy
        self.choices: dict[str, tuple[ExecutorName, StrategyName]] = {} if pump is None else pump.choices
        self.ran: dict[str, Ran] = {} if pump is None else pump.ran
        self._closures: dict[str, KeptClosures] = {} if pump is None else pump._closures
        self._too_large: set[str] = set() if pump is None else pump._too_large
        self._over: dict[str, int] = {}     # how often in a row what is kept for a query was too much
        self._sharing, self._shapes, self._equal = Sharing(), Shapes(), EqualTerms()
        self._following = Following(tasks.shards) if pump is None and forgets else None
        self._homes = Homes(tasks.shards)
        self._sampled: dict[str, _Sampled] = {}   # by query, of its last evaluation
        self._marks: Iterator[int] = itertools.count(1) if pump is None else pump._marks
        own = states or tasks.work / f"programs-{secrets.token_hex(4)}"
        self.programs: TimedPrograms = TimedPrograms(own) if pump is None else pump.programs

    def beside(self) -> Executor:
        """One for other threads: it shares what is kept of each query, and has views and segments of its own."""
        self._beside = Executor(self._tasks, self._sql.beside(), force_executor=self.force_executor, force_strategy=self.force_strategy,
                                closed_rows=self.closed_rows, pump=self)
        return self._beside

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
        for number, due in enumerate(dues):
            try:
                if due.compiled.timed:
                    jobs.append(self._timed_job(due))
                    continue
                if due.compiled.schema_words and any(c.mentions(due.compiled.schema_words) for c in due.streams.values()):
                    due = replace(due, compiled=due.compiled.general)
                job = self._job(due)
                if job.executor == "sql" and due.patience_ms is not None:   # to cancel it may take long, and end the JVM
                    failed[number] = Postponed("its plan is one of Spark SQL", stays=True)
                elif due.patience_ms is not None and sum(table.num_rows for table in job.constants.values()) > MOST_CONSTANTS:
                    failed[number] = Postponed("its schema entails more than others wait for", stays=True)
                else:
                    jobs.append(job)
            except Exception as failure:  # a plan that cannot be made is that query's failure
                failed[number] = failure
        self._run(jobs)
        for again in (self._undecided, self._undivided, self._unkept, self._by_sql, self._mended):
            self._run(list(again(jobs)))
        remaining = iter(jobs)
        return [answer for number, due in enumerate(dues)
                for answer in (failures(due, failed[number]) if number in failed else self._answer(next(remaining)))]

    def bring_ahead(self, queries: Collection[str], patience_ms: int) -> None:
        """Bring workers what has come of the streams that they follow, and let what is kept for these queries take it in, while nothing is
        due: else an answer would wait for all of it. What takes longer than `patience_ms`, or fails, is left to the evaluation."""
        following = self._following
        if following is None:
            return
        lacking: dict[str, int] = {}
        tables: dict[str, pa.Table | Followed] = {}
        tasks: dict[str, Task] = {}
        for query in queries:
            sampled = self._sampled.get(query)
            if sampled is None:
                continue
            due = sampled.due
            contents = _contents(due, sampled.tables)
            lacking |= {name: following.lacking(name, content) for name, (content, _) in contents.items() if name not in lacking}
            new, rows = sum(lacking[name] for name in contents), sum(content.rows for content, _ in contents.values())
            if new < AHEAD_ROWS or max(new, due.compiled.changing * rows) <= AT_ONCE_ROWS:
                continue
            tables |= {name: following.stream(name, *found) for name, found in contents.items()}
            for step in self._steps(due, [kept.text for kept in sampled.kept]):
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
        self._drop(query)
        self._sampled.pop(query, None)
        self._tasks.forget(query)
        self._paces.forget(query)
        self.choices.pop(query, None)
        self.ran.pop(query, None)
        self._too_large.discard(query)
        self._over.pop(query, None)
        self._in_shards.pop(query, None)
        self._equal.forget(query)
        self._sharing.forget(query)
        self._shapes.forget(query)
        self._homes.forget(query)
        self._sql.forget(query)
        self.programs.forget(query)
        if self._following is not None:
            self._following.forget(query)
        if self._beside is not None:
            self._beside._sql.forget(query)

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
        for query in list(self._closures):
            self._drop(query)
        self._sql.close()
        self._end_following()

    def abandon(self) -> None:
        """End the threads where Spark has gone: there is nothing to drop."""
        if self._beside is not None:
            self._beside.abandon()
        self._sql.abandon()
        self._end_following()

    def _end_following(self) -> None:
        if self._following is not None:
            self._following.close()

    # -- choosing

    def _job(self, due: Due) -> PlanJob:
        """A plan as the executor and the strategy that are chosen run it."""
        compiled, evaluation = due.compiled, due.evaluation
        windows = compiled.statement.windows
        ranges = needed(windows, evaluation)
        rows = sum(due.streams[iri].rows for iri in ranges)
        compiled.adapt(rows, lambda: merge_estimates([*(content.estimate() for content in due.streams.values()),
                                                      *map(table_estimate, due.graphs.values())]))
        keeping = compiled.with_goal or compiled
        by_rounds = due.paths in ("sql", "graphframes") and bool(compiled.text("sql", True).rounds)
        forced = self.force_executor or ("sql" if by_rounds else None)
        keeps = due.query not in self._too_large and forced != "sql" and self._keeps(due, keeping, rows)
        by_representatives = self._by_representatives(due, rows, keeps)
        if by_representatives:
            assert compiled.by_representatives is not None
            keeps, compiled = False, compiled.by_representatives
            due = replace(due, compiled=compiled)
            self._drop(due.query)
        divided = due.compiled.in_shards is not None and self._in_shards.get(due.query, True)
        resident = self._tasks.memory // RESIDENT_BYTES * (self._tasks.shards if divided else 1)
        most = self.closed_rows if compiled.closures and not keeps else resident if self._following or keeps else LOCAL_ROWS
        executor: ExecutorName = forced or ("local" if rows <= most and due.query not in self._too_large else "sql")
        closures = None
        if keeps and executor == "local":
            compiled, due = keeping, replace(due, compiled=keeping)
            closures = self._kept_closures(due)
        typed = not compiled.undecided and not any(due.streams[iri].hard for iri in ranges)
        form: Form = "plain"
        if executor == "sql":
            why = self._why_sql(due, rows, most, by_rounds)
        else:
            form, why = self._sampling(due, rows)
        if by_representatives:
            why = by_representatives
        elif executor == "local" and not keeps and form != "shared" and self._divides(due, rows):
            assert compiled.in_shards is not None
            compiled = compiled.in_shards
        if closures is not None and form == "plain":
            why = f"its closures are kept: {compiled.change_in_words}"
        samples = form in ("sampled", "shared")
        strategy: StrategyName = "incremental" if samples or closures is not None and closures.seen >= 0 else "recompute"
        self.choices[due.query] = executor, strategy
        if closures is not None:
            compiled = compiled.with_own_closures(closures.mark, static=False)
        elif executor == "sql" and compiled.closures:
            # Plans run side by side in one session, so the names of a query's closures end in its hash: its own may hold '-' and '.'.
            compiled = compiled.with_own_closures(hashlib.sha256(due.query.encode()).hexdigest()[:8], static=True)
        text = compiled.text(executor, typed, form)
        kinds: Kinds = frozenset().union(*(content.kinds for content in due.streams.values())) if executor == "local" else ANY_KIND

        def named(text: PlanText) -> bool:
            return len(due.ticks) == 1 and not text.closures and not text.rounds and not text.parts and all(
                isinstance(source, (KeptSource, StaticSource)) for source in text.sources) and executor == "local"

        def below(text: PlanText) -> list[str]:
            written_for = replace(evaluation, named=named(text))
            return [*source_texts(text.sources, windows, written_for, DIALECTS[executor]),
                    *(panes.text(windows, written_for) for panes in text.panes),
                    *(f"{name} AS (SELECT * FROM {_gathered_table(due.query, name)})" for name, _ in text.parts)]

        def written() -> PlanText:
            return compiled.text(executor, typed, form, kinds)

        def part(number: int) -> Part:
            def its_text() -> PlanText:
                return written().parts[number][1]

            name, its = text.parts[number]
            steps = self._steps(due, compiled.kept_texts(its, typed))
            return Part(_gathered_table(due.query, name), lambda: its_text().statement(below(its_text())),
                        its.tables.union(*((*step.text.tables, *step.text.graphs) for step in steps)), steps,
                        lambda: _pane_steps(its_text(), windows, evaluation),
                        lambda: numbers_of(windows, evaluation) if named(its) else {})

        kept = self._steps(due, compiled.kept_texts(text, typed))
        names = {table for step in kept for table in (*step.text.tables, *step.text.graphs)}
        names |= text.tables
        own = {} if due.derived is None or compiled.derived is None else {timed_table(compiled.derived): due.derived}
        rounds = tuple((part, *text.pairs(below(text), part)) for part in text.rounds)
        ahead = executor == "sql" and rows <= self.closed_rows and due.query not in self._too_large
        closer: ExecutorName = "local" if ahead else executor
        texts = compiled.text(closer, typed).closures
        names |= tables([leaf for closure in texts for leaf in closure.source.base
                         if closures is None or not isinstance(leaf, ValiditySource)], windows)
        constants = {name: table for closure in texts for name, table in compiled.constants_of(closure).items()}
        if closures is None:
            closings = tuple(closure.ready(source_texts(closure.source.base, windows, evaluation, DIALECTS[closer])) for closure in texts)
        else:
            new = {iri: f"{stream_table(iri)}_{closures.mark}" for iri in due.streams}
            closings = tuple(closures.closing(text, evaluation, new) for text in texts)
            own |= {new[iri]: content.after(max(closures.seen, due.since)) for iri, content in due.streams.items()}
            rows = sum(own[name].num_rows for name in new.values())
        shape = compiled.shape if form == "shared" and not own and not closings else None
        job = PlanJob(due, evaluation, executor, lambda: written().statement(below(written())),
                      frozenset(names | own.keys() | constants.keys()), rows * len(due.ticks), closures, own, constants, rounds=rounds,
                      closings=closings, ahead=ahead, kept=kept, panes=lambda: _pane_steps(written(), windows, evaluation),
                      given=lambda: numbers_of(windows, evaluation) if named(text) else {}, shape=shape, typed=typed, kinds=kinds,
                      parts=tuple(map(part, range(len(text.parts)))), is_part=bool(text.parts) and not text.select)
        self.ran[due.query] = Ran(executor, strategy, form, why, rows * len(due.ticks), tuple(step.text.name for step in job.all_kept),
                                  shards=self._tasks.shards if job.parts else 1)
        self._sampled.pop(due.query, None)
        if job.all_kept and not own and not closings:
            self._sampled[due.query] = _Sampled(due, job.read, job.all_kept, bool(job.parts))
        return job

    def _divides(self, due: Due, rows: int) -> bool:
        """Whether a plan is evaluated in shards: from some size on, so that its tables are not brought to others each time it changes."""
        if self._tasks.shards < 2 or self._following is None or due.derived is not None:
            return False
        if due.query not in self._in_shards and rows < self._shard_rows:
            return False
        return self._in_shards.setdefault(due.query, True) and due.compiled.in_shards is not None

    def _home(self, job: PlanJob) -> int:
        """The shard whose worker runs a job that is not divided: closures, and rules with a time of their own, are spread over all."""
        if self._following is None or job.kept or job.step is None and not job.closings:
            return 0
        own = {closing.name for closing in job.closings if not closing.static} or {closing.name for closing in job.closings}
        return self._homes.of(job.due.query, frozenset(own or {job.due.query}))

    def _timed_job(self, due: Due) -> PlanJob:
        """A step of a program with a time of its own, from what is new."""
        job = self.programs.job(due)
        self.choices[due.query] = ("local", "incremental")
        self.ran[due.query] = Ran("local", "incremental", "plain", "a program goes on from what it holds", job.cost)
        return job

    def _keeps(self, due: Due, keeping: Compiled, rows: int) -> bool:
        """Whether its closures with intervals are kept, in the form of the query that is best for that; a program's are."""
        if not keeping.keeps_closures:
            return False
        if self.force_strategy or due.query in self._closures or isinstance(due.compiled.statement.query, Program):
            return self.force_strategy != "recompute"
        # Closures are better made anew where more changes between evaluations than a tenth of a window of 10,000 rows, a third of 100,000,
        # three fifths of 1,000,000 (docs/maintenance.md).
        return rows > KEPT_ROWS and due.compiled.changing <= 0.25 * math.log10(rows / KEPT_ROWS)

    def _by_representatives(self, due: Due, rows: int, keeps: bool) -> str:
        """Why its closures are computed by representatives of equal terms, anew at each T; empty where the rules of equality are applied as
        they stand. Closures that are kept are given up for that where these rules would derive more than the windows have."""
        known = due.compiled.equality
        if due.compiled.by_representatives is None or rows > self.closed_rows or due.query in self._too_large:
            return ""
        statements = known.statements + sum(content.count(SAME_AS) for content in due.streams.values())
        stated = f"{statements} statements of it in streams and graphs"
        if not keeps:
            why = stated if statements else "rules may derive it" if known.is_derived else ""
        else:
            derived = self._equal.derived(due, statements)
            why = f"of {stated} its rules would derive some {derived} facts" if derived > max(rows, KEPT_ROWS) else ""
        return f"owl:sameAs by representatives: {why}" if why else ""

    def _why_sql(self, due: Due, rows: int, most: int, by_rounds: bool) -> str:
        """Why a plan is one of Spark SQL: `most` rows are evaluated in tasks, closures of paths `by_rounds` are not."""
        if self.force_executor is not None:
            return "it is made to be one of Spark SQL"
        if by_rounds and due.paths is not None:
            return f"its paths are to be closed {WORDS[due.paths]}"
        return "it needs more memory than a worker has" if due.query in self._too_large else f"{rows} rows are more than {most}"

    def _sampling(self, due: Due, rows: int) -> tuple[Form, str]:
        """Whether what its patterns find is kept, and in which relations, and why: those that many queries share cost little, however few
        rows."""
        if self._following is None or self.force_strategy == "recompute":
            return "plain", "its windows are evaluated anew"
        if self._over.get(due.query, 0) >= MOST_OVER:
            return "plain", "what its patterns find needed more time or memory than an evaluation has"
        if (users := self._sharing.users(due.query, due.compiled)) >= SHARED_BY:
            return "shared", f"what its patterns find is kept for {users} queries, which differ in constants and filters only"
        if due.compiled.sampled is None:
            return "plain", "nothing that its patterns find can be kept"
        whole: int = rows + sum(table.num_rows for table in due.graphs.values())
        if not self.force_strategy and whole <= INCREMENTAL_ROWS:
            return "plain", f"{whole} rows are soon evaluated anew"
        if not self.force_strategy and due.compiled.changing * rows > MOST_NEW * whole:
            return "plain", due.compiled.change_in_words
        return "sampled", f"what its patterns find is kept: {due.compiled.change_in_words}"

    def _steps(self, due: Due, texts: Sequence[KeptText]) -> tuple[KeptStep, ...]:
        """The kept relations that a query samples, each with the time from which on it needs the facts of its streams."""
        oldest = {stream_table(iri, key): content.oldest for iri, content in due.streams.items() for key in KEYS}
        return tuple(KeptStep(text, tuple(oldest[table] for table in text.tables)) for text in texts)

    def _kept_closures(self, due: Due) -> KeptClosures:
        """What is kept of the closures of a query, from now on if not yet."""
        kept = self._closures.get(due.query)
        if kept is None or kept.compiled is not due.compiled:
            self._drop(due.query)
            kept = self._closures[due.query] = KeptClosures(due.compiled, self._tasks.work / "closures", f"k{next(self._marks)}")
        return kept

    def _drop(self, query: str) -> None:
        kept = self._closures.pop(query, None)
        if kept is not None:
            kept.close()

    # -- running

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

    def _undivided(self, jobs: list[PlanJob]) -> Iterator[PlanJob]:
        """Jobs in one shard in place of those for which shards found more than an answer may have: all of it need not be in the answer."""
        for number, job in enumerate(jobs):
            if job.parts and isinstance(job.answer, LimitExceeded) and job.answer.limit in ("evaluation_rows", "evaluation_bytes"):
                self._in_shards[job.due.query] = False
                yield from self._made_again(jobs, number, "shards find more than an answer may have")

    def _unkept(self, jobs: list[PlanJob]) -> Iterator[PlanJob]:
        """Jobs over their windows alone in place of those for which what is kept needed more time or memory than one evaluation has: other
        queries may need much more of a stream than these windows show. Nothing is kept for such a query from then on."""
        for number, job in enumerate(jobs):
            query, failure = job.due.query, job.answer
            if not job.all_kept:
                continue
            if isinstance(failure, Found):
                self._over.pop(query, None)
            elif isinstance(failure, Postponed):
                self._over[query] = self._over.get(query, 0) + 1
            elif isinstance(failure, LimitExceeded) and (
                    failure.limit == "worker_memory" or failure.limit == "evaluation_ms" and len(job.due.ticks) == 1):
                self._over[query] = MOST_OVER
                yield from self._made_again(jobs, number, "what its patterns find needs more than an evaluation has")

    def _by_sql(self, jobs: list[PlanJob]) -> Iterator[PlanJob]:
        """Jobs of Spark SQL alone, which has the disk too, in place of those that needed more memory than a worker has, for closures or for
        all; the query stays there."""
        for number, job in enumerate(jobs):
            over = isinstance(job.answer, LimitExceeded) and job.answer.limit == "worker_memory"
            if over and job.step is None and (job.ahead or job.executor == "local" and self.force_executor is None):
                self._too_large.add(job.due.query)
                self._drop(job.due.query)
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
                self._drop(job.due.query)
                yield from self._made_again(jobs, number)

    def _run_local(self, jobs: list[PlanJob], together: bool = True) -> None:
        """Run tasks in one go, those of one shape `together`."""
        if not jobs:
            return
        in_shards, whole = [job for job in jobs if job.parts], [job for job in jobs if not job.parts]
        groups, alone = self._shapes.divided(whole) if together else ([], whole)
        parts = [Task(part.write(), part.tables, job.cost, query=job.due.query, limits=job.due.limits, patience_ms=job.due.patience_ms,
                      kept=part.kept, panes=part.panes(), shown=_shown(job.due) if job.is_part else None, given=part.given(),
                      in_shards=True) for job in in_shards for part in job.parts]
        tasks = [Task(job.write(), job.tables, job.cost, job.closings, job.due.query, job.due.limits, job.due.patience_ms, job.step,
                      job.kept, job.panes(), shown=_shown(job.due), given=job.given(), home=self._home(job)) for job in alone]
        found = self._in_one_job(jobs, [*(group.task for group in groups), *tasks, *parts])
        self._gather(in_shards, found[len(groups) + len(tasks):])
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

    def _gather(self, jobs: Sequence[PlanJob], found: Sequence[Found | Exception]) -> None:
        """Evaluate what is above the parts of plans, over what shards have found."""
        rest = iter(found)
        ready, tasks = list[tuple[PlanJob, float]](), list[Task]()
        tables: dict[str, pa.Table | Followed] = {}
        for job in jobs:
            answers = [next(rest) for _ in job.parts]
            job.answer = next((answer for answer in answers if not isinstance(answer, Found)), answers[0] if job.is_part else None)
            if job.answer is None:
                gathered = {part.name: answer.table for part, answer in zip(job.parts, answers) if isinstance(answer, Found)}
                ready.append((job, max(answer.ms for answer in answers if isinstance(answer, Found))))
                tasks.append(Task(job.write(), job.tables | gathered.keys(), job.cost, query=job.due.query, limits=job.due.limits,
                                  patience_ms=job.due.patience_ms, shown=_shown(job.due), gathers=True))
                tables |= gathered
        if tasks:
            tables |= {name: table for name, table in self._tables([job for job, _ in ready]).items()
                       if any(name in job.tables for job, _ in ready)}
            for (job, ms), answer in zip(ready, self._run_tasks(tasks, tables), strict=True):
                job.answer = replace(answer, ms=answer.ms + ms) if isinstance(answer, Found) else answer

    def _in_one_job(self, jobs: list[PlanJob], tasks: Sequence[Task]) -> Sequence[Found | Exception]:
        """What the tasks of some jobs give, all run in one go."""
        if self._following is not None:
            for job in jobs:
                self._following.use(job.due.query, job.read | {step.text.name for step in job.all_kept})
        return self._run_tasks(tasks, self._tables(jobs))

    def _run_tasks(self, tasks: Sequence[Task], tables: Mapping[str, pa.Table | Followed]) -> Sequence[Found | Exception]:
        kept = list(self._closures.values())    # others may add to it
        alive = self.programs.marks.union(*(closures.states for closures in kept))
        if self._following is None:
            return self._tasks.run(tasks, tables, alive if self._forgets else None)
        found = self._tasks.run(tasks, tables, alive | self._following.used, may_stay=True)
        for name, table in tables.items():
            if isinstance(table, Followed):
                readers = frozenset(shard for task in tasks if name in task.tables for shard in task.shards(self._tasks.shards))
                self._following.brought(name, table, readers)
        return found

    def _tables(self, jobs: list[PlanJob]) -> dict[str, pa.Table | Followed]:
        """What the jobs may see, by table name: all that is followed, else the slices of content that they need."""
        found: dict[str, pa.Table | Followed] = {}
        ranges: dict[str, tuple[int, int]] = {}
        contents: dict[str, tuple[StreamContent, Key]] = {}
        for job in jobs:
            found.update(job.own)
            for name, table in job.constants.items():
                found[name] = table if self._following is None else self._following.constants(name, table)
            if job.step is not None:
                continue
            contents |= _contents(job.due, job.read)
            for iri, table in job.due.graphs.items():
                for key in KEYS:
                    if not key or graph_table(iri, key) in job.read:
                        name = graph_table(iri, key)
                        found[name] = table if self._following is None else self._following.graph(name, table, key)
            for iri, (low, high) in needed(job.due.compiled.statement.windows, job.evaluation).items() if self._following is None else ():
                name = stream_table(iri)
                before = ranges.get(name, (low, high))
                ranges[name] = min(low, before[0]), max(high, before[1])
        for name, (content, key) in contents.items():
            found[name] = content.between(*ranges[name], -1) if self._following is None else self._following.stream(name, content, key)
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
            self._drop(job.due.query)
            return failures(job.due, failure)

    def _answers_of(self, job: PlanJob) -> list[Answer]:
        if isinstance(job.answer, Postponed):   # what was kept before it stays
            return failures(job.due, job.answer)
        if isinstance(job.answer, BaseException) or job.answer is None:
            self._drop(job.due.query)
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


def _contents(due: Due, names: frozenset[str]) -> dict[str, tuple[StreamContent, Key]]:
    """The contents that tables of these names follow, with the keys by which they are shared out."""
    return {name: (content, key) for iri, content in due.streams.items() for key in KEYS if (name := stream_table(iri, key)) in names}


def _gathered_table(query: str, part: str) -> str:
    """The table with what shards have found for a query."""
    return f"{part}_{hashlib.sha256(query.encode()).hexdigest()[:16]}"


def _pane_steps(text: PlanText, windows: Sequence[StreamSource], evaluation: Evaluation) -> tuple[PaneStep, ...]:
    """What a text asks of panes at each T."""
    return tuple(PaneStep(one.table(windows), tuple(one.windows(windows, tick, evaluation) for tick in evaluation.ticks), evaluation.since)
                 for one in text.panes)


def _shown(due: Due) -> Shown | None:
    """How a task may write its answer."""
    return None if due.shown is None or len(due.ticks) > 1 else Shown(due.compiled.statement.columns, due.shown)


def _fitting(due: Due) -> int:
    """How many evaluations can be made together: each has the rows of all windows, but for plans that have no row for each T."""
    if due.compiled.timed or isinstance(due.compiled.statement.query, Program):
        return len(due.ticks)
    return WIDEST_ROWS // max(1, sum(content.rows for content in due.streams.values()))

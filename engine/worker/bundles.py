"""Bundles of tasks: all plans of executor `local` that are due, of however many queries, as they are given to a worker process.

A bundle has Arrow tables and plan texts; the worker runs the texts in DuckDB and gives back each answer as Arrow. A Spark job costs tens of
milliseconds whatever it does, so at small sizes the number of jobs decides (docs/decisions.md, "Executors").
"""

from __future__ import annotations

import pickle
import queue
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from engine.ipc import pack, unpack
from engine.ir.strata import Unending
from engine.limits import UNLIMITED, EvaluationLimits, LimitExceeded, Postponed
from engine.output import first_rows, packed_bindings, packed_json, together_json
from engine.sql.closing import FINDINGS_READ, Closing, part_table
from engine.sql.kept import KeptView
from engine.sql.sources import AT_HOME, closure_table
from engine.worker import equality, exchange, resident, timed_task
from engine.worker.closures import close, drop_relation, forget, go_on
from engine.worker.database import cursors, database, notes_of, own_threads, prepared, register, use_threads
from engine.worker.exchange import ShareLost
from engine.worker.guard import check_size, end_overdue, fetched, guarded, out_of_memory
from engine.worker.panes import PaneStep
from engine.worker.resident import Behind, Followed, KeptStep, follow, token_of
from engine.worker.timed_task import StagedStep, TimedStep

if TYPE_CHECKING:
    import duckdb

MOST_KEPT = 64
CLOSING = 30    # what a closure costs, in plans over as many rows (docs/decisions.md)
_EMPTY = pa.table({})
FINDINGS = pa.schema([("lo", pa.int64()), ("hi", pa.int64()), ("finding", pa.string())])
Tables = Mapping[str, pa.Table | Followed]
"""The tables that tasks read, by name: those that are given with the tasks, and those that stay in a worker."""
_PARTS: tuple[Literal["new", "next", "kept_beside"], ...] = ("new", "next", "kept_beside")
WRITTEN_ROWS = 4_096    # answers of so many rows are written in the worker, where they may be


@dataclass(frozen=True, slots=True)
class Written:
    """An answer of so many `rows` as SPARQL Results JSON, packed (`pack_text`): it takes a tenth of what its columns would
    take through Spark, which are so many `nbytes`."""

    rows: int
    text: bytes
    nbytes: int = 0


@dataclass(frozen=True, slots=True)
class Shown:
    """The variables of an answer that nobody needs but as JSON, the plan's last columns, and how many rows are shown. What shards write of
    it are bindings alone."""

    variables: tuple[str, ...]
    most: int


Result = tuple[int, float, bytes | Written, bytes | None, Exception | None]
"""What a task gives: its number, its time in ms, the answer (as Arrow, if it is not written) and what is inconsistent as Arrow, or why it
failed. One result with the number of a shard says that it is Behind."""


@dataclass(frozen=True, slots=True)
class ShareStep:
    """What a shard does of a closure that shards make together, after exchange `number` (0: it begins): what it is sent is in the table
    `received`. Its answer is what it sends."""

    closing: Closing
    number: int
    received: str = ""


@dataclass(frozen=True, slots=True)
class Task:
    """One plan text to run over named tables for a `query`, once its closures are computed; in place of a text the `step` of a program
    with a time of its own, or of a closure that shards make together. A text with `given` numbers comes again with others: it is parsed
    once. Relations that are `kept` are brought up to date before, their `panes` filled, and the `views` made that other tasks read too.
    `cost` is its estimated rows. `patience_ms` is as in Due. It may answer the queries `beside` it, too. A large answer is written as it is
    `shown`. One that is `in_shards` is for every shard, over its share of the tables, and its answer is what they give together; its
    closures that shards made together took so many `exchanges`, by name. One that `gathers` is over such answers. All others are for the
    shard `home`."""

    text: str
    tables: frozenset[str]
    cost: int
    closings: tuple[Closing, ...] = ()
    query: str = ""
    limits: EvaluationLimits = UNLIMITED
    patience_ms: int | None = None
    step: TimedStep | StagedStep | ShareStep | None = None
    kept: tuple[KeptStep, ...] = ()
    panes: tuple[PaneStep, ...] = ()
    beside: frozenset[str] = frozenset()
    views: tuple[KeptView, ...] = ()
    shown: Shown | None = None
    given: Mapping[str, int] = field(default_factory=dict)
    in_shards: bool = False
    gathers: bool = False
    home: int = 0
    exchanges: Mapping[str, int] = field(default_factory=dict)

    def shards(self, count: int) -> range:
        """The shards that it is for, of so many."""
        return range(count) if self.in_shards else range(self.home, self.home + 1)

    def is_of(self, queries: Collection[str]) -> bool:
        """Whether it answers one of some queries."""
        return self.query in queries or not self.beside.isdisjoint(queries)


@dataclass(frozen=True, slots=True)
class Found:
    """What a plan text gave in so many ms, and rows `FINDINGS` of what its closures have that is inconsistent. Its rows are in no order
    unless it `is_in_order`, by tick and as the plan orders them. The table of an answer that is `written` is empty."""

    table: pa.Table
    findings: pa.Table | None = None
    ms: float = 0.0
    is_in_order: bool = False
    written: Written | None = None


class QueryFailed(RuntimeError):
    """A plan failed while it ran; the message is the engine's."""


def _no_answer() -> QueryFailed:
    return QueryFailed("the task gave no answer")


def run_bundled(tasks: Sequence[Task], tables: Tables, workers: int, alive: frozenset[str] | None,
                run: Callable[[list[bytes]], Iterable[Result]]) -> list[Found | Exception]:
    """The answers of tasks in their order, QueryFailed, LimitExceeded or Postponed in place of that of one that failed; `run` hands bundles
    to `run_bundles` in at most so many worker processes. They keep the closures and the followed tables that are `alive`, all of
    them where that is None. Where tables are followed one worker does everything, so that there is one copy of each."""
    parts = balanced(tasks, 1 if follows(tables) else workers)
    results = list(run([_bundle(part, tasks, tables, alive, frozenset()) for part in parts]))
    behind = frozenset[str]()
    while lacking := frozenset().union(*(failure.tables for *_, failure in results if isinstance(failure, Behind))):
        behind |= lacking       # each time it may be another worker; one that is given all of a table does not lack it
        results = list(run([_bundle(part, tasks, tables, alive, behind) for part in parts]))
    answers: list[Found | Exception] = [_no_answer()] * len(tasks)
    for result in results:
        answers[result[0]] = _answer(result)
    return answers


def run_in_shards(tasks: Sequence[Task], tables: Tables, shards: int, alive: frozenset[str] | None, told: dict[int, frozenset[str] | None],
                  run: Callable[[Mapping[int, Callable[[], bytes]]], Iterable[Result]]) -> list[Found | Exception]:
    """The answers of tasks, as of `run_bundled`, from so many shards, or the only one, that have a worker each. `run` hands each shard's
    worker its bundle, all made and run side by side. `told` remembers what each shard last heard to be alive: it hears of changes though it
    has no task."""
    waiting = {shard: [number for number, task in enumerate(tasks) if shard in task.shards(shards)] for shard in range(shards)}
    waiting = {shard: numbers for shard, numbers in waiting.items() if numbers or shard in told and told[shard] != alive}
    told |= dict.fromkeys(waiting, alive)
    behind: dict[int, frozenset[str]] = {}
    found: list[list[Result]] = [[] for _ in tasks]
    while waiting:
        results = list(run({shard: partial(_bundle, numbers, tasks, tables, alive, behind.get(shard, frozenset()), shard, shards)
                            for shard, numbers in waiting.items()}))
        lacking = {shard: failure.tables for shard, *_, failure in results if isinstance(failure, Behind)}
        for result in results:
            if not isinstance(result[-1], Behind):
                found[result[0]].append(result)
        behind |= {shard: behind.get(shard, frozenset()) | names for shard, names in lacking.items()}
        waiting = {shard: waiting[shard] for shard in lacking}
    return [_together(task, list(map(_answer, results))) for task, results in zip(tasks, found)]


def _together(task: Task, answers: Sequence[Found | Exception]) -> Found | Exception:
    """What its one shard, or all of them, have found, or why one failed."""
    if not task.in_shards and answers:
        return answers[0]
    lost = next((answer for answer in answers if isinstance(answer, ShareLost)), None)
    if lost is not None:
        return lost
    found = [answer for answer in answers if isinstance(answer, Found)]
    if len(found) < len(answers) or not found:
        return next((answer for answer in answers if not isinstance(answer, Found)), _no_answer())
    rows = sum(answer.table.num_rows if answer.written is None else answer.written.rows for answer in found)
    try:
        check_size(rows, sum(answer.table.nbytes if answer.written is None else answer.written.nbytes for answer in found), task.limits)
    except LimitExceeded as over:
        return over
    ms, shown = max(answer.ms for answer in found), task.shown
    findings = _findings_of(found)
    if shown is None or all(answer.written is None for answer in found):
        return Found(pa.concat_tables([answer.table for answer in found]), findings, ms)
    parts = [(min(answer.written.rows, shown.most), answer.written.text) if answer.written is not None
             else (answer.table.num_rows, packed_bindings(_shown_columns(answer.table, shown), 1)) for answer in found]
    return Found(_EMPTY, findings, ms, written=Written(rows, together_json(shown.variables, parts, shown.most)))


def _findings_of(found: Sequence[Found]) -> pa.Table | None:
    """What is inconsistent in the shares of shards, each once and as of one shard."""
    tables = [answer.findings for answer in found if answer.findings is not None]
    if not tables:
        return None
    together = pa.concat_tables(tables)
    once = together.group_by(together.column_names).aggregate([])
    return once.sort_by([("lo", "ascending"), ("finding", "ascending")]).slice(0, FINDINGS_READ)


def _answer(result: Result) -> Found | Exception:
    _, ms, answer, findings, error = result
    written = answer if isinstance(answer, Written) else None
    table = unpack(answer) if isinstance(answer, bytes) and answer else _EMPTY
    return error or Found(table, unpack(findings) if findings else None, ms, written=written)


def follows(tables: Tables) -> bool:
    """Whether some of the tables stay in a worker."""
    return any(isinstance(table, Followed) for table in tables.values())


def balanced(tasks: Sequence[Task], workers: int) -> list[list[int]]:
    """Task numbers for each worker: the costliest first, to the least loaded. One that has a task's closures to make already is
    preferred, until making them twice is worth it."""
    count = max(1, min(workers, len(tasks)))
    loads, parts, shared = [0] * count, [list[int]() for _ in range(count)], [set[tuple[str, str]]() for _ in range(count)]
    for number in sorted(range(len(tasks)), key=lambda n: -tasks[n].cost):
        cost, closings = tasks[number].cost + 1, {(c.name, c.first) for c in tasks[number].closings if not c.static}
        more = [CLOSING * cost * len(closings - made) for made in shared]
        worker = min(range(count), key=lambda n: (loads[n] + 2 * more[n], n))
        parts[worker].append(number)
        loads[worker] += more[worker] + cost
        shared[worker] |= closings
    return [part for part in parts if part]


def _bundle(numbers: list[int], tasks: Sequence[Task], tables: Tables, alive: frozenset[str] | None, behind: frozenset[str],
            shard: int = 0, shards: int = 1) -> bytes:
    wanted = sorted({name for number in numbers for name in tasks[number].tables})
    given = {name: pack(table) for name in wanted if isinstance(table := tables[name], pa.Table)}
    steps = {name: table.step(name in behind, shard) for name in wanted if isinstance(table := tables[name], Followed)}
    return pickle.dumps({"shard": shard, "shards": shards, "alive": alive, "tables": given, "steps": steps,
                         "tasks": [(number, tasks[number]) for number in numbers]})


def run_bundles(bundles: Iterable[bytes], connection: duckdb.DuckDBPyConnection | None = None) -> Iterator[Result]:
    """Run bundles in a database, in a Spark task (None) in that of its process, some tasks side by side if it has several threads."""
    threads = 1 if connection is not None else own_threads()
    connection = connection or database()
    for packed in bundles:
        bundle = pickle.loads(packed)   # of the driver's own making: nothing that a document says is a part of it but as text
        if bundle["alive"] is not None:
            forget(connection, bundle["alive"])
            exchange.forget(connection, bundle["alive"])
            timed_task.forget(connection, bundle["alive"])
            resident.forget_kept(connection, bundle["alive"])
        know_share(connection, bundle["shard"], bundle["shards"])
        rows = [step.rows for step in bundle["steps"].values()]
        rows += [resident.kept_rows(connection, step.text.name) for _, task in bundle["tasks"] for step in task.kept]
        use_threads(connection, max(rows, default=None))
        try:
            failed = follow(connection, bundle["steps"], bundle["alive"])
        except Behind as behind:
            yield bundle["shard"], 0.0, b"", None, behind
            continue
        able = []
        for number, task in bundle["tasks"]:
            failure = next((failed[name] for name in task.tables & failed.keys()), None)
            if failure is None:
                able.append((number, task))
            else:
                yield number, 0.0, b"", None, _told(failure)
        followed = frozenset(bundle["steps"])
        side_by_side, others = list[tuple[int, Task]](), list[tuple[int, Task]]()
        for number, task in able:
            alone = task.step is not None or task.closings or not task.tables <= followed
            (others if alone else side_by_side).append((number, task))
        resident.drop_views(connection)     # that an interrupt has left
        try:
            if threads > 1 and len(side_by_side) > 1:
                yield from _run_side_by_side(connection, side_by_side, threads)
                able = others
            yield from _run_bundle(connection, bundle["tables"], followed, able)
        finally:
            resident.drop_views(connection)


def know_share(connection: duckdb.DuckDBPyConnection, shard: int, shards: int) -> None:
    """Let texts ask what is in the share of a shard: it has what `Shares` gives it (engine/worker/shares.py)."""
    known, share = notes_of(connection, f"{__name__}.share"), (shard, shards)
    if known.get(AT_HOME) != share:
        if AT_HOME in known:    # what is here is another shard's
            follow(connection, {}, frozenset())
            resident.forget_kept(connection, frozenset())
            exchange.forget(connection, frozenset())
        connection.execute(f"CREATE OR REPLACE MACRO {AT_HOME}(token) AS hash(token) % {shards:d} = {shard:d}")
        known[AT_HOME] = share


def _run_side_by_side(connection: duckdb.DuckDBPyConnection, tasks: list[tuple[int, Task]], threads: int) -> Iterator[Result]:
    """Tasks that need nothing but tables which stay: each by the next thread that is free, on a connection of its own to the database."""
    free: queue.SimpleQueue[duckdb.DuckDBPyConnection] = queue.SimpleQueue()
    for cursor in cursors(connection, threads):
        free.put(cursor)

    def run(number: int, task: Task) -> Result:
        cursor = free.get()
        try:
            return _run(cursor, number, task, Closures(cursor, {}))
        finally:
            free.put(cursor)

    with ThreadPoolExecutor(threads, "task") as pool:
        waiting = {pool.submit(run, number, task) for number, task in tasks}
        while waiting:
            done, waiting = wait(waiting, timeout=1.0, return_when=FIRST_COMPLETED)
            yield from (future.result() for future in done)
            end_overdue()


def _run_bundle(connection: duckdb.DuckDBPyConnection, tables: dict[str, bytes], followed: frozenset[str],
                tasks: list[tuple[int, Task]]) -> Iterator[Result]:
    versions: dict[str, object] = {name: hash(data) for name, data in tables.items()}
    closures = Closures(connection, versions | {name: token_of(connection, name) for name in followed})
    for name, data in tables.items():
        register(connection, name, unpack(data))
    # Those that share closures one after another, so that each closure is there no longer than it is needed: they may not fit side by side.
    tasks = sorted(tasks, key=lambda given: [closing.name for closing in given[1].closings])
    last = {closing.name: number for number, task in tasks for closing in task.closings}
    try:
        for number, task in tasks:
            if task.step is None:
                yield _run(connection, number, task, closures)
            elif isinstance(task.step, ShareStep):
                yield _exchange(connection, number, task, task.step, closures)
            else:
                yield _advance(connection, number, task, task.step, tables)
            closures.drop(closing.name for closing in task.closings if last[closing.name] == number)
    finally:
        closures.drop()
        for name in tables:
            connection.unregister(name)


def _run(connection: duckdb.DuckDBPyConnection, number: int, task: Task, closures: Closures) -> Result:
    def work() -> tuple[bytes | Written, bytes | None]:
        resident.bring_up_to_date(connection, task.kept)
        given = resident.fill_panes(connection, task.panes)
        resident.show(connection, task.views)
        made = [findings for closing in task.closings if (findings := closures.make(closing, task.exchanges)) is not None]
        text: str | duckdb.Statement = task.text
        if task.given:
            # One row beyond the limit tells that it is exceeded (guard.fetched).
            numbers = {**given, **task.given, "most": task.limits.evaluation_rows + 1}
            text, given = prepared(connection, f"SELECT * FROM ({task.text}) LIMIT $most", numbers)
        answer = _given(fetched(connection, text, given, task.limits), task.shown, task.in_shards)
        return answer, pack(pa.concat_tables(made)) if made else None
    return _within_limits(connection, number, task, work)


def _given(table: pa.Table, shown: Shown | None, in_shards: bool) -> bytes | Written:
    """An answer as it is handed over. What has an order is put in order by the driver."""
    if shown is None or not shown.variables or table.num_rows < WRITTEN_ROWS or "ord" in table.column_names:
        return pack(table)
    rows, write = first_rows(_shown_columns(table, shown), shown.most), packed_bindings if in_shards else packed_json
    return Written(table.num_rows, write(rows, own_threads()), table.nbytes)


def _shown_columns(table: pa.Table, shown: Shown) -> pa.Table:
    return table.select(table.column_names[-len(shown.variables):]).rename_columns(list(shown.variables))


def _advance(connection: duckdb.DuckDBPyConnection, number: int, task: Task, step: TimedStep | StagedStep,
             tables: Mapping[str, bytes]) -> Result:
    def work() -> tuple[bytes, None]:
        use_threads(connection, None)   # its relations may be far larger than its tables
        given = {name: unpack(tables[name]) for name in (*step.streams, *step.graphs)}
        found = timed_task.advance(connection, step, given)
        if isinstance(step, TimedStep):
            check_size(found.num_rows, found.nbytes, task.limits)
        return pack(found), None
    return _within_limits(connection, number, task, work)


def _exchange(connection: duckdb.DuckDBPyConnection, number: int, task: Task, step: ShareStep, closures: Closures) -> Result:
    def work() -> tuple[bytes, None]:
        for closing in task.closings:
            closures.make(closing, task.exchanges)
        sent = exchange.advance(connection, step.closing, step.number, step.received)
        check_size(sent.num_rows, sent.nbytes, task.limits)
        return pack(sent), None
    return _within_limits(connection, number, task, work)


def _within_limits(connection: duckdb.DuckDBPyConnection, number: int, task: Task,
                   work: Callable[[], tuple[bytes | Written, bytes | None]]) -> Result:
    began = time.perf_counter()
    try:
        with guarded(connection, task.limits, task.patience_ms):
            answer, findings = work()
            return number, (time.perf_counter() - began) * 1000, answer, findings, None
    except (LimitExceeded, Postponed, ShareLost) as failure:
        return number, 0.0, b"", None, failure
    except Unending as endless:
        return number, 0.0, b"", None, QueryFailed(str(endless))
    except Exception as failure:  # whatever DuckDB or a function raises belongs to this query alone
        return number, 0.0, b"", None, _told(failure)


def _told(failure: Exception) -> Exception:
    """A failure as it is told to the driver, which may not have the class of it."""
    return out_of_memory(failure) or QueryFailed(f"{type(failure).__name__}: {failure}")


class Closures:
    """The closures of a bundle: queries with equal windows and rules share one. Those of static graphs stay for later bundles."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, versions: Mapping[str, object]) -> None:
        """`versions` tell what the tables hold, by name."""
        self._connection, self._versions = connection, versions
        self._made: dict[str, _Made] = {}

    def make(self, closing: Closing, exchanges: Mapping[str, int]) -> pa.Table | None:
        """Compute a closure, unless it is there, as those are that shards have made in so many `exchanges`; what is inconsistent in it. A
        kept one is derived further. Raises ShareLost."""
        if closing.kept is not None:
            self._made[closing.name] = _Made(None, None)
            return go_on(self._connection, closing)
        if closing.exchange is not None:      # it has been made
            known = self._made.get(closing.name)
            known = known or _Made(None, exchange.findings(self._connection, closing, exchanges[closing.name]), is_shared=True)
            self._made[closing.name] = known
            return known.findings
        read = [(name, self._versions.get(name)) for name in closing.graphs] if closing.static else None
        # By name, the last used at the end; those of static graphs are the database's.
        shelf, from_ = notes_of(self._connection, __name__) if closing.static else self._made, (closing, read)
        made = shelf.pop(closing.name, None)
        if made is None or made.from_ != from_:
            by_representatives = closing.equality is not None
            drop(self._connection, closing.name, by_representatives=by_representatives)
            use_threads(self._connection, None)     # it may be far larger than its tables
            try:
                found = (equality.close(self._connection, closing, closing.equality) if closing.equality is not None
                         else close(self._connection, closing))
                made = _Made(from_, found, by_representatives)
            except Exception:   # whatever it was, nothing half-made stays
                drop(self._connection, closing.name, by_representatives=by_representatives)
                raise
        shelf[closing.name] = made
        while closing.static and len(shelf) > MOST_KEPT:
            oldest = next(iter(shelf))
            drop(self._connection, oldest, by_representatives=shelf.pop(oldest).by_representatives)
        return made.findings

    def drop(self, names: Iterable[str] | None = None) -> None:
        """Forget those of windows, all or some."""
        for name in list(self._made if names is None else names):
            made = self._made.pop(name, None)
            if made is not None and made.is_shared:
                exchange.drop(self._connection, name)
            elif made is not None:
                drop(self._connection, name, is_kept=made.from_ is None, by_representatives=made.by_representatives)


@dataclass(frozen=True, slots=True)
class _Made:
    """A closure that is there: what it was made from, and what is inconsistent in it; nothing of one that goes on from what is kept. One
    that shards have made together `is_shared`."""

    from_: object
    findings: pa.Table | None
    by_representatives: bool = False
    is_shared: bool = False


def drop(connection: duckdb.DuckDBPyConnection, name: str, *, is_kept: bool = False, by_representatives: bool = False) -> None:
    """Remove the tables of a closure. All of one that is kept is a view of what is kept."""
    drop_relation(connection, closure_table(name), is_view=is_kept or by_representatives)
    for part in _PARTS if is_kept else _PARTS[:2]:
        drop_relation(connection, part_table(name, part))
    if by_representatives:
        equality.drop(connection, name)

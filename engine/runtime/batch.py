"""A batch of the pump: what goes in and comes out, where it is cut, and which records can be applied.

Within a segment the order of records does not matter. A registration, a version of a graph or rule set, the beginning or end of a
stream, a pause and the end of a replay begin one, and so does the first record of a stream that was idle: what was due before it must
not see it. So results do not depend on where the log was cut into batches."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from engine.execution.compiled import Compiled
from engine.execution.due import Answer, Due, ProgramPosition
from engine.ir.rules import RuleSet
from engine.ir.statement import Statement
from engine.limits import UNLIMITED, EvaluationLimits
from engine.plan.graphs import Way
from engine.runtime.resources import Notice, ResultEvent
from engine.runtime.rows import Control, Kind, controls
from engine.timeline import EARLIEST_MS, LATEST_MS, MIN, is_moment

Compile = Callable[[Statement, str, Mapping[str, pa.Table], Mapping[str, RuleSet]], Compiled]
History = Callable[[Mapping[str, int], int], Iterable[pa.Table]]
Beside = Callable[[Due, Callable[[], bool]], tuple[list[Answer], float]]
"""Evaluates beside the pump (threads.py), in any number of threads, a query in one of them at a time: the answers, and how many ms they
took without what it waited for its turn. Nothing is begun once whoever waits for it has given up."""
BARRIERS = frozenset((Kind.REGISTER, Kind.UNREGISTER, Kind.PAUSE, Kind.RESUME, Kind.GRAPH, Kind.RULES, Kind.STREAM, Kind.END))
BEYOND = "its time is not within the years 1 to 9999"


class Executor(Protocol):
    """What the pump needs of engine.execution.executor.Executor."""

    def evaluate(self, dues: Sequence[Due]) -> list[Answer]: ...
    def forget(self, query: str) -> None: ...

    def retain(self, states: Mapping[str, ProgramPosition | None]) -> None:
        """What programs with a time of their own hold is needed from these positions on, by epoch: these are committed."""

    def bring_ahead(self, queries: Collection[str], patience_ms: int) -> None:
        """Do what can be done for coming evaluations of these queries, by epoch, while none is due."""

    def cancel(self, query: str) -> None:
        """End the evaluations of a query that is removed, now and later; its answers are then errors `Cancelled`. From any thread."""


class LogGapError(RuntimeError):
    """A batch does not begin where the one before ended: files of the input log are missing."""


class EvaluatorDownError(RuntimeError):
    """The executor failed because what it runs on is gone: no query's fault."""


class LostError(RuntimeError):
    """A query cannot go on because a graph or a rule set that it uses is lost."""


class ProducerFailedError(RuntimeError):
    """A query cannot go on because one whose stream it reads has failed."""


@dataclass(slots=True)
class Outcome:
    """What a batch brought; `came` has the numbers of triples and items by stream, `gone` the streams that have ended. `committed`: rows of
    the log, or what was evaluated beside the pump."""

    results: list[ResultEvent] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    rows: int = 0
    came: dict[str, tuple[int, int]] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    ticks: int = 0
    evaluate_ms: float = 0.0
    total_ms: float = 0.0
    committed: bool = False

    def count(self, stream: str, rows: int, items: int) -> None:
        before = self.came.get(stream, (0, 0))
        self.came[stream] = before[0] + rows, before[1] + items


@dataclass(frozen=True, slots=True)
class Limits:
    """`ticks` per job; `rows` of a result that are logged; `backlog_ms` of a paused query's input that are kept; `tail` items, of
    `tail_bytes` together, of each stream; what an `evaluation` may use. A batch is committed after `commit` evaluations, and waits
    `patience_ms` for one query. `paths` is how closures of paths are found where a query does not say it."""

    ticks: int = 512
    rows: int = 500_000
    backlog_ms: int = 3_600_000
    tail: int = 1_000
    tail_bytes: int = 8 << 20
    evaluation: EvaluationLimits = UNLIMITED
    commit: int = 2_000
    patience_ms: int = 2_000
    paths: Way | None = None


def segments(table: pa.Table, idle: Collection[str], cuts: Collection[int] = ()) -> Iterator[tuple[pa.Table, Control | None]]:
    """Cut rows (in order) into segments, each with the barrier that it begins with. `idle` are the streams that are idle before it, `cuts`
    further positions before which to cut."""
    found = controls(table)
    barriers = {control.position: control for control in found if control.kind in BARRIERS}
    cuts = sorted(barriers.keys() | set(_returns(table, found, idle)) | set(cuts))
    bounds = [0, *np.searchsorted(table["position"].to_numpy(), cuts).tolist(), table.num_rows]
    for cut, begin, end in zip([-1, *cuts], bounds, bounds[1:], strict=False):
        if end > begin:
            yield table.slice(begin, end - begin), barriers.get(cut)


def _returns(table: pa.Table, found: Sequence[Control], idle: Collection[str]) -> Iterator[int]:
    """Positions of the records with which idle streams come back."""
    asleep = {stream: [0] for stream in idle}
    for control in found:
        if control.kind is Kind.IDLE:
            asleep.setdefault(control.stream, []).append(control.position)
    if not asleep:
        return
    awake = table.filter(pc.or_(pc.equal(table["record"], int(Kind.EVENT)), pc.equal(table["record"], int(Kind.MARK))))
    for stream, since in asleep.items():
        positions = awake.filter(pc.equal(awake["stream"], stream))["position"].to_numpy()
        places = np.searchsorted(positions, since, side="right")
        yield from {int(positions[place]) for place in places if place < len(positions)}


def sound_items(rows: pa.Table) -> tuple[pa.Table, list[int]]:
    """The rows of items that can be taken in, and the positions of the others, which no push brings any more."""
    ends, latest = pc.min_max(rows["t"]).as_py(), pc.max(rows["watermark"]).as_py()
    if not rows.num_rows or not rows["t"].null_count and is_moment(ends["min"]) and is_moment(ends["max"]) and (latest or 0) <= LATEST_MS:
        return rows, []
    within = pc.and_(pc.greater_equal(rows["t"], EARLIEST_MS), pc.less_equal(rows["t"], LATEST_MS))
    within = pc.fill_null(pc.and_(within, pc.less_equal(pc.fill_null(rows["watermark"], 0), LATEST_MS)), False)
    return rows.filter(within), pc.unique(rows.filter(pc.invert(within))["position"]).to_pylist()


def sound_watermark(watermark: int | None) -> int | None:
    """The watermark itself; ValueError where it is not a time."""
    if watermark is not None and watermark > MIN and not is_moment(watermark):
        raise ValueError(BEYOND)
    return watermark


def check_storable(values: Iterable[object]) -> None:
    """Raise ValueError where SQLite cannot hold one of them."""
    for value in values:
        if isinstance(value, str):
            value.encode()      # UnicodeEncodeError, a ValueError, for half a character
        elif isinstance(value, bool) or not (value is None or isinstance(value, int) and -(1 << 63) <= value < 1 << 63):
            raise ValueError(f"{str(value)[:100]} cannot be stored")

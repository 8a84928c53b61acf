"""What goes into a batch of the pump and what comes out of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from engine.execution.due import Answer, Due, ProgramPosition
from engine.ir.rules import RuleSet
from engine.ir.statement import Statement
from engine.limits import UNLIMITED, EvaluationLimits
from engine.runtime.query import Compiled
from engine.runtime.resources import Notice, ResultEvent

Compile = Callable[[Statement, str, Mapping[str, pa.Table], Mapping[str, RuleSet]], Compiled]
History = Callable[[Mapping[str, int], int], Iterable[pa.Table]]


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


class BesideExecutor(Protocol):
    """What evaluates beside the pump (lane.py); any number of threads, a query in one of them at a time."""

    def evaluate(self, due: Due, given_up: Callable[[], bool]) -> tuple[list[Answer], float]:
        """The answers, and how many ms they took without what it waited for its turn; nothing is begun once it is `given_up`."""


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
    """What a batch brought: the results logged, what listeners should know, and how long each phase took. `committed`: there was
    something, rows of the log or what was evaluated beside them."""

    results: list[ResultEvent] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    rows: int = 0
    rows_by_stream: dict[str, int] = field(default_factory=dict)
    items_by_stream: dict[str, int] = field(default_factory=dict)
    ticks: int = 0
    evaluate_ms: float = 0.0
    total_ms: float = 0.0
    committed: bool = False

    def count(self, stream: str, rows: int, items: int) -> None:
        """Note items that came into a stream, and their rows."""
        self.rows_by_stream[stream] = self.rows_by_stream.get(stream, 0) + rows
        self.items_by_stream[stream] = self.items_by_stream.get(stream, 0) + items


@dataclass(frozen=True, slots=True)
class Limits:
    """`ticks` per job, `rows` of a result that are logged, how much time of a paused query's backlog is kept, how many items and bytes of
    each stream's tail, what an `evaluation` may use, after how many evaluations a batch is committed (`commit`), and how long a batch waits
    for one query (`patience_ms`)."""

    ticks: int = 512
    rows: int = 250_000
    backlog_ms: int = 3_600_000
    tail: int = 1_000
    tail_bytes: int = 8 << 20
    evaluation: EvaluationLimits = UNLIMITED
    commit: int = 2_000
    patience_ms: int = 2_000

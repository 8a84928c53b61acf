"""A plan that is ready to be run: what writes its text, the tables that it reads, and what is to be made before it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import pyarrow as pa

from engine.execution.due import Due
from engine.execution.kept import KeptClosures
from engine.functions.typed import ANY_KIND, Kinds
from engine.plan.shape import Shape
from engine.sql.closing import Closing
from engine.sql.closure import Rounds
from engine.sql.sources import Evaluation
from engine.worker.bundles import Found
from engine.worker.kept import KeptStep
from engine.worker.staged_task import StagedStep
from engine.worker.timed_task import TimedStep

ExecutorName = Literal["local", "sql"]
BUILDING = 4    # so many times as long others wait where what is kept is made: the evaluations after it are quick


@dataclass(slots=True)
class PlanJob:
    """A plan as it is run once, in a job of its own or together with others in one: `write` gives its text, `answer` is there when it was.
    A program with a time of its own has a `step` in place of a text. Its `closures` are kept, or made for it alone (None). Those of one
    `shape` can be evaluated together, with typed columns where they are `typed`. Its windows have objects of these `kinds` only. Its `own`
    tables are of this evaluation, those of `constants` are the same in each. What is kept for it `begins` with this evaluation."""

    due: Due
    evaluation: Evaluation
    executor: ExecutorName
    write: Callable[[], str]
    tables: frozenset[str]
    cost: int
    closures: KeptClosures | None = None
    own: Mapping[str, pa.Table] = field(default_factory=dict)
    constants: Mapping[str, pa.Table] = field(default_factory=dict)
    rounds: tuple[tuple[Rounds, str, str], ...] = ()
    closings: tuple[Closing, ...] = ()
    ahead: bool = False     # the closures are made in one job before the plan's own
    step: TimedStep | StagedStep | None = None
    kept: tuple[KeptStep, ...] = ()
    shape: Shape | None = None
    typed: bool = True
    kinds: Kinds = ANY_KIND
    begins: bool = False
    answer: Found | BaseException | None = field(default=None)

    @property
    def patience_ms(self) -> int | None:
        """How long others wait for it, as in Due."""
        return self.due.patience_ms * (BUILDING if self.begins else 1) if self.due.patience_ms is not None else None

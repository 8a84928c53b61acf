"""A plan that is ready to be run: what writes its text, the tables that it reads, and what is to be made before it; what runs it, as a task
or as Spark SQL; and how it ran, and why so, as EXPLAIN and /stats tell.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

import pyarrow as pa

from engine.execution.compiled import Form
from engine.execution.due import Due
from engine.execution.kept import KeptClosures
from engine.functions.typed import ANY_KIND, Kinds
from engine.plan.graphs import Chosen
from engine.plan.shape import Shape
from engine.sql.closing import Closing
from engine.sql.leaves import Rounds
from engine.sql.sources import Evaluation
from engine.worker.bundles import Found, Tables, Task
from engine.worker.panes import PaneStep
from engine.worker.resident import KeptStep
from engine.worker.timed_task import StagedStep, TimedStep

ExecutorName = Literal["local", "sql"]


@dataclass(frozen=True, slots=True)
class Part:
    """What each shard evaluates of a plan, as in PlanJob: what all of them give is the table `name` to the rest."""

    name: str
    write: Callable[[], str]
    tables: frozenset[str]
    kept: tuple[KeptStep, ...]
    panes: Callable[[], tuple[PaneStep, ...]]
    given: Callable[[], Mapping[str, int]]


@dataclass(slots=True)
class PlanJob:
    """A plan as it is run once, in a job of its own or together with others in one: `write` gives its text, `given` the numbers that are
    its parameters, `panes` what it asks of panes, `answer` is there when it was. A program with a time of its own has a `step` in place
    of a text. Its `closures` are kept, or made for it alone (None). Those of one `shape` can be evaluated together, with typed columns
    where they are `typed`. Its windows have objects of these `kinds` only. Its `own` tables are of this evaluation, those of `constants`
    are the same in each. `parts` are evaluated by shards before; where it `is_part` the only one gives the answer. `by_object`: by
    table name, the IRI of the stream and the properties of which shards are brought facts by object (ValiditySource)."""

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
    panes: Callable[[], tuple[PaneStep, ...]] = tuple
    given: Callable[[], Mapping[str, int]] = dict
    shape: Shape | None = None
    typed: bool = True
    kinds: Kinds = ANY_KIND
    parts: tuple[Part, ...] = ()
    is_part: bool = False
    by_object: Mapping[str, tuple[str, frozenset[str]]] = field(default_factory=dict)
    answer: Found | BaseException | None = field(default=None)

    @property
    def all_kept(self) -> tuple[KeptStep, ...]:
        """The kept relations that it samples, in shards too."""
        return tuple({step.text.name: step for steps in (self.kept, *(part.kept for part in self.parts)) for step in steps}.values())

    @property
    def read(self) -> frozenset[str]:
        """All tables that it reads, in shards too."""
        return self.tables.union(*(part.tables for part in self.parts))


CloseAhead = Callable[[list[PlanJob]], list[list[Found | Exception]]]
"""Makes the closures of plans by tasks."""
Took = Callable[[Due, float], None]
"""Is told how many ms an evaluation took."""


class Tasks(Protocol):
    """Runs tasks, in processes that keep what is kept between them."""

    @property
    def work(self) -> Path:
        """A folder that all who run tasks see."""

    @property
    def memory(self) -> int:
        """How many bytes the database of a process may take."""

    @property
    def shards(self) -> int:
        """How many processes there are in which tables stay, each with its share of those that are shared out."""

    def run(self, tasks: Sequence[Task], tables: Tables, alive: frozenset[str] | None, *,
            may_stay: bool = False) -> list[Found | Exception]:
        """What the tasks give over named tables, or why they failed, in their order. Of what is kept only what is `alive` is kept on,
        all of it where that is None. What one worker can do alone `may_stay` in the one where tables stay."""

    def cancel(self, query: str) -> None:
        """End the tasks of a query; what runs beside it is run again. It runs no more until it is forgotten. From any thread."""

    def forget(self, query: str) -> None:
        """A query is gone."""

    def beside(self) -> Tasks:
        """What runs tasks beside these, of other threads; to cancel and forget a query is for both."""


class SqlPlans:
    """Runs plans as Spark SQL; `graph_choices` says by query how the graph problems of the last one were solved. This one stands where
    there is no Spark, and no plan is one of Spark SQL."""

    def __init__(self) -> None:
        self.graph_choices: dict[str, tuple[Chosen, ...]] = {}

    def run(self, jobs: Sequence[PlanJob], close_ahead: CloseAhead, took: Took) -> None:
        """Give each job its answer."""
        assert not jobs

    def beside(self) -> SqlPlans | None:
        """The same for other threads, with views and segments of its own."""
        return None

    def mend(self, failed: Mapping[str, str]) -> frozenset[str]:
        """Write anew the segments that failures, by query, are about; the queries that read one which was."""
        return frozenset()

    def forget(self, query: str) -> None:
        """Drop what only this query has read, as soon as nothing runs. From any thread."""

    def end(self) -> None:
        """End the threads, once they have done what they are at."""

    def close(self) -> None:
        """Drop the views."""

    def abandon(self) -> None:
        """End the threads where Spark has gone: there is nothing to drop."""


@dataclass(frozen=True, slots=True)
class Ran:
    """The plan ran in `form` on `executor` by `strategy`, for the reason `why`, over so many `rows` of windows (all of its evaluations
    together). It read the kept `relations`; its statement answered so many queries `together`, of whose time `ms` is this one's share. It
    was evaluated in so many `shards`, or whole in the shard `home` (from 1 on)."""

    executor: str
    strategy: str
    form: Form
    why: str
    rows: int
    relations: tuple[str, ...] = ()
    together: int = 1
    ms: float = 0.0
    shards: int = 1
    home: int = 1

    def to_json(self, users: Mapping[str, int]) -> dict[str, Any]:
        """The members of ``ran``; `users` says how many queries read each relation."""
        return {"why": self.why, "rows": self.rows, "ms": round(self.ms, 1), "together": self.together, "shards": self.shards,
                "shard": None if self.shards > 1 else self.home,
                "kept": [{"relation": name, "users": users.get(name, 1)} for name in self.relations]}

    def text(self, users: Mapping[str, int]) -> str:
        """The same as comments behind a plan."""
        kept = "".join(f"-- kept: {name}, read by {_counted(users.get(name, 1))}\n" for name in self.relations)
        together = f", one statement for {_counted(self.together)}" if self.together > 1 else ""
        together += f", in {self.shards} shards" if self.shards > 1 else f", in shard {self.home}" if self.home > 1 else ""
        return f"-- ran: {self.executor}, {self.strategy}: {self.why}\n-- last: {self.rows} rows in {self.ms:.1f} ms{together}\n{kept}"


def users_of(ran: Iterable[Ran]) -> Counter[str]:
    """How many queries read each kept relation."""
    return Counter(name for one in ran for name in one.relations)


def _counted(queries: int) -> str:
    return "1 query" if queries == 1 else f"{queries} queries"

"""What an executor is given: what runs the tasks of executor `local`, and what runs plans as Spark SQL, where there is a Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from engine.execution.due import Due
from engine.execution.plan_job import PlanJob
from engine.plan.graphs import Chosen
from engine.worker.bundles import Found, Tables, Task

CloseAhead = Callable[[list[PlanJob]], list[list[Found | Exception]]]
"""Makes the closures of plans by tasks."""
Took = Callable[[Due, float], None]
"""Is told how many ms an evaluation took."""


class Tasks(Protocol):
    """Runs tasks, in processes that keep what is kept between them."""

    @property
    def work(self) -> Path:
        """A folder that all who run tasks see."""

    def run(self, tasks: Sequence[Task], tables: Tables, alive: frozenset[str] | None) -> list[Found | Exception]:
        """What the tasks give over named tables, or why they failed, in their order. Of what is kept only what is `alive` is kept on,
        all of it where that is None."""

    def cancel(self, query: str) -> None:
        """End the tasks of a query; what runs beside it is run again. It runs no more until it is forgotten. From any thread."""

    def forget(self, query: str) -> None:
        """A query is gone."""


class SqlPlans(Protocol):
    """Runs plans as Spark SQL; `graph_choices` says by query how the graph problems of the last one were solved."""

    graph_choices: dict[str, tuple[Chosen, ...]]

    def run(self, jobs: Sequence[PlanJob], close_ahead: CloseAhead, took: Took) -> None:
        """Give each job its answer."""

    def beside(self) -> SqlPlans | None:
        """The same for other threads, with views and segments of its own."""

    def mend(self, failed: Mapping[str, str]) -> frozenset[str]:
        """Write anew the segments that failures, by query, are about; the queries that read one which was."""

    def forget(self, query: str) -> None:
        """Drop what only this query has read. From any thread."""

    def end(self) -> None:
        """End the threads, once they have done what they are at."""

    def close(self) -> None:
        """Drop the views."""

    def abandon(self) -> None:
        """End the threads where Spark has gone: there is nothing to drop."""


class WithoutSql:
    """Where there is no Spark no plan is one of Spark SQL."""

    def __init__(self) -> None:
        self.graph_choices: dict[str, tuple[Chosen, ...]] = {}

    def run(self, jobs: Sequence[PlanJob], close_ahead: CloseAhead, took: Took) -> None:
        assert not jobs

    def beside(self) -> None:
        return None

    def mend(self, failed: Mapping[str, str]) -> frozenset[str]:
        return frozenset()

    def forget(self, query: str) -> None:
        pass

    def end(self) -> None:
        pass

    def close(self) -> None:
        pass

    def abandon(self) -> None:
        pass

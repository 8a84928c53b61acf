"""The executor on Spark: tasks in Spark jobs, and plans of Spark SQL."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from engine.execution import executor
from engine.execution.executor import CLOSED_ROWS, StrategyName
from engine.execution.plan_job import ExecutorName
from engine.plan.graphs import Way
from engine.spark.jobs import Jobs
from engine.spark.sql_plans import SqlPlans

if TYPE_CHECKING:
    from engine.spark.session import Session


class Executor(executor.Executor):
    """One whose tasks and plans run on a session."""

    _tasks: Jobs
    _sql: SqlPlans

    def __init__(self, session: Session, *, force_executor: ExecutorName | None = None, force_strategy: StrategyName | None = None,
                 force_graphs: Way | None = None, closed_rows: int = CLOSED_ROWS, forgets: bool = True, states: Path | None = None) -> None:
        jobs = Jobs(session)
        super().__init__(jobs, SqlPlans(session, jobs, force_graphs), force_executor=force_executor, force_strategy=force_strategy,
                         force_graphs=force_graphs, closed_rows=closed_rows, forgets=forgets, states=states)

"""The published SPARQL suite on Spark, and what Spark runs for it: its own operators, and Python in Arrow functions only."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from pyspark.sql.classic.dataframe import DataFrame

from tests.conformance import sparql
from tests.conformance.executors import EXECUTORS
from tests.conformance.outcomes import Verdict
from tests.shared import shared

OPERATOR = re.compile(r"^[\s:+*()\d-]*([A-Z]\w+)", re.MULTILINE)
# Spark's operators that hand rows to Python.
PYTHON = re.compile("Python|Pandas|Arrow|RDDScan|MapPartitions|SerializeFromObject")
ACTIONS = ("toArrow", "count", "collect", "localCheckpoint", "toPandas", "toLocalIterator", "foreachPartition")


@contextmanager
def recorded(patch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, str]]]:
    """The action and the physical plan of all that Spark is asked to run."""
    found: list[tuple[str, str]] = []

    def recording(action: str, run: Callable[..., Any]) -> Callable[..., Any]:
        def recorded_run(frame: DataFrame, *args: Any, **options: Any) -> Any:
            found.append((action, frame._jdf.queryExecution().executedPlan().toString()))
            return run(frame, *args, **options)
        return recorded_run

    with patch.context() as patched:
        for action in ACTIONS:
            patched.setattr(DataFrame, action, recording(action, getattr(DataFrame, action)))
        yield found


@pytest.mark.spark
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("executor", "only", "least", "allowed"), [
    ("sql", " as window", 200, {"ArrowEvalPython", "FlatMapGroupsInArrow"}),    # functions of udf_spark.py; closures of paths in one task
    ("local", " as graph", 0, set()),       # the tasks of the executor `local` are an RDD, with no plan of Spark SQL
])
def test_w3c_sparql(executor: str, only: str, least: int, allowed: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    folder = shared("w3c-sparql")
    with EXECUTORS[executor]() as answer, recorded(monkeypatch) as plans:
        outcomes = list(sparql.run(folder, answer, only))
    assert [o for o in outcomes if o.verdict is not Verdict.PASSED] == []
    assert len(outcomes) >= 232 and (len(plans) >= least if least else not plans)
    python = {operator for _, plan in plans for operator in OPERATOR.findall(plan) if PYTHON.search(operator)}
    assert python - {"RDDScan"} == allowed
    called = {name for _, plan in plans for name in re.findall(r"ArrowEvalPython \[(\w+)\(", plan)}
    assert called <= {"tw_eval", "tw_test", "tw_key", "tw_agg"}
    assert {action for action, _ in plans} <= {"toArrow", "count", "localCheckpoint"}

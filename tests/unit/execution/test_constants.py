"""Constants that are too many to be written into a text are given as tables: the answers are the same."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engine import facts
from engine.execution import compiled
from engine.sql import fixpoint, leaves
from tests.bags import same_bag
from tests.case_files import Case, find_cases
from tests.treatments import Treatment, check, process, spark

CASES = [case for case in find_cases() if case.name.startswith(("owl2rl/", "rdfs/", "rules/"))]
OWN = [process(f"constants, {strategy}", strategy=strategy, batches=3) for strategy in ("recompute", "incremental")]
SQL = spark("constants, sql", executor="sql", strategy="recompute")


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No constants are written into texts, and few rows are taken at once; those that were are forgotten, before and after."""
    for module in (fixpoint, leaves):
        monkeypatch.setattr(module, "MOST_INLINE", 0)
    monkeypatch.setattr(facts, "AT_ONCE", 2)
    for _ in range(2):
        compiled._WRITTEN.clear()
        compiled._RECENT.clear()
        if _ == 0:
            yield


@pytest.mark.parametrize("treatment", OWN, ids=lambda treatment: treatment.name)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_cases_with_tables_of_constants(case: Case, treatment: Treatment, tables: None, request: pytest.FixtureRequest) -> None:
    if (reason := treatment.refusal(case)) is not None:
        pytest.skip(reason)
    check(case, treatment, request.config)


@pytest.mark.spark
@pytest.mark.parametrize("case", CASES[::5], ids=lambda case: case.name)
def test_cases_by_spark_sql(case: Case, tables: None) -> None:
    if (reason := SQL.refusal(case)) is not None:
        pytest.skip(reason)
    expected = case.expected()
    for query, logged in SQL.alone(case).items():
        assert [at for at, _ in logged] == [at for at, _ in expected[query]]
        assert all(same_bag(bag, right) for (_, bag), (_, right) in zip(logged, expected[query], strict=True))

"""Random programs over interval relations in DuckDB, in one step and in several, against the reference evaluator."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings

from engine.ir.spans import DiagnosticError
from engine.ir.strata import Unstratified
from tests.differential.temporal import Scenario, scenarios
from tests.interval_runs import assert_like_the_oracle, planned

NORMAL = settings(max_examples=100)


def check(scenario: Scenario) -> None:
    try:
        planned(scenario.program)
    except (DiagnosticError, Unstratified):
        assume(False)
    assert_like_the_oracle(scenario.program, scenario.facts, scenario.until_ms, scenario.cuts)


@NORMAL
@given(scenarios(granular=False))
def test_dense_time(scenario: Scenario) -> None:
    check(scenario)


@NORMAL
@given(scenarios(granular=True))
def test_granules(scenario: Scenario) -> None:
    check(scenario)


@pytest.mark.long
@given(scenarios(granular=False))
def test_dense_time_at_length(scenario: Scenario) -> None:
    check(scenario)


@pytest.mark.long
@given(scenarios(granular=True))
def test_granules_at_length(scenario: Scenario) -> None:
    check(scenario)

"""Random programs over interval relations in DuckDB, in one step and in several, against the reference evaluator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import fields
from typing import get_args

import pytest
from hypothesis import Phase, assume, given, settings

from engine.ir.spans import DiagnosticError
from engine.plan import intervals as plan
from tests.differential.temporal import Scenario, scenarios
from tests.interval_runs import assert_like_the_oracle, planned

pytestmark = pytest.mark.soak

# 120 programs in all, and 5,000 at length. A smaller program that fails is not looked for at length: each costs a second.
NORMAL = settings(max_examples=60)
LONG = settings(max_examples=2_500, derandomize=False, phases=[Phase.explicit, Phase.reuse, Phase.generate])
DRAWN = 200
LEAST = DRAWN // 50


def check(scenario: Scenario) -> None:
    try:
        planned(scenario.program)
    except DiagnosticError:
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
@pytest.mark.timeout(3_600)
@LONG
@given(scenarios(granular=False))
def test_dense_time_at_length(scenario: Scenario) -> None:
    check(scenario)


@pytest.mark.long
@pytest.mark.timeout(3_600)
@LONG
@given(scenarios(granular=True))
def test_granules_at_length(scenario: Scenario) -> None:
    check(scenario)


def kinds(program: plan.Program) -> set[str]:
    """What there is in a plan: nodes, and what they stand over where that is another way to be evaluated."""
    derived = {relation.name: relation.shown for relation in program.relations if relation.derivations}
    windows = {window.relation: "boxed tuples" if window.box is not None else "tuples" for window in program.windows}
    found = {"rounds"} if any(stratum.recursive for stratum in program.strata) else set()
    found |= {windows[window.relation] for window in program.windows} | {"clash" for _ in program.checks}
    for node in (node for relation in program.relations for d in relation.derivations for node in nodes(d.input)):
        found.add(type(node).__name__)
        match node:
            case plan.RunOn(guard=guard):
                found.add("RunOn alone" if guard is None else "RunOn beside another")
            case plan.Box(input=plan.Scan(relation=name)):
                found.add(f"Box of {'given' if name not in derived else 'derived' if derived[name] else 'nested'}")
            case plan.Place(late=late):
                found.add("Place late" if late else "Place ahead")
            case plan.Recall(input=plan.Scan(relation=name)):
                found.add("Recall of tuples" if name in windows else "Recall of late")
            case plan.Scan(part=part, whole=whole):
                found.add(f"Scan {part}{' whole' if whole else ''}")
    return found


def nodes(node: plan.Node) -> Iterator[plan.Node]:
    """A node and those under it."""
    yield node
    for field in fields(node):
        value = getattr(node, field.name)
        for child in value if isinstance(value, tuple) else (value,):
            if isinstance(child, plan.NODES):
                yield from nodes(child)


DENSE = {"Scan", "Clip", "Join", "RunOn", "AntiJoin", "Shift", "Box", "Filter", "Extend", plan.Values.__name__, "rounds",
         "clash", "RunOn alone", "RunOn beside another", "Box of given", "Box of derived", "Box of nested", "Scan all", "Scan new",
         "Scan round", "Scan later", "Scan new whole", "Scan round whole"}
GRANULAR = DENSE | {"At", "Recall", "Place", "LateBox", "Recall of tuples", "Recall of late", "Place late", "Place ahead", "tuples",
                    "boxed tuples"}


@pytest.mark.parametrize(("granular", "wanted"), [(False, DENSE), (True, GRANULAR)])
def test_random_programs_have_every_node(granular: bool, wanted: set[str]) -> None:
    """Each in two of a hundred at least, so that the comparison compares something."""
    drawn: Counter[str] = Counter()

    @settings(max_examples=DRAWN, derandomize=True, database=None, phases=[Phase.generate])
    @given(scenarios(granular))
    def draw(scenario: Scenario) -> None:
        try:
            drawn.update(kinds(planned(scenario.program)))
        except DiagnosticError:
            drawn["refused"] += 1

    draw()
    assert {kind: drawn[kind] for kind in sorted(wanted) if drawn[kind] < LEAST} == {}
    assert drawn["refused"] <= LEAST


def test_every_node_is_asked_for() -> None:
    assert {node.__name__ for node in get_args(plan.Node)} <= GRANULAR

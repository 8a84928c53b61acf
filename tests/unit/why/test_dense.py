"""Proofs on dense time: what holds has one whose steps are right by their definitions, what does not hold has none."""

from __future__ import annotations

from hypothesis import assume, given

from engine.functions.expressions import Context
from engine.ir.strata import Unstratified
from engine.reference.temporal import evaluate
from engine.timeline import instant
from engine.why.dense import Dense, Moment
from engine.why.trees import Budget, Stated
from tests.differential.temporal import Scenario, scenarios
from tests.timed_proofs import CELLS, Checker, some


@given(scenarios(granular=False))
def test_what_holds_is_proved_and_nothing_else(scenario: Scenario) -> None:
    given_facts = [(fact, Stated("test")) for fact in (*scenario.program.facts, *scenario.facts)]
    try:
        model = evaluate(scenario.program, scenario.facts, scenario.until_ms)
    except (Unstratified, ValueError):
        assume(False)
    checker = Checker(scenario.program, scenario.facts, model)
    search = Dense(scenario.program.rules, given_facts, instant(scenario.until_ms), Context(scenario.until_ms), Budget(10_000_000))
    for fact, held in model.facts.items():
        for point in CELLS:
            proofs = some(search, Moment(fact, point))
            if not any(point in when for when in held):
                assert not proofs
                continue
            assert proofs, f"no proof of {fact} at {point}"
            for proof in proofs:
                assert proof.fact == fact and point in proof.during     # type: ignore[union-attr,operator]
                checker.check(proof)

"""Proofs on a timeline of granules: what holds has one whose steps are right by their definitions, what does not hold has none."""

from __future__ import annotations

import pytest
from hypothesis import assume, given

from engine.functions.expressions import Context
from engine.ir.rules import Atom, BoxPlus, Fact, Rule, RuleSet
from engine.ir.strata import Unstratified
from engine.reference.granules import Granules
from engine.timeline import Interval
from engine.why.granular import Granular, Point
from engine.why.trees import Budget, Stated, TooMuchError
from tests.differential.temporal import SECOND, UNTIL, Scenario, scenarios
from tests.timed_proofs import GranuleChecker, some


@given(scenarios(granular=True))
def test_what_holds_is_proved_and_nothing_else(scenario: Scenario) -> None:
    context = Context(scenario.until_ms)
    oracle = Granules(scenario.program, scenario.facts, context)
    try:
        oracle.run(UNTIL)
    except (Unstratified, ValueError):
        assume(False)
    given_facts = [(fact, Stated("test")) for fact in (*scenario.program.facts, *scenario.facts)]
    search = Granular(scenario.program, given_facts, scenario.until_ms // SECOND, context, Budget(10_000_000))
    checker = GranuleChecker(oracle)
    for fact in {*oracle.known, *oracle.always}:
        for k in range(oracle.start, UNTIL + 5):
            proofs = some(search, Point(fact, k, UNTIL))
            if fact not in oracle.always and k not in oracle.known.get(fact, {}):
                assert not proofs
                continue
            assert proofs or oracle.known[fact][k] > UNTIL, f"no proof of {fact} at {k}"
            for proof in proofs:
                assert proof.fact == fact and k in checker._points(proof)     # type: ignore[union-attr]
                checker.check(proof, UNTIL)


@pytest.mark.parametrize("head", [Atom("q", ()), BoxPlus(Interval(0, 2 * 10**9 * SECOND), Atom("q", ()))])
@pytest.mark.parametrize("lasts", [1, 10**9])
def test_what_covers_too_many_granules_is_given_up(head: Atom | BoxPlus, lasts: int) -> None:
    """Each granule is a step, before there is anything for it in memory."""
    program = RuleSet("far", (Rule(head, (Atom("p", ()),)),), (), SECOND, 0)
    facts = [(Fact(Atom("p", ()), Interval(0, 2 * SECOND * lasts - 1)), Stated("test"))]
    if lasts == 1 and isinstance(head, Atom):
        assert Granular(program, facts, 2, Context(0), Budget(100)).during(("q", ()))
    else:
        with pytest.raises(TooMuchError):
            Granular(program, facts, 2, Context(0), Budget(100))

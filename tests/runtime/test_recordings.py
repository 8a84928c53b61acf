"""Rule programs over recorded facts: what the reference evaluator says, however many facts a step takes."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from engine.functions.terms import integer
from engine.ir.rules import Atom, Fact, RuleSet, atoms
from engine.ir.spans import DiagnosticError
from engine.ir.terms import Constant
from engine.reference.formulas import Ground, ground
from engine.reference.temporal import evaluate
from engine.runtime.programs import Derived, as_given, planned, run
from engine.timeline import ALWAYS, MAX, MIN, Interval, instant
from grammar.datalogmtl.parse import parse_datalogmtl, parse_facts
from tests.differential.temporal import Scenario, scenarios
from tests.examples import examples
from tests.interval_runs import Held, clipped, horizon
from tests.random_programs import Program, programs

FAR_MS = 60_000


def grounded(found: Derived) -> Held:
    return dict(sorted((ground(atom, {}), tuple(held)) for atom, held in found.held.items()))


def of_heads(program: RuleSet, model: Held) -> Held:
    names = {(atom.predicate, len(atom.terms)) for rule in program.rules for atom in atoms(rule.head)}
    return {atom: held for atom, held in model.items() if (atom[0], len(atom[1])) in names}


def last_ms(facts: list[Fact]) -> int:
    ends = [end for fact in facts for end in (fact.interval.lo, fact.interval.hi) if MIN < end < MAX]
    return -(-max(ends, default=0) // 2)


@examples(15, 25)
@given(programs(negation=True), st.sampled_from([1, 2, 3, 1000]))
def test_dense_time_like_the_oracle(program: Program, size: int) -> None:
    """All that follows; where that goes on for ever, up to the last end of a fact."""
    rules, facts = program
    try:
        planned(rules)
    except DiagnosticError:
        assume(False)
    found = run(rules, as_given(facts), size=size)
    until = last_ms(list(facts)) + (0 if found.cut else FAR_MS)
    to = Interval(MIN, min(instant(until), found.of.hi))
    expected = of_heads(rules, clipped(dict(evaluate(rules, facts, until).facts), to))
    assert clipped(grounded(found), to) == expected
    assert grounded(run(rules, as_given(facts), size=size + 1)) == grounded(found)


@examples(15, 25)
@given(scenarios(granular=True), st.sampled_from([1, 3, 1000]), st.booleans())
def test_granules_like_the_oracle(scenario: Scenario, size: int, far: bool) -> None:
    rules, facts = scenario.program, scenario.facts
    try:
        planned(rules)
    except DiagnosticError:
        assume(False)
    # Facts that always hold are not yet in windows of tuples.
    assume(not (planned(rules).windows and any(fact.interval == ALWAYS for fact in facts)))
    until = scenario.until_ms if far else last_ms([fact for fact in facts if fact.interval != ALWAYS])
    found = run(rules, as_given(facts), scenario.until_ms if far else None, size=size)
    model = dict(evaluate(rules, facts, until).facts) if far else dict(evaluate(rules, facts, found.of.hi // 2).facts)
    to = horizon(rules, [*rules.facts, *facts], until if far else found.of.hi // 2)
    assert clipped(grounded(found), to) == of_heads(rules, clipped(model, to))


@pytest.mark.parametrize(("program", "cut"), [
    ("A(X) :- Diamondminus[1,1]A(X)", True),
    ("A(X) :- Diamondminus[0,1]A(X)", False),                                       # holds from now on: in one step
    ("A(X) :- Diamondminus[1,1]A(X), B(X)", False),                                 # ends with B
    ("A(X) :- Diamondminus[1,1]A(X), C(X)", True),                                  # C(a) has no end
    ("A(X) :- Diamondminus[1,1]A(X), D(X)\nD(X) :- Diamondminus[0,inf)B(X)", True),
    ("A(X) :- Diamondminus[1,1]A(X), not B(X)", True),
    ("Boxplus[2,2]A(X) :- D(X)\nD(X) :- A(X), B(X)", False),
    ("A(X) :- Boxminus[0,1]B(X)\nB(X) :- A(X)", True)])
def test_whether_rules_go_on_for_ever(program: str, cut: bool) -> None:
    rules, facts = parse_datalogmtl(program, "test"), parse_facts("A(a)@1\nB(a)@[0,9)\nC(a)@[0,inf)")
    found = run(rules, as_given(facts))
    assert found.cut is cut
    until = 9_000 if cut else 30_000
    to = Interval(MIN, min(instant(until), found.of.hi))
    assert clipped(grounded(found), to) == of_heads(rules, clipped(dict(evaluate(rules, facts, until).facts), to))


def test_steps_of_any_size_give_the_short_stops() -> None:
    rules = parse_datalogmtl("S(X) :- M(X), Boxminus[1,1]T(X), Boxminus[2,2]M(X)\nE(X,Y) :- Diamondminus[0,1]M(X), T(Y)", "test")
    facts = [Fact(Atom("MT"[(n * n // 7 + k) % 3 == 0], (Constant(integer(k)),)), Interval(2000 * n, 2000 * n))
             for n in range(60) for k in range(3)]
    found: list[dict[Ground, tuple[Interval, ...]]] = [grounded(run(rules, as_given(facts), size=size)) for size in (2, 7, 50, 1000)]
    assert found[0] and all(one == found[0] for one in found)
    assert found[0] == of_heads(rules, dict(evaluate(rules, facts).facts))

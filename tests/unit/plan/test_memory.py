"""The normal form of temporal rules, and what a program must keep: the examples and theorems of Wałęga et al. (Web Semantics, 2023)."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given

from engine.ir.printer_facts import show_metric_rule
from engine.ir.rules import Atom, BoxMinus, BoxPlus, DiamondMinus, RuleSet
from engine.plan.memory import Memory, memory
from engine.reference.temporal import evaluate
from engine.rewrite.temporal import normal_form
from grammar.datalogmtl.parse import parse_datalogmtl, parse_facts
from grammar.lars.parse import parse_lars
from tests.random_programs import Program, programs

EXAMPLE_1 = """Flag(X,Z) :- Monit(X,Z), Boxminus[0,4]Diamondminus[0,2]Signal(Z)
Boxplus[0,3]Monit(X,Z) :- Flag(Y,Z), Connect(X,Y)
"""
SHORT_STOP = """Moves(X) :- NotOnMap(X)
ShortStop(X) :- Moves(X), Boxminus[1,1]Stands(X), Boxminus[2,2]Moves(X)
"""


def of(text: str) -> Memory:
    return memory(normal_form(parse_datalogmtl(text, "test")).rules)


def test_example_7_normal_form() -> None:
    normal = normal_form(parse_datalogmtl(EXAMPLE_1, "test")).rules
    assert [re.sub(r"\.[a-z]+ ", "P", show_metric_rule(rule)).replace("?.", "V") for rule in normal] == [
        "P1(V1) :- Diamondminus[0,2] Signal(V1)",
        "P2(V1) :- Boxminus[0,4] P1(V1)",
        "Flag(V1,V2) :- Monit(V1,V2), P2(V2)",
        "P3(V1,V2) :- Flag(V3,V2), Connect(V1,V3)",
        "Monit(V1,V2) :- Diamondminus[0,3] P3(V1,V2)",
    ]


@given(programs(negation=True))
def test_the_normal_form_says_the_same(program: Program) -> None:
    rules, facts = program
    normal = normal_form(rules).rules
    for rule in normal:
        assert isinstance(rule.head, Atom)
        operators = [part for part in rule.body if isinstance(part, (DiamondMinus, BoxMinus))]
        assert not operators or len(rule.body) == 1 and isinstance(operators[0].body, Atom)
    found = evaluate(RuleSet("normal", normal), facts, 9_000).facts
    assert {atom: when for atom, when in found.items() if atom[0][0] != "."} == evaluate(rules, facts, 9_000).facts


def test_heads_reach_over_the_sum_of_their_intervals() -> None:
    rule, = parse_datalogmtl("Boxplus[1,2)Boxplus(0,3]A(X) :- B(X)", "test").rules
    assert isinstance(rule.head, BoxPlus)
    assert show_metric_rule(rule) == "Boxplus(1,5) A(X) :- B(X)"


def test_example_8_derives_the_flag() -> None:
    """t_Pi is 4: from the facts of (100 - 4, 101] alone follows Flag(n, s1)@101."""
    assert of(EXAMPLE_1).window_ms == 4_000
    facts = parse_facts("Signal(s1)@98\nSignal(s1)@100\nMonit(n,s1)@101")
    rules = parse_datalogmtl(EXAMPLE_1, "test")
    held = parse_facts("P(s1)@[97,100]")        # what the algorithm has derived before
    normal = normal_form(rules).rules
    known = [fact.__class__(Atom(".diamond 1", fact.atom.terms), fact.interval) for fact in held]
    found = evaluate(RuleSet("test", normal), [*facts, *known], 101_000).facts
    assert [(i.lo, i.hi) for i in found["Flag", ('"n"', '"s1"')]] == [(202_000, 202_000)]
    assert [(i.lo, i.hi) for i in found[".diamond 1", ('"s1"',)]] == [(194_000, 202_000)]


def test_example_9_forgets_what_is_older_than_the_window() -> None:
    """At 101 the window begins at 97: Signal(s1)@96.3 goes, and nothing looks back at it without bound."""
    found = of(EXAMPLE_1)
    assert 101_000 - found.window_ms == 97_000 > 96_300
    assert found.history == ()


@pytest.mark.parametrize(("text", "window", "history", "granularity"), [
    (EXAMPLE_1, 4_000, (), 2_000),
    (SHORT_STOP, 2_000, (), 0),
    ("A(X) :- B(X)", 0, (), None),
    ("A(X) :- Diamondminus[0,inf)B(X)", 0, ("B",), None),
    ("A(X) :- Diamondminus[3,inf)B(X), Boxminus(1,2.5)C(X)", 3_000, ("B",), 1_500),
    ("Boxplus[1,inf)A(X) :- B(X)", 1_000, ("B",), None),
    ("A(X) :- Boxminus[1,inf)B(X)", 1_000, (), None),
    ("UNIT 1 h\nA(X) :- Diamondminus[0.5,2]B(X)", 7_200_000, (), 5_400_000),
])
def test_window_history_and_granularity(text: str, window: int, history: tuple[str, ...], granularity: int | None) -> None:
    found = of(text)
    assert (found.window_ms, found.history, found.granularity_ms) == (window, history, granularity)


def test_windows_around_instants_look_back() -> None:
    program = parse_lars("GRANULARITY 500 ms\nq(T) <- [3 sec] @T p(X).\nr(X) <- [2 sec] box p(X).", "test")
    found = memory(normal_form(program).rules, program.granularity_ms)
    assert found.window_ms == 3_000 and found.unbounded is not None


def test_theorem_15_bounds_programs_without_punctual_intervals() -> None:
    """Seven predicates (three of them of the normal form) of arity 2 at most, R = 5, K = 2 s, t_Pi = 4 s, gran = 2 s."""
    found = of(EXAMPLE_1)
    assert (found.rules, found.predicates, found.arity, found.least_end_ms) == (5, 7, 2, 2_000)
    objects, step = 10, 2_000
    bound = found.bound(objects, step)
    assert bound is not None and bound.facts == 9 * (2 * (4 // 2 + 2) * 5 ** ((4 + 2) // 2)) ** 2 * 7 * objects ** 2
    assert math.isclose(bound.log10, math.log10(bound.facts), rel_tol=1e-9)


def test_theorem_15_has_no_bound_where_an_interval_is_punctual() -> None:
    found = of(SHORT_STOP)
    assert not found.stream_independent and found.bound(10, 1_000) is None
    assert of("A(X) :- B(X), C(X)").bound(10, 1_000) is not None


def test_huge_bounds_are_told_by_their_magnitude() -> None:
    bound = of("A(X) :- Diamondminus[0,0.001]B(X)\nA(X) :- Diamondminus[0,86400]A(X)").bound(10, 1_000)
    assert bound is not None and bound.facts is None and 50_000_000 < bound.log10 < 60_000_000


@pytest.mark.parametrize(("text", "why"), [
    ("A(X) :- B(X), not Diamondminus[0,1]C(X)", "negation"), ("A(Z) :- Diamondminus[0,1]B(X), Z = X + 1", "make terms")])
def test_no_theorem_speaks_of_negation_and_of_new_terms(text: str, why: str) -> None:
    found = of(text)
    assert found.unbounded is not None and why in found.unbounded
    assert found.window_ms == 1_000
    assert found.bound(10, 1_000) is None

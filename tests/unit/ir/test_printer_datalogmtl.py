"""DatalogMTL printed: programs and facts read back as they were, in any unit."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from engine.ir.expressions import Call
from engine.ir.printer_facts import print_facts, show_metric_rules
from engine.ir.rules import TRIPLE, Atom, Fact, Rule, RuleSet, Test as Condition
from engine.ir.terms import RDF_TYPE, XSD, Constant, Variable, quote
from engine.runtime.programs import heads
from engine.timeline import Interval, coalesce, interval
from grammar.datalogmtl.parse import parse_datalogmtl, parse_facts
from tests.random_programs import Program, programs

X = Variable("X")
EX = "http://ex.org/"


@given(programs(negation=True))
def test_programs_read_back(program: Program) -> None:
    rules, facts = program
    written = replace(rules, facts=facts)
    assert parse_datalogmtl(show_metric_rules(written), "random") == written


@pytest.mark.parametrize("text", [
    "UNIT 1 m\nFROM STREAM <http://ex.org/s>\nFROM <http://ex.org/g>\nA(X) :- Boxminus[0,1/60000] B(X)\n",
    'A(X,Z) :- triple(X,P,"x"@en), <http://ex.org/p>(X,"Big"), <http://ex.org/C>(X), Z = X * (2 + 1) - 3, Z >= -1\n',
    "Boxplus(0.5,inf) A :- Diamondminus[0,inf) B(true,a,1,-1.5,1e3), not C\n",
])
def test_printed_texts_are_read_and_printed_the_same(text: str) -> None:
    assert show_metric_rules(parse_datalogmtl(text, "test")) == text


def test_what_the_language_does_not_have_is_not_printed() -> None:
    with pytest.raises(ValueError, match="not in this language"):
        show_metric_rules(RuleSet("x", (Rule(Atom("A", (X,)), (Atom("B", (X,)), Condition(Call("REGEX", (X, X))))),)))


TOKENS = st.one_of(
    st.sampled_from(["a", "ID0", "true", "_x", "two words", 'q"', "é", "1", "", "nan"]).map(quote),
    st.sampled_from(["1", "-1", "01", "+1"]).map(lambda text: f'"{text}"^^<{XSD}integer>'),
    st.sampled_from([f'"1.0"^^<{XSD}decimal>', f'"1."^^<{XSD}decimal>', f'"1e3"^^<{XSD}double>', f'"INF"^^<{XSD}double>',
                     f'"true"^^<{XSD}boolean>', '"chat"@fr', f'"x"^^<{EX}t>', f"<{EX}a>", "_:b1"]))
ENDS = st.one_of(st.none(), st.integers(-10 ** 7, 10 ** 7))


@st.composite
def any_facts(draw: st.DrawFn) -> Fact:
    low, high = draw(ENDS), draw(ENDS)
    if low is not None and high is not None:
        low, high = min(low, high), max(low, high)
    when = interval(low, high, closed_start=draw(st.booleans()), closed_end=draw(st.booleans())) or Interval(2 * (low or 0), 2 * (low or 0))
    terms = tuple(Constant(token) for token in draw(st.lists(TOKENS, max_size=3)))
    atom = draw(st.sampled_from([Atom("P", terms), Atom("p_1", terms), *([Atom(TRIPLE, terms)] if len(terms) == 3 else [])]))
    if draw(st.booleans()) and len(terms) == 2:
        atom = Atom(TRIPLE, (terms[0], Constant(draw(st.sampled_from([f"<{EX}p>", RDF_TYPE]))), terms[1]))
    return Fact(atom, when)


@given(st.lists(any_facts(), max_size=6), st.sampled_from([1, 7, 1_000, 1_500, 60_000, 3_600_000]))
def test_printed_facts_read_back_coalesced(facts: list[Fact], unit: int) -> None:
    text = print_facts(facts, unit)
    found = parse_facts(text, unit)
    together = {atom: coalesce(f.interval for f in facts if f.atom == atom) for atom in {f.atom for f in facts}}
    assert {atom: [f.interval for f in found if f.atom == atom] for atom in {f.atom for f in found}} == together
    assert print_facts(found, unit) == text
    assert sorted(text.splitlines(), key=lambda line: line.rpartition("@")[0]) == text.splitlines()


def test_how_facts_are_printed() -> None:
    facts = parse_facts("P(b)@[2,3]\nP(a)@[1,2)\nP(a)@[2,2.5]\nP(a)@3\nQ@(1,inf)\nP(a)@(-inf,0)\nP(10)@0.001\nP(a)@-0.5")
    assert print_facts(facts) == "P(10)@0.001\nP(a)@(-inf,0)\nP(a)@[1,2.5]\nP(a)@3\nP(b)@[2,3]\nQ@(1,inf)\n"
    assert print_facts(facts[3:4], 3_600_000) == "P(a)@1/1200\n"


def test_what_the_predicates_of_heads_are_called() -> None:
    text = f"PREFIX ex: <{EX}>\nP(X):-R(X)\nQ(X):-R(X)\nex:p(X,1):-R(X)\nex:C(X):-R(X)\ntriple(X,Y,1):-S(X,Y)"
    rules = parse_datalogmtl(text, "r")
    found = heads(rules)
    assert list(found) == [f"<{EX}C>", f"<{EX}p>", "P", "Q", TRIPLE]
    assert [found["P"], found[f"<{EX}p>"]] == [[rules.rules[0].head], [rules.rules[2].head]]
    assert [found[f"<{EX}C>"], found[TRIPLE]] == [[rules.rules[3].head], [rules.rules[4].head]]


def test_times_are_exact_in_any_unit() -> None:
    for unit in (1, 3, 1_000, 3_600_000):
        for ms in (0, 1, -1, 7, 999, 86_400_001):
            text = print_facts([Fact(Atom("A", ()), Interval(2 * ms, 2 * ms))], unit)
            assert Fraction(text.strip().rpartition("@")[2]) * unit == ms

"""LARS programs as text: what is printed reads back as the same rules; what no program says is refused."""

from __future__ import annotations

import pytest
from hypothesis import given

from engine.ir.printer_lars import show_lars
from engine.ir.rules import (TRIPLE, At, Atom, BoxPlus, DiamondMinus, Fact, Falsum, Formula, Head, Import, Negation, Rule, RuleSet, Table,
                             Test as Condition, WindowFormula)
from engine.ir.terms import Constant, Variable
from engine.timeline import Interval
from grammar.lars.parse import parse_lars
from tests.unit.ir.lars_maker import programs

P = Atom("p", (Variable("X"),))


@given(programs())
def test_what_is_printed_reads_back(rules: RuleSet) -> None:
    assert parse_lars(show_lars(rules), "test") == rules


def test_a_program_as_text() -> None:
    text = """\
FROM STREAM <http://ex.org/s>
FROM <http://ex.org/g>
GRANULARITY 500ms
START AT "2024-05-01T00:00:00Z"
@5 p("a").
@T steam(V) <- [10s] @T temp(V), V >= 100, Z = (V + 1) * 2 - -3, not [4 #] diamond ok(Z).
<http://ex.org/Hot>(X) <- [0s] box <http://ex.org/state>(X, "hot"@en), triple(X, ?y, 1).
"""
    assert show_lars(parse_lars(text, "test")) == text


@pytest.mark.parametrize(("head", "body"), [
    (Falsum(), P), (BoxPlus(Interval(0, 2000), P), P), (P, DiamondMinus(Interval(0, 3), P)), (P, DiamondMinus(Interval(2000, 4000), P)),
    (P, WindowFormula("time", 1, DiamondMinus(Interval(0, 2000), P))), (P, Negation(Negation(P))), (P, Table((), ())),
    (P, At(Variable("T"), At(Variable("T"), P))), (Atom("<urn:p>", (Constant("<urn:a>"),)), P), (Atom("a b", ()), P), (Atom("not", ()), P),
    (Atom("p", (Constant("_:b"),)), P), (Atom("p", (Variable(".1"),)), P), (P, Condition(Variable("X"))),
])
def test_what_no_program_says(head: Head, body: Formula) -> None:
    with pytest.raises(ValueError):
        show_lars(RuleSet("test", (Rule(head, (body,)),), granularity_ms=1000))


@pytest.mark.parametrize("rules", [
    RuleSet("dense", (Rule(P, (P,)),)), RuleSet("r", (Rule(P, (P,), window_ms=5),), granularity_ms=1000),
    RuleSet("r", (), (Fact(Atom(TRIPLE, (Constant("<urn:a>"),) * 3), Interval(0, 5)),), 1000),
    RuleSet("r", (Rule(P, (P,)),), granularity_ms=1000, imports=(Import("urn:r"),)),
])
def test_what_no_text_says(rules: RuleSet) -> None:
    with pytest.raises(ValueError):
        show_lars(rules)

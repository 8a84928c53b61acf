"""Plans over interval relations: their text, strata, and what is refused."""

from __future__ import annotations

import pytest

from engine.ir.rules import At, Atom, BoxMinus, DiamondMinus, Formula, Head, Negation, Rule, RuleSet, WindowFormula
from engine.ir.spans import DiagnosticError, Span
from engine.ir.terms import Variable
from engine.plan.explain import explain_program as explain
from engine.timeline import operator
from tests.interval_runs import planned

X, Y = Variable("x"), Variable("y")


def p(name: str = "p", term: Variable = X) -> Atom:
    return Atom(name, (term,))


def test_a_plan_tells_what_is_one() -> None:
    rules = tuple(Rule(p(name), (DiamondMinus(operator(0, 5), p()),)) for name in ("q", "r"))
    assert "  r/1 (as q/1: one table has both)\n" in explain(planned(RuleSet("", rules)))


def test_a_plan_as_text() -> None:
    rules = (Rule(p("q"), (DiamondMinus(operator(0, 5), p()), p("r"))), Rule(p("s"), (p("q"), Negation(p("n")))))
    assert explain(planned(RuleSet("", rules))) == """\
stratum 1
  p/1 (input)
stratum 2
  .diamond 1/1
    (?.1) <-
      Shift [0s,5ms]
        Scan(new) p/1 (?.1)
stratum 3
  r/1 (input)
stratum 4
  q/1
    (?.1) <-
      Join
        Scan(new) .diamond 1/1 (?.1)
        Scan(all) r/1 (?.1)
    (?.1) <-
      Join
        Scan(new) r/1 (?.1)
        Scan(all) .diamond 1/1 (?.1)
stratum 5
  n/1 (input)
stratum 6
  s/1
    (?.1) <-
      AntiJoin
        Clip
          Scan(all) q/1 (?.1)
        Scan(all) n/1 (?.1)
"""


def test_equal_rules_and_operators_are_one() -> None:
    ten = tuple(Rule(p("q", v), (DiamondMinus(operator(0, 5), p("p", v)), p("r", v))) for v in map(Variable, "abcdefghij"))
    one = explain(planned(RuleSet("", ten[:1])))
    assert explain(planned(RuleSet("", ten))) == one
    other = Rule(p("s"), (BoxMinus(operator(0, 1), DiamondMinus(operator(0, 5), p())), p("r")))
    assert explain(planned(RuleSet("", (*ten, other)))).count("Shift") == 1


def test_recursion_takes_rounds_and_nothing_else_does() -> None:
    rules = (Rule(p("q"), (p(), p("r"))), Rule(p("r"), (DiamondMinus(operator(1, 1), p("q")),)), Rule(p("s"), (p("q"),)))
    recursive = [[r.name for r in s.relations] for s in planned(RuleSet("", rules)).strata if s.recursive]
    assert recursive == [["q/1", "r/1"]]


@pytest.mark.parametrize(("head", "part", "granularity"), [
    (p("q"), WindowFormula("tuple", 3, BoxMinus(operator(1, 2), p())), 1),
    (p("q"), DiamondMinus(operator(0, 1), Negation(p("r"))), 1),
    (p("q"), DiamondMinus(operator(1, 1), p()), 1_000), (At(Variable("x"), p("q")), p(), 0)])
def test_what_no_plan_evaluates_is_refused_at_its_line(head: Head, part: Formula, granularity: int) -> None:
    text = "one\ntwo\nthree"
    rules = Rule(p("s"), (p(),), span=Span(text, 0, 3)), Rule(head, (part,), span=Span(text, 4, 7))
    with pytest.raises(DiagnosticError) as refused:
        planned(RuleSet("", rules, granularity_ms=granularity))
    found = refused.value.diagnostics[0]
    assert (found.code, found.span and found.span.line) == ("unsupported-in-streaming", 2), found


def test_what_no_plan_evaluates_is_refused() -> None:
    with pytest.raises(DiagnosticError, match=r"nothing binds"):
        planned(RuleSet("", (Rule(p("q", Y), (p(),)),)))
    with pytest.raises(DiagnosticError, match="inside an operator"):
        planned(RuleSet("", (Rule(p("q"), (p(), DiamondMinus(operator(0, 1), Negation(p("r"))))),)))
    with pytest.raises(DiagnosticError, match="cannot be stratified"):
        planned(RuleSet("", (Rule(p("q"), (p(), Negation(p("s")))), Rule(p("s"), (p("q"),)))))

"""The normal form of rules over intervals: one operator, one conjunction, one negation a rule; equal ones are shared."""

from __future__ import annotations

import doctest

import pytest

from engine.ir import strata
from engine.ir.notation import show_rule
from engine.ir.printer import show_group
from engine.ir.rules import (At, Atom, BoxMinus, BoxPlus, DiamondMinus, Falsum, Formula, Head, Negation, Rule, RuleSet, WindowFormula,
                             is_auxiliary)
from engine.ir.spans import DiagnosticError
from engine.ir.terms import Constant, Variable
from engine.rewrite import temporal
from engine.rewrite.temporal import normal_form
from engine.timeline import MAX, Interval, operator

X, Y, T = Variable("x"), Variable("y"), Variable("t")


def p(name: str = "p", term: Variable | Constant = X) -> Atom:
    return Atom(name, (term,))


def shown(*rules: Rule, granularity: int = 0) -> list[str]:
    made = normal_form(RuleSet("", rules, granularity_ms=granularity))
    return [show_rule(rule, show_group) for rule in made.rules]


def test_what_is_nested_gets_predicates_of_its_own() -> None:
    ago: Formula = DiamondMinus(operator(0, 5), BoxMinus(operator(1, 2), p()))
    assert shown(Rule(BoxPlus(operator(1, 1), p("q")), (ago, p("r", Y), Negation(p("n"))))) == [
        ".box 3(?.1) <- box-minus[1ms,2ms] p(?.1) .",
        ".diamond 4(?.1) <- diamond-minus[0s,5ms] .box 3(?.1) .",
        ".held 2(?.1) <- .diamond 4(?.1), r(?.2) .",
        ".head 1(?.1) <- .held 2(?.1), not n(?.1) .",
        "q(?.1) <- diamond-minus[1ms,1ms] .head 1(?.1) ."]


def test_equal_rules_and_formulas_are_one() -> None:
    def rule(name: str, variable: Variable) -> Rule:
        return Rule(p(name, variable), (DiamondMinus(operator(0, 5), p("p", variable)), p("r", variable)), name=variable.name)

    assert len(shown(*(rule("q", Variable(name)) for name in "abcdefghij"))) == 2
    assert len(shown(rule("q", X), rule("s", Y))) == 3


def test_windows_of_time_become_distances() -> None:
    window = WindowFormula("time", 3, DiamondMinus(Interval(0, MAX), p()))
    assert shown(Rule(p("q"), (window,)), granularity=1000) == ["q(?.1) <- diamond-minus[0s,3s] p(?.1) ."]


def test_heads_of_any_form() -> None:
    head: Head = At(T, p("q"))
    assert [is_auxiliary(rule.split("(")[0]) for rule in shown(Rule(head, (At(T, p()), p("r"))), granularity=1000)] == [True, True, False]
    made = normal_form(RuleSet("", (Rule(Falsum(), (p(), p("r")), name="clash"),)))
    assert [(name, rule.name) for name, rule in made.checks] == [(".false 1", "clash")]


@pytest.mark.parametrize("body", [
    (DiamondMinus(operator(0, 1), Negation(p())),), (WindowFormula("time", 3, BoxMinus(operator(0, 1), At(T, p()))),),
    (WindowFormula("tuple", 3, WindowFormula("time", 3, p())),)])
def test_what_has_no_normal_form_is_refused(body: tuple[Formula, ...]) -> None:
    with pytest.raises(DiagnosticError, match="cannot be evaluated"):
        normal_form(RuleSet("", (Rule(p("q"), body),), granularity_ms=1000))


def test_the_examples_of_the_modules() -> None:
    assert doctest.testmod(temporal).failed == doctest.testmod(strata).failed == 0

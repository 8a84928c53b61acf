"""Rules in DatalogMTL's notation, as MeTeoR writes it: ``A(X):-Diamondminus[0,5]B(X)`` (docs/datalogmtl.md).

What is printed reads back (grammar.datalogmtl) as it was.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from engine.ir.expressions import Call, Expression
from engine.ir.notation import Expressions, duration
from engine.ir.printer_facts import CONSTANT, NAME, show_atom, show_interval, show_term, show_when
from engine.ir.profiles import STREAM
from engine.ir.rules import Assign, Atom, BoxMinus, BoxPlus, DiamondMinus, Formula, Head, Negation, Rule, RuleSet, Test
from engine.ir.terms import Constant, Variable

_OPERATORS = frozenset(("=", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "U+", "U-"))


def show_metric_rules(rules: RuleSet) -> str:
    """A rule set with its head lines, facts and rules, one a line. Raises ValueError for what the language does not have."""
    lines = [] if rules.unit_ms == 1_000 else [f"UNIT {_unit(rules.unit_ms)}"]
    lines += [f"FROM {'STREAM ' if imp.profile == STREAM else ''}<{imp.iri}>" for imp in rules.imports]
    lines += [f"{show_atom(fact.atom, NAME)}@{show_when(fact.interval, rules.unit_ms)}" for fact in rules.facts]
    lines += [show_metric_rule(rule, rules.unit_ms) for rule in rules.rules]
    return "".join(f"{line}\n" for line in lines)


def show_metric_rule(rule: Rule, unit_ms: int = 1_000) -> str:
    """One rule on one line."""
    return f"{_formula(rule.head, unit_ms)} :- {', '.join(_formula(part, unit_ms) for part in rule.body)}"


def _formula(formula: Formula | Head, unit_ms: int) -> str:
    match formula:
        case Atom():
            return show_atom(formula, CONSTANT)
        case DiamondMinus(distance=distance, body=body):
            return f"Diamondminus{show_interval(distance, unit_ms)} {_formula(body, unit_ms)}"
        case BoxMinus(distance=distance, body=body):
            return f"Boxminus{show_interval(distance, unit_ms)} {_formula(body, unit_ms)}"
        case BoxPlus(distance=distance, body=body):
            return f"Boxplus{show_interval(distance, unit_ms)} {_formula(body, unit_ms)}"
        case Negation(body=body):
            return f"not {_formula(body, unit_ms)}"
        case Test(condition=Call() as condition):
            return _expression(condition)
        case Assign(variable=variable, expression=expression):
            return f"{show_term(variable, CONSTANT)} = {_expression(expression)}"
    raise ValueError(f"not in this language: {formula}")


def _expression(expression: Expression) -> str:
    """Comparisons and arithmetic, as SPARQL writes them but for the variables."""
    if any(isinstance(part, Call) and part.function not in _OPERATORS or not isinstance(part, (Call, Variable, Constant))
           for part in _parts(expression)):
        raise ValueError(f"not in this language: {expression}")
    names = {part: show_term(part, CONSTANT) for part in _parts(expression) if isinstance(part, Variable)}
    return Expressions(lambda pattern: "", names).show(expression)


def _parts(expression: Expression) -> Iterator[Expression]:
    yield expression
    if isinstance(expression, Call):
        for argument in expression.args:
            yield from _parts(argument)


def _unit(ms: int) -> str:
    text = duration(ms)
    return re.sub(r"([0-9]+)([a-z]+)", r"\1 \2", text)

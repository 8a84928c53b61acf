"""Terms in place of variables.

>>> x, p = Variable("x"), Variable("p")
>>> with_constants(Rule(Atom("is", (x, p)), (Table((p,), ((Constant("<p>"),),)), Atom("has", (x, p))))).body[0].terms[1].token
'<p>'
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, cast

from engine.ir.expressions import Call, Expression, with_parts
from engine.ir.rules import Assign, At, Atom, Falsum, Formula, Negation, Rule, Table, Test
from engine.ir.terms import Constant, Term, Variable

Bindings = Mapping[Variable, Term]


def value(term: Term, bindings: Bindings) -> Term:
    """What a term stands for."""
    while isinstance(term, Variable) and term in bindings:
        term = bindings[term]
    return term


def replaced(formula: Formula, bindings: Bindings) -> Formula:
    """A part of a body under bindings. Raises ValueError for one that speaks of time."""
    match formula:
        case Atom() | Test():
            changed: Formula = mapped(formula, lambda term: value(term, bindings))
            return changed
        case Negation(body=body):
            return Negation(replaced(body, bindings))
        case Assign(variable=variable, expression=expression):
            named = value(variable, bindings)
            read = replaced_in(expression, bindings)
            return Assign(named, read) if isinstance(named, Variable) else Test(Call("SAMETERM", (read, named)))
    raise ValueError(f"not in a rule without time: {type(formula).__name__}")


def replaced_in(expression: Expression, bindings: Bindings) -> Expression:
    """An expression under bindings."""
    return read(expression, lambda term: value(term, bindings))


def mapped(part: Any, term: Callable[[Term], Term], expression: Callable[[Expression], Expression] | None = None) -> Any:
    """A formula or head with `term` of each of its terms, in what is computed `expression` of all of it."""
    computed = expression or (lambda whole: read(whole, term))
    match part:
        case Atom(terms=terms):
            return replace(part, terms=tuple(map(term, terms)))
        case Test(condition=condition):
            return Test(computed(condition))
        case Assign(variable=variable, expression=made):
            return Assign(cast(Variable, term(variable)), computed(made))
        case Table(variables=variables, rows=rows):
            return Table(tuple(cast(Variable, term(v)) for v in variables), rows)
        case Falsum():
            return part
        case At(instant=instant, body=body):
            return At(term(instant), mapped(body, term, expression))
    return replace(part, body=mapped(part.body, term, expression))


def read(expression: Expression, term: Callable[[Term], Term]) -> Expression:
    """An expression with `term` of each of its terms; those of EXISTS stay."""
    return term(expression) if isinstance(expression, (Variable, Constant)) else with_parts(expression, lambda part: read(part, term))


def with_constants(rule: Rule) -> Rule:
    """A rule without its table, where that is one of a single row: what it says stands in the other parts. Raises ValueError for a rule
    that speaks of time."""
    tables = [part for part in rule.body if isinstance(part, Table)]
    if len(tables) != 1 or len(tables[0].rows) != 1 or not isinstance(rule.head, Atom):
        return rule
    bindings = dict(zip(tables[0].variables, tables[0].rows[0]))
    head = replace(rule.head, terms=tuple(value(term, bindings) for term in rule.head.terms))
    return replace(rule, head=head, body=tuple(replaced(part, bindings) for part in rule.body if not isinstance(part, Table)))

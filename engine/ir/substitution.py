"""Terms in place of variables, in rules without time.

>>> from engine.ir.terms import Constant
>>> x, p = Variable("x"), Variable("p")
>>> with_constants(Rule(Atom("is", (x, p)), (Table((p,), ((Constant("<p>"),),)), Atom("has", (x, p))))).body[0].terms[1].token
'<p>'
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from engine.ir.expressions import Call, Expression
from engine.ir.rules import Assign, Atom, Formula, Negation, Rule, Table, Test
from engine.ir.terms import Term, Variable

Bindings = Mapping[Variable, Term]


def value(term: Term, bindings: Bindings) -> Term:
    """What a term stands for."""
    while isinstance(term, Variable) and term in bindings:
        term = bindings[term]
    return term


def replaced(formula: Formula, bindings: Bindings) -> Formula:
    """A part of a body under bindings. Raises ValueError for one that speaks of time."""
    match formula:
        case Atom(terms=terms):
            return replace(formula, terms=tuple(value(term, bindings) for term in terms))
        case Negation(body=body):
            return Negation(replaced(body, bindings))
        case Test(condition=condition):
            return Test(replaced_in(condition, bindings))
        case Assign(variable=variable, expression=expression):
            named = value(variable, bindings)
            read = replaced_in(expression, bindings)
            return Assign(named, read) if isinstance(named, Variable) else Test(Call("SAMETERM", (read, named)))
    raise ValueError(f"not in a rule without time: {type(formula).__name__}")


def replaced_in(expression: Expression, bindings: Bindings) -> Expression:
    """An expression under bindings."""
    match expression:
        case Variable():
            return value(expression, bindings)
        case Call(args=args):
            return replace(expression, args=tuple(replaced_in(arg, bindings) for arg in args))
    return expression


def with_constants(rule: Rule) -> Rule:
    """A rule without its table, where that is one of a single row: what it says stands in the other parts. Raises ValueError for a rule
    that speaks of time."""
    tables = [part for part in rule.body if isinstance(part, Table)]
    if len(tables) != 1 or len(tables[0].rows) != 1 or not isinstance(rule.head, Atom):
        return rule
    bindings = dict(zip(tables[0].variables, tables[0].rows[0]))
    head = replace(rule.head, terms=tuple(value(term, bindings) for term in rule.head.terms))
    return replace(rule, head=head, body=tuple(replaced(part, bindings) for part in rule.body if not isinstance(part, Table)))

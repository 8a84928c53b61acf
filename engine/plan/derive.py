"""Rules -> plans: a rule's body over what is known and what is new, once for each atom that may be new (semi-naive evaluation).

Atoms of all predicates are rows of one relation ``s p o``: where the predicate is not a property, ``p`` is a mark that is no IRI.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from engine.ir.expressions import Call, variables_of
from engine.ir.rules import TRIPLE, Assign, Atom, Formula, Negation, Rule, Table, Test, rule_variables
from engine.ir.terms import Constant, Term, Variable
from engine.plan import nodes
from engine.plan.nodes import ClosedSource, FreshSource, KnownSource, Plan, Scan, Source

NOTHING = Constant('""')


@dataclass(frozen=True, slots=True)
class Step:
    """One way to apply a rule: each solution of `plan` gives the row `head`."""

    rule: Rule
    plan: Plan
    head: tuple[Term, ...]


def row_of(atom: Atom) -> tuple[Term, ...]:
    """The terms of the row that stands for an atom: subject, mark or property, object, and what is beyond the second term."""
    if atom.predicate == TRIPLE:
        return atom.terms
    first, second = (*atom.terms, NOTHING, NOTHING)[:2]
    return first, Constant(f"_:{len(atom.terms)} {atom.predicate}"), second, *atom.terms[2:]


def width(rules: Sequence[Rule]) -> int:
    """How many terms beyond the third some atom has."""
    formulas = [f.body if isinstance(f, Negation) else f for rule in rules for f in (rule.head, *rule.body)]
    return max((len(row_of(f)) - 3 for f in formulas if isinstance(f, Atom)), default=0)


def steps(rule: Rule, closed: ClosedSource) -> Iterator[Step]:
    """The ways to apply a rule in a round: one atom of its body is new, the others are known."""
    assert isinstance(rule.head, Atom)
    for plan in bodies(rule, closed):
        yield Step(rule, plan, row_of(rule.head))


def bodies(rule: Rule, closed: ClosedSource) -> Iterator[Plan]:
    """The body with each of its atoms in turn as the new one."""
    atoms = [f for f in rule.body if isinstance(f, Atom)]
    others = [f for f in rule.body if not isinstance(f, Atom)]
    for number, atom in enumerate(atoms):
        rest = [*atoms[:number], *atoms[number + 1:], *others]
        yield _body(_scan(atom, FreshSource(closed)), rule_variables(atom), rest, KnownSource(closed))


def _body(plan: Plan, bound: frozenset[Variable], waiting: list[Formula], known: KnownSource) -> Plan:
    """Join what is left, tests as soon as their variables are bound, then what shares most variables with what is there."""
    while waiting:
        formula = max(waiting, key=lambda f: _rank(f, bound))
        waiting.remove(formula)
        match formula:
            case Atom():
                plan = nodes.Join(plan, _scan(formula, known))
            case Table(variables=variables, rows=rows):
                plan = nodes.Join(plan, nodes.Values(variables, rows))
            case Test(condition=condition):
                plan = nodes.Filter(plan, condition)
            case Assign():
                plan = _assigned(plan, formula, bound)
            case Negation(body=Atom() as body):
                plan = nodes.Minus(plan, _scan(body, known))
            case _:
                raise ValueError(f"not in a rule without time: {type(formula).__name__}")
        bound |= rule_variables(formula) | ({formula.variable} if isinstance(formula, Assign) else frozenset())
    return plan


def _rank(formula: Formula, bound: frozenset[Variable]) -> tuple[bool, bool, int]:
    match formula:
        case Test(condition=read) | Assign(expression=read):
            return variables_of(read) <= bound, True, 0
        case Negation():
            return rule_variables(formula) <= bound, False, 0
    shared = len(rule_variables(formula) & bound)
    return shared > 0, False, shared


def _scan(atom: Atom, source: Source) -> Plan:
    subject, property_, object_, *rest = row_of(atom)
    scan = Scan(source, subject, property_, object_, rest=tuple(rest))
    return nodes.Filter(scan, Call("ISIRI", (property_,))) if isinstance(property_, Variable) else scan


def _assigned(plan: Plan, formula: Assign, bound: frozenset[Variable]) -> Plan:
    """An error makes the body false, and so does another value than the one that is bound already."""
    if formula.variable not in bound:
        return nodes.Filter(nodes.Extend(plan, formula.variable, formula.expression), Call("BOUND", (formula.variable,)))
    same = Variable(f".same{formula.variable.name}")
    return nodes.Filter(nodes.Extend(plan, same, formula.expression), Call("SAMETERM", (same, formula.variable)))

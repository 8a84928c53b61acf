"""Rules and rule sets in a readable notation: ``[?x a <c>] <- diamond-minus[0s,5s] [?x <p> ?y], not q(?y) .``"""

from __future__ import annotations

from collections.abc import Callable

from engine.ir.notation import Expressions, duration, instant, interval, predicate, term
from engine.ir.patterns import Pattern
from engine.ir.rules import (TRIPLE, Assign, At, Atom, BoxMinus, BoxPlus, DiamondMinus, Fact, Falsum, Formula, Head, Negation,
                             Rule, RuleSet, Table, Test, WindowFormula)
from engine.ir.terms import RDF_TYPE, Constant, Term

ShowGroup = Callable[[Pattern], str]


def show_rule(rule: Rule, group: ShowGroup, most_rows: int | None = None) -> str:
    """One rule on one line, with its name before it and its origin behind it; of a table with more than `most_rows` rows, so many."""
    name = f"{rule.name}: " if rule.name else ""
    window = f" window {duration(rule.window_ms)}" if rule.window_ms is not None else ""
    body = ", ".join(_table(part, most_rows) if isinstance(part, Table) else show_formula(part, group) for part in rule.body)
    origin = f"  # {', '.join(rule.origin)}" if rule.origin else ""
    return f"{name}{show_formula(rule.head, group)}{f' <- {body}' if body else ''}{window} .{origin}"


def show_rule_set(rules: RuleSet, group: ShowGroup) -> str:
    """A header with the timeline, then facts, then rules, one a line."""
    granularity = f" granularity {duration(rules.granularity_ms)}" if rules.granularity_ms else ""
    start = f" start at {instant(rules.start_at_ms)}" if rules.start_at_ms is not None else ""
    lines = [f"rules {rules.name}{granularity}{start}"]
    lines += [show_fact(fact) for fact in rules.facts]
    lines += [show_rule(rule, group) for rule in rules.rules]
    return "\n".join(lines) + "\n"


def show_fact(fact: Fact) -> str:
    """A fact with the interval during which it holds, in ms: ``p(1) during [1000,2000) .``"""
    return f"{show_atom(fact.atom)} during {interval(fact.interval)} ."


def show_atom(atom: Atom) -> str:
    """``[s p o]`` for a triple, ``name(terms)`` for any other atom."""
    if atom.predicate == TRIPLE:
        subject, link, object_ = atom.terms
        return f"[{term(subject)} {predicate(link)} {term(object_)}]"
    return f"{atom.predicate}({', '.join(map(term, atom.terms))})"


def name_and_terms(atom: Atom) -> tuple[str, tuple[Term, ...]]:
    """An atom as languages of predicates write it: a triple with a known property, or class, by that as ``<p>(s, o)``, ``<C>(s)``."""
    if atom.predicate == TRIPLE:
        subject, link, object_ = atom.terms
        if link == Constant(RDF_TYPE) and isinstance(object_, Constant) and object_.token[0] == "<":
            return object_.token, (subject,)
        if isinstance(link, Constant) and link.token[0] == "<":
            return link.token, (subject, object_)
    return atom.predicate, atom.terms


def show_formula(formula: Formula | Head, group: ShowGroup) -> str:
    """A part of a body, or a head."""
    match formula:
        case Atom():
            return show_atom(formula)
        case DiamondMinus(distance=distance, body=body):
            return f"diamond-minus{interval(distance, duration)} {show_formula(body, group)}"
        case BoxMinus(distance=distance, body=body):
            return f"box-minus{interval(distance, duration)} {show_formula(body, group)}"
        case BoxPlus(distance=distance, body=body):
            return f"box-plus{interval(distance, duration)} {show_formula(body, group)}"
        case At(instant=moment, body=body):
            return f"@{term(moment)} {show_formula(body, group)}"
        case WindowFormula(unit=unit, size=size, body=body):
            return f"window[{size} {'granules' if unit == 'time' else 'tuples'}] {show_formula(body, group)}"
        case Negation(body=body):
            return f"not {show_formula(body, group)}"
        case Test(condition=condition):
            return Expressions(group).show(condition)
        case Assign(variable=variable, expression=expression):
            return f"{term(variable)} := {Expressions(group).show(expression)}"
        case Table():
            return _table(formula, None)
        case Falsum():
            return "false"


def _table(table: Table, most_rows: int | None) -> str:
    listed = [f"({' '.join(map(term, row))})" for row in table.rows[:most_rows]]
    more = [f"... {len(table.rows)} in all"] if len(listed) < len(table.rows) else []
    return f"({' '.join(map(term, table.variables))}) in {{{' '.join(listed + more)}}}"

"""LARS programs as texts that read back as the same rules (docs/lars.md): ``q(X) <- [10s] diamond p(X), X > 3.``"""

from __future__ import annotations

import re

from engine.ir.expressions import Call, Expression
from engine.ir.notation import NUMBERS, arithmetic, bare, duration, instant, name_and_terms
from engine.ir.rules import (SIMPLE, STREAM, TRIPLE, Assign, At, Atom, BoxMinus, DiamondMinus, Fact, Formula, Head, Import, Negation, Rule,
                             RuleSet, Test, WindowFormula)
from engine.ir.terms import Term, Variable
from engine.timeline import ALWAYS, MAX, Interval, granule

WORDS = ("not", "and", "diamond", "box")
_NAME = re.compile(r"(?![0-9])[^\s\x00-\x2f:;<=>?@\[\\\]^`{|}~]+")
_COMPARISONS, _OPERATORS = ("=", "!=", "<", ">", "<=", ">="), ("+", "-", "*", "/", "U+", "U-")
EVER = Interval(0, MAX)


class NotLars(ValueError):
    """What a rule set holds that no LARS program says."""


def show_lars(rules: RuleSet) -> str:
    """The rule set as a LARS program: sources and timeline, facts, rules, one a line. Raises NotLars."""
    if rules.granularity_ms <= 0:
        raise NotLars("dense time")
    lines = [_source(imp) for imp in rules.imports]
    lines.append(f"GRANULARITY {duration(rules.granularity_ms)}")
    if rules.start_at_ms is not None:
        lines.append(f'START AT "{instant(rules.start_at_ms)}"')
    lines += [_fact(fact, rules.granularity_ms) for fact in rules.facts]
    lines += [show_lars_rule(rule, rules.granularity_ms) for rule in rules.rules]
    return "\n".join(lines) + "\n"


def show_lars_rule(rule: Rule, granularity_ms: int) -> str:
    """One rule on one line. Raises NotLars."""
    if rule.window_ms is not None or not rule.body:
        raise NotLars("a rule with a Window of its own, or without body")
    return f"{_head(rule.head)} <- {', '.join(_formula(part, granularity_ms) for part in rule.body)}."


def _source(imp: Import) -> str:
    if imp.profile not in (STREAM, SIMPLE):
        raise NotLars(f"an import under {imp.profile}")
    return f"FROM {'STREAM ' if imp.profile == STREAM else ''}<{imp.iri}>"


def _fact(fact: Fact, granularity_ms: int) -> str:
    if fact.interval == ALWAYS:
        return f"{_atom(fact.atom)}."
    k = fact.interval.lo // (2 * granularity_ms)
    if fact.interval != granule(k, granularity_ms):
        raise NotLars("a fact that holds neither always nor during one granule")
    return f"@{k} {_atom(fact.atom)}."


def _head(head: Head) -> str:
    if not isinstance(head, (Atom, At)):
        raise NotLars(f"the head {type(head).__name__}")
    return _quantified(head)


def _formula(formula: Formula, granularity_ms: int) -> str:
    match formula:
        case Negation(body=body) if not isinstance(body, (Negation, Test, Assign)):
            return f"not {_formula(body, granularity_ms)}"
        case Test(condition=Call(function=function, args=(left, right))) if function in _COMPARISONS:
            return f"{_expression(left)} {function} {_expression(right)}"
        case Assign(variable=variable, expression=expression):
            return f"{_term(variable)} = {_expression(expression)}"
        case DiamondMinus(distance=distance, body=Atom()) | BoxMinus(distance=distance, body=Atom()) if distance != EVER:
            steps, rest = divmod(distance.hi, 2 * granularity_ms)
            if distance.lo or rest:
                raise NotLars("a distance that is no window")
            return f"[{duration(steps * granularity_ms)}] {_quantified(formula)}"
        case WindowFormula(unit="time", size=size, body=Atom() | At() as body):
            return f"[{duration(size * granularity_ms)}] {_quantified(body)}"
        case WindowFormula(unit="tuple", size=size, body=body):
            return f"[{size} #] {_quantified(body)}"
    return _quantified(formula)


def _quantified(formula: Formula) -> str:
    """An atom with at most one operator, its distance left out."""
    match formula:
        case Atom():
            return _atom(formula)
        case At(instant=moment, body=Atom() as atom):
            return f"@{_term(moment)} {_atom(atom)}"
        case DiamondMinus(body=Atom() as atom):
            return f"diamond {_atom(atom)}"
        case BoxMinus(body=Atom() as atom):
            return f"box {_atom(atom)}"
    raise NotLars(f"{type(formula).__name__} there")


def _atom(atom: Atom) -> str:
    name, terms = name_and_terms(atom)
    plain = name[0] != "<" and (_NAME.fullmatch(name) is None or name.lower() in WORDS)
    if atom.predicate != TRIPLE and (name[0] == "<" and len(terms) in (1, 2) or plain):
        raise NotLars(f"the predicate {name} of {len(terms)} arguments")
    return f"{name}({', '.join(map(_term, terms))})" if terms else name


def _term(term: Term) -> str:
    if isinstance(term, Variable):
        if _NAME.fullmatch(term.name) is None:
            raise NotLars(f"the variable {term.name}")
        return term.name if term.name[0].isupper() else f"?{term.name}"
    if term.token[0] == "_":
        raise NotLars("a blank node")
    return bare(term.token, NUMBERS)


def _expression(expression: Expression) -> str:
    shown = arithmetic(expression, _OPERATORS, _term)
    if shown is None:
        raise NotLars("an expression that is not arithmetic")
    return shown

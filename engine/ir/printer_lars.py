"""LARS programs as texts that read back as the same rules (docs/lars.md): ``q(X) <- [10s] diamond p(X), X > 3.``"""

import re

from engine.ir.expressions import Call
from engine.ir.notation import NUMBERS, arithmetic, bare, duration, instant, name_and_terms
from engine.ir.rules import (SIMPLE, STREAM, TRIPLE, Assign, At, Atom, BoxMinus, DiamondMinus, Fact, Formula, Head, Import, Negation, Rule,
                             RuleSet, Test, WindowFormula)
from engine.ir.terms import Term, Variable
from engine.timeline import ALWAYS, MAX, Interval, granule

WORDS = ("not", "and", "diamond", "box")
_NAME = re.compile(r"(?![0-9])[^\s\x00-\x2f:;<=>?@\[\\\]^`{|}~]+")
_COMPARISONS, _OPERATORS = ("=", "!=", "<", ">", "<=", ">="), ("+", "-", "*", "/", "U+", "U-")
EVER = Interval(0, MAX)


def show_lars(rules: RuleSet) -> str:
    """The rule set as a LARS program, one part a line. Raises ValueError for what the language does not have."""
    if rules.granularity_ms <= 0:
        raise ValueError("dense time")
    lines = [_source(imp) for imp in rules.imports]
    lines.append(f"GRANULARITY {duration(rules.granularity_ms)}")
    if rules.start_at_ms is not None:
        lines.append(f'START AT "{instant(rules.start_at_ms)}"')
    lines += [_fact(fact, rules.granularity_ms) for fact in rules.facts]
    lines += [show_lars_rule(rule, rules.granularity_ms) for rule in rules.rules]
    return "\n".join(lines) + "\n"


def show_lars_rule(rule: Rule, granularity_ms: int) -> str:
    """One rule on one line. Raises ValueError as above."""
    if rule.window_ms is not None or not rule.body:
        raise ValueError("a rule with a Window of its own, or without body")
    return f"{_head(rule.head)} <- {', '.join(_formula(part, granularity_ms) for part in rule.body)}."


def _source(imp: Import) -> str:
    if imp.profile not in (STREAM, SIMPLE):
        raise ValueError(f"an import under {imp.profile}")
    return f"FROM {'STREAM ' if imp.profile == STREAM else ''}<{imp.iri}>"


def _fact(fact: Fact, granularity_ms: int) -> str:
    if fact.interval == ALWAYS:
        return f"{_atom(fact.atom)}."
    k = fact.interval.lo // (2 * granularity_ms)
    if fact.interval != granule(k, granularity_ms):
        raise ValueError("a fact that holds neither always nor during one granule")
    return f"@{k} {_atom(fact.atom)}."


def _head(head: Head) -> str:
    if not isinstance(head, (Atom, At)):
        raise ValueError(f"the head {type(head).__name__}")
    return _quantified(head)


def _formula(formula: Formula, granularity_ms: int) -> str:
    match formula:
        case Negation(body=body) if not isinstance(body, (Negation, Test, Assign)):
            return f"not {_formula(body, granularity_ms)}"
        case Test(condition=Call(function=function, args=(left, right))) if function in _COMPARISONS:
            return f"{arithmetic(left, _OPERATORS, _term)} {function} {arithmetic(right, _OPERATORS, _term)}"
        case Assign(variable=variable, expression=expression):
            return f"{_term(variable)} = {arithmetic(expression, _OPERATORS, _term)}"
        case DiamondMinus(distance=distance, body=Atom()) | BoxMinus(distance=distance, body=Atom()) if distance != EVER:
            steps, rest = divmod(distance.hi, 2 * granularity_ms)
            if distance.lo or rest:
                raise ValueError("a distance that is no window")
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
    raise ValueError(f"{type(formula).__name__} there")


def _atom(atom: Atom) -> str:
    name, terms = name_and_terms(atom)
    plain = name[0] != "<" and (_NAME.fullmatch(name) is None or name.lower() in WORDS)
    if atom.predicate != TRIPLE and (name[0] == "<" and len(terms) in (1, 2) or plain):
        raise ValueError(f"the predicate {name} of {len(terms)} arguments")
    return f"{name}({', '.join(map(_term, terms))})" if terms else name


def _term(term: Term) -> str:
    if isinstance(term, Variable):
        if _NAME.fullmatch(term.name) is None:
            raise ValueError(f"the variable {term.name}")
        return term.name if term.name[0].isupper() else f"?{term.name}"
    if term.token[0] == "_":
        raise ValueError("a blank node")
    return bare(term.token, NUMBERS)

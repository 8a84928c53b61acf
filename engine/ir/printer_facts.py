"""Facts as text, one a line, and rules in DatalogMTL's notation, as MeTeoR writes it (docs/datalogmtl.md): ``A(a)@[1,2.5)``, ``B(a)@3``,
``<http://ex.org/p>(a,b)`` for a triple, ``A(X):-Diamondminus[0,5]B(X)``.

What is printed reads back (grammar.rule_sets.parse_facts, grammar.datalogmtl) as it was.
"""

import re
from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache, partial

from engine.grouping import by_key
from engine.ir.expressions import Call
from engine.ir.notation import NUMBERS, arithmetic, bare, duration, interval, name_and_terms
from engine.ir.rules import (STREAM, TRIPLE, Assign, Atom, BoxMinus, BoxPlus, DiamondMinus, Fact, Formula, Head, Negation, Rule, RuleSet,
                             Test)
from engine.ir.terms import Term, Variable
from engine.timeline import Interval, coalesce

NAME = re.compile(r"(?!(?:true|false)$)[A-Za-z]\w*", re.ASCII)
CONSTANT = re.compile(r"(?!(?:true|false)$)[a-z]\w*", re.ASCII)
"""What a string may look like that stands without quotes: in a fact; and in a rule, where upper-case names are variables."""


def print_facts(facts: Iterable[Fact], unit_ms: int = 1_000) -> str:
    """The facts, coalesced and sorted, one a line; times in units of `unit_ms`, exactly: decimals, or fractions such as 1/3."""
    held = by_key((fact.atom, fact.interval) for fact in facts)
    shown = sorted((show_atom(atom, NAME), when) for atom, intervals in held.items() for when in coalesce(intervals))
    return "".join(f"{atom}@{show_when(when, unit_ms)}\n" for atom, when in shown)


def show_atom(atom: Atom, plain: re.Pattern[str]) -> str:
    """An atom; names that fit `plain` stand for strings as they are."""
    predicate, terms = name_and_terms(atom)
    if atom.predicate != TRIPLE and predicate[0] == "<" and len(terms) in (1, 2):
        raise ValueError(f"not in this language: {predicate} of {len(terms)} arguments that is no triple")
    return f"{predicate}({','.join(show_term(term, plain) for term in terms)})" if terms else predicate


@lru_cache(maxsize=1 << 16)
def show_term(term: Term, plain: re.Pattern[str]) -> str:
    if isinstance(term, Variable):
        return term.name if term.name[0].isupper() else f"?{term.name}"
    text = term.token[1:-1]
    if term.token[0] == '"' and term.token[-1] == '"' and plain.fullmatch(text):
        return text
    return bare(term.token, NUMBERS)


def show_when(when: Interval, unit_ms: int) -> str:
    """When a fact holds: ``3``, ``[1,2.5)``, ``(-inf,inf)``."""
    return number(when.lo // 2, unit_ms) if when.lo == when.hi and not when.lo % 2 else show_interval(when, unit_ms)


def show_interval(encoded: Interval, unit_ms: int) -> str:
    return interval(encoded, lambda ms: number(ms, unit_ms)).replace("+inf", "inf")


@lru_cache(maxsize=1 << 12)
def number(ms: int, unit_ms: int) -> str:
    """A time as a decimal number of units, or as a fraction where it is none: ``1.9``, ``-2``, ``1/3``."""
    time = Fraction(ms, unit_ms)
    left, places = time.denominator, 0
    while left % 2 == 0 or left % 5 == 0:
        left, places = (left // 10 if left % 10 == 0 else left // 2 if left % 2 == 0 else left // 5), places + 1
    if left != 1:
        return f"{time.numerator}/{time.denominator}"
    digits = str(abs(int(time * 10 ** places))).rjust(places + 1, "0")
    whole, fraction = (digits[:-places], digits[-places:]) if places else (digits, "")
    return f"{'-' if ms < 0 else ''}{whole}{'.' if fraction else ''}{fraction}"


_OPERATORS = frozenset(("=", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "U+", "U-"))
_in_rule = partial(show_term, plain=CONSTANT)


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
        case DiamondMinus(distance=distance, body=body) | BoxMinus(distance=distance, body=body) | BoxPlus(distance=distance, body=body):
            return f"{type(formula).__name__.capitalize()}{show_interval(distance, unit_ms)} {_formula(body, unit_ms)}"
        case Negation(body=body):
            return f"not {_formula(body, unit_ms)}"
        case Test(condition=Call() as condition):
            return arithmetic(condition, _OPERATORS, _in_rule)
        case Assign(variable=variable, expression=expression):
            return f"{_in_rule(variable)} = {arithmetic(expression, _OPERATORS, _in_rule)}"
    raise ValueError(f"not in this language: {formula}")


def _unit(ms: int) -> str:
    text = duration(ms)
    return re.sub(r"([0-9]+)([a-z]+)", r"\1 \2", text)

"""Facts as text, one a line: ``A(a)@[1,2.5)``, ``B(a)@3``, ``<http://ex.org/p>(a,b)`` for a triple (docs/datalogmtl.md).

What is printed reads back (grammar.rule_sets.parse_facts) as it was.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable
from fractions import Fraction
from functools import lru_cache

from engine.ir.rule_printer import name_and_terms
from engine.ir.rules import TRIPLE, Atom, Fact
from engine.ir.terms import XSD, Term, Variable
from engine.timeline import MAX, MIN, Interval, coalesce

NAME = re.compile(r"(?!(?:true|false)$)[A-Za-z]\w*", re.ASCII)
CONSTANT = re.compile(r"(?!(?:true|false)$)[a-z]\w*", re.ASCII)
"""What a string may look like that stands without quotes: in a fact; and in a rule, where upper-case names are variables."""
_XSD = re.escape(XSD)
_PLAIN = re.compile(rf'"(?:([+-]?[0-9]+)"\^\^<{_XSD}integer|([+-]?[0-9]+\.[0-9]+)"\^\^<{_XSD}decimal|(true|false)"\^\^<{_XSD}boolean'
                    rf'|([+-]?[0-9]+(?:\.[0-9]+)?[eE][+-]?[0-9]+)"\^\^<{_XSD}double)>')


def print_facts(facts: Iterable[Fact], unit_ms: int = 1_000) -> str:
    """The facts, coalesced and sorted, one a line; times in units of `unit_ms`, exactly: decimals, or fractions such as 1/3."""
    held: dict[Atom, list[Interval]] = defaultdict(list)
    for fact in facts:
        held[fact.atom].append(fact.interval)
    shown = sorted((show_atom(atom, NAME), when) for atom, intervals in held.items() for when in coalesce(intervals))
    return "".join(f"{atom}@{show_when(when, unit_ms)}\n" for atom, when in shown)


def derived(facts: Iterable[Fact], predicates: Collection[str]) -> list[Fact]:
    """The facts about some predicates, each as it is written: ``P``, ``<iri>`` for the property or class of triples, ``triple`` for all."""
    return [fact for fact in facts if not _names(fact.atom).isdisjoint(predicates)]


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
    bare = _PLAIN.fullmatch(term.token)
    return next(filter(None, bare.groups())) if bare else term.token


def _names(atom: Atom) -> set[str]:
    """What an atom's predicate can be called."""
    if atom.predicate != TRIPLE:
        return {atom.predicate}
    shown = show_atom(atom, NAME)
    return {TRIPLE, shown[:shown.index(">") + 1]} if shown[0] == "<" else {TRIPLE}


def show_when(when: Interval, unit_ms: int) -> str:
    """When a fact holds: ``3``, ``[1,2.5)``, ``(-inf,inf)``."""
    return number(when.lo // 2, unit_ms) if when.lo == when.hi and not when.lo % 2 else show_interval(when, unit_ms)


def show_interval(encoded: Interval, unit_ms: int) -> str:
    low, high = encoded.lo, encoded.hi
    begin = "(-inf" if low == MIN else f"({number((low - 1) // 2, unit_ms)}" if low % 2 else f"[{number(low // 2, unit_ms)}"
    end = "inf)" if high == MAX else f"{number((high + 1) // 2, unit_ms)})" if high % 2 else f"{number(high // 2, unit_ms)}]"
    return f"{begin},{end}"


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

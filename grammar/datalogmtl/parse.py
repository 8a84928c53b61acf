"""Texts of DatalogMTL to rule sets and facts: the entrance."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType

from engine.ir.rules import Atom, Fact, Negation, Rule, RuleSet
from engine.ir.spans import Diagnostic, DiagnosticError, Span
from engine.ir.strata import unstratified
from engine.ir.terms import XSD, Constant
from engine.timeline import MAX, MIN, Interval, interval, is_moment
from grammar.datalogmtl.forward import CONSTANTS, Metric
from grammar.datalogmtl.reader import Reader
from grammar.rule_text import MAX_ERRORS, Report
from grammar.terms import literal

MEDIA = "text/x-datalogmtl"
NO_PREFIXES: Mapping[str, str] = MappingProxyType({})

_LINE = re.compile(r"[^\n]+")
_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_PREDICATE = r"[A-Za-z][A-Za-z0-9_]*(?::[A-Za-z][A-Za-z0-9_]*)?"
_INTEGER = r"-?[0-9]{1,15}"
_CONSTANTS = rf"(?:{_NAME}|{_INTEGER})(?:, ?(?:{_NAME}|{_INTEGER}))*"
_QUICK = re.compile(rf"({_PREDICATE})(?:\(({_CONSTANTS})\))?@([\[(]?[-+.,0-9inf]+[\])]?)\.?", re.ASCII)
_PUNCTUAL = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,15})?", re.ASCII)
# Names that are not what they look like: a triple needs three arguments, the others are no predicates.
_SPECIAL = frozenset(("triple", *map(str.lower, CONSTANTS), *Reader.reserved))


class GranuleReader(Reader):
    """Reads facts; the times are numbers of granules."""

    begins = "a fact such as p(a)@5"
    goes_on = "'@' or the end of the line"
    of_facts = "write when it holds: p(a)@[1,2]; rules belong to the program"
    hints = {**Reader.hints, "@": "events in a file of facts are written p(a)@1, and what holds longer p(a)@[1,2]",
             **dict.fromkeys(("<-", "\u2190", ":-"), "rules belong to the program")}

    def _fact_of(self, metric: Metric, interval: Interval | None, start: int) -> Iterator[Fact]:
        if interval is not None and is_half_open(interval):
            name = metric.span.text.partition("(")[0]
            self.report.error(f"A fact of {name} has a begin or an end only; on a timeline of granules one holds always, or has both.",
                              self.span(start), hint="write p(a)@[1,2], or p(a) for what holds always")
            return
        yield from super()._fact_of(metric, interval, start)


def is_half_open(interval: Interval) -> bool:
    """Whether it has a begin or an end only."""
    return (interval.lo == MIN) != (interval.hi == MAX)


def parse_datalogmtl(text: str, name: str) -> RuleSet:
    """The rule set `name` that a text says. Raises DiagnosticError with all that is wrong, in the order of the text."""
    report = Report(text.removeprefix("\ufeff"))
    reader = Reader(report)
    found = [*reader.clauses()]
    rules, facts = [part for part in found if isinstance(part, Rule)], [part for part in found if isinstance(part, Fact)]
    if any(isinstance(part, Negation) for rule in rules for part in rule.body):
        report.diagnostics += filter(None, [unstratified(rules)])
    report.raise_if_any()
    return RuleSet(name, tuple(rules), tuple(facts), imports=tuple(reader.imports), unit_ms=reader.unit_ms)


def parse_facts(text: str, unit_ms: int = 1_000, known: Mapping[str, str] = NO_PREFIXES, *, granules: bool = False) -> list[Fact]:
    """The facts of a text of any length, one a line, in units of `unit_ms` where it declares no other. The prefixes `known` need not be
    declared. `granules`: they are on a timeline of granules, as LARS's are. Raises DiagnosticError with at most MAX_ERRORS mistakes."""
    facts: list[Fact] = []
    found: list[Diagnostic] = []
    prefixes = dict(known)
    for start, line in _lines_of(text.removeprefix("\ufeff")):
        quick = _quick(line, unit_ms) if ":" not in line or not prefixes else None
        if quick is not None and not (granules and is_half_open(quick.interval)):
            facts.append(quick)
            continue
        reader = None
        try:
            reader = GranuleReader(Report(line)) if granules else Reader(Report(line))
            reader.prefixes, reader.unit_ms = prefixes, unit_ms
            for clause in reader.clauses():
                if isinstance(clause, Fact):
                    facts.append(clause)
                else:
                    reader.report.error("Here stand facts only, and this is a rule.", clause.span or reader.here(),
                                        hint="rules belong to the program")
            unit_ms = reader.unit_ms
            reader.report.raise_if_any()
        except DiagnosticError as error:
            found += [_moved(diagnostic, text, start) for diagnostic in error.diagnostics]
            if len(found) >= MAX_ERRORS:
                break
    if found:
        raise DiagnosticError(*found[:MAX_ERRORS])
    return facts


def _lines_of(text: str) -> Iterator[tuple[int, str]]:
    """Each line that has anything, with its place."""
    for match in _LINE.finditer(text):
        line = match[0].strip()
        if line and line[0] != "%":
            yield match.start() + match[0].index(line[0]), line


def _moved(diagnostic: Diagnostic, text: str, by: int) -> Diagnostic:
    """A diagnostic about a line as one about the text."""
    span = diagnostic.span
    return diagnostic if span is None else replace(diagnostic, span=Span(text, span.start + by, span.end + by))


def _quick(line: str, unit_ms: int) -> Fact | None:
    """The fact of a line that has only plain names, integers and a time; None where it may have more. It says what `Reader` would."""
    match = _QUICK.fullmatch(line)
    if match is None or match[1].lower() in _SPECIAL:
        return None
    when = _time(match[3], unit_ms)
    if when is None:
        return None
    terms = tuple(map(_constant, match[2].replace(" ", "").split(","))) if match[2] else ()
    return Fact(Atom(match[1], terms), when)


@lru_cache(maxsize=1 << 16)
def _constant(text: str) -> Constant:
    if text[0] in "-0123456789":
        return literal(text, f"{XSD}integer")
    return literal(text, f"{XSD}boolean") if text in ("true", "false") else literal(text)


@lru_cache(maxsize=1 << 16)
def _time(text: str, unit_ms: int) -> Interval | None:
    """When a fact holds; None where the reader has to say what is wrong."""
    if _PUNCTUAL.fullmatch(text):
        whole, _, fraction = text.partition(".")
        ms, rest = divmod(int(whole + fraction) * unit_ms, 10 ** len(fraction))
        return interval(ms, ms) if not rest and is_moment(ms) else None
    reader = Reader(Report(f"A@{text}"))
    reader.unit_ms = unit_ms
    found = list(reader.clauses())
    return found[0].interval if found and isinstance(found[0], Fact) and not reader.report.diagnostics else None

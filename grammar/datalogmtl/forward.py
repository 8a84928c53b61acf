"""From rules as written to the IR, where they are forward-propagating (Wałęga et al., Web Semantics, 2023: Definition 4).

Only diamond-minus and box-minus stand in bodies, only box-plus in heads, and neither Top nor Bottom anywhere: then what a rule derives
at a time follows from that time and those before it. Times are rational numbers of the program's unit, scaled to milliseconds exactly or
refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce

from engine.ir.notation import duration
from engine.ir.rules import Atom, BoxMinus, BoxPlus, DiamondMinus, Formula, Head, Negation, Test
from engine.ir.spans import Span
from engine.timeline import LONGEST_MS, Interval, diamond_minus, interval, is_moment
from grammar.binding import Equality
from grammar.rule_text import Report

Number = Fraction | float       # the float is infinite

_LONGEST_NUMBER, _MOST_EXPONENT = 40, 40
BOX_MINUS, BOX_PLUS, DIAMOND_MINUS, DIAMOND_PLUS = "Boxminus", "Boxplus", "Diamondminus", "Diamondplus"
CONSTANTS = ("Top", "Bottom")
_CODE = "rules-not-forward"
_NOTE = "forward-propagating rules have Diamondminus and Boxminus in bodies, Boxplus in heads, and no other operators"


@dataclass(frozen=True, slots=True)
class Range:
    """An interval as it is written."""

    low: Number
    high: Number
    closed_low: bool
    closed_high: bool
    span: Span

    @property
    def mirrored(self) -> Range:
        """What -t ranges over where t ranges over this: ``SOMETIME[-2,-1]`` is ``Diamondminus[1,2]``."""
        return Range(-self.high, -self.low, self.closed_high, self.closed_low, self.span)


def number(text: str) -> Fraction | None:
    """A number without sign; None where it is too long to be a time."""
    mantissa, _, exponent = text.lower().partition("e")
    if len(mantissa) > _LONGEST_NUMBER or len(exponent) > 3 or abs(int(exponent or 0)) > _MOST_EXPONENT:
        return None
    return Fraction(text)


def distances(written: Range, unit_ms: int, report: Report) -> Interval | None:
    """The interval of an operator; reported and None where it is none, is negative, or is of more than 1,000 years."""
    if written.low < 0:
        report.error("An operator's interval begins before 0.", written.span,
                     hint="the operators that end in minus look back, those that end in plus look ahead; both count from 0 on")
        return None
    found = _encoded(written, unit_ms, report)
    if found is not None and any(end > LONGEST_MS for end in _finite(written, unit_ms)):
        report.error("An operator reaches over more than 1,000 years.", written.span, hint="write inf for an end without bound")
        return None
    return found


def when(written: Range, unit_ms: int, report: Report) -> Interval | None:
    """When a fact holds; reported and None where it is never, or where an end is not within the years 1 to 9999."""
    found = _encoded(written, unit_ms, report)
    if found is not None and not all(is_moment(int(end)) for end in _finite(written, unit_ms)):
        report.error("A fact's time is not within the years 1 to 9999.", written.span,
                     hint="times count from 1970-01-01T00:00:00Z; write -inf and inf for ends without bound")
        return None
    return found


def _finite(written: Range, unit_ms: int) -> list[Fraction]:
    return [end * unit_ms for end in (written.low, written.high) if isinstance(end, Fraction)]


def _encoded(written: Range, unit_ms: int, report: Report) -> Interval | None:
    problem = _problem(written)
    if problem is not None:
        report.error(problem[0], written.span, hint=problem[1])
        return None
    odd = next((end for end in _finite(written, unit_ms) if end.denominator != 1), None)
    if odd is not None:
        report.error(f"{written.span.text} has an end that is no whole number of milliseconds: {odd / unit_ms} of a unit of "
                     f"{duration(unit_ms)}.", written.span, hint="times are exact to the millisecond: round it")
        return None
    low, high = (None if isinstance(end, float) else int(end * unit_ms) for end in (written.low, written.high))
    return interval(low, high, closed_start=written.closed_low, closed_end=written.closed_high)


def _problem(written: Range) -> tuple[str, str] | None:
    """What is wrong with an interval whatever the unit, and a hint."""
    if written.low == math.inf or written.high == -math.inf:
        return "This interval is empty: it lies at infinity.", "-inf stands before, inf behind: (-inf,5], [0,inf)"
    if written.low > written.high:
        return "This interval is reversed: its first end is greater than its second.", "write the smaller end first"
    if written.low == written.high and not (written.closed_low and written.closed_high):
        return "This interval is empty: its ends are equal, and not both closed.", "a single point is [t,t]"
    return None


@dataclass(frozen=True, slots=True)
class Operator:
    """A temporal operator with its interval; `name` is one of the four above, however it was written."""

    name: str
    range: Range
    span: Span


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric atom: operators, the outermost first, before an atom; or where `binary` has its place, one with Since or Until."""

    operators: tuple[Operator, ...]
    atom: Atom
    span: Span
    binary: Span | None = None


@dataclass(frozen=True, slots=True)
class Without:
    """``not`` before a metric atom."""

    body: Metric


Part = Metric | Without | Test | Equality


@dataclass(frozen=True, slots=True)
class Clause:
    """A rule as written."""

    head: Metric
    body: tuple[Part, ...]
    span: Span

    @property
    def name(self) -> str:
        return f"The rule for {self.head.atom.predicate} (line {self.span.line})"

    @property
    def binary(self) -> bool:
        """Whether Since or Until stands in it."""
        found = (part.body if isinstance(part, Without) else part for part in (self.head, *self.body))
        return any(isinstance(part, Metric) and part.binary is not None for part in found)


class Translator:
    """Brings one rule into the IR and reports why it cannot be."""

    def __init__(self, clause: Clause, unit_ms: int, report: Report) -> None:
        self.clause, self.unit_ms, self.report = clause, unit_ms, report

    def head(self) -> Head | None:
        """The head; box-plus of box-plus is one, over the sum of their intervals (Proposition 6)."""
        reaches: list[Interval | None] = []
        for operator in self._unary(self.clause.head):
            if operator.name != BOX_PLUS:
                what = ("derives that something will hold without saying when" if operator.name == DIAMOND_PLUS else
                        "derives what held before")
                self._refuse(f"{operator.span.text} in its head {what}.", operator.span,
                             "write Boxplus, or none" if operator.name == DIAMOND_PLUS else
                             "let the head say what holds from now on, and ask for the past in the body")
            reaches.append(distances(operator.range, self.unit_ms, self.report))
        known = [reach for reach in reaches if reach is not None]
        if len(known) < len(reaches):
            return None
        return BoxPlus(reduce(diamond_minus, known), self.clause.head.atom) if known else self.clause.head.atom

    def body(self) -> Iterator[Formula | Equality]:
        """The parts of the body, without those that were reported."""
        for part in self.clause.body:
            if not isinstance(part, (Metric, Without)):
                yield part
            elif (found := self._formula(part.body if isinstance(part, Without) else part)) is not None:
                yield Negation(found) if isinstance(part, Without) else found

    def _formula(self, metric: Metric) -> Formula | None:
        found: Formula | None = metric.atom
        for operator in reversed(self._unary(metric)):
            distance = distances(operator.range, self.unit_ms, self.report)
            if operator.name in (BOX_PLUS, DIAMOND_PLUS):
                self._refuse(f"{operator.span.text} in its body looks at what is yet to come.", operator.span,
                             "ask from the later point: let the rule look back with Diamondminus or Boxminus")
            if found is not None:
                found = None if distance is None else (DiamondMinus if operator.name == DIAMOND_MINUS else BoxMinus)(distance, found)
        return found

    def _unary(self, metric: Metric) -> tuple[Operator, ...]:
        """The operators of a metric atom, after a look at all else that may be wrong with it."""
        if metric.binary is not None:
            word = metric.binary.text
            ahead = word.lower() == "until"
            self._refuse(f"{word} {'looks at what is yet to come' if ahead else 'is none of its operators'}.", metric.binary,
                         None if ahead else "often Diamondminus of the one and Boxminus of the other say it")
        if metric.atom.predicate in CONSTANTS and not metric.atom.terms:
            self._refuse(f"{metric.atom.predicate} stands in no such rule.", metric.atom.span or metric.span,
                         "a rule without a condition is a fact: A@(-inf,inf)" if metric.atom.predicate == "Top" else None)
        return metric.operators

    def _refuse(self, why: str, span: Span, hint: str | None) -> None:
        self.report.error(f"{self.clause.name} is not forward-propagating: {why}", span, code=_CODE, note=_NOTE, hint=hint)

"""Times of DatalogMTL: rational numbers of the program's unit, scaled to milliseconds exactly or refused."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from engine.ir.notation import duration
from engine.ir.spans import Span
from engine.timeline import LONGEST_MS, Interval, interval, is_moment
from grammar.rule_text import Report

Number = Fraction | float       # the float is infinite

_LONGEST_NUMBER, _MOST_EXPONENT = 40, 40


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

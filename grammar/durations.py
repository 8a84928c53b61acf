"""Durations and instants of a statement's head: ``10s``, ``1m30s``, ``PT10S``, xsd:dateTime."""

import re
from dataclasses import dataclass
from fractions import Fraction

from engine.ir.notation import date_time_ms
from engine.timeline import LONGEST_MS, is_moment

UNITS = {"ms": 1, "s": 1_000, "sec": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}     # sec: imars-csparql, figure 2

_NUMBER = r"[0-9]{1,18}(?:\.[0-9]{1,9})?"
_AMOUNT = re.compile(f"({_NUMBER})([A-Za-z]*)")
_SHORT = re.compile(f"(?:{_NUMBER}[A-Za-z]+)*{_NUMBER}[A-Za-z]*")
_ISO = re.compile(r"P(?:([0-9]{1,9})D)?(?:T(?:([0-9]{1,9})H)?(?:([0-9]{1,9})M)?(?:([0-9]{1,18}(?:\.[0-9]{1,9})?)S)?)?", re.IGNORECASE)
SPELT_OUT = {"secs": "s", "second": "s", "seconds": "s", "min": "m", "mins": "m", "minute": "m", "minutes": "m", "hour": "h", "hours": "h",
             "hr": "h", "hrs": "h", "day": "d", "days": "d", "msec": "ms", "millis": "ms", "millisecond": "ms", "milliseconds": "ms"}


@dataclass(eq=False)
class DurationError(ValueError):
    """What is wrong with a duration, and how to write it."""

    message: str
    hint: str

    def __str__(self) -> str:
        return self.message


def milliseconds(written: str) -> int:
    """A duration in ms: ``10s``, ``0.5s``, ``1m30s``, ``PT10S``. Raises DurationError."""
    number, *unit = written.split()
    if unit:
        short = SPELT_OUT.get(unit[0], unit[0])
        raise DurationError(f"A duration needs a unit: {number} of what?", f"write {number}{short}, number and unit as one word")
    if _SHORT.fullmatch(written):
        total = sum((Fraction(number) * _unit(number, unit) for number, unit in _AMOUNT.findall(written)), Fraction(0))
    else:
        iso = _ISO.fullmatch(written)
        if iso is None or written[-1] in "PpTt":
            raise _not_a_duration(written)
        amounts = zip(iso.groups(), (UNITS["d"], UNITS["h"], UNITS["m"], UNITS["s"]), strict=True)
        total = sum((Fraction(amount) * unit for amount, unit in amounts if amount), Fraction(0))
    if total.denominator != 1:
        raise DurationError(f"{written} is not a whole number of milliseconds.", "use ms, such as 1500ms")
    if total > LONGEST_MS:
        raise DurationError(f"{written} is longer than 1,000 years.", "give the window a bound that it can reach, such as 1d")
    return int(total)


def amount(number: str, unit: str) -> int:
    """A number with a unit that may be spelt out, in ms: ``10 sec``, ``2 minutes``. Raises DurationError."""
    short = SPELT_OUT.get(unit.lower(), unit.lower())
    if re.fullmatch(_NUMBER, number) is None:
        raise _not_a_duration(f"{number} {unit}")
    return milliseconds(f"{number}{short}")


def instant(written: str) -> int:
    """An xsd:dateTime as ms since the epoch; without a time zone it is UTC. Raises DurationError."""
    ms = date_time_ms(written)
    if ms is None:
        raise DurationError(f"'{written}' is not an xsd:dateTime.", 'START AT "2024-05-01T00:00:00Z"')
    if not is_moment(ms):
        raise DurationError(f"'{written}' is not within the years 1 to 9999 of UTC.", 'START AT "2024-05-01T00:00:00Z"')
    return ms


def _unit(number: str, unit: str) -> int:
    if not unit:
        raise DurationError(f"A duration needs a unit: {number} of what?", f"{number}s for seconds, {number}ms for milliseconds")
    known = UNITS.get(unit.lower())
    if known is None:
        meant = SPELT_OUT.get(unit.lower())
        raise DurationError(f"Unknown unit '{unit}'.", f"write {number}{meant}" if meant else "units are ms, s, m, h, d")
    return known


def _not_a_duration(written: str) -> DurationError:
    if written[:1] in "Pp" and re.search(r"[YMyWw]", written.upper().split("T")[0][1:]):
        return DurationError(f"{written} has no fixed length.", "use days and less, such as P30D")
    return DurationError(f"Expected a duration, found '{written}'.", "10s, 500ms, 2h or PT10S")

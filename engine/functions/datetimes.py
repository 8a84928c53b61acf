"""XSD dates, times and durations: lexical forms in, canonical lexical forms out, order (XSD 1.1 part 2, section 3.3).

A `Moment` is any of dateTime, date, time, gYear...: its `instant` is seconds since 1970 (exact, proleptic Gregorian) with a
missing zone read as UTC, and `zone` its offset in minutes, None where it has none. A `Duration` is months and seconds.
"""

import math
import re
from calendar import monthrange
from datetime import date
from decimal import Decimal
from typing import NamedTuple

from engine.functions.context import ExpressionError
from engine.functions.numeric import EXACT, format_decimal
from engine.timeline import CYCLE_DAYS, EPOCH, days_from_civil

_YEAR = r"(?P<year>-?(?:[1-9][0-9]{3,17}|0[0-9]{3}))"
_MONTH = r"(?P<month>0[1-9]|1[0-2])"
_DAY = r"(?P<day>0[1-9]|[12][0-9]|3[01])"
_CLOCK = (r"(?:(?P<hour>[01][0-9]|2[0-3]):(?P<minute>[0-5][0-9]):(?P<second>[0-5][0-9](?:\.[0-9]+)?)"
          r"|(?P<midnight>24:00:00(?:\.0+)?))")
_ZONE = r"(?P<zone>Z|[+-](?:(?:0[0-9]|1[0-3]):[0-5][0-9]|14:00))?"

FORMS = {
    "dateTime": re.compile(f"{_YEAR}-{_MONTH}-{_DAY}T{_CLOCK}{_ZONE}"),
    "date": re.compile(f"{_YEAR}-{_MONTH}-{_DAY}{_ZONE}"),
    "time": re.compile(f"{_CLOCK}{_ZONE}"),
    "gYear": re.compile(f"{_YEAR}{_ZONE}"),
    "gYearMonth": re.compile(f"{_YEAR}-{_MONTH}{_ZONE}"),
    "gMonth": re.compile(f"--{_MONTH}{_ZONE}"),
    "gMonthDay": re.compile(f"--{_MONTH}-{_DAY}{_ZONE}"),
    "gDay": re.compile(f"---{_DAY}{_ZONE}"),
}

_DEFAULTS = {form: (1972, 12, 31) if form == "time" else (1972, 12, 1) if form == "gDay" else (1972, 1, 1) for form in FORMS}
FOURTEEN_HOURS = 14 * 3600
_DAY_SECONDS = 86400
_LONGEST_DURATION = 200  # characters: no calendar needs more
_DURATION = re.compile(
    r"(?P<sign>-)?P(?:(?P<years>[0-9]+)Y)?(?:(?P<months>[0-9]+)M)?(?:(?P<days>[0-9]+)D)?"
    r"(?P<clock>T(?:(?P<hours>[0-9]+)H)?(?:(?P<minutes>[0-9]+)M)?(?:(?P<seconds>[0-9]+(?:\.[0-9]+)?)S)?)?")


class Moment(NamedTuple):
    """A point or period of a calendar, by its start; missing fields are those of 1972-12-31 (as XSD compares times)."""

    instant: Decimal
    zone: int | None
    year: int
    month: int
    day: int
    hour: int
    minute: int
    second: Decimal


class Duration(NamedTuple):
    """`months` and `seconds` have one sign."""

    months: int
    seconds: Decimal


def parse_moment(form: str, lexical: str) -> Moment | None:
    """Read a lexical form of the XSD type `form` (a key of FORMS); None where it is none."""
    match = FORMS[form].fullmatch(lexical)
    if match is None:
        return None
    groups = match.groupdict()
    year, month, day = (int(groups.get(name) or default) for name, default in zip(("year", "month", "day"), _DEFAULTS[form]))
    if day > 28 and day > days_in_month(year, month):
        return None
    if groups.get("midnight") and form == "dateTime":
        year, month, day = civil(days_from_civil(year, month, day) + 1)
    hour, minute, second = groups.get("hour"), groups.get("minute"), groups.get("second")
    return moment(year, month, day, int(hour or 0), int(minute or 0), Decimal(second or 0), _zone(groups["zone"]))


def moment(year: int, month: int, day: int, hour: int, minute: int, second: Decimal, zone: int | None) -> Moment:
    """Make a moment of fields that are each in range."""
    whole = days_from_civil(year, month, day) * _DAY_SECONDS + hour * 3600 + minute * 60 - (zone or 0) * 60
    return Moment(EXACT.add(second, Decimal(whole)), zone, year, month, day, hour, minute, second)


def at_instant(instant: Decimal, zone: int | None) -> Moment:
    """The dateTime of an instant as it is written in `zone` (minutes; None: as if UTC, without zone)."""
    days, rest = divmod_day(EXACT.add(instant, Decimal((zone or 0) * 60)))
    return Moment(instant, zone, *civil(days), *_split_clock(rest))


def divmod_day(seconds: Decimal) -> tuple[int, Decimal]:
    """Whole days (rounded down) and the seconds left."""
    whole = math.floor(seconds) // _DAY_SECONDS
    return whole, EXACT.subtract(seconds, Decimal(whole * _DAY_SECONDS))


def _split_clock(seconds: Decimal) -> tuple[int, int, Decimal]:
    """Hours, minutes and seconds of less than a day."""
    whole = math.floor(seconds)
    return whole // 3600, whole // 60 % 60, EXACT.subtract(seconds, Decimal(whole // 60 * 60))


def from_ms(ms: int) -> Moment:
    """The dateTime in UTC of milliseconds since the epoch."""
    return at_instant(EXACT.scaleb(Decimal(ms), -3), 0)


def compare_moments(first: Moment, second: Moment) -> int:
    """-1, 0 or 1. One with a zone and one without compare only when more than 14 hours apart: else ExpressionError."""
    if (first.zone is None) == (second.zone is None):
        return (first.instant > second.instant) - (first.instant < second.instant)
    if EXACT.abs(EXACT.subtract(first.instant, second.instant)) <= FOURTEEN_HOURS:
        raise ExpressionError("times with and without zone, less than 14 hours apart")
    return 1 if first.instant > second.instant else -1


def format_moment(form: str, value: Moment) -> str:
    """The canonical lexical form as the XSD type `form`, in the zone that the value has."""
    sign = "-" if value.year < 0 else ""
    second = format_decimal(value.second)
    clock = f"{value.hour:02d}:{value.minute:02d}:{'0' if value.second < 10 else ''}{second}"
    day = f"{sign}{abs(value.year):04d}-{value.month:02d}-{value.day:02d}"
    text = {"dateTime": f"{day}T{clock}", "date": day, "time": clock, "gYear": f"{sign}{abs(value.year):04d}",
            "gYearMonth": day[:-3], "gMonth": f"--{value.month:02d}", "gMonthDay": f"--{value.month:02d}-{value.day:02d}",
            "gDay": f"---{value.day:02d}"}[form]
    return text + format_zone(value.zone)


def format_zone(zone: int | None) -> str:
    """``Z``, ``+hh:mm``, ``-hh:mm``, or nothing for None."""
    if zone is None:
        return ""
    if zone == 0:
        return "Z"
    return f"{'-' if zone < 0 else '+'}{abs(zone) // 60:02d}:{abs(zone) % 60:02d}"


def parse_duration(lexical: str) -> Duration | None:
    """Read a lexical form of xsd:duration; None where it is none."""
    match = _DURATION.fullmatch(lexical)
    if match is None or lexical[-1] in "PT" or len(lexical) > _LONGEST_DURATION:
        return None
    years, months, days, hours, minutes = (int(match[name] or 0) for name in ("years", "months", "days", "hours", "minutes"))
    seconds = EXACT.add(Decimal(match["seconds"] or 0), Decimal(((days * 24 + hours) * 60 + minutes) * 60))
    return Duration(-12 * years - months, EXACT.minus(seconds)) if match["sign"] else Duration(12 * years + months, seconds)


def parse_day_time(lexical: str) -> Duration | None:
    """Read a lexical form of xsd:dayTimeDuration; None where it is none."""
    date = lexical.partition("T")[0]
    return None if "Y" in date or "M" in date else parse_duration(lexical)


def parse_year_month(lexical: str) -> Duration | None:
    """Read a lexical form of xsd:yearMonthDuration; None where it is none."""
    return None if "D" in lexical or "T" in lexical else parse_duration(lexical)


def format_duration(value: Duration, months_only: bool = False) -> str:
    """The canonical lexical form of a duration (``P0M`` for no months of a yearMonthDuration, else ``PT0S``)."""
    months, seconds = abs(value.months), value.seconds.copy_abs()
    sign = "-" if value.months < 0 or value.seconds < 0 else ""
    years, months = divmod(months, 12)
    date = (f"{years}Y" if years else "") + (f"{months}M" if months else "")
    days, rest = divmod_day(seconds)
    hours, minutes, rest = _split_clock(rest)
    clock = (f"{hours}H" if hours else "") + (f"{minutes}M" if minutes else "") + (f"{format_decimal(rest)}S" if rest else "")
    text = date + (f"{days}D" if days else "") + (f"T{clock}" if clock else "")
    return f"{sign}P{text}" if text else ("P0M" if months_only else "PT0S")


def compare_durations(first: Duration, second: Duration) -> int:
    """-1, 0 or 1 by XSD's order (added to four reference dates); ExpressionError where it is indeterminate."""
    months = (first.months > second.months) - (first.months < second.months)
    seconds = (first.seconds > second.seconds) - (first.seconds < second.seconds)
    if not months or not seconds or months == seconds:
        return months or seconds
    found = {_compare_from(start, first, second) for start in ((1696, 9), (1697, 2), (1903, 3), (1903, 7))}
    if len(found) > 1:
        raise ExpressionError("durations of indeterminate order")
    return found.pop()


def _compare_from(start: tuple[int, int], first: Duration, second: Duration) -> int:
    ends = [EXACT.add(value.seconds, Decimal(_DAY_SECONDS * days_from_civil(*add_months(*start, value.months), 1)))
            for value in (first, second)]
    return (ends[0] > ends[1]) - (ends[0] < ends[1])


def add_months(year: int, month: int, months: int) -> tuple[int, int]:
    index = year * 12 + month - 1 + months
    return index // 12, index % 12 + 1


def days_in_month(year: int, month: int) -> int:
    return monthrange(2000 + year % 400, month)[1]


def civil(days: int) -> tuple[int, int, int]:
    """The inverse of days_from_civil."""
    cycles, base = divmod(days + EPOCH - 1, CYCLE_DAYS)
    found = date.fromordinal(base + 1)
    return found.year + 400 * cycles, found.month, found.day


def _zone(text: str | None) -> int | None:
    if text is None:
        return None
    if text == "Z":
        return 0
    minutes = int(text[1:3]) * 60 + int(text[4:6])
    return -minutes if text[0] == "-" else minutes

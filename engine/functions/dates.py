"""Functions on dates and times (SPARQL 1.1 section 17.4.5), on tokens."""

from __future__ import annotations

from decimal import Decimal
from functools import lru_cache

from engine.functions.datetimes import Duration, Moment, format_zone, from_ms
from engine.functions.errors import ExpressionError
from engine.functions.terms import integer, string
from engine.functions.values import Kind, decode, duration, moment, number

_WITH = {
    "year": ("dateTime", "date", "gYear", "gYearMonth"), "month": ("dateTime", "date", "gYearMonth", "gMonth", "gMonthDay"),
    "day": ("dateTime", "date", "gMonthDay", "gDay"), "hour": ("dateTime", "time"), "minute": ("dateTime", "time"),
    "second": ("dateTime", "time"),
}


@lru_cache(maxsize=1024)
def at(ms: int) -> str:
    """The xsd:dateTime, in UTC, of milliseconds since the epoch."""
    return moment("dateTime", from_ms(ms))


def _moment(token: str, field: str = "") -> Moment:
    """The value of a date or time that has this field. Raises ExpressionError where it has not."""
    value = decode(token)
    if isinstance(value.value, Moment) and (not field or value.datatype in _WITH[field]):
        return value.value
    raise ExpressionError(f"not a date or time with {field or 'zone'}")


def year(token: str) -> str:
    """YEAR."""
    return integer(_moment(token, "year").year)


def month(token: str) -> str:
    """MONTH."""
    return integer(_moment(token, "month").month)


def day(token: str) -> str:
    """DAY."""
    return integer(_moment(token, "day").day)


def hours(token: str) -> str:
    """HOURS."""
    return integer(_moment(token, "hour").hour)


def minutes(token: str) -> str:
    """MINUTES."""
    return integer(_moment(token, "minute").minute)


def seconds(token: str) -> str:
    """SECONDS: a decimal."""
    return number(Kind.DECIMAL, _moment(token, "second").second)


def timezone(token: str) -> str:
    """TIMEZONE: an xsd:dayTimeDuration. Raises ExpressionError where there is no zone."""
    zone = _moment(token).zone
    if zone is None:
        raise ExpressionError("no time zone")
    return duration("dayTimeDuration", Duration(0, Decimal(zone * 60)))


def tz(token: str) -> str:
    """TZ: the zone as it is written (``Z`` for ``+00:00`` too only where so written), "" for none."""
    value = _moment(token)
    if value.zone == 0:
        return string("Z" if token[:token.rindex('"')].endswith("Z") else token[token.rindex('"') - 6:token.rindex('"')])
    return string(format_zone(value.zone))

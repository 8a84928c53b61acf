"""Functions on dates and times (SPARQL 1.1 section 17.4.5), on tokens; and ``+ - * /`` with dates, times and durations, on values
(XPath F&O sections 8.4 and 9.7, XSD 1.1 part 2 appendix E.3.3).

SPARQL 1.1's table has no such operators; section 17.3.1 lets an implementation add them. A plain xsd:duration is taken wherever one of its
two subtypes is; a time takes durations without months.
"""

import math
import operator
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from engine.functions.context import ExpressionError
from engine.functions.datetimes import Duration, Moment, add_months, at_instant, days_in_month, divmod_day, format_zone, from_ms, moment
from engine.functions.numeric import EXACT, divide_decimals, to_double
from engine.functions.terms import Kind, Value, decode, duration, integer, moment as moment_token, number, string

_WITH = {
    "year": ("dateTime", "date", "gYear", "gYearMonth"), "month": ("dateTime", "date", "gYearMonth", "gMonth", "gMonthDay"),
    "day": ("dateTime", "date", "gMonthDay", "gDay"), "hour": ("dateTime", "time"), "minute": ("dateTime", "time"),
    "second": ("dateTime", "time"),
}


@lru_cache(maxsize=1024)
def at(ms: int) -> str:
    """The xsd:dateTime, in UTC, of milliseconds since the epoch."""
    return moment_token("dateTime", from_ms(ms))


def _moment(token: str, field: str = "") -> Moment:
    """The value of a date or time that has this field. Raises ExpressionError where it has not."""
    value = decode(token)
    if isinstance(value.value, Moment) and (not field or value.datatype in _WITH[field]):
        return value.value
    raise ExpressionError(f"not a date or time with {field or 'zone'}")


def _integer_field(name: str) -> Callable[[str], str]:
    return lambda token: integer(getattr(_moment(token, name), name))


year, month, day, hours, minutes = map(_integer_field, ("year", "month", "day", "hour", "minute"))


def seconds(token: str) -> str:
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


_DATED = ("dateTime", "date", "time")


def add(first: Value, second: Value) -> str:
    """``first + second``, one of them a duration. Raises ExpressionError."""
    if isinstance(first.value, Duration) and isinstance(second.value, Duration):
        return _sum(first, second)
    if isinstance(first.value, Duration):
        first, second = second, first
    return _moved(first, second)


def subtract(first: Value, second: Value) -> str:
    """``first - second`` of two moments of one type, two durations, or a moment and a duration. Raises ExpressionError."""
    if isinstance(second.value, Duration):
        months, seconds = second.value
        return add(first, second._replace(value=Duration(-months, EXACT.minus(seconds))))
    one, two = first.value, second.value
    if isinstance(one, Moment) and isinstance(two, Moment) and first.datatype == second.datatype and first.datatype in _DATED:
        if (one.zone is None) == (two.zone is None):
            return duration("dayTimeDuration", Duration(0, EXACT.subtract(one.instant, two.instant)))
    raise ExpressionError("cannot be subtracted")


def multiply(first: Value, second: Value) -> str:
    """A duration times a number. Raises ExpressionError."""
    if isinstance(second.value, Duration):
        first, second = second, first
    return _scaled(first, second, operator.mul)


def divide(first: Value, second: Value) -> str:
    """A duration by a number, or by one of its own type (a decimal). Raises ExpressionError."""
    if isinstance(first.value, Duration) and isinstance(second.value, Duration):
        one, two = first.value, second.value
        if not one.months and not two.months:
            return number(Kind.DECIMAL, divide_decimals(one.seconds, two.seconds))
        if not one.seconds and not two.seconds:
            return number(Kind.DECIMAL, divide_decimals(one.months, two.months))
        raise ExpressionError("these durations have no quotient")
    return _scaled(first, second, operator.truediv)


def _sum(first: Value, second: Value) -> str:
    months = first.value.months + second.value.months
    seconds = EXACT.add(first.value.seconds, second.value.seconds)
    if months * seconds < 0:
        raise ExpressionError("a duration has one sign")
    form = first.datatype if first.datatype == second.datatype else "duration"
    return duration(form, Duration(months, seconds))


def _moved(start: Value, distance: Value) -> str:
    """A moment plus a duration: first the months, the day kept within its month, then seconds."""
    if not isinstance(start.value, Moment) or start.datatype not in _DATED or not isinstance(distance.value, Duration):
        raise ExpressionError("cannot be added")
    value, (months, seconds) = start.value, distance.value
    if start.datatype == "time":
        if months:
            raise ExpressionError("a time cannot move by months")
        seconds = divmod_day(seconds)[1]
    year, month = add_months(value.year, value.month, months)
    day = min(value.day, days_in_month(year, month))
    shifted = moment(year, month, day, value.hour, value.minute, value.second, value.zone)
    return moment_token(start.datatype, at_instant(EXACT.add(shifted.instant, seconds), value.zone))


def _scaled(amount: Value, factor: Value, by: Callable[[Fraction, Fraction], Fraction]) -> str:
    """Months are rounded to whole ones, ties towards positive infinity, as F&O says; seconds to 18 fraction digits."""
    if not isinstance(amount.value, Duration) or not factor.numeric:
        raise ExpressionError("not a number")
    if amount.datatype == "duration" or not math.isfinite(to_double(factor.value)):
        raise ExpressionError("not a duration that can be scaled so")
    try:
        months = by(Fraction(amount.value.months), Fraction(factor.value))
        seconds = by(Fraction(amount.value.seconds), Fraction(factor.value))
    except ZeroDivisionError as error:
        raise ExpressionError("division by zero") from error
    whole = divide_decimals(seconds.numerator, seconds.denominator)
    return duration(amount.datatype, Duration(math.floor(months + Fraction(1, 2)), whole))

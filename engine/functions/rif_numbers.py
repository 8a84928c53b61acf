"""RIF's built-ins on numbers, booleans, dates, times and durations (RIF-DTB 2nd edition, sections 4.5, 4.6 and 4.8): XPath's functions and
operators, as SPARQL has them.

A decimal without fraction is written as the xs:integer that it is, so that the value has one token.
"""

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

from engine.functions import arithmetic, dates
from engine.functions.compare import compare_values
from engine.functions.context import ExpressionError
from engine.functions.datetimes import Duration
from engine.functions.numeric import EXACT, single
from engine.functions.rif_values import is_a, whole_number
from engine.functions.terms import Kind, Value, decode, integer, number, numeric_value, promote

HOLDS = {"equal": (0,), "not-equal": (-1, 1, None), "less-than": (-1,), "less-than-or-equal": (-1, 0), "greater-than": (1,),
         "greater-than-or-equal": (1, 0)}
"""The outcomes of a comparison (None: one is NaN) at which a predicate holds, by the end of its name."""


def whole(token: str) -> str:
    """The token of a number, as an xs:integer where it is a decimal without fraction."""
    found = decode(token)
    if found.kind is Kind.DECIMAL and found.value == found.value.to_integral_value():
        return number(Kind.INTEGER, int(found.value))
    return token


def operation(apply: Callable[[str, str], str]) -> Callable[[str, str], str]:
    """An operator of SPARQL on numbers alone."""
    def calculate(first: str, second: str) -> str:
        numeric_value(first), numeric_value(second)
        return whole(apply(first, second))
    return calculate


def integer_divide(first: str, second: str) -> str:
    """op:numeric-integer-divide: the quotient without its fraction."""
    kind, one, two = promote(numeric_value(first), numeric_value(second))
    if not two:
        raise ExpressionError("division by zero")
    if kind >= Kind.FLOAT:
        if not math.isfinite(one) or two != two:
            raise ExpressionError("no integer is infinite or not a number")
        return number(Kind.INTEGER, math.trunc(one / two))
    return number(Kind.INTEGER, _quotient(one, two))


def _quotient(one: Decimal | int, two: Decimal | int) -> int:
    """Towards zero, exactly."""
    return math.trunc(Fraction(one) / Fraction(two))


def modulo(first: str, second: str) -> str:
    """op:numeric-mod: what a division leaves, with the sign of the dividend."""
    kind, one, two = promote(numeric_value(first), numeric_value(second))
    if kind >= Kind.FLOAT:
        if not two or not math.isfinite(one) or two != two:
            return number(kind, math.nan)
        rest = math.fmod(one, two)
        return number(kind, single(rest) if kind is Kind.FLOAT else rest)
    if not two:
        raise ExpressionError("division by zero")
    quotient = _quotient(one, two)
    if kind is Kind.INTEGER:
        return number(kind, one - two * quotient)
    return whole(number(kind, EXACT.subtract(one, EXACT.multiply(two, Decimal(quotient)))))


def integer_modulo(first: str, second: str) -> str:
    """op:numeric-mod of integers."""
    for token in (first, second):
        whole_number(token)
    return modulo(first, second)


def truth(token: str) -> bool:
    """The value of a boolean argument. Raises ExpressionError."""
    found = decode(token)
    if found.kind is not Kind.BOOLEAN:
        raise ExpressionError("not a boolean")
    return bool(found.value)


_FIELDS: dict[str, Callable[[str], str]] = {
    "year": dates.year, "month": dates.month, "day": dates.day, "hours": dates.hours, "minutes": dates.minutes,
    "seconds": lambda token: whole(dates.seconds(token)), "timezone": dates.timezone}
_OF = {"dateTime": tuple(_FIELDS), "date": ("year", "month", "day", "timezone"), "time": ("hours", "minutes", "seconds", "timezone")}
_STAMP = "dateTimeStamp>"
_STAMP_END = "dateTime>"


def _checked(token: str, form: str) -> str:
    """The token of an argument of this type (a moment's, or ``dayTime``, ``yearMonth``, ``""`` for any duration)."""
    if token.endswith(_STAMP):
        token = token[:-len(_STAMP)] + _STAMP_END
    if form in _OF:
        fits = is_a(token, form)
    else:
        found = decode(token)
        fits = found.kind is Kind.DURATION and not (form == "dayTime" and found.value.months) and not (
            form == "yearMonth" and found.value.seconds)
    if not fits:
        raise ExpressionError(f"not an xs:{form or 'duration'}")
    return token


def _typed(token: str, form: str) -> Value:
    """The decoded argument; a duration as one of its subtype, so that results are of it too."""
    found = decode(_checked(token, form))
    return Value(found.kind, found.value, f"{form}Duration") if form in ("dayTime", "yearMonth") else found


def field(name: str, form: str) -> Callable[[str], str]:
    return lambda token: _FIELDS[name](_checked(token, form))


def duration_field(name: str) -> Callable[[str], str]:
    """A field of a duration: of years and months, or of days, hours, minutes and seconds, each with the duration's sign."""
    def read(token: str) -> str:
        found: Duration = decode(_checked(token, "")).value
        sign = -1 if found.months < 0 or found.seconds < 0 else 1
        years, months = divmod(abs(found.months), 12)
        rest = found.seconds.copy_abs()
        minutes = int(rest) // 60
        parts: dict[str, Decimal | int] = {
            "years": years, "months": months, "days": minutes // 1440, "hours": minutes // 60 % 24, "minutes": minutes % 60,
            "seconds": EXACT.subtract(rest, Decimal(60 * minutes))}
        if name != "seconds":
            return integer(sign * int(parts[name]))
        return whole(number(Kind.DECIMAL, EXACT.multiply(Decimal(sign), Decimal(parts[name]))))
    return read


def _timed(apply: Callable[[Value, Value], str], first: str, second: str | None) -> Callable[[str, str], str]:
    """An operation on arguments of these types; None is a number."""
    def calculate(one: str, two: str) -> str:
        return whole(apply(_typed(one, first), decode(two) if second is None else _typed(two, second)))
    return calculate


def _compared(form: str | None, name: str) -> Callable[[str, str], bool]:
    """A comparison (a key of HOLDS) of two arguments of one type; None: of two numbers."""
    def read(token: str) -> Value:
        return numeric_value(token) if form is None else _typed(token, form)

    def holds(first: str, second: str) -> bool:
        one, two = read(first), read(second)
        if isinstance(one.value, Duration) and name in ("equal", "not-equal"):
            return (one.value == two.value) is (name == "equal")
        return compare_values(one, two) in HOLDS[name]
    return holds


def _time_functions() -> dict[str, Callable[..., str]]:
    found: dict[str, Callable[..., str]] = {f"{name}-from-{form}": field(name, form) for form, names in _OF.items() for name in names}
    found |= {f"{name}-from-duration": duration_field(name) for name in ("years", "months", "days", "hours", "minutes", "seconds")}
    found |= {f"subtract-{form}s": _timed(dates.subtract, form, form) for form in _OF}
    for form in ("yearMonth", "dayTime"):
        found |= {
            f"add-{form}Durations": _timed(dates.add, form, form),
            f"subtract-{form}Durations": _timed(dates.subtract, form, form),
            f"multiply-{form}Duration": _timed(dates.multiply, form, None),
            f"divide-{form}Duration": _timed(dates.divide, form, None),
            f"divide-{form}Duration-by-{form}Duration": _timed(dates.divide, form, form)}
        for moment in _OF if form == "dayTime" else ("dateTime", "date"):
            found[f"add-{form}Duration-to-{moment}"] = _timed(dates.add, moment, form)
            found[f"subtract-{form}Duration-from-{moment}"] = _timed(dates.subtract, moment, form)
    return found


FUNCTIONS: dict[str, Callable[..., str | bool]] = {
    "numeric-add": operation(arithmetic.add), "numeric-subtract": operation(arithmetic.subtract),
    "numeric-multiply": operation(arithmetic.multiply), "numeric-divide": operation(arithmetic.divide),
    "numeric-integer-divide": integer_divide, "numeric-mod": modulo, "numeric-integer-mod": integer_modulo,
    "not": lambda token: not truth(token),
    **_time_functions(),
}
PREDICATES: dict[str, Callable[..., bool]] = {
    **{f"numeric-{name}": _compared(None, name) for name in HOLDS},
    "boolean-equal": lambda first, second: truth(first) == truth(second),
    "boolean-less-than": lambda first, second: truth(first) < truth(second),
    "boolean-greater-than": lambda first, second: truth(first) > truth(second),
    **{f"{form}-{name}": _compared(form, name) for form in _OF for name in HOLDS},
    **{f"duration-{name}": _compared("", name) for name in ("equal", "not-equal")},
    **{f"{form}Duration-{name}": _compared(form, name) for form in ("dayTime", "yearMonth")
       for name in HOLDS if name not in ("equal", "not-equal")},
}

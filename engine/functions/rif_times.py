"""RIF's built-ins on dates, times and durations (RIF-DTB 2nd edition, section 4.8): XPath's functions and operators."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from engine.functions import date_arithmetic, dates
from engine.functions.compare import compare_values
from engine.functions.datetimes import Duration
from engine.functions.errors import ExpressionError
from engine.functions.numeric import EXACT
from engine.functions.rif_numbers import HOLDS, whole
from engine.functions.rif_values import is_a
from engine.functions.terms import integer
from engine.functions.values import Kind, Value, decode, number

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
    """A field of a moment."""
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


def operation(apply: Callable[[Value, Value], str], first: str, second: str | None) -> Callable[[str, str], str]:
    """An operation on arguments of these types; None is a number."""
    def calculate(one: str, two: str) -> str:
        return whole(apply(_typed(one, first), decode(two) if second is None else _typed(two, second)))
    return calculate


def compared(form: str, name: str) -> Callable[[str, str], bool]:
    """A comparison of two arguments of one type."""
    def holds(first: str, second: str) -> bool:
        one, two = _typed(first, form), _typed(second, form)
        if isinstance(one.value, Duration) and name in ("equal", "not-equal"):
            return (one.value == two.value) is (name == "equal")
        return compare_values(one, two) in HOLDS[name]
    return holds


def _functions() -> dict[str, Callable[..., str]]:
    found: dict[str, Callable[..., str]] = {f"{name}-from-{form}": field(name, form) for form, names in _OF.items() for name in names}
    found |= {f"{name}-from-duration": duration_field(name) for name in ("years", "months", "days", "hours", "minutes", "seconds")}
    found |= {f"subtract-{form}s": operation(date_arithmetic.subtract, form, form) for form in _OF}
    for form in ("yearMonth", "dayTime"):
        found |= {
            f"add-{form}Durations": operation(date_arithmetic.add, form, form),
            f"subtract-{form}Durations": operation(date_arithmetic.subtract, form, form),
            f"multiply-{form}Duration": operation(date_arithmetic.multiply, form, None),
            f"divide-{form}Duration": operation(date_arithmetic.divide, form, None),
            f"divide-{form}Duration-by-{form}Duration": operation(date_arithmetic.divide, form, form)}
        for moment in _OF if form == "dayTime" else ("dateTime", "date"):
            found[f"add-{form}Duration-to-{moment}"] = operation(date_arithmetic.add, moment, form)
            found[f"subtract-{form}Duration-from-{moment}"] = operation(date_arithmetic.subtract, moment, form)
    return found


FUNCTIONS: dict[str, Callable[..., str]] = _functions()
PREDICATES: dict[str, Callable[..., bool]] = {
    **{f"{form}-{name}": compared(form, name) for form in _OF for name in HOLDS},
    **{f"duration-{name}": compared("", name) for name in ("equal", "not-equal")},
    **{f"{form}Duration-{name}": compared(form, name) for form in ("dayTime", "yearMonth") for name in HOLDS
       if name not in ("equal", "not-equal")},
}

"""Constructor functions (SPARQL 1.1 section 17.5; XPath F&O section 17.1): `xsd:integer(...)` and the like, on tokens.

Besides the seven types of SPARQL's table: date, time and the durations, and the types derived from xsd:integer.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal

from engine.functions.context import ExpressionError
from engine.functions.datetimes import Duration, Moment
from engine.functions.numeric import decimal_to_single, format_decimal, format_double, format_float, single, to_double
from engine.functions.terms import READERS, Kind, Value, boolean, decode, duration, literal, moment, number, split, string
from engine.ir.terms import XSD

_SPACES = " \t\n\r"
_DERIVED_STRINGS = frozenset(XSD + name for name in ("normalizedString", "token", "language", "Name", "NCName", "NMTOKEN"))
_PLAIN_LEAST, _PLAIN_MOST = 1e-6, 1e6


def cast(datatype: str, token: str) -> str:
    """The term as a literal of the XSD type with this local name. Raises ExpressionError where there is no such value."""
    if datatype == "string":
        return to_string(token)
    value = decode(token)
    if value.kind is Kind.STRING:
        return _from_text(datatype, value.value.strip(_SPACES))
    if value.kind is Kind.OTHER and value.value[1] in _DERIVED_STRINGS:
        return _from_text(datatype, value.value[0].strip(_SPACES))
    kind = READERS[datatype][0]
    if Kind.INTEGER <= kind <= Kind.DOUBLE:
        return _to_number(datatype, kind, value)
    if kind is Kind.BOOLEAN:
        if value.kind is Kind.BOOLEAN:
            return boolean(value.value)
        if value.numeric:
            return boolean(bool(value.value) and value.value == value.value)
    if isinstance(value.value, Moment) and kind in (Kind.DATETIME, Kind.DATE, Kind.TIME, Kind.GREGORIAN):
        return _to_moment(datatype, value)
    if value.kind is Kind.DURATION and kind is Kind.DURATION:
        return _to_duration(datatype, value.value)
    raise ExpressionError(f"cannot be cast to xsd:{datatype}")


def to_string(token: str) -> str:
    """xsd:string(...): an IRI's or string's characters, a value's canonical form as F&O section 17.1.2 writes it."""
    value = decode(token)
    if value.kind is Kind.BLANK:
        raise ExpressionError("a blank node has no string")
    if value.kind in (Kind.IRI, Kind.STRING):
        return string(value.value)
    if value.kind is Kind.LANG:
        return string(value.value[0])
    if value.kind in (Kind.ILL, Kind.OTHER):
        return string(split(token).lexical)
    if value.kind in (Kind.FLOAT, Kind.DOUBLE):
        return string(_plain_float(value))
    if value.kind in (Kind.BOOLEAN, Kind.INTEGER, Kind.DECIMAL):
        return string(split(cast(value.datatype, f'"{split(token).lexical}"')).lexical)
    canonical = _to_moment(value.datatype, value) if isinstance(value.value, Moment) else duration(value.datatype, value.value)
    return string(split(canonical).lexical)


def _plain_float(value: Value) -> str:
    """Between 0.000001 and 1000000 as a decimal, else with an exponent."""
    size = abs(value.value)
    text = format_float(value.value) if value.kind is Kind.FLOAT else format_double(value.value)
    if size == 0:
        return "-0" if text.startswith("-") else "0"
    return format_decimal(Decimal(text)) if _PLAIN_LEAST <= size < _PLAIN_MOST else text


def _from_text(datatype: str, text: str) -> str:
    """A string's characters read as a lexical form, written canonically."""
    kind, read = READERS[datatype]
    value = read(text)
    if value is None:
        raise ExpressionError(f"not a lexical form of xsd:{datatype}")
    if kind is Kind.BOOLEAN:
        return boolean(value)
    if kind is Kind.INTEGER:
        return literal(str(value), XSD + datatype)
    if kind <= Kind.DOUBLE:
        return number(kind, value)
    return duration(datatype, value) if isinstance(value, Duration) else moment(datatype, value)


def _to_number(datatype: str, kind: Kind, value: Value) -> str:
    source = value.value
    if value.kind is Kind.BOOLEAN:
        source = int(source)
    elif not value.numeric:
        raise ExpressionError(f"cannot be cast to xsd:{datatype}")
    if kind is Kind.DOUBLE:
        return number(kind, to_double(source))
    if kind is Kind.FLOAT:
        return number(kind, single(source) if isinstance(source, float) else decimal_to_single(source))
    if isinstance(source, float) and not math.isfinite(source):
        raise ExpressionError(f"no xsd:{datatype} is infinite or not a number")
    if kind is Kind.DECIMAL:
        return number(kind, Decimal(source))
    return _from_text(datatype, str(math.trunc(source)))


def _to_moment(datatype: str, value: Value) -> str:
    """Among dates and times, where F&O's table has a cast (section 17.1.5)."""
    source, start = value.datatype, value.value
    if source == "dateTime" or source == datatype:
        return moment(datatype, start)
    if source == "date" and datatype != "time":
        return moment(datatype, start)
    raise ExpressionError(f"xsd:{source} cannot be cast to xsd:{datatype}")


def _to_duration(datatype: str, value: Duration) -> str:
    months = 0 if datatype == "dayTimeDuration" else value.months
    seconds = Decimal(0) if datatype == "yearMonthDuration" else value.seconds
    return duration(datatype, Duration(months, seconds))


def caster(datatype: str) -> Callable[[str], str]:
    """The constructor function of an XSD type given by its local name."""
    return lambda token: cast(datatype, token)


CASTS: dict[str, Callable[[str], str]] = {f"<{XSD}{name}>": caster(name) for name in ("string", *READERS)}

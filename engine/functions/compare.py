"""Equality, order and truth of terms (SPARQL 1.1 sections 17.2.2, 17.3, 17.4.1.7 and 15.1).

Beyond the operator table, as section 17.3.1 allows: date, time, gYear... and durations compare by value (XPath F&O), and literals
of different known datatypes are unequal instead of an error. A literal of an unknown datatype, or one that its datatype does not
have, is equal to itself only, unequal to one with a language tag, and comparing it with another literal is an error.
"""

import math
import re
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache

from engine.functions import numeric
from engine.functions.context import ExpressionError
from engine.functions.datetimes import compare_durations, compare_moments
from engine.functions.terms import READERS, Kind, Value, convert, decode

_INTEGER, _FLOAT, _DOUBLE = int(Kind.INTEGER), int(Kind.FLOAT), int(Kind.DOUBLE)  # plain ints: comparing enum members is slow
_OPAQUE = (Kind.OTHER, Kind.ILL)
_ORDERED = (Kind.STRING, Kind.BOOLEAN, Kind.DATETIME, Kind.DATE, Kind.TIME, Kind.DURATION)


def equal(first: str, second: str) -> bool:
    """``first = second``. Raises ExpressionError where SPARQL cannot tell."""
    if first == second:
        value = decode(first).value
        return bool(value == value)  # NaN
    one, two = decode(first), decode(second)
    if _INTEGER <= one.kind <= _DOUBLE and _INTEGER <= two.kind <= _DOUBLE:
        return _numbers(one, two) == 0
    if one.kind <= Kind.BLANK or two.kind <= Kind.BLANK or Kind.LANG in (one.kind, two.kind):
        return False  # canonical tokens differ, and no other datatype has a value with a language tag
    if one.kind in _OPAQUE or two.kind in _OPAQUE:
        raise ExpressionError("cannot tell whether these literals are equal")
    if _group(one) != _group(two):
        return False
    if one.kind is Kind.GREGORIAN:
        return one.datatype == two.datatype and compare_moments(one.value, two.value) == 0
    if one.kind is Kind.DURATION:
        return bool(one.value == two.value)
    if one.kind is Kind.STRING:
        return False  # canonical tokens differ
    return _ordered(one, two) == 0


HOLDS: dict[str, tuple[int, ...]] = {"<": (-1,), "<=": (-1, 0), ">": (1,), ">=": (1, 0)}
"""The outcomes of a comparison at which an operator holds."""


def ordered(operator: str) -> Callable[[str, str], bool]:
    """The operator (a key of HOLDS) on two terms. It raises ExpressionError where it has no meaning for them."""
    holds = HOLDS[operator]
    return lambda first, second: compare(first, second) in holds


def compare(first: str, second: str) -> int | None:
    """-1, 0 or 1; None where one is NaN. Raises ExpressionError where ``<`` has no meaning for them."""
    return compare_values(decode(first), decode(second))


def compare_values(one: Value, two: Value) -> int | None:
    """As `compare`, of decoded terms."""
    if _INTEGER <= one.kind <= _DOUBLE and _INTEGER <= two.kind <= _DOUBLE:
        return _numbers(one, two)
    if _group(one) != _group(two) or _group(one) not in _ORDERED:
        raise ExpressionError("these terms have no order")
    return _ordered(one, two)


def effective_boolean_value(token: str) -> bool:
    """SPARQL 1.1 section 17.2.2. Raises ExpressionError for terms that have none."""
    value = decode(token)
    kind = value.kind
    if kind is Kind.BOOLEAN or kind is Kind.STRING:
        return bool(value.value)
    if _INTEGER <= kind <= _DOUBLE:
        return bool(value.value) and bool(value.value == value.value)
    if kind is Kind.LANG:
        return bool(value.value[0])
    if kind is Kind.ILL and Kind.BOOLEAN <= READERS[value.datatype][0] <= Kind.DOUBLE:
        return False
    raise ExpressionError("no effective boolean value")


def _group(value: Value) -> Kind:
    return Kind.DATETIME if value.kind is Kind.DATETIME_LOCAL else value.kind


def _ordered(one: Value, two: Value) -> int:
    """Compare two values of one ordered group, numbers aside."""
    if one.kind is Kind.DURATION:
        return compare_durations(one.value, two.value)
    if one.kind is Kind.STRING or one.kind is Kind.BOOLEAN:
        return int(one.value > two.value) - int(one.value < two.value)
    return compare_moments(one.value, two.value)


def _numbers(one: Value, two: Value) -> int | None:
    """Compare two numbers in their common type; None where one is NaN."""
    first, second = one.value, two.value
    if one.kind is not two.kind and (one.kind >= _FLOAT or two.kind >= _FLOAT):
        kind = max(one.kind, two.kind)
        first, second = convert(one, kind), convert(two, kind)
    if first < second:
        return -1
    if first > second:
        return 1
    return 0 if first == second else None


# Order keys: one character for the group, then a text whose order is that of the values.
_KEY_GROUP = {
    Kind.IRI: "2", Kind.BLANK: "1", Kind.STRING: "8", Kind.LANG: "8", Kind.BOOLEAN: "4", Kind.INTEGER: "3", Kind.DECIMAL: "3",
    Kind.FLOAT: "3", Kind.DOUBLE: "3", Kind.DATETIME: "5a", Kind.DATETIME_LOCAL: "5a", Kind.DATE: "5b", Kind.TIME: "5c",
    Kind.GREGORIAN: "5d", Kind.DURATION: "6", Kind.OTHER: "9", Kind.ILL: "9",
}
_COMPLEMENT = str.maketrans("0123456789", "9876543210")
_LOW = re.compile("[\x00-\x02]")
_LOW_KEYS = {"\x00": "\x02\x01", "\x01": "\x02\x02", "\x02": "\x02\x03"}
_EXPONENT_SHIFT = 5_000_000


@lru_cache(maxsize=1 << 16)
def order_key(token: str | None) -> str:
    """A text whose code point order (which is UTF-8's byte order) is the order of ORDER BY (SPARQL 1.1 section 15.1). Unbound < blank nodes
    < IRIs < literals. Where ``<`` has a meaning for two literals the keys agree with it, and equal numbers have equal keys whatever their
    types. The rest of the order is ours: numbers (NaN last), booleans, dates, durations, strings (with and without tag together, by
    characters, then tag), other literals by characters. A time without zone counts as UTC."""
    if token is None:
        return "0"
    value = decode(token)
    group = _KEY_GROUP[value.kind]
    return group + _KEYS[group[0]](value)


def _key_text(text: str, tail: str = "") -> str:
    """The text, ended so that a tail decides only between equal texts."""
    return _LOW.sub(lambda match: _LOW_KEYS[match.group()], text) + "\x01" + tail


def _key_number(value: Value) -> str:
    number = value.value
    if isinstance(number, float):
        if not math.isfinite(number):
            return "9" if number != number else "8" if number > 0 else "0"
        return key_of_decimal(Decimal(repr(number)))
    return key_of_decimal(Decimal(number))


def key_of_decimal(number: Decimal) -> str:
    """An exact number as text in the order of the numbers: sign, power of ten, figures; all complemented for negative ones."""
    sign, digits, _ = number.as_tuple()
    figures = "".join(map(str, digits)).lstrip("0").rstrip("0")
    if not figures:
        return "4"
    text = f"{number.adjusted() + _EXPONENT_SHIFT:07d}{figures}"
    return f"3{text.translate(_COMPLEMENT)}~" if sign else f"5{text}"


def _key_moment(value: Value) -> str:
    zone = "0" if value.value.zone is None else "1"
    return key_of_decimal(value.value.instant) + " " + zone + (value.datatype if value.kind is Kind.GREGORIAN else "")


def _key_duration(value: Value) -> str:
    # A month counts 30.436875 days, a Gregorian year's twelfth: between the extremes of XSD's reference dates, so in their order.
    months, seconds = value.value
    total = numeric.EXACT.add(seconds, Decimal(months * 2629746))
    return key_of_decimal(total) + " " + key_of_decimal(Decimal(months))


_KEYS: dict[str, Callable[[Value], str]] = {
    "1": lambda value: str(value.value), "2": lambda value: str(value.value), "3": _key_number,
    "4": lambda value: str(int(value.value)), "5": _key_moment, "6": _key_duration,
    "8": lambda value: _key_text(*value.value) if value.kind is Kind.LANG else _key_text(value.value),
    "9": lambda value: _key_text(*value.value) if value.kind is Kind.OTHER else _key_text(value.value, value.datatype),
}

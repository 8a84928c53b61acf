"""XSD numeric values: lexical forms in, canonical lexical forms out, arithmetic on one type (XPath F&O sections 6.2 to 6.4).

Integers are `int`, decimals `decimal.Decimal` (exact; quotients are rounded half up to 18 fraction digits, which F&O leaves to
the implementation), floats and doubles are `float`, a float being rounded to single precision after each operation.
"""

import math
import re
import struct
from ctypes import c_float
from decimal import Context, Decimal, Inexact, InvalidOperation, Overflow
from fractions import Fraction

from engine.functions.context import ExpressionError

QUOTIENT_DIGITS = 18
_QUOTIENT_SCALE = 10 ** QUOTIENT_DIGITS
LONGEST_NUMERAL = 4000  # digits: int() and str() are quadratic beyond, and Python refuses them from 4,300 on

_LARGEST = 10 ** (LONGEST_NUMERAL - 1)

_INTEGER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")
_DOUBLE = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?INF|NaN")

EXACT = Context(prec=4 * LONGEST_NUMERAL, Emax=10 ** 6, Emin=-10 ** 6, traps=[Inexact, Overflow, InvalidOperation])


def parse_integer(lexical: str) -> int | None:
    """The value of a lexical form of xsd:integer, None where it is none."""
    return int(lexical) if _INTEGER.fullmatch(lexical) and len(lexical) <= LONGEST_NUMERAL else None


def parse_decimal(lexical: str) -> Decimal | None:
    """The value of a lexical form of xsd:decimal, None where it is none."""
    if not _DECIMAL.fullmatch(lexical) or len(lexical) > LONGEST_NUMERAL:
        return None
    return Decimal(lexical) or Decimal(0)   # there is one zero, without a sign


def parse_double(lexical: str) -> float | None:
    """The value of a lexical form of xsd:double (XSD 1.1: ``+INF`` too), None where it is none."""
    return float(lexical) if _DOUBLE.fullmatch(lexical) else None


def parse_float(lexical: str) -> float | None:
    """The value of a lexical form of xsd:float, rounded once to single precision; None where it is none."""
    double = parse_double(lexical)
    if double is None:
        return None
    nearest = single(double)
    if nearest == double or not math.isfinite(double) or math.isinf(nearest):
        return nearest
    return _nearest_single(nearest, double, Fraction(lexical) if len(lexical) <= LONGEST_NUMERAL else Fraction(double))


def single(value: float) -> float:
    """A double rounded to single precision."""
    return c_float(value).value


def decimal_to_single(value: Decimal | int) -> float:
    """An exact number rounded once to single precision."""
    double = to_double(value)
    nearest = single(double)
    if nearest == double or math.isinf(nearest):
        return nearest
    return _nearest_single(nearest, double, Fraction(value))


def _nearest_single(nearest: float, double: float, exact: Fraction) -> float:
    """`nearest` is `double` in single precision, `double` is `exact` in double precision: undo a tie that the first step made."""
    bits: int = struct.unpack("<i", struct.pack("<f", nearest))[0]
    away = (double > nearest) == (nearest >= 0)
    other: float = struct.unpack("<f", struct.pack("<i", bits + 1 if away else bits - 1))[0] if bits & 0x7FFFFFFF else nearest
    if nearest + other != 2 * double or exact == double:
        return nearest
    return max(nearest, other) if exact > double else min(nearest, other)


def to_double(value: int | Decimal | float) -> float:
    """Promote to double; beyond its range the infinities."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def format_integer(value: int) -> str:
    """The canonical lexical form of an xsd:integer. Raises ExpressionError where it would be too long to read."""
    if abs(value) >= _LARGEST:
        raise ExpressionError("integer too long")
    return str(value)


def format_decimal(value: Decimal) -> str:
    """The canonical lexical form of an xsd:decimal (XSD 1.1: no point in whole numbers). Raises ExpressionError as above."""
    text = format(value, "f")
    if len(text) > LONGEST_NUMERAL:
        raise ExpressionError("decimal too long")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def format_double(value: float) -> str:
    """The canonical lexical form of an xsd:double: ``1.0E2``, ``INF``, ``NaN``, the shortest mantissa that reads back."""
    return _scientific(repr(value))


def format_float(value: float) -> str:
    """The canonical lexical form of an xsd:float: the shortest mantissa that reads back to the same single."""
    for precision in range(1, 10):
        text = f"{value:.{precision}g}"
        if not math.isfinite(value) or parse_float(text) == value:
            break
    return _scientific(text)


_SPECIAL = {"nan": "NaN", "inf": "INF", "-inf": "-INF"}


def _scientific(text: str) -> str:
    """A Python numeral as mantissa and exponent: one digit before the point, at least one after."""
    mantissa, _, exponent = text.partition("e")
    sign = "-" if mantissa[0] == "-" else ""
    whole, _, fraction = mantissa[len(sign):].partition(".")
    figures = (whole + fraction).lstrip("0")
    if not figures:
        return f"{sign}0.0E0"
    if figures[0] not in "123456789":
        return _SPECIAL[text]
    power = len(figures) - len(fraction) - 1 + int(exponent or 0)
    figures = figures.rstrip("0")
    return f"{sign}{figures[0]}.{figures[1:] or '0'}E{power}"


def divide_decimals(dividend: Decimal | int, divisor: Decimal | int) -> Decimal:
    """The quotient of two exact numbers, rounded half up to 18 fraction digits. Raises ExpressionError for a zero divisor."""
    if not divisor:
        raise ExpressionError("division by zero")
    above, below = dividend.as_integer_ratio()
    over, under = divisor.as_integer_ratio()
    above, below = above * under * _QUOTIENT_SCALE, below * over
    scaled, rest = divmod(abs(above), abs(below))
    scaled += 2 * rest >= abs(below)
    return EXACT.scaleb(Decimal(scaled if (above < 0) == (below < 0) else -scaled), -QUOTIENT_DIGITS)


def divide_floats(dividend: float, divisor: float) -> float:
    """The quotient of IEEE 754: infinities and NaN where the divisor is zero."""
    if divisor:
        return dividend / divisor
    if not dividend or dividend != dividend:
        return math.nan
    return math.copysign(math.inf, dividend) * math.copysign(1.0, divisor)


def round_double(value: float) -> float:
    """fn:round: to the nearest whole number, ties towards positive infinity; the sign of zero is kept."""
    if not math.isfinite(value) or value == math.floor(value):
        return value
    below = math.floor(value)
    return math.copysign(float(below + (value - below >= 0.5)), value)


def round_decimal(value: Decimal) -> Decimal:
    """fn:round of an exact decimal."""
    return Decimal(math.floor(EXACT.add(value, Decimal("0.5"))))

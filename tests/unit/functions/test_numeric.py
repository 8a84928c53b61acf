"""Numbers: lexical forms, single precision, canonical writing, arithmetic."""

import math
import struct
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from engine.functions import numeric
from engine.functions.context import ExpressionError

from .notation import result, token

SINGLES = st.floats(width=32, allow_nan=False)


@pytest.mark.parametrize("read, valid, invalid", [
    (numeric.parse_integer, ["0", "-1", "+007", "9" * 50], ["", "1.0", " 1", "1_000", "١", "1e2", "9" * 5000, "--1"]),
    (numeric.parse_decimal, ["0", "-1.5", "+.5", "5.", "00.10"], ["", ".", "1e2", "INF", "1,5", " 1", "NaN", "1_0.0"]),
    (numeric.parse_double, ["1", "1.", ".5e-3", "-1E+9", "INF", "+INF", "-INF", "NaN"],
     ["", "inf", "nan", "Infinity", "1e", "0x1", "1d", " 1"]),
    (numeric.parse_float, ["1", "1e50", "-INF", "NaN"], ["", "1f", "e1"]),
])
def test_lexical_forms(read, valid, invalid) -> None:
    assert [text for text in valid if read(text) is None] == []
    assert [text for text in invalid if read(text) is not None] == []


@given(st.floats())
def test_a_written_double_reads_back(value: float) -> None:
    assert struct.pack("d", numeric.parse_double(numeric.format_double(value))) == struct.pack("d", value) or math.isnan(value)


@given(SINGLES)
def test_a_written_float_reads_back(value: float) -> None:
    assert struct.pack("d", numeric.parse_float(numeric.format_float(value))) == struct.pack("d", value)


@given(st.decimals(allow_nan=False, allow_infinity=False, places=12))
def test_a_written_decimal_reads_back(value: Decimal) -> None:
    assert numeric.parse_decimal(numeric.format_decimal(value)) == value


@given(SINGLES.filter(lambda x: 1e-30 < abs(x) < 1e30), st.integers(-3, 3), st.integers(1, 30))
def test_a_float_is_rounded_once(start: float, nudge: int, digits: int) -> None:
    """Around the middle between two singles, where rounding to double first would err."""
    bits = struct.unpack("<i", struct.pack("<f", start))[0]
    other = struct.unpack("<f", struct.pack("<i", bits + 1))[0]
    exact = (Fraction(start) + Fraction(other)) / 2 * (1 + Fraction(nudge, 10 ** digits))
    scaled = Decimal(exact.numerator) / Decimal(exact.denominator)   # 28 digits: still far finer than a double
    low, high = sorted((start, other), key=lambda x: abs(Fraction(x) - Fraction(scaled)))
    found = numeric.parse_float(str(scaled))
    if abs(Fraction(low) - Fraction(scaled)) != abs(Fraction(high) - Fraction(scaled)) and abs(nudge) * 10.0 ** -digits < 1e-8:
        assert found == low


@pytest.mark.parametrize("value, text", [
    (100.0, "1.0E2"), (0.0, "0.0E0"), (-0.0, "-0.0E0"), (1.5, "1.5E0"), (-12.34, "-1.234E1"), (1e300, "1.0E300"),
    (5e-324, "5.0E-324"),
    (0.001, "1.0E-3"), (123456789.0, "1.23456789E8"), (1e16, "1.0E16"), (math.inf, "INF"), (-math.inf, "-INF"), (math.nan, "NaN"),
])
def test_doubles_are_written_canonically(value: float, text: str) -> None:
    assert numeric.format_double(value) == text


@pytest.mark.parametrize("text, written", [
    ("0.1", "1.0E-1"), ("3.4028235E38", "3.4028235E38"), ("1e39", "INF"), ("-1e39", "-INF"), ("1e-46", "0.0E0"),
    ("16777217", "1.6777216E7"),
    ("1.4e-45", "1.0E-45"), ("0.33333334", "3.3333334E-1"), ("NaN", "NaN"), ("INF", "INF"),
])
def test_floats_are_written_canonically(text: str, written: str) -> None:
    assert numeric.format_float(numeric.parse_float(text)) == written


@pytest.mark.parametrize("text, written", [
    ("1.0", "1"), ("-0.0", "0"), ("+01.50", "1.5"), ("100", "100"), (".5", "0.5"),
    ("0.000000000000000000001", "0.000000000000000000001"),
])
def test_decimals_are_written_canonically(text: str, written: str) -> None:
    assert numeric.format_decimal(numeric.parse_decimal(text)) == written


@given(st.integers(), st.integers().filter(bool))
def test_a_quotient_is_rounded_half_up_to_eighteen_digits(dividend: int, divisor: int) -> None:
    found = Fraction(numeric.divide_decimals(dividend, divisor))
    error = abs(found - Fraction(dividend, divisor)) * 10 ** 18
    assert error <= Fraction(1, 2) and (error < Fraction(1, 2) or abs(found) > abs(Fraction(dividend, divisor)))


ARITHMETIC = [
    ("+", "1", "2", "3"), ("+", "1", "1.5", "2.5"), ("+", "0.1", "0.2", "0.3"), ("+", "0.5", "0.5", '"1"^^xsd:decimal'),
    ("+", "1", "1e0", '"2.0E0"^^xsd:double'), ("+", '"1"^^xsd:float', "0.1", '"1.1E0"^^xsd:float'),
    ("+", '"0.1"^^xsd:float', "0.1e0", '"2.0000000149011612E-1"^^xsd:double'), ("+", '"1"^^xsd:byte', '"2"^^xsd:short', "3"),
    ("+", "9223372036854775807", "1", "9223372036854775808"), ("+", "1", '"a"', None), ("+", "1", "<http://a>", None),
    ("+", "1", '"300"^^xsd:byte', None), ("+", "1", '"x"^^xsd:integer', None), ("+", "1", "true", None),
    ("+", '"3e38"^^xsd:float', '"3e38"^^xsd:float', '"INF"^^xsd:float'),
    ("+", '"INF"^^xsd:double', '"-INF"^^xsd:double', '"NaN"^^xsd:double'),
    ("-", "1", "2", "-1"), ("-", "1.5", "1.5", '"0"^^xsd:decimal'), ("-", "1e0", "1", '"0.0E0"^^xsd:double'),
    ("*", "2", "2.50", '"5"^^xsd:decimal'),
    ("/", "1", "2", "0.5"), ("/", "4", "2", '"2"^^xsd:decimal'), ("/", "2", "3", "0.666666666666666667"),
    ("/", "-2", "3", "-0.666666666666666667"),
    ("/", "1", "0", None), ("/", "1.0", "0", None), ("/", "1", "0.0", None), ("/", "1e0", "0", '"INF"^^xsd:double'),
    ("/", "-1e0", "0", '"-INF"^^xsd:double'), ("/", "1", "-0e0", '"-INF"^^xsd:double'), ("/", "0e0", "0", '"NaN"^^xsd:double'),
    ("/", '"1"^^xsd:float', "3", '"3.3333334E-1"^^xsd:float'), ("/", "1e0", "3", '"3.333333333333333E-1"^^xsd:double'),
    ("/", '"NaN"^^xsd:double', "0", '"NaN"^^xsd:double'),
]


@pytest.mark.parametrize("operator, first, second, expected", ARITHMETIC)
def test_arithmetic(operator: str, first: str, second: str, expected: str | None) -> None:
    assert result(operator, first, second) == (expected and token(expected))


def test_products_of_long_decimals_are_exact() -> None:
    one, two = "123456789012345678901234567890.5", "-0.000000000000000000000000000000000007"
    found = result("*", one, two)
    assert found is not None and Fraction(found.split('"')[1]) == Fraction(one) * Fraction(two)


@pytest.mark.parametrize("function, argument, expected", [
    ("U-", "1", "-1"), ("U-", "2.50", "-2.5"), ("U-", "0e0", '"-0.0E0"^^xsd:double'), ("U-", '"5"^^xsd:byte', "-5"),
    ("U-", '"a"', None),
    ("U+", '"01"^^xsd:integer', "1"), ("U+", '"x"^^xsd:integer', None),
    ("ABS", "-1", "1"), ("ABS", "-1.50", "1.5"), ("ABS", "-1e0", '"1.0E0"^^xsd:double'),
    ("ABS", '"-2"^^xsd:float', '"2.0E0"^^xsd:float'),
    ("ABS", '"-2"^^xsd:byte', "2"), ("ABS", '"-INF"^^xsd:double', '"INF"^^xsd:double'), ("ABS", '"1"', None),
    ("ROUND", "2.5", '"3"^^xsd:decimal'), ("ROUND", "-2.5", '"-2"^^xsd:decimal'), ("ROUND", "2.4999", '"2"^^xsd:decimal'),
    ("ROUND", "2.5e0", '"3.0E0"^^xsd:double'), ("ROUND", "-2.5e0", '"-2.0E0"^^xsd:double'),
    ("ROUND", "-0.2e0", '"-0.0E0"^^xsd:double'),
    ("ROUND", "-0.5e0", '"-0.0E0"^^xsd:double'), ("ROUND", "0.49999999999999994e0", '"0.0E0"^^xsd:double'), ("ROUND", "7", "7"),
    ("ROUND", "4503599627370497.5e0", '"4.503599627370498E15"^^xsd:double'), ("ROUND", '"NaN"^^xsd:double', '"NaN"^^xsd:double'),
    ("ROUND", '"INF"^^xsd:float', '"INF"^^xsd:float'), ("ROUND", '"2.5"^^xsd:float', '"3.0E0"^^xsd:float'),
    ("CEIL", "1.1", '"2"^^xsd:decimal'), ("CEIL", "-1.1", '"-1"^^xsd:decimal'), ("CEIL", "-0.2e0", '"-0.0E0"^^xsd:double'),
    ("CEIL", '"-INF"^^xsd:double', '"-INF"^^xsd:double'), ("CEIL", "1e300", '"1.0E300"^^xsd:double'), ("CEIL", "3", "3"),
    ("FLOOR", "1.9", '"1"^^xsd:decimal'), ("FLOOR", "-1.1", '"-2"^^xsd:decimal'), ("FLOOR", "-0.2e0", '"-1.0E0"^^xsd:double'),
    ("FLOOR", "0.5e0", '"0.0E0"^^xsd:double'), ("FLOOR", '"1"', None),
])
def test_functions_on_numbers(function: str, argument: str, expected: str | None) -> None:
    assert result(function, argument) == (expected and token(expected))


@given(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(["ROUND", "CEIL", "FLOOR"]))
def test_whole_numbers_of_doubles(value: float, function: str) -> None:
    found = numeric.parse_double(result(function, token(f'"{numeric.format_double(value)}"^^xsd:double')).split('"')[1])
    exact = Fraction(value)
    expected = {"ROUND": math.floor(exact + Fraction(1, 2)), "CEIL": math.ceil(exact), "FLOOR": math.floor(exact)}[function]
    assert found == expected


def test_a_number_too_long_to_write_is_an_error() -> None:
    long = "9" * 3000
    assert result("*", long, long) is None
    assert result("*", long, f"0.{long}") is None
    assert result("*", long, f"0.{'0' * 900}") == token('"0"^^xsd:decimal')


def test_an_integer_beyond_all_doubles_is_infinite_as_a_double() -> None:
    assert result("+", "1" + "0" * 400, "1e0") == token('"INF"^^xsd:double')
    assert result("xsd:double", "-1" + "0" * 400) == token('"-INF"^^xsd:double')
    assert result("<", "1" + "0" * 400, '"INF"^^xsd:double') == token("false")
    with pytest.raises(ExpressionError):
        numeric.format_integer(10 ** 5000)

"""Equality, order, truth and the keys of ORDER BY."""

import itertools
import math
from decimal import Decimal

import pytest
from hypothesis import given, strategies as st

from engine.functions import compare
from engine.functions.context import ExpressionError
from engine.functions.terms import Kind, number, string

from .notation import token


def decided(function, *args: str) -> bool | None:
    try:
        return function(*map(token, args))
    except ExpressionError:
        return None


@pytest.mark.parametrize("first, second, expected", [
    ("1", "1.0", True), ("1", '"01"^^xsd:integer', True), ("1", "1e0", True), ("1", "2", False), ("1", '"1"', False),
    ("1", "<http://a>", False),
    ("0.1", "0.1e0", True), ("0.1", '"0.1"^^xsd:float', True), ("0.1e0", '"0.1"^^xsd:float', False),
    ("9007199254740993", "9007199254740992e0", True),
    ("9007199254740993", "9007199254740992", False), ("-0e0", "0e0", True), ('"NaN"^^xsd:double', '"NaN"^^xsd:double', False),
    ('"NaN"^^xsd:double', '"NaN"^^xsd:float', False), ('"INF"^^xsd:float', '"INF"^^xsd:double', True),
    ('"7"^^xsd:byte', "7", True),
    ("true", '"1"^^xsd:boolean', True), ("true", "false", False), ("true", "1", False),
    ('"a"', '"a"', True), ('"a"', '"b"', False), ('"a"', '"a"@en', False), ('"a"@en', '"a"@en', True),
    ('"a"@en', '"a"@fr', False),
    ("<http://a>", "<http://a>", True), ("<http://a>", "<http://b>", False), ("_:a", "_:a", True), ("_:a", "_:b", False),
    ("_:a", '"x"', False),
    ('"x"^^<http://dt>', '"x"^^<http://dt>', True), ('"x"^^<http://dt>', '"y"^^<http://dt>', None),
    ('"x"^^<http://dt>', "1", None),
    ('"x"^^<http://dt>', "<http://a>", False), ('"x"^^xsd:integer', '"x"^^xsd:integer', True), ('"x"^^xsd:integer', "1", None),
    ('"300"^^xsd:byte', "300", None), ('"x"^^xsd:integer', '"x"', None),
    ('"2020-01-01"^^xsd:date', '"2020-01-01+00:00"^^xsd:date', None),
    ('"2020-01-01Z"^^xsd:date', '"2020-01-01+00:00"^^xsd:date', True),
    ('"2020-01-01"^^xsd:date', '"2020-01-01T00:00:00"^^xsd:dateTime', False),
    ('"2020Z"^^xsd:gYear', '"2020+00:00"^^xsd:gYear', True), ('"2020"^^xsd:gYear', '"2020-01"^^xsd:gYearMonth', False),
    ('"P1Y"^^xsd:duration', '"P12M"^^xsd:yearMonthDuration', True), ('"P1M"^^xsd:duration', '"P30D"^^xsd:duration', False),
    ('"2020-01-01T00:00:00"^^xsd:dateTime', '"2020-01-01T00:00:00Z"^^xsd:dateTime', None),
    ('"2020-01-01T00:00:00"^^xsd:dateTime', '"2020-01-02T00:00:00Z"^^xsd:dateTime', False),
])
def test_equal(first: str, second: str, expected: bool | None) -> None:
    assert decided(compare.equal, first, second) is expected
    assert decided(compare.equal, second, first) is expected


@pytest.mark.parametrize("first, second, expected", [
    ("1", "2", True), ("2", "1", False), ("1", "1.5", True), ("1.5", "1e0", False), ("-1", '"INF"^^xsd:double', True),
    ("1", '"NaN"^^xsd:double', False), ('"NaN"^^xsd:double', "1", False), ('"a"', '"b"', True), ('"b"', '"a"', False),
    ('"a"', '"a"', False),
    ('"Z"', '"a"', True), ('"\uffff"', '"\U00010000"', True), ("false", "true", True), ("true", '"0"^^xsd:boolean', False),
    ('"a"', '"a"@en', None), ('"a"@en', '"b"@en', None), ("1", '"2"', None), ("<http://a>", "<http://b>", None),
    ("_:a", "_:b", None),
    ('"x"^^<http://dt>', '"y"^^<http://dt>', None), ('"x"^^xsd:integer', "1", None), ("true", "1", None),
])
def test_less(first: str, second: str, expected: bool | None) -> None:
    assert decided(compare.ordered("<"), first, second) is expected
    if expected:
        assert decided(compare.ordered("<"), second, first) is False
        assert decided(compare.ordered("<="), first, second) is True


def test_less_or_equal_of_nan_and_of_equals() -> None:
    assert decided(compare.ordered("<="), '"NaN"^^xsd:double', '"NaN"^^xsd:double') is False
    assert decided(compare.ordered("<="), "1", "1.0") is True
    assert decided(compare.ordered("<="), '"a"', '"a"') is True


@pytest.mark.parametrize("term, expected", [
    ("true", True), ("false", False), ('"1"^^xsd:boolean', True), ('"yes"^^xsd:boolean', False), ('""', False), ('"a"', True),
    ('"false"', True),
    ('""@en', False), ('"a"@en', True), ("0", False), ("1", True), ("0.0", False), ("0e0", False), ("-0e0", False),
    ('"NaN"^^xsd:double', False),
    ('"INF"^^xsd:float', True), ('"x"^^xsd:integer', False), ('"300"^^xsd:byte', False), ("<http://a>", None), ("_:a", None),
    ('"2020-01-01"^^xsd:date', None), ('"x"^^<http://dt>', None), ('"x"^^xsd:date', None),
])
def test_effective_boolean_value(term: str, expected: bool | None) -> None:
    assert decided(compare.effective_boolean_value, term) is expected


IN_ORDER = [None, "_:a", "_:b", "<http://a>", "<http://b>", '"-INF"^^xsd:double', "-1000", "-10.5", "-10", "-9e0", "-0.05",
            "-0.001", "0",
            "0.0001", "0.1", "1", "1.5", "2", "9", "10", "100e0", "100000000000000000000", '"INF"^^xsd:double',
            '"NaN"^^xsd:double', "false", "true",
            '"-0001-01-01T00:00:00Z"^^xsd:dateTime', '"1969-12-31T23:59:59.5Z"^^xsd:dateTime',
            '"2020-01-01T00:00:00+01:00"^^xsd:dateTime',
            '"2020-01-01T00:00:00Z"^^xsd:dateTime', '"2020-01-01T00:00:00.1Z"^^xsd:dateTime', '"2020-01-01"^^xsd:date',
            '"2020-01-02"^^xsd:date',
            '"10:00:00"^^xsd:time', '"11:00:00"^^xsd:time', '"-P1D"^^xsd:duration', '"PT1S"^^xsd:duration',
            '"P27D"^^xsd:duration',
            '"P1M"^^xsd:duration', '"P32D"^^xsd:duration', '""', '"\\u0000"', '"\\u0001"', '"A"', '"a"', '"a"@en', '"a"@fr',
            '"a\\u0000"', '"a\\u0003"',
            '"a b"', '"ab"', '"é"', '"\uffff"', '"\U00010000"', '"x"^^<http://dt>', '"x"^^xsd:integer', '"y"^^<http://dt>']


def test_order_keys_sort_as_order_by_does() -> None:
    tokens = [term and token(term) for term in IN_ORDER]
    keys = [compare.order_key(term) for term in tokens]
    assert keys == sorted(keys)
    assert len(set(keys)) == len(keys)
    assert [key.encode() for key in keys] == sorted(key.encode() for key in keys)


def test_order_keys_agree_with_less() -> None:
    for one, two in itertools.permutations([token(term) for term in IN_ORDER if term], 2):
        try:
            order = compare.compare(one, two)
        except ExpressionError:
            continue
        if order == -1:
            assert compare.order_key(one) < compare.order_key(two), (one, two)


def test_equal_numbers_have_equal_keys() -> None:
    same = ["1", "1.0", "1e0", '"01"^^xsd:integer', '"1"^^xsd:byte', '"1"^^xsd:float', "+1.00"]
    assert len({compare.order_key(token(term)) for term in same}) == 1
    assert compare.order_key(token("0.1")) == compare.order_key(token("0.1e0"))


Number = int | Decimal | float
NUMBERS = st.one_of(
    st.integers().map(lambda n: (n, number(Kind.INTEGER, n))),
    st.decimals(allow_nan=False, allow_infinity=False, places=9, min_value=-10 ** 12,
                max_value=10 ** 12).map(lambda n: (n, number(Kind.DECIMAL, n))),
    st.floats(allow_nan=False).map(lambda n: (n, number(Kind.DOUBLE, n))))


@given(NUMBERS, NUMBERS)
def test_keys_of_numbers_agree_with_their_order(one: tuple[Number, str], two: tuple[Number, str]) -> None:
    order = compare.compare(one[1], two[1])
    keys = compare.order_key(one[1]), compare.order_key(two[1])
    if order == -1:
        assert keys[0] < keys[1]
    if order == 0 and not any(isinstance(n, float) and math.isfinite(n) for n in (one[0], two[0])):
        assert keys[0] == keys[1]


TEXTS = st.text(st.sampled_from("\0\1\2\3ab é\U0001F600"), max_size=6)


@given(TEXTS, TEXTS)
def test_keys_of_strings_are_in_the_order_of_characters(one: str, two: str) -> None:
    assert (compare.order_key(string(one)) < compare.order_key(string(two))) == (one < two)

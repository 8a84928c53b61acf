"""The typed columns beside a token."""

import math

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from engine.functions import compare
from engine.functions.context import ExpressionError
from engine.functions.typed import Kind, typed, typed_columns
from engine.ir.terms import XSD

from .notation import token

TABLE = [
    ("<http://a>", Kind.IRI, None, None), ("_:a", Kind.BLANK, None, None), ('"a"', Kind.STRING, None, None),
    ('"a"@en', Kind.LANG, None, None),
    ("true", Kind.BOOLEAN, None, None), ("1", Kind.INTEGER, 1.0, None), ('"007"^^xsd:integer', Kind.INTEGER, 7.0, None),
    ('"-7"^^xsd:byte', Kind.INTEGER, -7.0, None),
    ('"300"^^xsd:byte', Kind.ILL, None, None), ("999999999999999", Kind.INTEGER, 999999999999999.0, None),
    ("9999999999999999", Kind.HARD, None, None),
    ("10000000000000000000000000", Kind.INTEGER, 1e25, None), ('"000000000000000000001"^^xsd:integer', Kind.INTEGER, 1.0, None),
    ("1.5", Kind.DECIMAL, 1.5, None),
    ("0.1234567890123456", Kind.HARD, None, None), ("0.10000000000000000000", Kind.DECIMAL, 0.1, None),
    ("1e2", Kind.DOUBLE, 100.0, None),
    ('"NaN"^^xsd:double', Kind.HARD, None, None), ('"INF"^^xsd:double', Kind.DOUBLE, math.inf, None),
    ('"0.1"^^xsd:float', Kind.FLOAT, 0.10000000149011612, None),
    ('"x"^^xsd:integer', Kind.ILL, None, None), ('"1e0"^^xsd:decimal', Kind.ILL, None, None),
    ('"x"^^<http://dt>', Kind.OTHER, None, None),
    ('"1970-01-01T00:00:01.5Z"^^xsd:dateTime', Kind.DATETIME, None, 1500000),
    ('"1970-01-01T01:00:00+01:00"^^xsd:dateTime', Kind.DATETIME, None, 0),
    ('"1970-01-01T00:00:01"^^xsd:dateTime', Kind.DATETIME_LOCAL, None, 1000000),
    ('"1970-01-01T00:00:00.0000001Z"^^xsd:dateTime', Kind.HARD, None, None),
    ('"300000-01-01T00:00:00Z"^^xsd:dateTime', Kind.HARD, None, None),
    ('"2020-01-01T00:00:00.1234560000000000000000000000001Z"^^xsd:dateTime', Kind.HARD, None, None),
    ('"2020-13-01T00:00:00Z"^^xsd:dateTime', Kind.ILL, None, None),
    ('"2020-01-01"^^xsd:date', Kind.DATE, None, None), ('"10:00:00"^^xsd:time', Kind.TIME, None, None),
    ('"2020"^^xsd:gYear', Kind.GREGORIAN, None, None),
    ('"PT1S"^^xsd:dayTimeDuration', Kind.DURATION, None, None),
]


@pytest.mark.parametrize("term, kind, number, micros", TABLE)
def test_typed(term: str, kind: Kind, number: float | None, micros: int | None) -> None:
    assert typed(token(term)) == (kind, number, micros)


def columns_of(tokens: list[str | None]) -> list[tuple[int | None, float | None, int | None]]:
    return list(zip(*(column.to_pylist() for column in typed_columns(pa.array(tokens, pa.string())))))


def test_columns_have_their_types_and_nulls() -> None:
    kinds, numbers, micros = typed_columns(pa.chunked_array([[token("1"), None], ["<http://a>"]], pa.string()))
    assert (kinds.type, numbers.type, micros.type) == (pa.int8(), pa.float64(), pa.int64())
    assert kinds.to_pylist() == [Kind.INTEGER, None, Kind.IRI]
    assert numbers.to_pylist() == [1.0, None, None] and micros.null_count == 3


@pytest.mark.parametrize("tokens", [[], [None], [None] * 100])
def test_columns_of_nothing(tokens: list[None]) -> None:
    assert columns_of(tokens) == [(None, None, None)] * len(tokens)


def literal(datatype: str, lexical: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return lexical.map(lambda text: f'"{text}"^^<{XSD}{datatype}>')


TOKENS = st.one_of(
    st.sampled_from([token(row[0]) for row in TABLE]),
    literal("integer", st.integers().map(str) | st.from_regex(r"[+-]?[0-9]{1,20}", fullmatch=True)),
    literal("decimal", st.from_regex(r"[+-]?[0-9]{0,12}\.[0-9]{0,12}", fullmatch=True)),
    literal("double", st.from_regex(r"[+-]?[0-9]{0,18}(\.[0-9]{0,18})?([eE][+-]?[0-9]{1,3})?",
                                    fullmatch=True) | st.floats().map(repr)),
    literal("float", st.floats(width=32, allow_nan=False, allow_infinity=False).map(repr)),
    literal("dateTime", st.datetimes().map(lambda t: t.isoformat() + "Z") | st.from_regex(
        r"(19|20)[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-6][0-9]:[0-6][0-9](\.[0-9]{1,8})?(Z|[+-][01][0-9]:[0-5][0-9])?",
        fullmatch=True)))


@settings(max_examples=20)
@given(st.lists(TOKENS | st.none(), min_size=80, max_size=120, unique=True))
def test_arrow_reads_each_token_as_python_does(tokens: list[str | None]) -> None:
    assert columns_of(tokens) == [(None, None, None) if one is None else typed(one) for one in tokens]


@given(TOKENS, TOKENS)
def test_doubles_and_micros_decide_comparisons(one: str, two: str) -> None:
    """What typed.py promises to SQL."""
    (kind, number, micros), (other_kind, other_number, other_micros) = typed(one), typed(two)
    exact = (Kind.INTEGER, Kind.DECIMAL)
    try:
        order = compare.compare(one, two)
    except ExpressionError:
        order = None
    single = Kind.FLOAT in (kind, other_kind) and (kind in exact or other_kind in exact)
    if number is not None and other_number is not None and not single:
        assert order == (number > other_number) - (number < other_number)
    if micros is not None and other_micros is not None and kind == other_kind:
        assert order == (micros > other_micros) - (micros < other_micros)

"""Aggregates: SPARQL 1.1 section 18.5.1, in any order of rows."""

import random

import pytest

from engine.functions.aggregates import aggregate

from .notation import token

TABLE = [
    ("COUNT", [], "0"), ("COUNT", ["1", None, "1"], "2"), ("COUNT", ["<http://a>", "_:b", '"x"'], "3"),
    ("SUM", [], "0"), ("SUM", ["1", "2"], "3"), ("SUM", ["1", "2.5"], "3.5"), ("SUM", ["0.1", "0.2", "0.3"], "0.6"),
    ("SUM", ["1", "1e0"], '"2.0E0"^^xsd:double'),
    ("SUM", ["1.0", '"1"^^xsd:float'], '"2.0E0"^^xsd:float'), ("SUM", ["1", None], None), ("SUM", ["1", '"a"'], None),
    ("SUM", ["1", "<http://a>"], None),
    ("SUM", ['"2"^^xsd:byte', '"3"^^xsd:short'], "5"), ("SUM", ["9223372036854775807", "9223372036854775807"],
                                                        "18446744073709551614"),
    ("AVG", [], "0"), ("AVG", ["1", "2"], "1.5"), ("AVG", ["1", "2", "2"], "1.666666666666666667"),
    ("AVG", ["2", "4"], '"3"^^xsd:decimal'),
    ("AVG", ["1e0", "2e0"], '"1.5E0"^^xsd:double'), ("AVG", ["1", None], None), ("AVG", ["1", '"x"'], None),
    ("MIN", [], None), ("MAX", [], None), ("MIN", ["10", "9", "9.5"], "9"), ("MAX", ["10", "9", "9.5"], "10"),
    ("MIN", ["1.0", "1", '"01"^^xsd:integer'], '"01"^^xsd:integer'),
    ("MAX", ["1", "1.0", "0"], '"1"^^xsd:integer'), ("MIN", ['"b"', '"a"', '"a"@en'], '"a"'),
    ("MAX", ['"2020-01-01T00:00:00Z"^^xsd:dateTime', '"2020-01-01T00:00:00+01:00"^^xsd:dateTime'],
     '"2020-01-01T00:00:00Z"^^xsd:dateTime'),
    ("MIN", ["1", "<http://a>", "_:b"], "_:b"), ("MAX", ["1", "<http://a>", "_:b", '"x"'], '"x"'), ("MIN", ["1", None], None),
    ("MAX", ["1", None], None),
    ("SAMPLE", [], None), ("SAMPLE", [None], None), ("SAMPLE", ['"b"', '"a"', None], '"a"'),
    ("GROUP_CONCAT", [], '""'), ("GROUP_CONCAT", ['"b"', '"a"@en', "1"], '"1 a b"'),
    ("GROUP_CONCAT", ["<http://a>", '"x"'], '"x http://a"'),
    ("GROUP_CONCAT", ['"a"', None], None), ("GROUP_CONCAT", ["_:a"], None),
]


@pytest.mark.parametrize("function, tokens, expected", TABLE)
def test_aggregates(function: str, tokens: list[str | None], expected: str | None) -> None:
    found = [term and token(term) for term in tokens]
    for seed in range(3):
        random.Random(seed).shuffle(found)
        assert aggregate(function, found) == (expected and token(expected))


@pytest.mark.parametrize("function, tokens, expected", [
    ("COUNT", ["1", "1", "1.0", None], "2"), ("SUM", ["1", "1", "1.0"], '"2"^^xsd:decimal'),
    ("AVG", ["2", "2", "4"], '"3"^^xsd:decimal'),
    ("GROUP_CONCAT", ['"a"', '"a"', '"b"'], '"a b"'), ("SUM", ["1", "1", None], None),
])
def test_distinct(function: str, tokens: list[str | None], expected: str | None) -> None:
    assert aggregate(function, [term and token(term) for term in tokens], distinct=True) == (expected and token(expected))


def test_separator() -> None:
    assert aggregate("GROUP_CONCAT", ['"a"', '"b"'], False, ", ") == '"a, b"'
    assert aggregate("GROUP_CONCAT", ['"a"', '"b"'], False, "\n") == '"a\\nb"'


def test_the_sum_of_doubles_does_not_depend_on_the_order_of_rows() -> None:
    tokens = [token(f"{10.0 ** n:.1e}") for n in range(-10, 17)] + [token("-1.0e16")]
    expected = aggregate("SUM", tokens)
    for seed in range(20):
        random.Random(seed).shuffle(tokens)
        assert aggregate("SUM", tokens) == expected

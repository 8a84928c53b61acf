"""Tokens of every kind, and expressions over two variables, for the tests that compare SQL with engine/functions."""

from __future__ import annotations

from engine.ir.expressions import Call, Expression
from engine.ir.terms import XSD, Constant, Variable

A, B = Variable("a"), Variable("b")


def lit(text: str, kind: str) -> str:
    """A typed literal's token."""
    return f'"{text}"^^<{XSD}{kind}>'


NUMBERS = [
    *(lit(n, "integer") for n in ("0", "1", "-1", "2", "3", "20", "007", "+5", "-0", "999999999999999", "1000000000000000",
                                  "-123456789012345",
                                  "12345678901234567890", "94906267", "9007199254740993")),
    lit("7", "byte"), lit("300", "byte"), lit("-7", "long"), lit("x", "integer"), lit("", "integer"),
    *(lit(n, "decimal") for n in ("0.0", "1.0", "-2.5", "2.5", "0.1", "0.2", "0.3", "12.99", ".5", "5.", "-0.0", "0.000001", "0.0000001",
                                  "1.23456789", "99999999.999999", "123456789.5", "0.333333333333333333", "1234567890123456.7")),
    *(lit(n, "double") for n in ("0.0E0", "-0.0E0", "1.5", "1e0", "-2.5E0", "0.1", "0.3", "1e300", "-1e300", "1e-320", "INF", "-INF",
                                 "NaN", "1e16",
                                 "9007199254740993", "1E")),
    *(lit(n, "float") for n in ("0.1", "1", "-2.5", "INF", "NaN", "16777217")),
]
DATES = [
    *(lit(t, "dateTime") for t in (
        "2020-01-01T00:00:00Z", "2020-01-01T00:00:00", "2020-01-01T10:00:00+14:00", "2020-01-02T00:00:00", "2019-12-31T24:00:00Z",
        "1969-12-31T23:59:59.25Z", "2020-02-29T12:34:56.789-05:00", "2020-01-01T00:00:00.000000001Z", "-0044-03-15T00:00:00",
        "12020-01-01T00:00:00Z", "2020-01-01T00:00:05.500", "2020-13-01T00:00:00Z", "2020-01-01T00:00:00+00:00")),
    lit("2020-01-01", "date"), lit("2020-01-01Z", "date"), lit("12:00:00", "time"), lit("24:00:00", "time"), lit("2020", "gYear"),
    lit("--02", "gMonth"), lit("P1D", "duration"), lit("PT36H", "dayTimeDuration"), lit("P1Y", "yearMonthDuration"),
]
TEXTS = [
    '""', '"a"', '"abc"', '"ABC"', '"abcd"', '"abc!"', '"b"', '"20"', '"a\\"b"', '"a\\\\b"', '"a\\nb"', '"tab\\there"', '"nul\\u0000x"',
    '"\\u007F"', '"stra\u00dfe"', '"\u00e9t\u00e9"', '"e\u0301"', '"\U0001f600 smile"', '"\u0130I"', '"\u212a"', '"a.b"', '"$1"', '"^a$"',
    '"abc"@en', '"abc"@en-gb', '"ABC"@fr', '""@en', '"a\\"@x"@en', '"a\\"^^<y>"', '"true"', '"en"', '"*"', '"-12.5"', "\"it's\"",
    '"${x}"', '" "',
]
OTHERS = [
    "<http://ex.org/a>", "<http://ex.org/a/b>", "<http://ex.org/a!>", "<>", "<urn:x>", "_:b", "_:b1", lit("true", "boolean"),
    lit("0", "boolean"),
    lit("maybe", "boolean"), '"v"^^<http://ex.org/own>', '"v\\"w"^^<http://ex.org/own>', '"v"^^<http://ex.org/other>',
    '"<a/>"^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#XMLLiteral>',
]
TOKENS: list[str | None] = [*NUMBERS, *DATES, *TEXTS, *OTHERS, None]


def call(name: str, *args: Expression | str) -> Call:
    """A call; a text is a constant's token."""
    return Call(name, tuple(Constant(a) if isinstance(a, str) else a for a in args))


def expressions() -> list[Expression]:
    """A broad list: every function that has a SQL form, alone and inside others."""
    two, half, nothing, big = lit("2", "integer"), lit("0.5", "decimal"), lit("0", "integer"), lit("1e3", "double")
    found: list[Expression] = []
    for operator in ("=", "!=", "<", ">", "<=", ">="):
        found += [call(operator, A, B), call(operator, call("*", A, two), B), call(operator, call("+", A, B), lit("3", "integer")),
                  call(operator, A, '"abc"'), call(operator, A, '"abc"@en'), call(operator, A, lit("true", "boolean")), call(operator,
                  A, two),
                  call(operator, lit("0.1", "float"), A), call(operator, A, half), call(operator, A, lit("2020-01-01T00:00:00",
                                                                                                         "dateTime")),
                  call(operator, call("/", A, B), half), call(operator, call("STR", A), '"abc"'), call(operator, call("LCASE", A),
                  '"abc"'),
                  call(operator, call("LANG", A), '"en"'), call(operator, call("DATATYPE", A), f"<{XSD}integer>"),
                  call(operator, call("YEAR", A), lit("2020", "integer")), call(operator, call("STRLEN", A), call("STRLEN", B)),
                  call(operator, call("ABS", A), call("-", B, two)), call(operator, A, "<http://ex.org/a>"), call(operator, A,
                  lit("P1D", "duration"))]
    for operator in ("+", "-", "*", "/"):
        found += [call(operator, A, B), call(operator, A, two), call(operator, half, A), call(operator, A, big), call(operator, A,
                  nothing),
                  call(operator, call(operator, A, B), A), call(operator, call("+", A, B), two), call(operator, A, '"a"')]
    for function in ("U-", "U+", "ABS", "CEIL", "FLOOR", "ROUND"):
        found += [call(function, A), call(function, call("*", A, half)), call("<", call(function, A), B), call("*", call(function, A), B)]
    for function in ("YEAR", "MONTH", "DAY", "HOURS", "MINUTES", "SECONDS", "TZ", "TIMEZONE"):
        found += [call(function, A), call("+", call(function, A), lit("1", "integer"))]
    for function in ("STR", "LANG", "DATATYPE", "STRLEN", "UCASE", "LCASE", "ISIRI", "ISURI", "ISBLANK", "ISLITERAL", "ISNUMERIC",
                     "BOUND", "!",
                     "ENCODE_FOR_URI", "MD5", "IRI", f"<{XSD}integer>", f"<{XSD}double>", f"<{XSD}string>"):
        found.append(call(function, A))
    for function in ("CONTAINS", "STRSTARTS", "STRENDS", "STRBEFORE", "STRAFTER", "CONCAT", "LANGMATCHES", "SAMETERM"):
        found += [call(function, A, B), call(function, A, '"b"'), call(function, A, '"a"@en'), call(function, call("STR", A), '"b"'),
                  call(function, A, '""'), call(function, '"abc"', A)]
    found += [call("SAMETERM", call("DATATYPE", A), f"<{XSD}{name}>") for name in ("string", "integer")]
    found += [call(operator, f"<{XSD}string>", call("DATATYPE", A)) for operator in ("=", "!=", "<", "SAMETERM")]
    found += [call(operator, call(function, A, B), "<http://ex.org/a>")
              for operator in ("=", "!=", "SAMETERM") for function in ("+", "<", "COALESCE")]
    found += [call("LANGMATCHES", call("LANG", A), '"EN"'), call("LANGMATCHES", call("LANG", A), '"*"'), call("STRLEN", call("STR", A))]
    for places in (("2",), ("0",), ("-1", "3"), ("2", "2"), ("1", "0"), ("100",), ("2", "-1")):
        found.append(call("SUBSTR", A, *(lit(place, "integer") for place in places)))
    found += [call("SUBSTR", A, lit("1.5", "decimal")), call("UCASE", call("SUBSTR", call("STR", A), two)), call("CONCAT", A, B,
              '"x"'), call("CONCAT")]
    for pattern in ("abc", "^a", "b$", "a.c", "[a-c]+", "[^a-z]", "\\\\d", "\\\\s", "(a|b)c?", "(ab)*", "\u00e9", "\\\\.",
                    "^\\\\p{Lu}", "a{2,3}", "\\\\w+ "):
        found += [call("REGEX", A, f'"{pattern}"'), call("REGEX", call("STR", A), f'"{pattern}"', '"i"')]
    found += [call("REPLACE", A, '"b"', '"Z"'), call("IN", A, two, '"abc"', "<urn:x>"), call("NOT IN", A, B, half),
              call("IN", A, "<urn:x>", "<http://ex.org/a>"), call("IF", call("<", A, B), A, B), call("COALESCE", call("+", A, B), B,
              '"none"'),
              call("IF", call("ISIRI", A), call("STR", A), A), call("COALESCE", A, B), call("&&", call("<", A, B), call("ISNUMERIC", A)),
              call("||", call("=", A, B), call("STRSTARTS", call("STR", A), '"h"')), call("!", call("<", A, B)), call("RAND"),
              call("NOW")]
    return found

"""Data values of literals: which are one, and in which value spaces they are."""

from __future__ import annotations

import pytest

from engine.functions.context import ExpressionError
from engine.functions.datatypes import in_value_space, value
from engine.ir.terms import RDF, RDFS, XSD, literal


def of(lexical: str, datatype: str) -> str:
    return literal(lexical, XSD + datatype)


@pytest.mark.parametrize("same", [
    [of("1", "integer"), of("01", "integer"), of("+1", "byte"), of("1.00", "decimal")],
    [of("1", "double"), of("1.0E0", "double"), of("10e-1", "double")],
    [of("1", "boolean"), of("true", "boolean")],
    ['"a b"', of("a b", "token"), of("a b", "normalizedString"), literal("a b@", f"{RDF}PlainLiteral")],
    ['"a"@en', literal("a@EN", f"{RDF}PlainLiteral")],
    [of("2020-01-01T00:00:00Z", "dateTime"), of("2020-01-01T01:00:00+01:00", "dateTime"), of("2020-01-01T00:00:00.0Z", "dateTimeStamp")],
    [of("0aFF", "hexBinary"), of("0AFF", "hexBinary")],
    [of("Zm9v", "base64Binary"), of("Zm 9v", "base64Binary")],
    [of("P1D", "duration"), of("PT24H", "dayTimeDuration")],
])
def test_equal_values_have_one_token(same: list[str]) -> None:
    assert len({value(token) for token in same}) == 1


def test_different_values_have_different_tokens() -> None:
    tokens = [of("1", "integer"), of("1", "float"), of("1", "double"), of("1", "boolean"), '"1"', of("1", "anyURI"), of("01", "hexBinary"),
              of("2", "integer"), '"1"@en', '"1"@de', of("2020-01-01T00:00:00", "dateTime"), of("2020-01-01T00:00:00Z", "dateTime"),
              of("2020-01-01", "date"), of("2020", "gYear"), of("P1D", "duration"), literal("1", f"{RDF}XMLLiteral")]
    assert len({value(token) for token in tokens}) == len(tokens)


@pytest.mark.parametrize("token", ["<a>", "_:b", of("x", "integer"), of("300", "byte"), of("a  b", "token"), of("1", "hexBinary"),
                                   of("2020-01-01T00:00:00", "dateTimeStamp"), literal("x", "urn:unknown"), of("a:b", "NCName"),
                                   literal("a", f"{RDF}PlainLiteral"), of("Zm9", "base64Binary"),
                                   *(literal(text, f"{RDF}XMLLiteral") for text in (
                                       "<", "&", "</x><x>", "<a>", "<!DOCTYPE a []>", "<b:a/>", "\x00", "]]>"))])
def test_what_has_no_value(token: str) -> None:
    with pytest.raises(ExpressionError):
        value(token)
    assert not in_value_space(token, f"<{RDFS}Literal>")


@pytest.mark.parametrize(("token", "inside", "outside"), [
    (of("5", "integer"), "integer decimal byte unsignedByte positiveInteger nonNegativeInteger", "float double string negativeInteger"),
    (of("5.0", "decimal"), "integer byte decimal", "double nonPositiveInteger"),
    (of("5.5", "decimal"), "decimal", "integer"),
    (of("300", "integer"), "short unsignedShort", "byte unsignedByte"),
    ('"ab"', "string normalizedString token language Name NCName NMTOKEN", "anyURI boolean"),
    ('"a b"', "string token", "language Name NMTOKEN"),
    ('"a\\tb"', "string", "normalizedString token"),
    ('"a:b"', "Name NMTOKEN", "NCName"),
    ('"1a"', "NMTOKEN", "Name"),
    ('"ab"@en', "", "string"),
    (of("1", "float"), "float", "double decimal"),
    (of("2020-01-01T00:00:00Z", "dateTime"), "dateTime dateTimeStamp", "date"),
    (of("2020-01-01T00:00:00", "dateTime"), "dateTime", "dateTimeStamp"),
    (of("urn:a", "anyURI"), "anyURI", "string"), (of("0A", "hexBinary"), "hexBinary", "base64Binary"),
    (of("2020-01-01", "date"), "date", "dateTime"),
])
def test_value_spaces(token: str, inside: str, outside: str) -> None:
    assert all(in_value_space(token, f"<{XSD}{name}>") for name in inside.split())
    assert not any(in_value_space(token, f"<{XSD}{name}>") for name in outside.split())
    assert in_value_space(token, f"<{RDFS}Literal>")
    assert in_value_space(token, f"<{RDF}PlainLiteral>") is (not token.endswith(">"))

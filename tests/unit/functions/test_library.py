"""Every function of SPARQL 1.1 section 17.4, with the specification's own examples where it has some."""

import hashlib
import re

import pytest

from engine.functions.expressions import Context
from engine.functions.library import FUNCTIONS

from .notation import call, result, token

SPECIFIED = """
    = != < > <= >= + - * / U+ U- ! SAMETERM ISIRI ISURI ISBLANK ISLITERAL ISNUMERIC STR LANG DATATYPE IRI URI BNODE STRDT STRLANG
    UUID STRUUID STRLEN SUBSTR UCASE LCASE STRSTARTS STRENDS CONTAINS STRBEFORE STRAFTER ENCODE_FOR_URI CONCAT LANGMATCHES REGEX
    REPLACE ABS ROUND CEIL FLOOR RAND NOW YEAR MONTH DAY HOURS MINUTES SECONDS TIMEZONE TZ MD5 SHA1 SHA256 SHA384 SHA512
    xsd:boolean xsd:double xsd:float xsd:decimal xsd:integer xsd:dateTime xsd:string""".split()


def test_every_function_of_the_specification_is_there() -> None:
    names = {name.replace("xsd:",
                          "<http://www.w3.org/2001/XMLSchema#") + (">" if name.startswith("xsd:") else "") for name in SPECIFIED}
    assert names <= set(FUNCTIONS)


TABLE = [
    ("SAMETERM", ("1", '"01"^^xsd:integer'), "false"), ("SAMETERM", ('"a"@en', '"a"@en'), "true"),
    ("SAMETERM", ("_:a", "_:a"), "true"),
    ("ISIRI", ("<http://a>",), "true"), ("ISURI", ('"http://a"',), "false"), ("ISBLANK", ("_:a",), "true"),
    ("ISBLANK", ('"_:a"',), "false"),
    ("ISLITERAL", ('"a"',), "true"), ("ISLITERAL", ("<http://a>",), "false"), ("ISNUMERIC", ("12",), "true"),
    ("ISNUMERIC", ('"12"',), "false"),
    ("ISNUMERIC", ('"12"^^xsd:nonNegativeInteger',), "true"), ("ISNUMERIC", ('"1200"^^xsd:byte',), "false"),
    ("ISNUMERIC", ("<http://a>",), "false"),
    ("ISNUMERIC", ('"NaN"^^xsd:double',), "true"),
    ("STR", ("<http://a>",), '"http://a"'), ("STR", ('"01"^^xsd:integer',), '"01"'), ("STR", ('"a"@en',), '"a"'),
    ("STR", ("_:a",), None),
    ("LANG", ('"a"@en-gb',), '"en-gb"'), ("LANG", ('"a"',), '""'), ("LANG", ("1",), '""'), ("LANG", ("<http://a>",), None),
    ("LANG", ("_:a",), None),
    ("DATATYPE", ('"a"',), "<http://www.w3.org/2001/XMLSchema#string>"),
    ("DATATYPE", ("1",), "<http://www.w3.org/2001/XMLSchema#integer>"),
    ("DATATYPE", ('"a"@en',), "<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString>"), ("DATATYPE", ("<http://a>",), None),
    ("IRI", ('"http://a/b"',), "<http://a/b>"), ("IRI", ("<http://a>",), "<http://a>"),
    ("URI", ('"x"', "<http://a/b/c>"), "<http://a/b/x>"),
    ("IRI", ('"#f"', "<http://a/b?q#g>"), "<http://a/b?q#f>"), ("IRI", ('"a b"',), None), ("IRI", ('"a"@en',), None),
    ("IRI", ("1",), None),
    ("IRI", ("_:a",), None), ("IRI", ('"rel"',), "<rel>"),
    ("STRDT", ('"123"', "<http://www.w3.org/2001/XMLSchema#integer>"), "123"),
    ("STRDT", ('"iiii"', "<http://example/romanNumeral>"), '"iiii"^^<http://example/romanNumeral>'),
    ("STRDT", ('"a"', "<http://www.w3.org/2001/XMLSchema#string>"), '"a"'), ("STRDT", ('"a"@en', "<http://dt>"), None),
    ("STRDT", ("1", "<http://dt>"), None),
    ("STRDT", ('"a"', '"b"'), None), ("STRDT", ('"a"', "<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString>"), None),
    ("STRLANG", ('"chat"', '"en"'), '"chat"@en'), ("STRLANG", ('"chat"', '"EN-gb"'), '"chat"@en-gb'),
    ("STRLANG", ('"chat"@en', '"en"'), None),
    ("STRLANG", ('"chat"', '""'), None), ("STRLANG", ('"chat"', '"e n"'), None), ("STRLANG", ("1", '"en"'), None),
    ("STRLEN", ('"chat"',), "4"), ("STRLEN", ('"chat"@en',), "4"), ("STRLEN", ('"😀é"',), "2"), ("STRLEN", ("1",), None),
    ("STRLEN", ('"\\n"',), "1"),
    ("SUBSTR", ('"foobar"', "4"), '"bar"'), ("SUBSTR", ('"foobar"@en', "4"), '"bar"@en'),
    ("SUBSTR", ('"foobar"', "4", "1"), '"b"'),
    ("SUBSTR", ('"foobar"', "0", "3"), '"fo"'), ("SUBSTR", ('"foobar"', "-1"), '"foobar"'),
    ("SUBSTR", ('"motor car"', "6"), '" car"'),
    ("SUBSTR", ('"12345"', "1.5", "2.6"), '"234"'), ("SUBSTR", ('"12345"', "-3", "5"), '"1"'),
    ("SUBSTR", ('"12345"', '"NaN"^^xsd:double', "3"), '""'),
    ("SUBSTR", ('"12345"', "1", '"NaN"^^xsd:double'), '""'), ("SUBSTR", ('"12345"', "-42", '"INF"^^xsd:double'), '"12345"'),
    ("SUBSTR", ('"12345"', '"-INF"^^xsd:double', '"INF"^^xsd:double'), '""'), ("SUBSTR", ('"12345"', '"INF"^^xsd:double'), '""'),
    ("SUBSTR", ('"12345"', "99"), '""'), ("SUBSTR", ('"12345"', "2", "-1"), '""'), ("SUBSTR", ('"😀ab"', "2", "1"), '"a"'),
    ("SUBSTR", ('"a"', '"1"'), None),
    ("UCASE", ('"foo"@en',), '"FOO"@en'), ("UCASE", ('"straße"',), '"STRASSE"'), ("LCASE", ('"BAR"',), '"bar"'),
    ("LCASE", ("1",), None),
    ("STRSTARTS", ('"foobar"', '"foo"'), "true"), ("STRSTARTS", ('"foobar"@en', '"foo"@en'), "true"),
    ("STRSTARTS", ('"foobar"@en', '"foo"'), "true"),
    ("STRSTARTS", ('"foobar"', '"foo"@en'), None), ("STRSTARTS", ('"foobar"@fr', '"foo"@en'), None),
    ("STRSTARTS", ('"a"', '""'), "true"),
    ("STRENDS", ('"foobar"', '"bar"'), "true"), ("STRENDS", ('"foobar"@en', '"bar"@en'), "true"),
    ("STRENDS", ('"foobar"', '"foo"'), "false"),
    ("CONTAINS", ('"foobar"', '"bar"'), "true"), ("CONTAINS", ('"foobar"@en', '"foo"'), "true"),
    ("CONTAINS", ('"foobar"', "1"), None),
    ("STRBEFORE", ('"abc"', '"b"'), '"a"'), ("STRBEFORE", ('"abc"@en', '"bc"'), '"a"@en'),
    ("STRBEFORE", ('"abc"@en', '"b"@cy'), None),
    ("STRBEFORE", ('"abc"', '""'), '""'), ("STRBEFORE", ('"abc"', '"xyz"'), '""'), ("STRBEFORE", ('"abc"@en', '"z"@en'), '""'),
    ("STRBEFORE", ('"abc"@en', '"z"'), '""'), ("STRBEFORE", ('"abc"@en', '""@en'), '""@en'),
    ("STRBEFORE", ('"abc"@en', '""'), '""@en'),
    ("STRAFTER", ('"abc"', '"b"'), '"c"'), ("STRAFTER", ('"abc"@en', '"ab"'), '"c"@en'),
    ("STRAFTER", ('"abc"@en', '"b"@cy'), None),
    ("STRAFTER", ('"abc"', '""'), '"abc"'), ("STRAFTER", ('"abc"', '"xyz"'), '""'), ("STRAFTER", ('"abc"@en', '"z"@en'), '""'),
    ("STRAFTER", ('"abc"@en', '""@en'), '"abc"@en'), ("STRAFTER", ('"abc"@en', '""'), '"abc"@en'),
    ("ENCODE_FOR_URI", ('"Los Angeles"',), '"Los%20Angeles"'), ("ENCODE_FOR_URI", ('"Los Angeles"@en',), '"Los%20Angeles"'),
    ("ENCODE_FOR_URI", ('"a-z_0.9~é/?*\'"',), '"a-z_0.9~%C3%A9%2F%3F%2A%27"'), ("ENCODE_FOR_URI", ("1",), None),
    ("CONCAT", ('"foo"', '"bar"'), '"foobar"'), ("CONCAT", ('"foo"@en', '"bar"@en'), '"foobar"@en'),
    ("CONCAT", ('"foo"@en', '"bar"'), '"foobar"'),
    ("CONCAT", ('"foo"@en', '"bar"@fr'), '"foobar"'), ("CONCAT", (), '""'), ("CONCAT", ('"a"@en',), '"a"@en'),
    ("CONCAT", ('"a"', "1"), None),
    ("LANGMATCHES", ('"fr"', '"FR"'), "true"), ("LANGMATCHES", ('"fr-BE"', '"FR"'), "true"),
    ("LANGMATCHES", ('"fr"', '"fr-BE"'), "false"),
    ("LANGMATCHES", ('"frb"', '"fr"'), "false"), ("LANGMATCHES", ('""', '"*"'), "false"),
    ("LANGMATCHES", ('"en"', '"*"'), "true"),
    ("LANGMATCHES", ("1", '"*"'), None),
    ("MD5", ('"abc"',), f'"{hashlib.md5(b"abc").hexdigest()}"'),
    ("SHA1", ('"abc"',), '"a9993e364706816aba3e25717850c26c9cd0d89d"'),
    ("SHA256", ('"é"',), f'"{hashlib.sha256("é".encode()).hexdigest()}"'),
    ("SHA384", ('"abc"',), f'"{hashlib.sha384(b"abc").hexdigest()}"'),
    ("SHA512", ('"abc"',), f'"{hashlib.sha512(b"abc").hexdigest()}"'), ("MD5", ('"abc"@en',), None), ("MD5", ("1",), None),
    ("NOW", (), '"1970-01-01T00:00:00Z"^^xsd:dateTime'),
    ("!=", ("1", "2"), "true"), ("!=", ("1", '"x"^^<http://dt>'), None), (">", ("2", "1"), "true"), (">=", ("1", "1.0"), "true"),
    (">=", ('"NaN"^^xsd:double', "1"), "false"), ("!", ('""',), "true"), ("!", ("<http://a>",), None),
    ("NOSUCH", ("1",), None), ("STRLEN", (), None), ("STRLEN", ('"a"', '"b"'), None), ("<http://example/f>", ("1",), None),
]


@pytest.mark.parametrize("function, args, expected", TABLE, ids=lambda value: str(value))
def test_functions(function: str, args: tuple[str, ...], expected: str | None) -> None:
    assert result(function, *args) == (expected and token(expected))


@pytest.mark.parametrize("reference, resolved", [
    ("g:h", "g:h"), ("g", "http://a/b/c/g"), ("./g", "http://a/b/c/g"), ("g/", "http://a/b/c/g/"), ("/g", "http://a/g"),
    ("//g", "http://g"),
    ("?y", "http://a/b/c/d;p?y"), ("g?y", "http://a/b/c/g?y"), ("#s", "http://a/b/c/d;p?q#s"), ("g#s", "http://a/b/c/g#s"),
    ("", "http://a/b/c/d;p?q"),
    (".", "http://a/b/c/"), ("..", "http://a/b/"), ("../g", "http://a/b/g"), ("../..", "http://a/"), ("../../g", "http://a/g"),
    ("../../../g", "http://a/g"),
    ("/./g", "http://a/g"), ("/../g", "http://a/g"), ("g.", "http://a/b/c/g."), ("..g", "http://a/b/c/..g"),
    ("./../g", "http://a/b/g"),
    ("./g/.", "http://a/b/c/g/"), ("g/./h", "http://a/b/c/g/h"), ("g/../h", "http://a/b/c/h"), ("g;x=1/../y", "http://a/b/c/y"),
    ("g?y/../x", "http://a/b/c/g?y/../x"), ("g#s/../x", "http://a/b/c/g#s/../x"),
])
def test_references_resolve_as_in_rfc_3986_section_5_4(reference: str, resolved: str) -> None:
    assert result("IRI", f'"{reference}"', "<http://a/b/c/d;p?q>") == f"<{resolved}>"


def test_generated_values_depend_on_query_time_row_and_call_only() -> None:
    def values(context: Context, site: str = "0") -> list[str]:
        return [call(name, [], context, site) for name in ("RAND", "UUID", "STRUUID", "BNODE")]

    first = values(Context(1, "q", "row"))
    assert first == values(Context(1, "q", "row"))
    others = [values(Context(2, "q", "row")), values(Context(1, "p", "row")), values(Context(1, "q", "wor")),
              values(Context(1, "q", "row"), "1")]
    for position, value in enumerate(first):
        assert all(other[position] != value for other in others)


def test_forms_of_generated_values() -> None:
    context = Context(1, "q", "row")
    uuid = "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
    assert re.fullmatch(f"<urn:uuid:{uuid}>", call("UUID", [], context))
    assert re.fullmatch(f'"{uuid}"', call("STRUUID", [], context))
    values = [float(call("RAND", [], Context(0, "q", str(n))).split('"')[1]) for n in range(200)]
    assert all(0 <= value < 1 for value in values) and 0.4 < sum(values) / 200 < 0.6


def test_blank_nodes_of_one_name_are_one_in_a_row_and_others_in_others() -> None:
    one, two = Context(1, "q", "row 1"), Context(1, "q", "row 2")
    assert call("BNODE", ['"x"'], one, "0") == call("BNODE", ['"x"'], one, "1")
    others = call("BNODE", ['"y"'], one), call("BNODE", ['"x"'], two), call("BNODE", [], one)
    assert len({call("BNODE", ['"x"'], one), *others}) == 4
    assert result("BNODE", "1") is None


def test_now_is_the_evaluation_time() -> None:
    assert call("NOW", [], Context(1577836800123)) == token('"2020-01-01T00:00:00.123Z"^^xsd:dateTime')

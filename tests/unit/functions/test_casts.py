"""Constructor functions: SPARQL 1.1 section 17.5 and XPath F&O section 17.1."""

import pytest

from .notation import result, token

TABLE = [
    ("xsd:boolean", ['"true"', '"1"', "1", "-1", "0.5", '"INF"^^xsd:double', "true", '" true "', '"1"^^xsd:boolean'], "true"),
    ("xsd:boolean", ['"false"', '"0"', "0", "0.0", "-0e0", '"NaN"^^xsd:double', "false"], "false"),
    ("xsd:boolean", ['"TRUE"', '"yes"', '"0.0"', '""', '"true"@en', "<http://a>", '"2020-01-01"^^xsd:date', '"x"^^xsd:boolean',
                     "_:a"], None),
    ("xsd:integer", ['"1"', '"+01"', "1", "1.9", "1.9e0", "true", '" 1 "', '"1.25"^^xsd:float', '"1"^^xsd:byte'], "1"),
    ("xsd:integer", ["-1.9", "-1.9e0", '"-1"'], "-1"), ("xsd:integer", ["1e20"], "100000000000000000000"),
    ("xsd:integer", ["false"], "0"),
    ("xsd:integer", ['"1.0"', '"1e0"', '""', '"INF"^^xsd:double', '"NaN"^^xsd:float', '"a"', '"1"@en', "<http://a>",
                     '"2020-01-01T00:00:00Z"^^xsd:dateTime', '"x"^^xsd:integer'], None),
    ("xsd:decimal", ['"1.50"', '"+1.5"', "1.50", "1.5e0", '"1.5"^^xsd:float'], "1.5"),
    ("xsd:decimal", ["true", '"1"', "1"], '"1"^^xsd:decimal'),
    ("xsd:decimal", ["0.1e0"], '"0.1000000000000000055511151231257827021181583404541015625"^^xsd:decimal'),
    ("xsd:decimal", ['"1e0"', '"INF"', '"INF"^^xsd:double', '"NaN"^^xsd:double', '"1,5"'], None),
    ("xsd:double", ['"1"', '"1.0"', '"1e0"', "1", "1.0", "true", '"1"^^xsd:float'], '"1.0E0"^^xsd:double'),
    ("xsd:double", ['"0.1"^^xsd:float'], '"1.0000000149011612E-1"^^xsd:double'),
    ("xsd:double", ['"INF"', '"1e999"'], '"INF"^^xsd:double'),
    ("xsd:double", ['"NaN"'], '"NaN"^^xsd:double'), ("xsd:double", ['"inf"', '"1d"', '"x"', '"1"@en', "<http://a>"], None),
    ("xsd:double", ["0.0", '"-0.0"^^xsd:decimal', '"-0"^^xsd:integer'], '"0.0E0"^^xsd:double'),
    ("xsd:double", ["-0e0", '"-0.0"'], '"-0.0E0"^^xsd:double'),
    ("xsd:token", ['"a b"', '" a  b "'], '"a b"^^xsd:token'), ("xsd:token", ['"a\u00a0"'], '"a\u00a0"^^xsd:token'),
    ("xsd:NCName", ['"a\u00a0"', '"a b"', '"a:b"'], None), ("xsd:NCName", ['" a\u00b7 "'], '"a\u00b7"^^xsd:NCName'),
    ("xsd:hexBinary", ['"0a\u00a0"'], None), ("xsd:hexBinary", ['" 0a "'], '"0A"^^xsd:hexBinary'),
    ("xsd:float", ["1.1", '"1.1"', "1.1e0"], '"1.1E0"^^xsd:float'), ("xsd:float", ["1e50"], '"INF"^^xsd:float'),
    ("xsd:float", ["16777217"], '"1.6777216E7"^^xsd:float'),
    ("xsd:float", ['"1f"'], None),
    ("xsd:string", ["<http://a>", '"http://a"', '"http://a"@en'], '"http://a"'),
    ("xsd:string", ['"01"^^xsd:integer', "1.0", "1e0", '"1"^^xsd:float'], '"1"'),
    ("xsd:string", ['"1"^^xsd:boolean', "true"], '"true"'), ("xsd:string", ["1e6"], '"1.0E6"'),
    ("xsd:string", ["999999.5e0"], '"999999.5"'),
    ("xsd:string", ["1e-6"], '"0.000001"'), ("xsd:string", ["1e-7"], '"1.0E-7"'), ("xsd:string", ["-0e0"], '"-0"'),
    ("xsd:string", ['"INF"^^xsd:float'], '"INF"'),
    ("xsd:string", ['"2020-01-01T24:00:00"^^xsd:dateTime'], '"2020-01-02T00:00:00"'),
    ("xsd:string", ['"x"^^<http://dt>', '"x"^^xsd:integer'], '"x"'),
    ("xsd:string", ['"PT60S"^^xsd:dayTimeDuration'], '"PT1M"'), ("xsd:string", ['"7"^^xsd:byte'], '"7"'),
    ("xsd:string", ["_:a"], None),
    ("xsd:dateTime", ['"2020-01-01T00:00:00Z"', '"2020-01-01T00:00:00Z"^^xsd:dateTime', '"2020-01-01Z"^^xsd:date'],
     '"2020-01-01T00:00:00Z"^^xsd:dateTime'),
    ("xsd:dateTime", ['"2020-01-01"', '"2020-02-30T00:00:00"', "1", "<http://a>", '"10:00:00"^^xsd:time', '"2020"^^xsd:gYear'],
     None),
    ("xsd:date", ['"2020-01-01T10:00:00+01:00"^^xsd:dateTime', '"2020-01-01+01:00"'], '"2020-01-01+01:00"^^xsd:date'),
    ("xsd:time", ['"2020-01-01T10:00:00Z"^^xsd:dateTime', '"10:00:00Z"'], '"10:00:00Z"^^xsd:time'),
    ("xsd:time", ['"2020-01-01"^^xsd:date'], None),
    ("xsd:gYearMonth", ['"2020-05-01"^^xsd:date'], '"2020-05"^^xsd:gYearMonth'),
    ("xsd:dayTimeDuration", ['"P1YT90S"^^xsd:duration', '"PT90S"'], '"PT1M30S"^^xsd:dayTimeDuration'),
    ("xsd:dayTimeDuration", ['"P1Y"'], None),
    ("xsd:yearMonthDuration", ['"P14M"', '"P1Y2MT5S"^^xsd:duration'], '"P1Y2M"^^xsd:yearMonthDuration'),
    ("xsd:byte", ['"127"', "127.9"], '"127"^^xsd:byte'), ("xsd:byte", ['"128"', "128", "1e10"], None),
    ("xsd:unsignedInt", ['"-1"', "-1"], None),
]


@pytest.mark.parametrize("function, argument, expected", [(name, arg, expected) for name, args,
                                                          expected in TABLE for arg in args])
def test_casts(function: str, argument: str, expected: str | None) -> None:
    assert result(function, argument) == (expected and token(expected))

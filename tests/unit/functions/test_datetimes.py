"""Dates, times and durations: lexical forms, order, parts, arithmetic."""

from datetime import date, datetime, timedelta, timezone

import pytest
from hypothesis import given, strategies as st

from engine.functions import datetimes
from engine.functions.compare import compare
from engine.functions.context import ExpressionError
from engine.timeline import days_from_civil

from .notation import result, token


@given(st.dates())
def test_days_agree_with_the_calendar_of_python(day: date) -> None:
    days = day.toordinal() - date(1970, 1, 1).toordinal()
    assert days_from_civil(day.year, day.month, day.day) == days
    assert datetimes.civil(days) == (day.year, day.month, day.day)


@given(st.integers(-10 ** 9, 10 ** 9))
def test_civil_and_days_are_inverse(days: int) -> None:
    assert days_from_civil(*datetimes.civil(days)) == days


@given(st.datetimes(timezones=st.timezones()) | st.datetimes(timezones=st.just(timezone.utc)))
def test_instants_agree_with_python(when: datetime) -> None:
    offset = when.utcoffset()
    if offset is None or offset.total_seconds() % 60 or abs(offset) > timedelta(hours=14):
        return
    found = datetimes.parse_moment("dateTime", when.isoformat())
    assert found is not None
    assert found.instant * 10 ** 6 == (when - datetime(1970, 1, 1, tzinfo=timezone.utc)) // timedelta(microseconds=1)
    again = datetimes.at_instant(found.instant, found.zone)
    assert datetimes.format_moment("dateTime", again) == datetimes.format_moment("dateTime", found)


@pytest.mark.parametrize("form, valid, invalid", [
    ("dateTime", ["2020-02-29T00:00:00", "2020-01-01T23:59:59.999999999999Z", "-0001-01-01T00:00:00+14:00",
                  "12020-01-01T00:00:00-13:59",
                  "0000-01-01T00:00:00", "2020-01-01T24:00:00", "2020-01-01T24:00:00.000Z"],
     ["2019-02-29T00:00:00", "2020-1-01T00:00:00", "2020-01-01", "2020-01-01T00:00", "2020-01-01T24:00:01", "2020-01-01T00:00:60",
      "2020-01-01T00:00:00+14:01", "2020-01-01T00:00:00+0100", "02020-01-01T00:00:00", "+2020-01-01T00:00:00",
      "2020-01-01T00:00:00.",
      "2020-01-01t00:00:00", " 2020-01-01T00:00:00", "2020-01-01 00:00:00", "2020-04-31T00:00:00", "2020-00-01T00:00:00"]),
    ("date", ["2020-12-31", "2020-12-31Z", "2020-12-31-05:00"], ["2020-12-32", "2020-12", "2020-12-31T00:00:00", "20-12-31"]),
    ("time", ["00:00:00", "23:59:59.5+01:00", "24:00:00"], ["24:00:01", "1:00:00", "12:00", "12:60:00"]),
    ("gYear", ["2020", "-2020Z"], ["20", "2020-01"]), ("gYearMonth", ["2020-01"], ["2020-13"]),
    ("gMonth", ["--01"], ["--13", "-01"]),
    ("gMonthDay", ["--02-29", "--12-31Z"], ["--02-30", "--04-31"]), ("gDay", ["---31", "---01+01:00"], ["---32", "--01"]),
])
def test_lexical_forms_of_moments(form: str, valid: list[str], invalid: list[str]) -> None:
    assert [text for text in valid if datetimes.parse_moment(form, text) is None] == []
    assert [text for text in invalid if datetimes.parse_moment(form, text) is not None] == []


@pytest.mark.parametrize("read, valid, invalid", [
    (datetimes.parse_duration, ["P1Y2M3DT4H5M6.7S", "-P1D", "PT0S", "P0Y", "PT36H", "P1YT1S"],
     ["P", "PT", "P1YT", "1Y", "P1H", "P-1Y", "P1.5Y", "PT1.S", "P1M2Y", "+P1Y", ""]),
    (datetimes.parse_day_time, ["P1DT2H", "PT5M", "-PT0.5S", "P3D"], ["P1Y", "P1M", "P1MT1M", "P", "P1Y1D"]),
    (datetimes.parse_year_month, ["P1Y", "P14M", "-P1Y2M"], ["P1D", "PT1M", "P1Y1D", "P1YT1M", "P"]),
])
def test_lexical_forms_of_durations(read, valid: list[str], invalid: list[str]) -> None:
    assert [text for text in valid if read(text) is None] == []
    assert [text for text in invalid if read(text) is not None] == []


@pytest.mark.parametrize("text, written", [
    ("P1Y14M", "P2Y2M"), ("PT90S", "PT1M30S"), ("PT25H", "P1DT1H"), ("-PT3600.50S", "-PT1H0.5S"), ("P0D", "PT0S"),
    ("P1M40D", "P1M40D"),
])
def test_durations_are_written_canonically(text: str, written: str) -> None:
    assert datetimes.format_duration(datetimes.parse_duration(text)) == written


@pytest.mark.parametrize("form, text, written", [
    ("dateTime", "2020-01-01T24:00:00", "2020-01-02T00:00:00"),
    ("dateTime", "2020-01-01T00:00:01.500+00:00", "2020-01-01T00:00:01.5Z"),
    ("dateTime", "-0044-03-15T12:00:00.0-00:30", "-0044-03-15T12:00:00-00:30"), ("time", "24:00:00Z", "00:00:00Z"),
    ("gDay", "---07Z", "---07Z"),
    ("gMonthDay", "--02-29", "--02-29"), ("gYearMonth", "-0001-02", "-0001-02"), ("gMonth", "--02", "--02"),
    ("gYear", "12020", "12020"),
])
def test_moments_are_written_canonically(form: str, text: str, written: str) -> None:
    assert datetimes.format_moment(form, datetimes.parse_moment(form, text)) == written


@pytest.mark.parametrize("first, second, order", [
    ('"2020-01-01T00:00:00Z"^^xsd:dateTime', '"2020-01-01T01:00:00+01:00"^^xsd:dateTime', 0),
    ('"2020-01-01T00:00:00Z"^^xsd:dateTime', '"2020-01-01T00:00:00+01:00"^^xsd:dateTime', 1),
    ('"2020-01-01T00:00:00"^^xsd:dateTime', '"2020-01-01T14:00:00Z"^^xsd:dateTime', None),
    ('"2020-01-01T00:00:00"^^xsd:dateTime', '"2020-01-01T14:00:01Z"^^xsd:dateTime', -1),
    ('"2020-01-01T14:00:01Z"^^xsd:dateTime', '"2020-01-01T00:00:00"^^xsd:dateTime', 1),
    ('"2020-01-01T00:00:00"^^xsd:dateTime', '"2019-12-31T10:00:00Z"^^xsd:dateTime', None),
    ('"2020-01-01"^^xsd:date', '"2020-01-02"^^xsd:date', -1), ('"2020-01-01Z"^^xsd:date', '"2020-01-01+01:00"^^xsd:date', 1),
    ('"10:00:00"^^xsd:time', '"09:59:59.9"^^xsd:time', 1), ('"2020-01-01"^^xsd:date', '"2020-01-01T00:00:00"^^xsd:dateTime',
                                                            None),
    ('"PT60S"^^xsd:dayTimeDuration', '"PT1M"^^xsd:duration', 0), ('"P1M"^^xsd:duration', '"P30D"^^xsd:duration', None),
    ('"P1M"^^xsd:duration', '"P27D"^^xsd:duration', 1), ('"P1M"^^xsd:duration', '"P32D"^^xsd:duration', -1),
    ('"P5M"^^xsd:duration', '"P153DT1S"^^xsd:duration', -1), ('"P1Y"^^xsd:yearMonthDuration', '"P12M"^^xsd:duration', 0),
    ('"2020"^^xsd:gYear', '"2021"^^xsd:gYear', None),
])
def test_order(first: str, second: str, order: int | None) -> None:
    try:
        found = compare(token(first), token(second))
    except ExpressionError:
        found = None
    assert found == order


@pytest.mark.parametrize("function, argument, expected", [
    ("YEAR", '"2011-01-10T14:45:13.815-05:00"^^xsd:dateTime', "2011"),
    ("MONTH", '"2011-01-10T14:45:13.815-05:00"^^xsd:dateTime', "1"),
    ("DAY", '"2011-01-10T14:45:13.815-05:00"^^xsd:dateTime', "10"),
    ("HOURS", '"2011-01-10T14:45:13.815-05:00"^^xsd:dateTime', "14"),
    ("MINUTES", '"2011-01-10T14:45:13.815-05:00"^^xsd:dateTime', "45"),
    ("SECONDS", '"2011-01-10T14:45:13.815-05:00"^^xsd:dateTime', "13.815"),
    ("SECONDS", '"2011-01-10T14:45:13Z"^^xsd:dateTime', '"13"^^xsd:decimal'),
    ("HOURS", '"2011-01-10T24:00:00Z"^^xsd:dateTime', "0"),
    ("DAY", '"2011-01-31T24:00:00Z"^^xsd:dateTime', "1"), ("YEAR", '"-0044-03-15"^^xsd:date', "-44"), ("YEAR", '"2011"', None),
    ("TIMEZONE", '"2011-01-10T14:45:13.815-05:00"^^xsd:dateTime', '"-PT5H"^^xsd:dayTimeDuration'),
    ("TIMEZONE", '"2011-01-10T14:45:13.815Z"^^xsd:dateTime', '"PT0S"^^xsd:dayTimeDuration'),
    ("TIMEZONE", '"2011-01-10T14:45:13.815"^^xsd:dateTime', None), ("TIMEZONE", "1", None),
    ("TZ", '"2011-01-10T14:45:13.815-05:00"^^xsd:dateTime', '"-05:00"'),
    ("TZ", '"2011-01-10T14:45:13.815Z"^^xsd:dateTime', '"Z"'),
    ("TZ", '"2011-01-10T14:45:13.815"^^xsd:dateTime', '""'), ("TZ", '"2011-01-10T14:45:13+00:00"^^xsd:dateTime', '"+00:00"'),
    ("HOURS", '"2011-01-10"^^xsd:date', None), ("YEAR", '"10:00:00"^^xsd:time', None), ("HOURS", '"10:00:00"^^xsd:time', "10"),
])
def test_parts(function: str, argument: str, expected: str | None) -> None:
    assert result(function, argument) == (expected and token(expected))


@pytest.mark.parametrize("operator, first, second, expected", [
    ("+", '"2000-10-30T11:12:00"^^xsd:dateTime', '"P3DT1H15M"^^xsd:dayTimeDuration', '"2000-11-02T12:27:00"^^xsd:dateTime'),
    ("+", '"2000-10-30T11:12:00"^^xsd:dateTime', '"P1Y2M"^^xsd:yearMonthDuration', '"2001-12-30T11:12:00"^^xsd:dateTime'),
    ("+", '"P1M"^^xsd:yearMonthDuration', '"2020-01-31"^^xsd:date', '"2020-02-29"^^xsd:date'),
    ("+", '"23:12:00+03:00"^^xsd:time', '"P1DT3H15M"^^xsd:dayTimeDuration', '"02:27:00+03:00"^^xsd:time'),
    ("+", '"2000-01-12T12:13:14Z"^^xsd:dateTime', '"P1Y3M5DT7H10M3.3S"^^xsd:duration', '"2001-04-17T19:23:17.3Z"^^xsd:dateTime'),
    ("+", '"PT1H"^^xsd:dayTimeDuration', '"P1D"^^xsd:dayTimeDuration', '"P1DT1H"^^xsd:dayTimeDuration'),
    ("+", '"P1M"^^xsd:duration', '"PT1H"^^xsd:dayTimeDuration', '"P1MT1H"^^xsd:duration'),
    ("+", '"2020-01-01"^^xsd:date', "1", None), ("+", '"2020-01-01"^^xsd:date', '"2020-01-01"^^xsd:date', None),
    ("+", '"2020-13-01"^^xsd:date', '"P1D"^^xsd:duration', None), ("+", '"10:00:00"^^xsd:time', '"P1M"^^xsd:duration', None),
    ("-", '"2000-10-30T06:12:00-05:00"^^xsd:dateTime', '"1999-11-28T09:00:00Z"^^xsd:dateTime',
     '"P337DT2H12M"^^xsd:dayTimeDuration'),
    ("-", '"2000-10-30"^^xsd:date', '"1999-11-28"^^xsd:date', '"P337D"^^xsd:dayTimeDuration'),
    ("-", '"11:12:00Z"^^xsd:time', '"04:00:00-05:00"^^xsd:time', '"PT2H12M"^^xsd:dayTimeDuration'),
    ("-", '"2000-10-30"^^xsd:date', '"1999-11-28Z"^^xsd:date', None), ("-", '"2020"^^xsd:gYear', '"2019"^^xsd:gYear', None),
    ("-", '"2000-10-30"^^xsd:date', '"P1Y2M"^^xsd:yearMonthDuration', '"1999-08-30"^^xsd:date'),
    ("-", '"P1M"^^xsd:duration', '"P1D"^^xsd:duration', None),
    ("-", '"P1Y"^^xsd:duration', '"P13M"^^xsd:duration', '"-P1M"^^xsd:duration'),
    ("*", '"PT2H10M"^^xsd:dayTimeDuration', "2.1", '"PT4H33M"^^xsd:dayTimeDuration'),
    ("*", "2.3", '"P2Y11M"^^xsd:yearMonthDuration', '"P6Y9M"^^xsd:yearMonthDuration'), ("*", '"P1M"^^xsd:duration', "2", None),
    ("*", '"PT1H"^^xsd:dayTimeDuration', '"INF"^^xsd:double', None),
    ("/", '"P1DT2H30M10.5S"^^xsd:dayTimeDuration', "1.5", '"PT17H40M7S"^^xsd:dayTimeDuration'),
    ("/", '"P2Y11M"^^xsd:yearMonthDuration', "1.5", '"P1Y11M"^^xsd:yearMonthDuration'),
    ("/", '"P3Y4M"^^xsd:yearMonthDuration', '"-P1Y4M"^^xsd:yearMonthDuration', "-2.5"),
    ("/", '"PT1M30S"^^xsd:dayTimeDuration', '"PT1S"^^xsd:dayTimeDuration', '"90"^^xsd:decimal'),
    ("/", '"PT1M"^^xsd:dayTimeDuration', "0", None), ("/", "1", '"PT1M"^^xsd:dayTimeDuration', None),
    ("/", '"PT1M"^^xsd:dayTimeDuration', '"PT0S"^^xsd:dayTimeDuration', None),
])
def test_arithmetic(operator: str, first: str, second: str, expected: str | None) -> None:
    """Most are the examples of XPath F&O sections 8.4 and 9.7."""
    assert result(operator, first, second) == (expected and token(expected))

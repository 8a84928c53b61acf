"""Durations and time stamps have bounds wherever they come in, and whoever sends one beyond them is told where it stands."""

from __future__ import annotations

import pytest
from flask.testing import FlaskClient
from hypothesis import given
from hypothesis import strategies as st

from engine.ir.notation import date_time_ms
from engine.ir.spans import DiagnosticError
from engine.ir.terms import XSD
from engine.runtime.errors import EngineError
from engine.runtime.streams import describe, duration_ms
from engine.timeline import EARLIEST_MS, LATEST_MS, LONGEST_MS, is_moment
from grammar import parse
from grammar.rif.parse import parse_rules
from server.feeds.options import parse_options
from server.formats import columns, media
from server.formats.columns import read_columns
from server.formats.items import Reader
from server.formats.reading import read_items
from server.formats.values import moment
from server.problems import Problem

LONG = ["999999999999999d", "P999999999999D", "PT" + "9" * 400 + "S", "9" * 400 + "s", "9" * 5_000 + "ms", "1" + "0" * 14 + "h",
        f"{LONGEST_MS + 1}ms", "P366001D"]
FAR = [str(LATEST_MS + 1), str(EARLIEST_MS - 1), "9" * 16, "10000-01-01T00:00:00Z", "0000-12-31T23:59:59Z", "-0001-01-01T00:00:00Z",
       "9999-12-31T23:59:59.999-14:00", "0001-01-01T00:00:00+14:00", "9" * 5_000 + "-01-01T00:00:00Z", "2020-01-01T24:00:00." + "1" * 5_000]


@pytest.mark.parametrize("member", ["lateness", "idle", "maxAhead", "retention"])
@pytest.mark.parametrize("text", LONG)
def test_durations_of_a_descriptor_are_bounded(client: FlaskClient, member: str, text: str) -> None:
    with pytest.raises(EngineError) as error:
        describe("s", {member: text}, "http://localhost")
    assert (error.value.slug, error.value.extra["member"]) == ("bad-descriptor", member) and len(error.value.detail) < 300


@pytest.mark.parametrize("parameter", ["watermark", "timestamp"])
@pytest.mark.parametrize("text", FAR)
def test_times_of_a_push_are_bounded(temps: FlaskClient, parameter: str, text: str) -> None:
    refused = temps.post(f"/streams/temps?{parameter}=" + text.replace("+", "%2B"), data="<http://g> { <http://a> <http://b> 1 }",
                         content_type=media.TRIG)
    assert (refused.status_code, refused.get_json()["parameter"]) == (400, parameter)


@pytest.mark.parametrize("query", [f"until={LATEST_MS + 1}", "since=10000-01-01T00:00:00Z", f"since=q1c1-{1 << 63}",
                                   "rate=999999999999999d", "rate=" + "9" * 400 + "s", f"since=q1c1-{'9' * 90}"])
def test_times_of_a_feed_are_bounded(query: str) -> None:
    with pytest.raises(Problem) as refused:
        parse_options(query, None)
    assert refused.value.status == 400 and refused.value.extra["parameter"] == query.partition("=")[0]


@pytest.mark.parametrize("text", FAR[3:])
def test_time_stamps_of_items_are_bounded(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(columns, "SMALL", 0)
    reader = Reader(event_time=True)
    stamp = f'<http://g> <{reader.predicate}> "{text}"^^<{XSD}dateTime> .\n'
    quads = f"<http://a> <http://b> <http://c> <http://g> .\n{stamp}".encode()
    assert read_columns(quads, media.NQUADS, reader) is None
    with pytest.raises(Problem) as refused:
        read_items(quads, media.NQUADS, reader)
    assert refused.value.slug == "missing-timestamp" and refused.value.errors[0]["item"] == "<http://g>"


@pytest.mark.parametrize("text", [*FAR[:3], "9" * 30, "9" * 5_000], ids=len)
def test_times_of_lines_are_bounded(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(columns, "SMALL", 0)
    body = f"1\t<http://a> <http://b> <http://c> .\n{text}\t<http://a> <http://b> <http://c> .\n".encode()
    assert read_columns(body, media.TIMED, Reader(event_time=True)) is None
    with pytest.raises(Problem) as refused:
        read_items(body, media.TIMED, Reader(event_time=True))
    assert refused.value.slug == "rdf-syntax" and refused.value.errors[0]["location"]["line"] == 2


BODY = "SELECT * FROM STREAM <http://s> {window} WHERE {{ ?s ?p ?o }}"
TEXTS = [text for long in ("999999999999999d", "P999999999D", "PT999999999999999999S") for text in (
    f"REGISTER QUERY q AS {BODY.format(window=f'[RANGE {long}]')}",
    f"REGISTER QUERY q AS {BODY.format(window=f'[RANGE 1s STEP {long}]')}",
    f"REGISTER QUERY q COMPUTE EVERY {long} AS {BODY.format(window='[RANGE 1s]')}",
    f"REGISTER QUERY q AS {BODY.format(window=f'[FROM NOW-{long} TO NOW-1s STEP 1s]')}",
    f"REGISTER QUERY q AS {BODY.format(window=f'[FROM NOW-2s TO NOW-{long} STEP 1s]')}")]
TEXTS += [f'REGISTER QUERY q START AT "{time}" AS {BODY.format(window="[RANGE 1s]")}' for time in (
    "99999-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "0000-01-01T00:00:00Z")]


@pytest.mark.parametrize("text", TEXTS)
def test_durations_and_times_of_a_query_are_bounded(text: str) -> None:
    with pytest.raises(DiagnosticError) as refused:
        parse(text)
    span = refused.value.diagnostics[0].span
    assert span is not None and span.start > 0


@pytest.mark.parametrize("number", ["999999999999", "99999999999.5"])
def test_windows_of_rules_are_bounded(number: str) -> None:
    text = "Document(Prefix(e <http://e/>) Window(%s h) Group(Forall ?x (?x[e:p -> 1] :- ?x[e:q -> 1])))" % number
    with pytest.raises(DiagnosticError) as refused:
        parse_rules(text, "text/x-rif-ps", "r")
    assert any("1,000 years" in found.message and found.span is not None for found in refused.value.diagnostics)


@given(st.one_of(st.integers(0, 10 ** 30).map(str), st.decimals(0, 10 ** 25, allow_nan=False, places=3).map(lambda d: f"{d:f}")),
       st.sampled_from(["ms", "s", "m", "h", "d"]), st.booleans())
def test_a_duration_is_within_the_bound_or_refused(number: str, unit: str, iso: bool) -> None:
    text = f"{number}{unit}"
    if iso and unit != "ms":
        text = f"P{number}D" if unit == "d" else f"PT{number}{unit.upper()}"
    try:
        assert 0 <= duration_ms(text) <= LONGEST_MS
    except ValueError as error:
        assert len(str(error)) < 200


DATE_TIME = r"-?[0-9]{4,12}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?(Z|[+-][01][0-9]:[0-5][0-9])?"


@given(st.one_of(st.integers(-10 ** 18, 10 ** 18).map(str), st.from_regex(DATE_TIME, fullmatch=True)))
def test_a_time_is_within_the_bounds_or_refused(text: str) -> None:
    date_time_ms(text)
    try:
        assert is_moment(moment(text))
    except ValueError as error:
        assert len(str(error)) < 200

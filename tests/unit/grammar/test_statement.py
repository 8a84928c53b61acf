"""The head of a statement: REGISTER, sources, windows, durations, the dialects' places for RSTREAM."""

from __future__ import annotations

import pytest

from engine.ir.patterns import BGP, GraphPattern, WindowPattern, children
from engine.ir.spans import DiagnosticError
from engine.ir.statement import (AllWindow, Ask, Construct, Describe, GraphSource, NowWindow, RuleSource, Select, StreamSource,
                                 TimeWindow, TupleWindow, Window)
from engine.ir.terms import Constant, Variable
from grammar import parse

CSPARQL = """
REGISTER QUERY hot COMPUTE EVERY 10s AS
PREFIX ex: <http://ex.org/>     # a comment with REGISTER QUERY { " '
SELECT ?s ?v
FROM STREAM <http://ex.org/temps> [RANGE 10s STEP 2s]
FROM <http://ex.org/tbox>
FROM NAMED ex:named
USING RULES rdfs, ex:alarms
USING GRAPH ex:reasoning
WHERE { ?s ex:value ?v . FILTER(?v > 30) }
"""

RSPQL = """
PREFIX : <http://ex.org/>
REGISTER RSTREAM <out> AS
CONSTRUCT { ?s a :Hot }
FROM NAMED WINDOW :w ON :temps [RANGE PT10S STEP PT0.5S]
FROM NAMED WINDOW <v> ON STREAM <other> [ITEMS 3]
WHERE { WINDOW :w { ?s :value ?v } window ?any { ?s :seen true } }
"""


def test_csparql() -> None:
    statement = parse(CSPARQL)
    assert (statement.name, statement.kind, statement.dialect, statement.registered) == ("hot", "query", "csparql", True)
    assert statement.streams == (StreamSource("http://ex.org/temps", TimeWindow(10_000, 2_000)),)
    assert statement.graphs == (GraphSource("http://ex.org/tbox"), GraphSource("http://ex.org/named", True))
    assert statement.rules == (RuleSource("rdfs"), RuleSource("http://ex.org/alarms"))
    assert statement.reasoning_graphs == (GraphSource("http://ex.org/reasoning"),)
    assert (statement.compute_every_ms, statement.report, statement.output) == (10_000, "close", "rstream")
    assert isinstance(statement.query, Select) and statement.query.variables == (Variable("s"), Variable("v"))
    assert statement.text == CSPARQL


def test_rspql() -> None:
    statement = parse(RSPQL)
    assert (statement.name, statement.kind, statement.dialect) == ("out", "stream", "rspql")
    assert statement.streams == (StreamSource("http://ex.org/temps", TimeWindow(10_000, 500), "http://ex.org/w"),
                                 StreamSource("other", TupleWindow(3, "items"), "v"))
    assert isinstance(statement.query, Construct)
    first, second = children(statement.query.pattern)
    assert isinstance(first, WindowPattern) and first.name == Constant("<http://ex.org/w>")
    assert isinstance(second, WindowPattern) and second.name == Variable("any")


@pytest.mark.parametrize(("written", "window"), [
    ("[RANGE 10s]", TimeWindow(10_000, 10_000)),
    ("[RANGE 10s TUMBLING]", TimeWindow(10_000, 10_000)),
    ("[RANGE 10s SLIDE 3s]", TimeWindow(10_000, 3_000)),
    ("[range 1.5m step 500ms]", TimeWindow(90_000, 500)),
    ("[RANGE 10sec STEP 1sec]", TimeWindow(10_000, 1_000)), ("[RANGE 1h1m30.5s]", TimeWindow(3_690_500, 3_690_500)),
    ("[RANGE PT1H30M STEP P1D]", TimeWindow(5_400_000, 86_400_000)),
    ("[RANGE pt1h step 1H]", TimeWindow(3_600_000, 3_600_000)),
    ("[FROM NOW-PT2H TO NOW-PT1H STEP PT1H]", TimeWindow(3_600_000, 3_600_000, 3_600_000)),
    ("[FROM NOW - 5s TO NOW STEP 1s]", TimeWindow(5_000, 1_000)),
    ("[TRIPLES 100]", TupleWindow(100, "triples")), ("[RANGE TRIPLES 100]", TupleWindow(100, "triples")),
    ("[ITEMS 2 STEP 1]", TupleWindow(2, "items")), ("[ITEM 2]", TupleWindow(2, "items")),
    ("[NOW]", NowWindow()), ("[ALL]", AllWindow()), ("[ # a comment\n now ]", NowWindow()),
])
def test_windows(written: str, window: Window) -> None:
    assert parse(f"SELECT * FROM STREAM <s> {written} {{ ?s ?p ?o }}").streams == (StreamSource("s", window),)


@pytest.mark.parametrize(("text", "output"), [
    ("ISTREAM SELECT * FROM STREAM <s> [NOW] {}", "istream"),
    ("SELECT DSTREAM ?s FROM STREAM <s> [NOW] {}", "dstream"),
    ("CONSTRUCT ISTREAM { ?s ?p ?o } FROM STREAM <s> [NOW] {}", "istream"),
    ("REGISTER ISTREAM <out> AS SELECT ISTREAM * {}", "istream"),
    ("REGISTER QUERY q AS RSTREAM ASK {}", "rstream"),
])
def test_output_operators_in_the_places_of_both_dialects(text: str, output: str) -> None:
    assert parse(text).output == output


@pytest.mark.parametrize(("head", "report", "every", "start"), [
    ("REGISTER QUERY q REPORT ON CHANGE AS", "change", None, 0),
    ("REGISTER QUERY q REPORT FULL COMPUTED EVERY PT5S AS", "full", 5_000, 0),
    ('register query q start at "2024-05-01T02:00:00.5+02:00" as', "close", None, 1_714_521_600_500),
    ('REGISTER QUERY q START AT "1970-01-01T00:00:01"^^<http://www.w3.org/2001/XMLSchema#dateTime>', "close", None, 1_000),
    ("REGISTER QUERY q START AT 1970-01-01T00:00:01Z", "close", None, 1_000),
])
def test_when_a_query_reports(head: str, report: str, every: int | None, start: int) -> None:
    statement = parse(f"{head} SELECT * {{}}")
    assert (statement.report, statement.compute_every_ms, statement.start_at_ms) == (report, every, start)


@pytest.mark.parametrize(("written", "name"), [
    ("q", "q"), ("hot-sensors.v2", "hot-sensors.v2"), ("<http://ex.org/q>", "http://ex.org/q"), ("ex:q", "http://ex.org/q"),
    ("<rel>", "http://base/rel"), ("", None), ("2nd", "2nd"), ("\u00fcber", "\u00fcber")])
def test_names(written: str, name: str | None) -> None:
    statement = parse(f"BASE <http://base/> PREFIX ex: <http://ex.org/> REGISTER STREAM {written} AS CONSTRUCT {{}} WHERE {{}}")
    assert (statement.name, statement.kind) == (name, "stream")


def test_prefixes_after_register_serve_its_name_too() -> None:
    assert parse("REGISTER QUERY ex:q AS PREFIX ex: <http://ex.org/> SELECT * {}").name == "http://ex.org/q"


@pytest.mark.parametrize(("text", "form"), [
    ("SELECT * {}", Select), ("ASK { ?s ?p ?o }", Ask), ("CONSTRUCT WHERE { ?s ?p ?o }", Construct), ("DESCRIBE <x>", Describe)])
def test_plain_sparql_is_not_registered(text: str, form: type) -> None:
    statement = parse(text)
    assert isinstance(statement.query, form)
    assert (statement.registered, statement.dialect, statement.form) == (False, "sparql", form.__name__.upper())


def test_key_words_in_strings_iris_names_and_comments_are_none() -> None:
    text = """
    # FROM STREAM <nowhere> [RANGE 1s] WINDOW
    PREFIX window: <http://ex.org/WINDOW#FROM>
    SELECT ?from ?window FROM <http://ex.org/FROM> WHERE {
        ?from window:STREAM "FROM STREAM <x> [RANGE 1s] # not a comment" ; window:x '''WINDOW <w> { } '"''' . # WINDOW <w> {
        OPTIONAL { ?window <#FROM> 'REGISTER' }
    }"""
    statement = parse(text)
    assert (statement.streams, statement.registered) == ((), False)
    assert statement.graphs == (GraphSource("http://ex.org/FROM"),)


def test_a_stream_group_is_a_window_of_its_own() -> None:
    statement = parse("SELECT * { STREAM <a> [RANGE 1s] { ?s ?p ?o } STREAM <a> [NOW] { ?s ?q ?r } GRAPH <g> { ?s ?p 1 } }")
    assert statement.streams == (StreamSource("a", TimeWindow(1_000, 1_000), "urn:window:0"),
                                 StreamSource("a", NowWindow(), "urn:window:1"))
    assert isinstance(statement.query, Select)
    groups = children(children(statement.query.pattern)[0])
    assert isinstance(groups[1], GraphPattern)
    assert [window.name for window in children(groups[0]) if isinstance(window, WindowPattern)] == [
        Constant("<urn:window:0>"), Constant("<urn:window:1>")]


def test_graph_names_a_stream_of_from_named_stream() -> None:
    statement = parse("SELECT * FROM NAMED STREAM <s> [RANGE 1s] { GRAPH <s> { ?s ?p ?o } GRAPH <t> {} }")
    assert statement.streams == (StreamSource("s", TimeWindow(1_000, 1_000), "s"),)
    assert isinstance(statement.query, Select)
    window, graph = children(children(statement.query.pattern)[0])
    assert isinstance(window, WindowPattern) and isinstance(graph, GraphPattern)


def test_places_are_those_of_the_text_as_written() -> None:
    text = ("PREFIX e: <http://e/>\n# \u00fc\nSELECT * FROM STREAM e:s [RANGE 1s] {\n"
            "\t?s <http://e/\\u00e9> \"\\U0001F600x\" .\n\t?t e:p ?u }")
    statement = parse(text)
    assert isinstance(statement.query, Select)
    source, block = statement.streams[0].span, children(statement.query.pattern)[0]
    assert isinstance(block, BGP)
    spans = [triple.span for triple in block.triples]
    assert source is not None and source.text == "e:s [RANGE 1s]"
    assert [span and span.text for span in spans] == ['?s <http://e/\\u00e9> "\\U0001F600x"', "?t e:p ?u"]
    assert [(span.line, span.column) for span in spans if span] == [(4, 2), (5, 2)]
    assert block.triples[0].object == Constant('"\U0001F600x"')


def test_several_mistakes_are_told_at_once() -> None:
    with pytest.raises(DiagnosticError) as caught:
        parse("SELECT * FROM STREAM <a> [RANGE 10] FROM STREAM <b> RANGE 1s WHERE {}")
    assert [d.span.text for d in caught.value.diagnostics if d.span] == ["10", "RANGE"]
    with pytest.raises(DiagnosticError) as caught:
        parse("SELECT * { ?s a:b c:d . BIND(1 AS ?s) WINDOW <w> {} }")
    assert [d.span.text for d in caught.value.diagnostics if d.span] == ["a:", "c:", "?s", "<w>"]

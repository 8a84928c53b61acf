"""Golden files of the stages after parsing: the queries of static/examples and of this file, as EXPLAIN shows them.

``pytest --update`` rewrites tests/golden/<stage>/<name>.txt; the difference is to be read.
"""

from __future__ import annotations

from pathlib import Path

import pyoxigraph
import pytest

from engine.compiler import STAGES, Catalog, compile_statement
from engine.execution.compiled import Compiled
from engine.ir.spans import DiagnosticError
from engine.runtime.rows import graph_table
from grammar import parse
from grammar.rule_sets import parse_rules

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "static" / "examples"
TBOX = tuple((str(q.subject), str(q.predicate), str(q.object)) for q in pyoxigraph.parse(path=str(EXAMPLES / "weather-tbox.ttl")))
NAMES = ["weather-averages", "weather-coast", "weather-gusts", "weather-trend", "weather-alarms"]
PREFIX = "PREFIX : <http://ex.org/> REGISTER QUERY q AS SELECT ?s FROM STREAM <http://example.org/streams/weather> [RANGE 10s STEP 2s] "


def catalog(text: str) -> Catalog:
    statement = parse(text)
    graphs = {g.iri: graph_table(TBOX) for g in (*statement.graphs, *statement.reasoning_graphs)}
    return Catalog({s.stream: "event" for s in statement.streams}, graphs)


@pytest.mark.parametrize("stage", STAGES[1:])
@pytest.mark.parametrize("name", NAMES)
def test_golden(name: str, stage: str, request: pytest.FixtureRequest) -> None:
    text = (EXAMPLES / f"{name}.rq").read_text("utf-8")
    found = compile_statement(parse(text), catalog(text), name).explain(stage) + "\n"
    golden = ROOT / "tests" / "golden" / stage / f"{name}.txt"
    if request.config.getoption("--update"):
        golden.write_text(found, "utf-8")
    assert found == golden.read_text("utf-8")


@pytest.mark.parametrize(("body", "code", "place"), [
    ("WHERE { ?s :p ?o BIND(WINDOW_OPEN(:none) AS ?t) }", "query-syntax", "WINDOW_OPEN(:none)"),
    ("WHERE { ?s :p ?o FILTER EXISTS { ?s :q ?o FILTER(TIMESTAMP(?s, ?o) > ?o) } }", "query-syntax", "TIMESTAMP(?s, ?o)"),
    ("FROM <http://ex.org/none> WHERE { ?s :p ?o }", "no-such-graph", "FROM <http://ex.org/none>"),
    ("USING RULES nope WHERE { ?s :p ?o }", "no-such-rules", "nope"),
])
def test_what_is_not_there_is_refused_at_its_place(body: str, code: str, place: str) -> None:
    statement = parse(PREFIX + body)
    with pytest.raises(DiagnosticError) as refusal:
        compile_statement(statement, Catalog({s.stream: "event" for s in statement.streams}))
    diagnostic = refusal.value.diagnostics[0]
    assert diagnostic.code == code
    assert diagnostic.span is not None and diagnostic.span.text in place or place in diagnostic.span.text


def test_every_problem_is_told_at_once() -> None:
    statement = parse(PREFIX + "FROM <http://ex.org/none> USING RULES nope WHERE { ?s :p ?o }")
    with pytest.raises(DiagnosticError) as refusal:
        compile_statement(statement, Catalog({}))
    assert [d.code for d in refusal.value.diagnostics] == ["unknown-stream", "no-such-graph", "no-such-rules"]


# --- rule sets with a time of their own

TIMED = {"lars": "ex:Hot(S) <- [3 sec] diamond ex:p(S, V).", "dmtl": "ex:Alarm(S) :- Boxminus[0,2]ex:Hot(S)",
         "back": "ex:p(S,S) :- Diamondminus[0,1]ex:Hot(S)"}


def compiled_with(*names: str, head: str = PREFIX, once: bool = False) -> Compiled:
    sets = {name: parse_rules("PREFIX ex: <http://ex.org/>\n" + TIMED[name], "text/x-lars" if name == "lars" else "text/x-datalogmtl", name)
            for name in names}
    statement = parse(f"{head} USING RULES {', '.join(names)} WHERE {{ ?s a :Alarm }}")
    return compile_statement(statement, Catalog({s.stream: "event" for s in statement.streams}, rules=sets, asked_once=once), "q",
                             "logical")


def test_a_plan_shows_the_programs_of_timed_rules() -> None:
    found = compiled_with("dmtl", "lars")
    text = found.explain("logical")
    first, second = (text.index(f"-- timed rules, stage {n}, on {line}") for n, line in (
        (1, "granules of 1000 ms\n"), (2, "dense time, after 1\n")))
    assert "what timed rules derive" in text[:first] and "<http://ex.org/Hot>" in text[first:second]
    assert "<http://ex.org/Alarm>" in text[second:]
    assert "window 3s" in text[first:second] and "window 2s" in text[second:], "and what each has to keep"
    assert found.with_goal is None and not found.keeps_closures, "nothing is kept of what such rules derive beside their state"


@pytest.mark.parametrize(("names", "once", "code", "place"), [
    (("lars", "back", "dmtl"), False, "rules-unsafe", "Hot(S)"),
    (("lars",), True, "unsupported-in-streaming", "lars"),
])
def test_where_rules_with_a_time_of_their_own_are_refused(names: tuple[str, ...], once: bool, code: str, place: str) -> None:
    """Two timelines that need each other, and a query that is asked once."""
    with pytest.raises(DiagnosticError) as refusal:
        compiled_with(*names, once=once)
    [diagnostic] = refusal.value.diagnostics
    assert diagnostic.code == code and diagnostic.span is not None and place in diagnostic.span.text

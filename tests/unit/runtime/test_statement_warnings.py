"""Warnings about valid statements that may never answer, each at its place; and none about statements that do."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from engine.compiler import BUILT_IN_RULES
from engine.ir.spans import Diagnostic, DiagnosticError
from engine.runtime.rows import graph_table
from engine.runtime.statement_checks import statement_warnings
from grammar import parse
from grammar.rif.parse import parse_rules
from tests.case_files import CASES
from tests.unit.grammar.corpus import community_texts, dialect_texts, evaluation_texts
from tests.unit.runtime.test_engine import EVENTS, NOW, P, Running, S, item, running

__all__ = ["running"]       # the fixture
STREAM = "FROM STREAM <http://ex.org/s> [RANGE 10s STEP 2s]"
G = "<http://ex.org/%s>"
RULES = parse_rules("Document(Prefix(ex <http://ex.org/>) Group(Forall ?x (?x[ex:derived -> 1] :- ?x[ex:p -> ?x])\n"
                    "Forall ?x (?x[rdf:type -> ex:Kind] :- ?x[ex:p -> ?x])))", "text/x-rif-ps", "mine")
OPEN = parse_rules("Document(Prefix(ex <http://ex.org/>) Group(Forall ?x ?p (?x[?p -> 1] :- ?p[ex:p -> ?x])))", "text/x-rif-ps", "any")
GRAPH = graph_table([(G % "Thermo", "<http://www.w3.org/2000/01/rdf-schema#subClassOf>", G % "Sensor")])


def found_in(text: str, shown: Sequence[str] | None = ("p",)) -> list[Diagnostic]:
    words = None if shown is None else frozenset(G % word for word in shown)
    rules = {**BUILT_IN_RULES, "mine": RULES, "any": OPEN}
    return statement_warnings(parse("PREFIX : <http://ex.org/> " + text), {"http://ex.org/g": GRAPH}, rules, words)


# The place is between guillemets; then the code.
@pytest.mark.parametrize(("marked", "code"), [
    (f"SELECT ?s «?t» {STREAM} {{ ?s :p ?o }}", "unbound-variable"),
    (f"SELECT * {STREAM} {{ {{ SELECT ?s «?t» {{ ?s :p ?o }} }} }}", "unbound-variable"),
    (f"CONSTRUCT {{ ?s :q 1 . «?s :p ?t» }} {STREAM} {{ ?s :p ?o }}", "unbound-variable"),
    (f"SELECT ?s {STREAM} {{ ?s :p ?o FILTER(«?t > 3») }}", "unbound-variable"),
    (f"SELECT ?s {STREAM} {{ ?s :p ?o FILTER(?o > 3 && «?t = ?o») }}", "unbound-variable"),
    (f"SELECT ?s {STREAM} {{ ?s :p ?o FILTER(«:near(?o, 3)») }}", "unknown-function"),
    (f"SELECT (COUNT(«:f(?s)») AS ?n) {STREAM} {{ ?s :p ?o }}", "unknown-function"),
    (f"SELECT ?s {STREAM} {{ ?s :p ?o FILTER(!«REGEX(?o, 'a{{1001}}')») }}", "bad-pattern"),
    (f"SELECT ?s {STREAM} {{ ?s :p ?o FILTER(«REPLACE(?o, '[b-a]', 'x', 'i')» = 'x') }}", "bad-pattern"),
    (f"SELECT ?s {STREAM} {{ ?s :p ?o FILTER(«REGEX(?o, 'a', 'g')») }}", "bad-pattern"),
    (f"SELECT ?s {STREAM} {{ ?s :p ?o FILTER(«REPLACE(?o, 'a*', 'x')» = 'x') }}", "bad-pattern"),
    (f"SELECT ?s {STREAM} {{ ?s :p ?o FILTER(«REGEX(?o, '(a+)+\\\\1')») }}", "bad-pattern"),
    (f"SELECT ?s {STREAM} {{ ?s :p ?o FILTER(«REGEX(?o, '((a{{1,30}}){{1,30}}){{1,30}}')») }}", "bad-pattern"),
    ("SELECT ?s FROM STREAM «<http://ex.org/s> [RANGE 2s STEP 10s]» { ?s :p ?o }", "step-over-range"),
    (f"SELECT ?s {STREAM} {{ «?s :temp ?o» }}", "unknown-word"),
    (f"SELECT ?s {STREAM} FROM :g {{ ?s :p ?o . «?s a :Sensr» }}", "unknown-word"),
    (f"SELECT ?s {STREAM} USING RULES mine {{ ?s :p ?o . «?s :derivd 1» }}", "unknown-word"),
    (f"SELECT ?s {STREAM} {{ ?s :p ?o FILTER NOT EXISTS {{ «?s :q ?o» }} }}", "unknown-word")])
def test_each_doubt_at_its_place(marked: str, code: str) -> None:
    text = marked.replace("«", "").replace("»", "")
    found = found_in(text)
    assert [one.code for one in found] == [code], [one.render() for one in found]
    assert found[0].span is not None and found[0].span.text == marked[marked.index("«") + 1:marked.index("»")]


@pytest.mark.parametrize("text", [
    f"SELECT * {STREAM} {{ ?s :p ?o }}", f"SELECT ?s (COUNT(*) AS ?n) {STREAM} {{ ?s :p ?o }} GROUP BY ?s",
    f"SELECT ?s ?o ?x {STREAM} {{ ?s :p ?o OPTIONAL {{ ?o :p ?x }} }}", f"SELECT ?v {STREAM} {{ ?s :p ?o BIND(?o + 1 AS ?v) }}",
    f"SELECT ?s {STREAM} {{ ?s :p ?o FILTER(REGEX(?o, 'a{{1000}}', 'i') && REPLACE(?o, '(', ')', ?s) = ?o && REGEX(?o, ?s, 'g')) }}",
    f"SELECT ?s {STREAM} {{ ?s :p ?o FILTER(!BOUND(?x)) }}", f"CONSTRUCT {{ [] :q ?s }} {STREAM} {{ ?s :p ?o }}",
    f"PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> SELECT ?s {STREAM} {{ ?s :p ?o FILTER(xsd:integer(?o) > 3) }}",
    "SELECT ?s FROM STREAM <http://ex.org/s> [RANGE 2s STEP 2s] { ?s :p ?o }",
    f"SELECT ?s {STREAM} FROM :g {{ ?s a :Sensor ; :p ?o }}", f"SELECT ?s {STREAM} USING GRAPH :g {{ ?s a :Thermo }}",
    f"SELECT ?s {STREAM} USING RULES mine {{ ?s a :Kind ; :derived ?o }}", f"SELECT ?s {STREAM} USING RULES any {{ ?s :other ?o }}",
    f"SELECT ?s {STREAM} {{ ?s ?p ?o . ?s a ?c . ?s a <http://www.w3.org/2002/07/owl#Thing> }}",
    "REGISTER QUERY q REPORT ON CHANGE AS SELECT ?s FROM STREAM <http://ex.org/s> [RANGE 2s STEP 10s] { ?s :p ?o }"])
def test_no_doubt_without_reason(text: str) -> None:
    assert not found_in(text), [one.render() for one in found_in(text)]


def test_a_stream_that_has_shown_nothing_yet_leaves_words_open() -> None:
    assert not found_in(f"SELECT ?s {STREAM} {{ ?s :temp ?o }}", None)


TEXTS = {**dialect_texts(), **community_texts(), **evaluation_texts(),
         **{str(path.relative_to(CASES)): path.read_text("utf-8") for path in sorted(CASES.rglob("*.rq"))}}


def test_any_valid_statement_can_be_looked_at() -> None:
    """Those of the cases and of the suites answer: nothing is said of them that depends on no data, but of what they are about."""
    looked = 0
    for name, text in TEXTS.items():
        try:
            statement = parse(text)
        except DiagnosticError:
            continue
        looked += 1
        for one in [*statement_warnings(statement, {}, dict(BUILT_IN_RULES), None), *statement_warnings(statement, {}, {}, frozenset())]:
            assert one.span is None or one.span.source == text, name
    assert looked > 100


def test_what_the_streams_have_shown_counts(running: Running) -> None:
    engine = running.engine
    engine.put_stream("s", EVENTS)
    text = f"REGISTER QUERY q AS SELECT ?s {STREAM} {{ ?s {P} ?o . ?s <http://ex.org/other> ?x }}"
    assert engine.warnings(text) == []
    engine.push("s", [item(NOW + 100)])
    running.until(lambda: len(engine.tail_part("s").events) == 1)
    assert [one.code for one in engine.warnings(text)] == ["unknown-word"] == [one.code for one in engine.explain(text)["warnings"]]
    engine.put_graph("http://ex.org/g", [(S, "<http://ex.org/other>", '"1"')])
    assert engine.warnings(text.replace(STREAM, f"{STREAM} FROM <http://ex.org/g>")) == []

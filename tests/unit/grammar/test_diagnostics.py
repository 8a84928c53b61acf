"""Mistakes: each is refused at its place, says what was expected, and has a hint that, followed, makes the text parse."""

from __future__ import annotations

import pytest

from engine.ir.spans import Diagnostic, DiagnosticError
from grammar import parse


def refused(text: str) -> tuple[Diagnostic, ...]:
    """The diagnostics of a text that must not parse."""
    with pytest.raises(DiagnosticError) as caught:
        parse(text)
    return caught.value.diagnostics


def only(text: str) -> Diagnostic:
    found = refused(text)
    assert len(found) == 1, caught_messages(found)
    return found[0]


def caught_messages(found: tuple[Diagnostic, ...]) -> str:
    return "\n".join(diagnostic.render() for diagnostic in found)


# The mistake is between the guillemets; then a part of the message, and of the hint.
COMMON = [
    # a window without its brackets
    ("SELECT * FROM STREAM <s> «RANGE» 10s STEP 2s WHERE {}", "Expected '['", "[RANGE 10s STEP 2s]"),
    ("SELECT * FROM STREAM <s> [RANGE 10s STEP 2s «WHERE» {}", "Expected ']'", "close the window"),
    # durations
    ("SELECT * FROM STREAM <s> [RANGE «10» STEP 2s] {}", "needs a unit", "10s for seconds"),
    ("SELECT * FROM STREAM <s> [RANGE «10» s] {}", "needs a unit", "10s"),
    ("SELECT * FROM STREAM <s> [RANGE «10secs»] {}", "Unknown unit 'secs'", "write 10s"),
    ("SELECT * FROM STREAM <s> [RANGE «1m30»] {}", "needs a unit", "30s for seconds"),
    ("SELECT * FROM STREAM <s> [RANGE «10parsecs»] {}", "Unknown unit", "units are ms, s, m, h, d"),
    ("SELECT * FROM STREAM <s> [RANGE «P1M»] {}", "no fixed length", "P30D"),
    ("SELECT * FROM STREAM <s> [RANGE «0.0001s»] {}", "whole number of milliseconds", "ms"),
    ("SELECT * FROM STREAM <s> [RANGE «0s»] {}", "longer than nothing", "RANGE 10s"),
    ("SELECT * FROM STREAM <s> [RANGE 10s STEP «]» {}", "Expected a duration", "STEP needs a value: STEP 2s"),
    ("SELECT * FROM STREAM <s> [RANGE «STEP» 2s] {}", "Expected a duration", "10s"),
    ("SELECT * FROM STREAM <s> [RANGE 10s «2»s] {}", "Expected ']'", "STEP 2s"),
    ("SELECT * FROM STREAM <s> [TRIPLES «0»] {}", "at least 1", "[TRIPLES 100]"),
    ("REGISTER QUERY q COMPUTE EVERY «AS» SELECT * {}", "Expected a duration", "10s"),
    ('REGISTER QUERY q START AT «"noon"» AS SELECT * {}', "not an xsd:dateTime", "START AT"),
    # prefixes
    ("SELECT * { ?s «foaf:»name ?o }", "Unknown prefix 'foaf:'", "PREFIX foaf: <http://xmlns.com/foaf/0.1/>"),
    ("SELECT * FROM STREAM «:»s [NOW] {}", "Unknown prefix ':'", "PREFIX : <"),
    # AS
    ("SELECT (COUNT(?x) «?n») { ?x ?p ?o }", "Expected an operator or AS", "AS ?n"),
    ("SELECT (COUNT(?x)«)» { ?x ?p ?o }", "Expected an operator or AS", "(... AS ?name)"),
    ("SELECT * { BIND(1«)» }", "AS", "(... AS ?name)"),
    ("SELECT «COUNT»(?x) AS ?n { ?x ?p ?o }", "Expected a variable", "(COUNT(...) AS ?name)"),
    ("SELECT ?x «AS» ?y { ?x ?p ?o }", "found 'AS'", "in brackets"),
    # the order of clauses
    ("SELECT * WHERE { ?s ?p ?o } «FROM» STREAM <s> [RANGE 10s]", "FROM STREAM stands after WHERE", "between the SELECT clause"),
    ("SELECT * { { SELECT * «FROM» NAMED WINDOW <w> ON <s> [NOW] {} } }", "sub-query", "before the outer WHERE"),
    ("SELECT * FROM STREAM <a> [NOW]«,» FROM STREAM <b> [NOW] {}", "Expected FROM, USING or WHERE", "no comma"),
    ("SELECT * FROM STREAM <a> [NOW]«,» <b> [NOW] {}", "Expected FROM, USING or WHERE", "no comma"),
    ("SELECT * FROM «WINDOW» <w> ON <s> [NOW] {}", "Expected STREAM, NAMED or an IRI", "FROM NAMED WINDOW"),
    ("SELECT * FROM NAMED WINDOW «ON» <s> [NOW] AS :w {}", "Expected an IRI", "the name comes before its stream"),
    ("SELECT * FROM NAMED WINDOW <w> «<s>» [NOW] {}", "Expected ON", "FROM NAMED WINDOW :w ON"),
    ("SELECT * FROM STREAM «temps» [NOW] {}", "Expected an IRI", "<http://ex.org/s>"),
    ("SELECT * FROM STREAM «<»http://ex.org/a b> [NOW] {}", "Expected an IRI", "holds no spaces"),
    ("PREFIX : «<»http://ex.org SELECT * {}", "Expected an IRI", "ends with >"),
    ("SELECT * FROM «GRAPH» <g> {}", "Expected STREAM, NAMED or an IRI", "without GRAPH"),
    # output and report
    ("ISTREAM SELECT «RSTREAM» ?x {}", "RSTREAM and ISTREAM in one statement", "once"),
    ("REGISTER QUERY q REPORT FULL REPORT ON «CHANGE» AS SELECT * {}", "exclude each other", "one of them"),
    ("REGISTER QUERY q REPORT ON CHANGE COMPUTE EVERY «10s» AS SELECT * {}", "fixed times", "one of them"),
    ("REGISTER QUERY q REPORT ON «CHNGE» AS SELECT * {}", "Expected CHANGE", "did you mean CHANGE?"),
    # what was opened and not closed
    ("SELECT * «{» ?s ?p ?o", "This '{' is never closed", "add '}'"),
    ("SELECT (COUNT«(»?x AS ?n { ?x ?p ?o }", "never closed", "add ')'"),
    ("SELECT * { ?s ?p «\"abc }»", "string is never closed", "close it with \""),
    ("SELECT * { ?s ?p ?o } «}»", "closes nothing", "remove it"),
    ("SELECT * { FILTER(?x > 1 «}»", "Expected ')' for the '(' of line 1", "add ')' before this '}'"),
    ("SELECT ?k { ?k ?p ?v «GROUP» BY ?k }", "found 'GROUP'", "close the group with '}' before GROUP"),
    # windows
    ("SELECT * FROM NAMED WINDOW <w> ON <s> [NOW] { WINDOW «<v>» {} }", "WINDOW <v> is not declared", "FROM NAMED WINDOW <v> ON"),
    ("SELECT * FROM NAMED WINDOW <w> ON <s> [NOW] FROM NAMED WINDOW «<w>» ON <t> [NOW] {}", "declared twice", "name of its own"),
    ("SELECT * FROM STREAM <s> [FROM NOW-«1h» TO NOW-2h STEP 1h] {}", "ends before it begins", "longer one"),
    # key words
    ("«SELEKT» * {}", "REGISTER or SELECT, found 'SELEKT'", "did you mean SELECT?"),
    ("«REGSITER» QUERY q AS SELECT * {}", "found 'REGSITER'", "did you mean REGISTER?"),
    ("REGISTER «QUREY» q AS SELECT * {}", "found 'QUREY'", "did you mean QUERY?"),
    ("REGISTER QUERY q AS «SELCT» * {}", "found 'SELCT'", "did you mean SELECT?"),
    ("SELECT * «FORM» STREAM <s> [NOW] {}", "found 'FORM'", "did you mean FROM?"),
    ("SELECT * FROM «STREM» <s> [NOW] {}", "found 'STREM'", "did you mean STREAM?"),
    ("SELECT * FROM STREAM <s> [«RANG» 10s] {}", "found 'RANG'", "did you mean RANGE?"),
    ("SELECT * FROM STREAM <s> [RANGE 10s «STPE» 2s] {}", "found 'STPE'", "did you mean STEP?"),
    ("SELECT * { ?s ?p ?o «FILTR»(?o > 1) }", "found 'FILTR'", "did you mean FILTER?"),
    ("SELECT * { ?s ?p ?o . «OPTONAL» { ?s ?q ?r } }", "found 'OPTONAL'", "did you mean OPTIONAL?"),
    ("SELECT * { FILTER(«REGX»(?x, 'a')) }", "Expected an expression", "did you mean REGEX?"),
    ("SELECT ?k { ?k ?p ?v } «GROUPBY» ?k", "found 'GROUPBY'", "write GROUP BY"),
    ("SELECT ?k { ?k ?p ?v } «ODER» BY ?k", "found 'ODER'", "did you mean ORDER?"),
    # SPARQL
    ("SELECT ?x«,» ?y { ?x ?p ?y }", "found ','", "no commas in SELECT"),
    ("SELECT * { FILTER(?x =«=» 1) }", "found '='", "written ="),
    ("SELECT * { FILTER(?x = 1 «AND» ?y = 2) }", "found 'AND'", "write &&"),
    ("SELECT * { ?s ?p ?o «?s» ?q ?r }", "found '?s'", "end the triple before it with '.'"),
    ("SELECT * { {} «SELECT» * {} }", "found 'SELECT'", "braces of its own"),
    ("SELECT * { ?s ?p ?o «UNION» {} }", "found 'UNION'", "between groups"),
    ("SELECT * { ?s «A» <c> }", "found 'A'", "in lower case"),
    ("SELECT * WHERE «?s» ?p ?o }", "Expected '{'", "WHERE { ... }"),
    # scope
    ("SELECT * { ?s ?p ?o BIND(1 AS «?o») }", "BIND to ?o", "new variable"),
    ("SELECT (1 AS «?s») { ?s ?p ?o }", "?s is used already", "another name"),
    ("SELECT ?k «?v» { ?k ?p ?v } GROUP BY ?k", "?v is not a key of GROUP BY", "SAMPLE(?v)"),
    ("«SELECT» * { ?k ?p ?v } GROUP BY ?k", "SELECT * of a grouped query", "COUNT(?x)"),
    ("SELECT * { FILTER(«COUNT(?x)» > 1) }", "COUNT stands only in SELECT", "sub-query"),
    ("SELECT (SUM(«COUNT(?x)») AS ?n) {}", "COUNT stands only in SELECT", "sub-query"),
    ("SELECT * { _:a ?p ?o OPTIONAL { «_:a» ?q ?r } }", "two groups of triples", "?a"),
    ("SELECT * { VALUES (?x ?y) { («1») } }", "1 values for 2 variables", "UNDEF"),
]


@pytest.mark.parametrize(("marked", "message", "hint"), COMMON, ids=[marked for marked, _, _ in COMMON])
def test_common_mistakes(marked: str, message: str, hint: str) -> None:
    start, end = marked.index("«"), marked.index("»") - 1
    text = marked.replace("«", "").replace("»", "")
    found = only(text)
    assert found.code == "query-syntax"
    assert found.span is not None
    assert (found.span.source, found.span.start, found.span.end) == (text, start, end), found.render()
    assert message in found.message, found.render()
    assert found.hint is not None and hint in found.hint, found.render()
    assert found.span.snippet() in found.render()


@pytest.mark.parametrize(("text", "code", "place"), [
    ("INSERT DATA { <a> <b> <c> }", "update-not-supported", "INSERT"),
    ("PREFIX : <a> DELETE WHERE { ?s ?p ?o }", "update-not-supported", "DELETE"),
    ("SELECT * {} SELECT * {}", "two-queries", "SELECT"),
    ("SELECT * {} ; ASK {}", "two-queries", ";"),
    ("REGISTER QUERY a AS SELECT * {} REGISTER QUERY b AS SELECT * {}", "two-queries", "REGISTER"),
    ("SELECT * { SERVICE <http://ex.org/sparql> { ?s ?p ?o } }", "service-disabled", "SERVICE"),
    ("SELECT * FROM STREAM <s> [TRIPLES 10 STEP 2] {}", "step-not-supported", "2"),
    ("SELECT * { << ?s ?p ?o >> ?q ?r }", "query-syntax", "<<"),
    ("SELECT * { ?s ?p ?o {| ?q ?r |} }", "query-syntax", "{|"),
    ("SELECT * { FILTER" + "(" * 70 + "1" + ")" * 70 + "}", "nesting-too-deep", "("),
    ("SELECT * { FILTER(1" + " + 1" * 300 + ") }", "nesting-too-deep", "1" + " + 1" * 53),
    ("SELECT * {" + " OPTIONAL {}" * 300 + "}", "nesting-too-deep", "OPTIONAL {}"),
    ("SELECT * { '\\uD800' ?p ?o }", "query-syntax", "\\uD800"),
    ("SELECT * { '\ud800' ?p ?o }", "query-syntax", "\ufffd"),
])
def test_limits_have_their_own_code(text: str, code: str, place: str) -> None:
    found = only(text)
    assert found.code == code, found.render()
    assert found.span is not None and found.span.text == place


def test_a_text_that_is_too_long_is_refused_unread() -> None:
    assert only("#" * 70_000).code == "body-too-large"


def test_a_text_that_needs_too_much_work_is_one_query_with_too_many_parts() -> None:
    assert only("SELECT * { VALUES ?x {" + " 1" * 21_000 + " } }").code == "query-too-large"


@pytest.mark.parametrize("text", ["", "  \n", "# nothing", "SELECT", "REGISTER", "REGISTER QUERY q AS", "SELECT * FROM", "FROM",
                                  "}", "\x00"])
def test_next_to_nothing(text: str) -> None:
    found = only(text)
    assert found.span is not None and "xpected" in found.message or "closes nothing" in found.message


def test_expected_is_said_as_a_person_would() -> None:
    assert only("SELECT * { ?s ?p }").message == "Expected a term, found '}'."
    assert only("SELECT * { ?s }").message == "Expected a predicate, found '}'."
    assert only("SELECT * { FILTER(1 + ) }").message == "Expected an expression, found ')'."
    assert only("SELECT * { ?s ?p ?o 1 }").message == "Expected a pattern, ',', '.', ';' or '}', found '1'."
    assert only("SELECT * { ?s ?p 1 . 2 }").message == "Expected a predicate, found '}'."


def test_the_snippet_of_a_long_line_is_short() -> None:
    found = only("SELECT * { " + "?s ?p ?o . " * 500 + "?s foo ?o }")
    snippet = found.span.snippet() if found.span else ""
    row, carets = snippet.split("\n")
    assert len(row) < 200 and row[carets.index("^"):].startswith("foo")

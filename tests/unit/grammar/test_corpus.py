"""Every text of the corpus parses, prints and reads back, or is refused with a diagnostic that names what is wrong in it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.ir.printer import show
from engine.ir.spans import DiagnosticError
from grammar import parse
from tests.shared import shared
from tests.unit.grammar.corpus import community_texts, dialect_texts, evaluation_texts, syntax_texts

# The community group's examples are sketches of a language that was being discussed: what is wrong in each, first mistake first.
REFUSED = {
    "RSP-QL Sample Queries 1": "found 'COUNT'",                     # SELECT COUNT(?ride) as ?rideCount, without brackets
    "RSP-QL Sample Queries 2": "This '(' is never closed",          # (count(distinct ?taxi) as ?taxinumber
    "RSP-QL Sample Queries 3": "Expected an IRI, found 's'",        # ON s [...]: a prefix without its colon
    "RSP-QL Sample Queries 4": "Unknown prefix ':'",                # FROM NAMED WINDOW :wind, and PREFIX : nowhere
    "RSP-QL Sample Queries 5": "Expected an operator or AS",        # (...) AS ?profit
    "RSP-QL Sample Queries 6": "Unknown prefix ':'",
    "RSP-QL Sample Queries 7": "found 'GRAPH'",                     # FROM GRAPH gn:geonames
    "RSP-QL Sample Queries 8": "FROM NAMED stands in a sub-query",
    "queries 1": "Expected an IRI, found 'ON'",                     # FROM NAMED WINDOW ON STREAM ... AS :win
    "queries 2": "Expected an IRI, found 'ON'",
    "queries 3": "Expected an IRI, found 'ON'",
    "queries 4": "Expected an IRI, found 'ON'",
}
DIALECTS, COMMUNITY, EVALUATION, SYNTAX = dialect_texts(), community_texts(), evaluation_texts(), syntax_texts()


def test_the_corpus_is_there() -> None:
    shared("rsp-ql-cg")
    assert len(DIALECTS) == 16
    assert COMMUNITY.keys() == REFUSED.keys()
    assert len(EVALUATION) >= 220
    assert len(SYNTAX) == 94


@pytest.mark.parametrize("name", DIALECTS)
def test_dialects(name: str) -> None:
    _reads_back(DIALECTS[name])


@pytest.mark.parametrize("name", COMMUNITY)
def test_community_examples_are_refused_for_what_is_wrong_in_them(name: str) -> None:
    with pytest.raises(DiagnosticError) as caught:
        parse(COMMUNITY[name])
    first = caught.value.diagnostics[0]
    assert REFUSED[name] in first.message
    assert first.hint and first.span


def test_a_community_example_put_right() -> None:
    text = COMMUNITY.get("RSP-QL Sample Queries 6") or shared("rsp-ql-cg").name
    statement = parse("PREFIX : <http://ex.org/>\n" + text)
    assert [source.name for source in statement.streams] == ["http://ex.org/win"]


@pytest.mark.parametrize("name", EVALUATION)
def test_w3c_evaluation_tests(name: str) -> None:
    _reads_back(EVALUATION[name])


@pytest.mark.parametrize("name", [name for name, (_, positive) in SYNTAX.items() if positive])
def test_w3c_positive_syntax_tests(name: str) -> None:
    _reads_back(SYNTAX[name][0])


@pytest.mark.parametrize("name", [name for name, (_, positive) in SYNTAX.items() if not positive])
def test_w3c_negative_syntax_tests_are_refused_with_a_place(name: str) -> None:
    with pytest.raises(DiagnosticError) as caught:
        parse(SYNTAX[name][0])
    assert all(diagnostic.span for diagnostic in caught.value.diagnostics)


def _reads_back(text: str) -> None:
    statement = parse(text)
    printed = show(statement)
    assert replace(parse(printed), text="") == replace(statement, text=""), printed

"""The published suites on the reference evaluator, as ``python -m tests.conformance`` runs them, and the runner itself."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from engine.ir.rules import RuleSet
from engine.ir.spans import Diagnostic, DiagnosticError
from engine.ir.statement import Statement
from engine.records import Record
from engine.reference.sparql import Result
from tests.conformance import csrbench, health, sparql
from tests.conformance.__main__ import main
from tests.conformance.executors import Answer, Evaluation, reference
from tests.conformance.outcomes import Verdict
from tests.conformance.results import Expected, difference
from tests.shared import shared


def test_csrbench() -> None:
    """Q1 to Q4 at every evaluation time."""
    with reference() as answer:
        outcomes = list(csrbench.run(shared("csrbench"), answer))
    assert [o for o in outcomes if o.verdict is not Verdict.PASSED] == []
    assert len(outcomes) == 4 + 34 + 9 + 9


def test_w3c_sparql() -> None:
    """All 232 evaluation tests in windows and as static graphs; the 94 syntax tests, and 9 that stand among the others."""
    with reference() as answer:
        outcomes = list(sparql.run(shared("w3c-sparql"), answer))
    assert [o for o in outcomes if o.verdict is not Verdict.PASSED] == []
    assert len(outcomes) == 2 * 232 + 94 + 9


def test_health_streams() -> None:
    """Five windows in one query; the amended reading has answers once the partner is away and readings are sure."""
    with reference() as answer:
        outcomes = list(health.run(shared("rspqlstar-usecase"), answer))
    assert [o for o in outcomes if o.verdict is not Verdict.PASSED] == []
    assert len(outcomes) == 2 * 35
    streams = {name: health.read_items(shared("rspqlstar-usecase", "reification", f"{name}.trigs.gz")) for name in health.WINDOWS}
    text = shared("rspqlstar-usecase", "reification", "query.rspqlstar").read_text("utf-8").replace("FILTER(?loc != ?home)", "")
    base = shared("rspqlstar-usecase", "base-data.ttl").read_bytes()
    at = streams["heart"][0][0] + 59_000
    assert [row["activity"] for row in health.answers_at(at, text, base, streams)] == [
        "<http://www.example.org/ontology/activity/resting>"]


def test_the_runner_fails_on_a_wrong_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "queries").mkdir()
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "data_00.ttl").write_text("<http://e/s> <http://e/p> 1.00002 .")
    (tmp_path / "queries" / "Q9.engine.query").write_text(
        "REGISTER QUERY q AS SELECT ?v FROM STREAM <http://e/s> [RANGE ${SIZE} STEP 1s] WHERE { ?s <http://e/p> ?v }")
    (tmp_path / "queries" / "Q9.config.json").write_text('{"vars": {"SIZE": "1s"}}')

    def expect(*rows: dict[str, float]) -> int:
        windows = [{"open_incl": 0, "close_excl": 1000, "rows": rows}]
        (tmp_path / "expected.json").write_text(json.dumps({"queries": {"Q9": {"full_windows": windows}}}))
        return main(["csrbench", str(tmp_path)])

    assert expect({"v": 1.0}) == 0
    assert "1 passed, 0 failed, 0 skipped" in capsys.readouterr().out
    assert expect({"v": 1.1}) == 1
    assert "failed Q9 at 1000" in capsys.readouterr().out
    assert expect({"v": 1.0}, {"v": 1.0}) == 1


def test_a_refused_query_fails_with_its_reason() -> None:
    def refuse(statements: Mapping[str, Statement], records: Sequence[Record], rules: Mapping[str, RuleSet]) -> dict[str, list[Evaluation]]:
        raise DiagnosticError(Diagnostic("unsupported", "No such thing."))

    outcomes = list(sparql.run(shared("w3c-sparql"), Answer(refuse), "bind/bind01"))
    assert [(o.verdict, o.reason) for o in outcomes] == [(Verdict.FAILED, "refused, unsupported: No such thing.")] * 2


@pytest.mark.parametrize(("found", "expected"), [
    ({"x": '"1.0"^^<http://www.w3.org/2001/XMLSchema#decimal>'}, {"x": '"1"^^<http://www.w3.org/2001/XMLSchema#decimal>'}),
    ({"x": "_:a"}, {"x": "_:b"}),
])
def test_equal_answers(found: dict[str, str], expected: dict[str, str]) -> None:
    assert difference(Result("SELECT", ("x",), (found,)), Expected([expected], ("x",))) is None


@pytest.mark.parametrize(("found", "expected"), [
    ({"x": '"1.0"^^<http://www.w3.org/2001/XMLSchema#decimal>'}, {"x": '"1"^^<http://www.w3.org/2001/XMLSchema#integer>'}),
    ({"x": '"1"'}, {"x": '"01"'}),
    ({"x": "_:a"}, {"x": "<b>"}),
    ({}, {"x": "<b>"}),
])
def test_different_answers(found: dict[str, str], expected: dict[str, str]) -> None:
    assert difference(Result("SELECT", ("x",), (found,)), Expected([expected], ("x",))) is not None


def suite(folder: Path, query: str, result: str, suffix: str = ".ttl", **record: object) -> list[tuple[str, str]]:
    """The outcomes of a suite of one test on the reference evaluator, without the reading's name."""
    (folder / "q.rq").write_text(query)
    (folder / f"r{suffix}").write_text(result)
    (folder / "index.json").write_text(json.dumps([{"query": "q.rq", "result": f"r{suffix}", **record}]))
    with reference() as answer:
        return [(o.verdict.value, o.reason) for o in sparql.run(folder, answer)]


RS = "@prefix rs: <http://www.w3.org/2001/sw/DataAccess/tests/result-set#> .\n"
ROWS = RS + "".join(f'[] rs:solution [ rs:index {i} ; rs:binding [ rs:variable "x" ; rs:value {v} ] ] .\n'
                    for i, v in ((2, 1), (1, "<b>"), (3, '"a"')))


def test_a_record_may_leave_out_nearly_everything(tmp_path: Path) -> None:
    assert suite(tmp_path, "ASK {}", RS + "[] rs:boolean true .") == [("passed", "")] * 2
    assert suite(tmp_path, "ASK {}", RS + "[] rs:boolean false .")[0][0] == "failed"


def test_the_order_of_an_indexed_result_counts(tmp_path: Path) -> None:
    (tmp_path / "d.ttl").write_text("[] <p> 1, <b>, 'a' .")
    query = "SELECT ?x { [] <p> ?x } ORDER BY "
    assert suite(tmp_path, query + "?x", ROWS, data=["d.ttl"]) == [("passed", "")] * 2
    assert suite(tmp_path, query + "DESC(?x)", ROWS, data="d.ttl")[0][1].startswith("expected rows with keys of the kinds")
    assert suite(tmp_path, query + "DESC(?x)", ROWS.replace("rs:index", "rs:size"), data=["d.ttl"])[0][0] == "passed"


def test_named_graphs_with_names_of_their_own_and_from(tmp_path: Path) -> None:
    (tmp_path / "g.ttl").write_text("<s> <p> _:o .")
    query, result = "SELECT ?g { GRAPH ?g { ?s ?p ?o } }", RS + '[] rs:solution [ rs:binding [ rs:variable "g" ; rs:value <%s> ] ] .'
    assert suite(tmp_path, query, result % "g.ttl", graphData=["g.ttl"]) == [("passed", "")] * 2
    assert suite(tmp_path, query, result % "urn:n", graphData=[{"name": "urn:n", "path": "g.ttl"}]) == [("passed", "")] * 2
    assert suite(tmp_path, query.replace("{", "FROM NAMED <g.ttl> {", 1), result % "g.ttl") == [("passed", "")] * 2
    assert suite(tmp_path, query.replace("{", "FROM <g.ttl> {", 1), result % "g.ttl")[0][0] == "failed"
    assert suite(tmp_path, query.replace("{", "FROM <x.ttl> {", 1), result % "g.ttl")[0][1] == (
        "unreadable: no file for <http://example.org/x.ttl>, which FROM names")


def test_results_as_csv_tell_texts_only(tmp_path: Path) -> None:
    query = 'SELECT * { VALUES (?x ?y) { (1 <a>) ("" UNDEF) ("a,b\\nc" "d") } }'
    assert suite(tmp_path, query, 'x,y\r\n1,http://example.org/a\r\n,\r\n"a,b\nc",d\r\n', ".csv") == [("passed", "")] * 2
    assert suite(tmp_path, query, 'x,y\r\n2,http://example.org/a\r\n,\r\n"a,b\nc",d\r\n', ".csv")[0][0] == "failed"


def test_reduced_may_keep_duplicates_or_not(tmp_path: Path) -> None:
    csv = "x\r\n1\r\n1\r\n2\r\n"
    assert suite(tmp_path, "SELECT REDUCED ?x { VALUES ?x { 1 1 2 } }", csv, ".csv")[0][0] == "passed"
    assert suite(tmp_path, "SELECT DISTINCT ?x { VALUES ?x { 1 1 2 } }", csv, ".csv")[0][0] == "failed"
    assert suite(tmp_path, "SELECT REDUCED ?x { VALUES ?x { 1 1 } }", csv, ".csv")[0][0] == "failed"


@pytest.mark.parametrize(("kind", "query", "verdict"), [
    ("PositiveSyntaxTest", "SELECT * {}", "passed"), ("PositiveSyntaxTest11", "SELECT * {", "failed"),
    ("NegativeSyntaxTest11", "SELECT * {", "passed"), ("NegativeSyntaxTest", "SELECT * {}", "failed"),
])
def test_syntax_tests_are_found_in_manifests(tmp_path: Path, kind: str, query: str, verdict: str) -> None:
    (tmp_path / "syntax").mkdir()
    (tmp_path / "syntax" / "q.rq").write_text(query)
    (tmp_path / "syntax" / "manifest.ttl").write_text(
        f"@prefix mf: <http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#> .\n<#t> a mf:{kind} ; mf:action <q.rq> .")
    with reference() as answer:
        assert [(o.case, o.verdict.value) for o in sparql.run(tmp_path, answer)] == [("syntax/t", verdict)]

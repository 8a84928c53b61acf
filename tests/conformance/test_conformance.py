"""The published suites on the reference evaluator, as ``python -m tests.conformance`` runs them, and the runner itself."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from engine.ir.spans import Diagnostic, DiagnosticError
from engine.ir.statement import Statement
from engine.records import Record
from engine.reference.sparql import Result
from tests.conformance import csrbench, health, sparql
from tests.conformance.__main__ import main
from tests.conformance.executors import reference
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
    """All 216 single-graph tests, as a window and as a static graph."""
    with reference() as answer:
        outcomes = list(sparql.run(shared("w3c-sparql"), answer))
    assert [o for o in outcomes if o.verdict is not Verdict.PASSED] == []
    assert len(outcomes) == 2 * 216


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


def test_a_refused_query_is_skipped_with_its_reason() -> None:
    def refuse(statement: Statement, records: Sequence[Record]) -> list[tuple[int, Result]]:
        raise DiagnosticError(Diagnostic("unsupported", "No such thing."))

    outcomes = list(sparql.run(shared("w3c-sparql"), refuse, "bind/bind01"))
    assert [(o.verdict, o.reason) for o in outcomes] == [(Verdict.SKIPPED, "refused, unsupported: No such thing.")] * 2


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

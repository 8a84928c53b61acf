"""The published LARS programs on the reference evaluator, in the language's own syntax; and that the comparison can fail."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from engine.execution.own_process import own_process
from engine.ir.rules import Fact, RuleSet
from engine.ir.statement import Statement
from engine.records import Record
from engine.reference.formulas import Model
from tests.conformance import lars
from tests.conformance.executors import Answer, Evaluation, derived_model, reference, registered_model
from tests.conformance.outcomes import Verdict
from tests.shared import shared


def not_asked(statements: Mapping[str, Statement], records: Sequence[Record],
              rules: Mapping[str, RuleSet]) -> dict[str, list[Evaluation]]:
    raise AssertionError("not asked")


def test_laser() -> None:
    """All 15, whole facts at every time point."""
    with reference() as answer:
        outcomes = list(lars.run(shared("laserpp-lars"), answer))
    assert [o for o in outcomes if o.verdict is not Verdict.PASSED] == []
    assert len(outcomes) == 15


def test_laser_by_the_plan() -> None:
    """The same as relations in DuckDB."""
    outcomes = list(lars.run(shared("laserpp-lars"), Answer(not_asked, derived_model)))
    assert [o for o in outcomes if o.verdict is not Verdict.PASSED] == [] and len(outcomes) == 15


@pytest.mark.parametrize("executor", ["tasks", pytest.param("spark", marks=pytest.mark.spark)])
def test_laser_as_continuous_queries(executor: str) -> None:
    """Registered, over streams of triples."""
    def pumped(program: RuleSet, facts: Sequence[Fact], until_ms: int) -> Model:
        if executor == "spark":
            return registered_model(program, facts, until_ms)
        with own_process() as tasks:
            return registered_model(program, facts, until_ms, tasks=tasks)

    outcomes = list(lars.run(shared("laserpp-lars"), Answer(not_asked, pumped, at_once=True)))
    assert [o for o in outcomes if o.verdict is not Verdict.PASSED] == [] and len(outcomes) == 15


def outcome(folder: Path, **changed: Any) -> tuple[Verdict, str]:
    record = {"suite": "S", "name": "N", "stream": "1 4 1 : p(a), p(B)\n2 : p(7)", "rules": "q(X) := [$, 1] [D] p(X)",
              "expected": {"0": "0 ->", "1": "1 -> q(a) q(B)", "2": "2 -> q(a) q(B) q(7)", "3": "3 -> q(7)"}} | changed
    (folder / "cases.json").write_text(json.dumps([record]))
    with reference() as answer:
        found, = lars.run(folder, answer)
    return found.verdict, found.reason


def test_a_wrong_answer_fails(tmp_path: Path) -> None:
    assert outcome(tmp_path) == (Verdict.PASSED, "")
    assert outcome(tmp_path, expected={"1": "1 -> q(a)"})[1].startswith("at 1: missing [], too many [('q', ")
    assert outcome(tmp_path, expected={"3": "3 -> q(7) q(8)"})[1].startswith("at 3: missing [('q', ")
    assert outcome(tmp_path, rules="q(X) := [$, 1] [D] p(Y)") == (Verdict.FAILED, "refused, rules-unsafe: Nothing binds X.")


def test_an_executor_that_cannot_says_so(tmp_path: Path) -> None:
    (tmp_path / "cases.json").write_text(json.dumps([{"suite": "S", "name": "N"}]))
    found, = lars.run(tmp_path, Answer(not_asked))
    assert (found.verdict, found.reason) == (Verdict.SKIPPED, lars.UNABLE)

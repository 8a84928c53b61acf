"""Proofs of answers: every row of every case, and of random streams, has one whose steps and leaves hold."""

from __future__ import annotations

import pytest

from engine.why.explain import UnexplainedError, explain
from tests.case_files import Case, find_cases
from tests.proofs import check, watched
from tests.treatments import reference


@pytest.mark.parametrize("case", find_cases(), ids=lambda case: case.name)
def test_every_row_of_every_case(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    records = case.records()
    for seen in watched(monkeypatch, lambda: reference(records)):
        for row in seen.evaluation.relation.bag():
            try:
                found = explain(seen.case, row, most=3)
            except UnexplainedError:
                assert seen.case.statement.form == "PROGRAM" or seen.case.statement.rule_windows
                continue
            assert found.proofs, f"no proof of {row} at {seen.evaluation.at}"
            for proof in found.proofs:
                check(proof, seen.case)

"""Proofs of answers: every row of every case, and of random streams, has one whose steps and leaves hold."""

from __future__ import annotations

import pytest

from engine.compiler import BUILT_IN_RULES
from engine.reference import streams
from engine.reference.why import UnexplainedError, explain
from grammar import parse
from grammar.rif import parse_rules
from tests.case_files import Case, find_cases
from tests.proofs import check, watched


@pytest.mark.parametrize("case", find_cases(), ids=lambda case: case.name)
def test_every_row_of_every_case(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    records = case.records()
    for seen in watched(monkeypatch, lambda: streams.run(records, parse, parse_rules, BUILT_IN_RULES)):
        for row in seen.evaluation.relation.bag():
            try:
                found = explain(seen.case, row, most=3)
            except UnexplainedError:
                assert seen.case.statement.form == "PROGRAM"
                continue
            assert found.proofs, f"no proof of {row} at {seen.evaluation.at}"
            for proof in found.proofs:
                check(proof, seen.case)

"""Closures that are too large for one task: rounds of Spark jobs, made anew or kept with their intervals."""

from __future__ import annotations

import pytest

from engine.records import Register
from grammar import parse
from tests import sparks
from tests.bags import same_bag
from tests.case_files import find_cases
from tests.merged import merge, split

NAMES = "programs/both-needed", "programs/one-subject", "rules/transitive", "rules/own-window"
CASES = [case for case in find_cases() if case.name in NAMES]


@pytest.mark.spark
@pytest.mark.parametrize("strategy", ["incremental", "recompute"])
def test_rounds_of_jobs(strategy: str) -> None:
    records = merge(CASES, in_steps=strategy == "recompute")
    queries = sorted({record.query for record in records if isinstance(record, Register)})
    found = sparks.pumped(records, parse, executor="sql", strategy=strategy, batches=2, closed_rows=0)
    answers = split(sparks.answers(found, queries), CASES)
    for case in CASES:
        for query, logged in case.expected().items():
            assert [at for at, _ in answers[case.name][query]] == [at for at, _ in logged], (case.name, query)
            assert all(same_bag(bag, right) for (_, bag), (_, right) in zip(answers[case.name][query], logged)), (case.name, query)

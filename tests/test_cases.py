"""Every case of tests/cases under every treatment: one answer. ``pytest --update`` rewrites the expectations."""

from __future__ import annotations

import pytest

from tests.bags import ordered_alike, same_bag
from tests.case_files import Case, find_cases
from tests.case_rows import show_row
from tests.merged import ends, merge, split
from tests.treatments import TREATMENTS, Treatment, parameters


@pytest.mark.parametrize(("case", "treatment"), parameters(find_cases()))
def test_case(case: Case, treatment: Treatment, request: pytest.FixtureRequest) -> None:
    reason = treatment.refusal(case)
    if reason is not None:
        pytest.skip(reason)
    if treatment.spark and case.limit is not None:
        request.applymarker(pytest.mark.xfail(reason=case.limit, strict=True))
    answers = treatment.alone(case) if request.config.getoption("--separately") else treatment.answers(case)
    if request.config.getoption("--update") and treatment is TREATMENTS[0]:
        case.write(answers)
    expected = case.expected()
    assert {query: [at for at, _ in logged] for query, logged in answers.items()} == \
        {query: [at for at, _ in logged] for query, logged in expected.items()}
    same = ordered_alike if case.ordered else same_bag
    for query, logged in answers.items():
        for (at, bag), (_, right) in zip(logged, expected[query], strict=True):
            assert same(bag, right), "\n".join([
                f"{query} at {at}: expected", *sorted(show_row(row, case.prefixes) for row in right),
                "but got", *sorted(show_row(row, case.prefixes) for row in bag)])


def test_merging_cases_changes_nothing() -> None:
    """What the treatments on Spark are given, on the reference."""
    for alike in ([c for c in find_cases() if ends(c)], [c for c in find_cases() if not ends(c)]):
        for name, answers in split(TREATMENTS[0].run(merge(alike)), alike).items():
            for query, logged in answers.items():
                right = next(c for c in alike if c.name == name).expected()[query]
                assert [at for at, _ in logged] == [at for at, _ in right], (name, query)
                assert all(same_bag(bag, expected) for (_, bag), (_, expected) in zip(logged, right, strict=True)), (name, query)


def test_there_are_cases() -> None:
    """A runner that finds nothing would pass."""
    assert len(find_cases()) >= 40

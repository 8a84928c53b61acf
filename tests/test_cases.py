"""Every case of tests/cases under every treatment that needs no Spark: one answer. ``pytest --update`` rewrites the expectations."""

from __future__ import annotations

import pytest

from engine.rewrite import PASSES
from tests.bags import same_bag
from tests.case_files import Case, find_cases
from tests.merged import ends, merge, split
from tests.treatments import TREATMENTS, WITHOUT, Treatment, differs, has_rules, parameters, run_case

MERGED_PARTS = 10


@pytest.mark.parametrize(("case", "treatment"), parameters(find_cases(), lambda treatment: not treatment.spark))
def test_case(case: Case, treatment: Treatment, request: pytest.FixtureRequest) -> None:
    run_case(case, treatment, request)


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in find_cases() if has_rules(case)])
def test_each_pass_left_out(case: Case, request: pytest.FixtureRequest) -> None:
    """Without a pass that changes its plans, a case has the same answers."""
    for name, treatment in WITHOUT.items():
        if differs(case, name):
            try:
                run_case(case, treatment, request)
            except AssertionError as wrong:
                wrong.add_note(treatment.name)
                raise


@pytest.mark.parametrize("in_steps", [False, True])
@pytest.mark.parametrize("part", range(MERGED_PARTS))
def test_merging_cases_changes_nothing(in_steps: bool, part: int) -> None:
    """What the treatments on Spark are given, on the reference. It looks at each query for each record, so of all cases together it would
    take ten times as long."""
    some = find_cases()[part::MERGED_PARTS]
    for alike in filter(None, ([c for c in some if ends(c)], [c for c in some if not ends(c)])):
        for name, answers in split(TREATMENTS[0].run(merge(alike, in_steps=in_steps)), alike).items():
            for query, logged in answers.items():
                right = next(c for c in alike if c.name == name).expected()[query]
                assert [at for at, _ in logged] == [at for at, _ in right], (name, query)
                assert all(same_bag(bag, expected) for (_, bag), (_, expected) in zip(logged, right, strict=True)), (name, query)


@pytest.mark.parametrize("name", PASSES)
def test_each_pass_changes_the_plans_of_some_cases(name: str) -> None:
    """Those without it are run by a treatment of their own."""
    assert sum(differs(case, name) for case in find_cases()) >= 4


def test_there_are_cases() -> None:
    """A runner that finds nothing would pass."""
    assert len(find_cases()) >= 40

"""Every case of tests/cases on Spark: its own joins, and tasks in its jobs. Beside tests/test_cases.py, so that two processes may share
the work."""

from __future__ import annotations

import pytest

from tests.case_files import Case, find_cases
from tests.treatments import Treatment, parameters, run_case


@pytest.mark.parametrize(("case", "treatment"), parameters(find_cases(), spark=True))
def test_case(case: Case, treatment: Treatment, request: pytest.FixtureRequest) -> None:
    run_case(case, treatment, request)

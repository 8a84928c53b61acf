"""Every case of tests/cases by plans of Spark SQL, a Spark job and more for each: Spark's own joins."""

from __future__ import annotations

import pytest

from tests.case_files import Case, find_cases
from tests.treatments import Treatment, by_spark_sql, parameters, run_case


# The first case of a treatment runs all of them, as one log: that takes four to six minutes.
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize(("case", "treatment"), parameters(find_cases(), by_spark_sql))
def test_case(case: Case, treatment: Treatment, request: pytest.FixtureRequest) -> None:
    run_case(case, treatment, request)

"""Every case of tests/cases as tasks in Spark jobs. By plans of Spark SQL they run in test_cases_by_spark_sql.py, so that two processes may
share the work."""

from __future__ import annotations

import pytest

from tests.case_files import Case, find_cases
from tests.treatments import Treatment, by_spark_sql, parameters, run_case


@pytest.mark.parametrize(("case", "treatment"), parameters(find_cases(), lambda treatment: treatment.spark and not by_spark_sql(treatment)))
def test_case(case: Case, treatment: Treatment, request: pytest.FixtureRequest) -> None:
    run_case(case, treatment, request)

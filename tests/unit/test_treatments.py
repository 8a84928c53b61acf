"""Cases that are run together: what fails does so by itself."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from engine.records import Record, Register
from tests import sparks, treatments
from tests.case_files import Answers, Case, find_cases
from tests.sparks import QueriesFailed
from tests.treatments import Treatment


class Broken:
    """Runs logs as the reference does. In one of several cases a query fails, or (`whole`) all do that are run together."""

    def __init__(self, case: Case, whole: bool) -> None:
        self.case, self.whole, self.runs = case, whole, list[int]()

    def __call__(self, records: Sequence[Record]) -> Answers:
        registered = [record for record in records if isinstance(record, Register)]
        queries = [record.query for record in registered]
        self.runs.append(len(queries))
        if len(queries) > 1:
            if self.whole:
                raise RuntimeError("nobody knows why")
            raise QueriesFailed([], {"c1.q": "told to"})
        if registered[0].text in self.case.queries.values():
            raise QueriesFailed([], {"q": "told to"})
        return {query: [(1, [{"q": query}])] for query in queries}


@pytest.mark.parametrize("whole", [False, True])
def test_one_that_fails_fails_alone_and_no_other_is_run_again(whole: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [case for case in find_cases() if list(case.queries) == ["q"] and not case.rules and not case.media][:3]
    monkeypatch.setattr(treatments, "find_cases", lambda: cases)
    monkeypatch.setattr(treatments, "ends", lambda case: True)
    monkeypatch.setattr(sparks, "answers", lambda results, queries: {"c0.q": [(1, [])], "c2.q": [(1, [])]})
    run = Broken(cases[1], whole)
    treatment = Treatment("broken", run, spark=True)
    for _ in range(2):
        assert treatment.answers(cases[0])["q"] and treatment.answers(cases[2])["q"]
        with pytest.raises(QueriesFailed, match="q: told to"):
            treatment.answers(cases[1])
    assert run.runs.count(3) == 1       # together once, whatever came of it
    assert run.runs.count(1) == (6 if whole else 2)

"""LUBM in small, as ``python -m tests.conformance lubm`` runs it in full, and that the runner can fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pytest

from engine.ir.rules import RuleSet
from engine.ir.statement import Statement
from engine.ir.terms import RDF_TYPE
from engine.records import Record
from engine.reference.sparql import Result
from tests.bags import Row
from tests.conformance import lubm, lubm_windows
from tests.conformance.executors import Answer, Evaluation, in_this_process
from tests.conformance.outcomes import Verdict
from tests.shared import shared

PART = slice(2000, 2300)    # students, graduates and not


def test_successive_windows() -> None:
    """Closures and answers of each are those over the other implementation's closure; an answer that lacks a row is told."""
    with in_this_process() as answer:
        kept: dict[str, list[Evaluation]] = {}

        def recorded(statements: Mapping[str, Statement], records: Sequence[Record],
                     rules: Mapping[str, RuleSet]) -> dict[str, list[Evaluation]]:
            kept.update(answer.evaluations(statements, records, rules))
            return kept

        outcomes = list(lubm_windows.run(shared("lubm"), Answer(recorded), count=2, part=PART))
    assert [(o.case, o.verdict) for o in outcomes] == [(f"window {n} of 2", Verdict.PASSED) for n in (1, 2)]
    assert any(e.result.rows for e in kept["q6"])

    def lacking(query: str) -> str:
        less = kept | {query: [replace(e, result=replace(e.result, rows=e.result.rows[1:])) for e in kept[query]]}
        found = list(lubm_windows.run(shared("lubm"), Answer(lambda *_: less), "window 1", count=2, part=PART))
        assert [o.verdict for o in found] == [Verdict.FAILED]
        return found[0].reason

    assert " 1 are missing" in lacking(lubm_windows.EVERYTHING)
    assert lacking("q6").startswith("q6: ")


@pytest.mark.parametrize("count", [1, 3, 20])
def test_windows_hold_whole_items(count: int) -> None:
    triples = [(f"<urn:{n % 50}>", RDF_TYPE, f"<urn:C{n}>") for n in range(400)]
    contents = lubm_windows.windows(triples, count)
    assert sorted(triple for items in contents for item in items for triple in item) == sorted(triples)
    assert len([item for items in contents for item in items]) == 50 and all(len({s for s, _, _ in i}) == 1 for c in contents for i in c)
    sizes = [sum(map(len, items)) for items in contents]
    assert max(sizes) - min(sizes) <= 16 and len(sizes) == count


@pytest.mark.parametrize("change", [lambda rows: rows[1:], lambda rows: (*rows, {"X": "<urn:nobody>"})])
def test_published_answers_count(change: Callable[[tuple[Row, ...]], tuple[Row, ...]]) -> None:
    """One that is missing fails, and one too many."""
    folder = shared("lubm")
    rows = tuple({"X": f"<{text}>"} for text, in sorted(lubm.answers(folder / "answers" / "answers_query1.csv")))
    for given, verdict in ((rows, Verdict.PASSED), (change(rows), Verdict.FAILED)):
        found = {"q1": [Evaluation(lubm.CLOSE, Result("SELECT", ("X",), given))]}
        first, timed = lubm.over_all(folder, Answer(lambda *_: found), {"q1": lubm.texts(folder)["q1"]})
        assert (first.verdict, timed.verdict) == (verdict, Verdict.PASSED)

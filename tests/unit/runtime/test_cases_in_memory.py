"""Every case of tests/cases through the pump with the reference executor: what only the runtime can get wrong, without Spark."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow.compute as pc
import pytest

from engine.records import Register
from engine.runtime.pump import Pump
from engine.runtime.resources import ResultEvent
from engine.runtime.results import ResultLog
from tests.bags import same_bag
from tests.case_files import Case, find_cases, parse, parse_rules
from tests.encoded import encode
from tests.sparks import answers
from tests.unit.runtime.reference_executor import ReferenceCompiled, ReferenceExecutor


def run(case: Case, folder: Path, batches: int) -> list[ResultEvent]:
    """The results of a case run in so many batches, the pump made anew for each."""
    records = case.records()
    table, last = encode(records), records[-1].position
    cuts = sorted(random.Random(batches).sample(range(1, last), min(batches - 1, last - 1)))
    found: list[ResultEvent] = []
    for begin, end in zip([0, *cuts], [*cuts, last], strict=True):
        results = ResultLog(folder / "thalweg.db")
        pump = Pump(ReferenceExecutor(folder / "programs"), results, parse,
                    ReferenceCompiled.of,
                    parse_rules=parse_rules, graph_folder=folder,
                    history=lambda needed, position: [table.filter(pc.and_(pc.less_equal(table["position"], position),
                                                                           pc.equal(table["record"], 0)))])
        pump.restore()
        inside = pc.and_(pc.greater(table["position"], begin), pc.less_equal(table["position"], end))
        found += pump.process(table.filter(inside)).results
        assert not [query.error for query in pump.queries.values() if query.state == "failed"]
        results.close()
    return found


@pytest.mark.parametrize("batches", [1, 3])
@pytest.mark.parametrize("case", find_cases(), ids=lambda case: case.name)
def test_case(case: Case, batches: int, tmp_path: Path) -> None:
    queries = sorted({record.query for record in case.records() if isinstance(record, Register)})
    found, expected = answers(run(case, tmp_path, batches), queries), case.expected()
    assert {q: [at for at, _ in logged] for q, logged in found.items()} == {q: [at for at, _ in logged] for q, logged in expected.items()}
    for query, logged in found.items():
        assert all(same_bag(bag, right) for (_, bag), (_, right) in zip(logged, expected[query], strict=True))

"""Answers that a worker has written are logged beside others of the same call."""

from __future__ import annotations

from itertools import permutations

import pyarrow as pa
import pytest

from engine.execution.due import Answer
from engine.ipc import pack_text
from engine.output import select_json
from engine.runtime.query import LiveQuery
from engine.runtime.registered import Definition
from engine.timeline import MIN
from engine.worker.bundles import Written
from grammar import parse

TEXT = "REGISTER QUERY q AS SELECT ?s FROM STREAM <http://ex.org/s> [RANGE 2s STEP 1s] WHERE { ?s <http://ex.org/p> ?o }"
TABLES = [pa.table({"s": pa.array([f"<http://ex.org/{size}>"] * size, pa.string())}) for size in (5, 300, 0, 2)]


@pytest.mark.parametrize("written", [{0}, {1}, {0, 1}, {2}, {1, 3}, {0, 1, 2, 3}, set()])
@pytest.mark.parametrize("order", [order for order in permutations(range(4)) if order[0] < order[-1]])
def test_each_result_has_its_own_rows(written: set[int], order: tuple[int, ...]) -> None:
    query = LiveQuery(Definition("q", TEXT, 1, 1, 0), parse(TEXT), None, MIN)
    answers = [Answer("q1c1", 1000 * at, pa.table({}) if number in written else TABLES[number],
                      written=Written(TABLES[number].num_rows, pack_text(select_json(TABLES[number]))) if number in written else None)
               for at, number in enumerate(order, 1)]
    events = [event for event, _ in query.log(answers, 1_000)]
    assert [event.payload for event in events] == [select_json(TABLES[number]) for number in order]
    assert [event.meta["rows"] for event in events] == [TABLES[number].num_rows for number in order]

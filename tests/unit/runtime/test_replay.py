"""Replays of recordings, with the reference executor."""

from __future__ import annotations

import json

import pytest

from engine.ir.spans import DiagnosticError
from engine.runtime import replay
from engine.runtime.resources import Item
from grammar import parse
from tests.unit.runtime.reference_executor import ReferenceExecutor

TEXT = """REGISTER QUERY q AS SELECT ?o ?l FROM STREAM <http://ex.org/a> [RANGE 2s STEP 1s] FROM STREAM <http://ex.org/b> [RANGE 2s STEP 1s]
          FROM <http://ex.org/g> WHERE { ?s <http://ex.org/p> ?o OPTIONAL { ?o <http://ex.org/label> ?l } }"""
STREAMS = {"http://ex.org/a": [Item(t, None, (("<x>", "<http://ex.org/p>", f"<a{t}>"),)) for t in (2_500, 500)],
           "http://ex.org/b": [Item(t, None, (("<x>", "<http://ex.org/p>", f"<b{t}>"),)) for t in (1_500, 500)]}
GRAPHS = {"http://ex.org/g": [("<b500>", "<http://ex.org/label>", '"first"')]}


@pytest.mark.parametrize("batch_rows", [1, 2, 1_000])
def test_items_are_taken_by_time_whatever_their_order_and_the_batches(batch_rows: int) -> None:
    found = replay.run(parse(TEXT), STREAMS, GRAPHS, ReferenceExecutor(), batch_rows=batch_rows)
    shown = [(e.at_ms, sorted((b["o"]["value"], b.get("l", {}).get("value")) for b in json.loads(e.payload)["results"]["bindings"]))
             for e in found]
    assert shown == [(1_000, [("a500", None), ("b500", "first")]), (2_000, [("a500", None), ("b1500", None), ("b500", "first")]),
                     (3_000, [("a2500", None), ("b1500", None)]), (4_000, [("a2500", None)])]


def test_a_failing_query_raises() -> None:
    executor = ReferenceExecutor()
    executor.failing.add("q1c1")
    with pytest.raises(ValueError, match="told to fail"):
        list(replay.run(parse(TEXT), STREAMS, GRAPHS, executor))


def test_mistakes_are_told_before_anything_starts() -> None:
    with pytest.raises(DiagnosticError, match="http://ex.org/g"):
        next(replay.replay(parse(TEXT), STREAMS, {}))
    with pytest.raises(DiagnosticError, match="rule set"):
        next(replay.replay(parse(TEXT), STREAMS, GRAPHS, ["nonsense"]))


def test_explain() -> None:
    assert "Scan" in replay.explain(parse(TEXT), STREAMS, GRAPHS, (), "logical")

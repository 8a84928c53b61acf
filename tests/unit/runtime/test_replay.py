"""Replays of recordings, with the reference executor."""

from __future__ import annotations

import json
from typing import Any

import pytest

from engine.execution.executor import Executor
from engine.execution.own_process import own_process
from engine.ir.spans import DiagnosticError
from engine.runtime import replay
from engine.runtime.resources import Item
from engine.runtime.results import ResultLog
from grammar import parse
from grammar.rule_sets import parse_rules
from tests.unit.runtime.reference_executor import ReferenceExecutor

TEXT = """REGISTER QUERY q AS SELECT ?o ?l FROM STREAM <http://ex.org/a> [RANGE 2s STEP 1s] FROM STREAM <http://ex.org/b> [RANGE 2s STEP 1s]
          FROM <http://ex.org/g> WHERE { ?s <http://ex.org/p> ?o OPTIONAL { ?o <http://ex.org/label> ?l } }"""
STREAMS = {"http://ex.org/a": [Item(t, None, (("<x>", "<http://ex.org/p>", f"<a{t}>"),)) for t in (2_500, 500)],
           "http://ex.org/b": [Item(t, None, (("<x>", "<http://ex.org/p>", f"<b{t}>"),)) for t in (1_500, 500)]}
GRAPHS = {"http://ex.org/g": [("<b500>", "<http://ex.org/label>", '"first"')]}


@pytest.mark.parametrize("batch_rows", [1, 2, 1_000])
def test_items_are_taken_by_time_whatever_their_order_and_the_batches(batch_rows: int) -> None:
    found = replay.run({"q": parse(TEXT)}, STREAMS, GRAPHS, ReferenceExecutor(), batch_rows=batch_rows)
    shown = [(e.at_ms, sorted((b["o"]["value"], b.get("l", {}).get("value")) for b in json.loads(e.payload)["results"]["bindings"]))
             for e in found]
    assert shown == [(1_000, [("a500", None), ("b500", "first")]), (2_000, [("a500", None), ("b1500", None), ("b500", "first")]),
                     (3_000, [("a2500", None), ("b1500", None)]), (4_000, [("a2500", None)])]


def test_results_that_were_given_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    logs: list[ResultLog] = []
    counts: list[int] = []

    def made(*given: Any) -> ResultLog:
        logs.append(ResultLog(*given))
        return logs[0]

    monkeypatch.setattr(replay, "ResultLog", made)
    stream = [Item(t * 1_000 + 500, None, (("<x>", "<http://ex.org/p>", f"<a{t}>"),)) for t in range(60)]
    text = "REGISTER QUERY q AS SELECT ?o FROM STREAM <http://ex.org/a> [RANGE 2s STEP 1s] WHERE { ?s ?p ?o }"
    for _ in replay.run({"q": parse(text)}, {"http://ex.org/a": stream}, {}, ReferenceExecutor(), batch_rows=5):
        counts.append(len(logs[0].read("q", 0)))
    assert len(counts) > 60 and max(counts) < 20, "those of a batch, and the last one before"


def test_a_failing_query_raises() -> None:
    executor = ReferenceExecutor()
    executor.failing.add("q1c1")
    with pytest.raises(ValueError, match="told to fail"):
        list(replay.run({"q": parse(TEXT)}, STREAMS, GRAPHS, executor))


def test_mistakes_are_told_before_anything_starts() -> None:
    with pytest.raises(DiagnosticError, match="http://ex.org/g"):
        next(replay.replay({"q": parse(TEXT)}, STREAMS, {}))
    with pytest.raises(DiagnosticError, match="rule set"):
        next(replay.replay({"q": parse(TEXT)}, STREAMS, GRAPHS, ["nonsense"]))


def test_explain() -> None:
    assert "Scan" in replay.explain({"q": parse(TEXT)}, STREAMS, GRAPHS, (), "logical")["q"]


def test_rule_sets_see_whole_streams_however_these_are_cut() -> None:
    """Facts stay until the rules have seen them, though a window shows but the last one; a text without REGISTER serves too."""
    iri = "http://ex.org/{}".format
    text = ("PREFIX : <http://ex.org/> SELECT ?x FROM STREAM :a [RANGE 10s STEP 3s] FROM STREAM :b [TRIPLES 1] USING RULES busy "
            "WHERE { ?x a :Busy }")
    sets = {"busy": parse_rules("PREFIX ex: <http://ex.org/>\nex:Busy(X) <- [2 sec] diamond ex:next(X, Y).", "text/x-lars", "busy")}

    def item(t_ms: int, subject: str, link: str) -> Item:
        return Item(t_ms, None, ((f"<{iri(subject)}>", f"<{iri(link)}>", f"<{iri('o')}>"),))

    streams = {iri("a"): [item(18_000, "n3", "z"), item(29_000, "n4", "z")],
               iri("b"): [item(25_000, "n3", "next"), item(26_000, "n6", "next"), item(26_500, "n4", "next"), item(29_000, "n9", "z")]}
    for rows in (1, 2, 1_000):
        with own_process() as tasks:
            found = list(replay.run({"q": parse(text)}, streams, {}, Executor(tasks), sets, batch_rows=rows))
        [shown] = [event.payload for event in found if event.at_ms == 27_000]
        assert sorted(row["x"]["value"][-2:] for row in json.loads(shown)["results"]["bindings"]) == ["n3", "n4", "n6"], rows


MADE = "REGISTER STREAM made AS CONSTRUCT { ?s <http://ex.org/q> ?o } FROM STREAM <http://ex.org/a> [RANGE 2s STEP 1s] WHERE { ?s ?p ?o }"
READER = ("REGISTER QUERY reader AS SELECT ?o FROM STREAM <http://localhost:8175/queries/made> [RANGE 3s STEP 1s] "
          "WHERE { ?s <http://ex.org/q> ?o }")


@pytest.mark.parametrize("batch_rows", [1, 1_000])
def test_queries_over_queries(batch_rows: int) -> None:
    """Whatever their order: items of `made` at 1, 2, 3 and 4 s, the last ones seen by the reader at 7 s."""
    queries = replay.named([parse(READER), parse(MADE)])
    found = list(replay.run(queries, STREAMS, {}, ReferenceExecutor(), batch_rows=batch_rows))
    shown = [(e.at_ms, len(json.loads(e.payload)["results"]["bindings"])) for e in found if e.query == "reader"]
    assert shown == [(2_000, 1), (3_000, 1), (4_000, 2), (5_000, 2), (6_000, 1), (7_000, 1)]


def test_queries_that_cannot_read_each_other() -> None:
    with pytest.raises(DiagnosticError, match="cannot read its own results"):
        replay.made(replay.named([parse(MADE.replace("<http://ex.org/a>", "<http://localhost:8175/queries/made>"))]))
    with pytest.raises(ValueError, match="Two queries"):
        replay.named([parse(MADE), parse(MADE)])
    assert list(replay.named([parse("SELECT * { ?s ?p ?o }"), parse("ASK {}")])) == ["query", "query-2"]

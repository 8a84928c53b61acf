"""Queries over queries in a running engine: the catalogue, what is refused, failures, clocks, restarts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.ir.spans import DiagnosticError
from engine.runtime.errors import EngineError
from tests.unit.runtime.test_engine import EVENTS, NOW, Running, item

HOT = """PREFIX : <http://ex.org/>
REGISTER STREAM :hot AS CONSTRUCT { ?s a :Hot } FROM STREAM :s [RANGE 2s] WHERE { ?s :p ?o FILTER(?o > "3") }"""
READER = """PREFIX : <http://ex.org/>
REGISTER QUERY reader AS SELECT ?s FROM STREAM :hot [RANGE 4s STEP 2s] WHERE { ?s a :Hot }"""
CHAINED = READER.replace("QUERY reader", "STREAM :reader").replace("SELECT ?s", "CONSTRUCT { ?s a :Hot }")
LAST = READER.replace("QUERY reader", "QUERY last").replace("STREAM :hot", "STREAM :reader")


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    with Running(tmp_path) as found:
        found.engine.put_stream("s", EVENTS)
        yield found


def refused(call: object, slug: str) -> EngineError:
    with pytest.raises(EngineError) as error:
        call()  # type: ignore[operator]
    assert error.value.slug == slug
    return error.value


def answers(running: Running, query: str, count: int) -> list[tuple[int, int]]:
    """The first results as (tick, number of rows)."""
    running.ticks(count, query)
    return [(event.tick - NOW, len(json.loads(event.payload)["results"]["bindings"])) for event in running.results(query)[:count]]


def test_the_stream_of_a_query_is_in_the_catalogue(running: Running) -> None:
    engine = running.engine
    assert engine.register(HOT)[0].makes == {"stream": "http://ex.org/hot", "usedBy": []}
    info = engine.register(READER)[0]
    assert info.streams == ("http://ex.org/hot",) and info.windows[0]["query"] == "hot" and info.makes is None
    assert engine.plan_nodes("reader")["streams"] == engine.explain(LAST.replace(":reader", ":hot"))["streams"] == [
        {"iri": "http://ex.org/hot", "query": "hot"}]
    engine.push("s", [item(NOW + 100, "5"), item(NOW + 4_500, "1")])
    assert answers(running, "reader", 1) == [(4_000, 1)]
    made = {stream.name: stream for stream in engine.streams()}["hot"]
    assert made.iri == "http://ex.org/hot" and made.descriptor["source"] == {"type": "query", "query": "hot"}
    assert made.used_by == ("reader",)
    assert made.state["items"] == 1 and made.state["watermark"] == "2023-11-14T22:13:24Z"
    assert [(event.position, event.t_ms) for event in engine.tail_part("hot").events] == [(1, NOW + 2_000)]
    assert engine.tail_part("hot", since=1).events == [] and engine.dead_letters("hot") == []
    assert engine.tail_part("hot").events[0].triples == (("<http://ex.org/x>", "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>",
                                                         "<http://ex.org/Hot>"),)
    refused(lambda: engine.push("hot", [item(NOW)]), "method-not-allowed")
    refused(lambda: engine.delete_stream("hot"), "method-not-allowed")


def test_a_stream_without_an_iri_of_its_own_has_the_querys(running: Running) -> None:
    engine = running.engine
    engine.register(HOT.replace(":hot AS", "hot AS"))
    iri = engine.stream("hot").iri
    assert iri == engine.query("hot").iri
    assert engine.register(READER.replace(":hot", f"<{iri}>"))[0].windows[0]["query"] == "hot"


def test_names_and_iris_are_taken_once(running: Running) -> None:
    engine = running.engine
    engine.put_stream("hot", {"iri": "http://ex.org/pushed"})
    refused(lambda: engine.register(HOT), "name-exists")
    engine.delete_stream("hot")
    engine.register(HOT)
    refused(lambda: engine.put_stream("hot", {"iri": "http://ex.org/pushed"}), "name-exists")
    refused(lambda: engine.put_stream("other", {"iri": "http://ex.org/hot"}), "name-exists")
    refused(lambda: engine.register(HOT.replace(":hot", "<http://ex.org/s>"), None), "name-exists")
    refused(lambda: engine.register(HOT.replace(":hot", "<http://other.org/hot>"), None), "name-exists")


@pytest.mark.parametrize(("text", "message", "underlined"), [
    (HOT.replace(":s [", ":hot ["), "'hot' reads the stream of 'hot': a query cannot read its own results", ":hot [RANGE 2s]"),
    (HOT.replace(":s [", ":last ["),
     "'hot' reads the stream of 'last', which reads the stream of 'reader', which reads the stream of 'hot'", ":last [RANGE 2s]"),
    (LAST.replace(":reader", ":rows"), "has rows of SELECT, no triples", ":rows [RANGE 4s STEP 2s]"),
    (LAST.replace(":reader", "<http://127.0.0.1:8175/queries/plain>"), "is a query whose results are no stream",
     "<http://127.0.0.1:8175/queries/plain> [RANGE 4s STEP 2s]"),
    (LAST.replace(":reader", ":nothing"), "No stream has the IRI", ":nothing [RANGE 4s STEP 2s]")])
def test_what_cannot_be_read_is_refused_at_its_place(running: Running, text: str, message: str, underlined: str) -> None:
    engine = running.engine
    for before in (HOT, CHAINED, LAST.replace("QUERY last", "STREAM :last").replace("SELECT ?s", "CONSTRUCT { ?s a :Hot }"),
                   HOT.replace("STREAM :hot", "STREAM :rows").replace("CONSTRUCT { ?s a :Hot }", "SELECT ?s"),
                   HOT.replace("STREAM :hot", "QUERY plain")):
        engine.register(before)
    for call in (lambda: engine.register(text.replace("QUERY last", "QUERY new"), options={"replace": True, "force": True}),
                 lambda: engine.explain(text)):
        with pytest.raises(DiagnosticError) as error:
            call()
        diagnostic = error.value.diagnostics[0]
        assert message in diagnostic.message and diagnostic.span and diagnostic.span.text == underlined
    assert len(engine.queries()) == 5


def test_a_query_that_is_read_is_changed_with_its_readers_or_not_at_all(running: Running) -> None:
    engine = running.engine
    for text in (HOT, CHAINED, LAST):
        engine.register(text)
    other = HOT.replace('"3"', '"4"')
    for call in (lambda: engine.delete_query("hot"), lambda: engine.patch_query("hot", "paused"),
                 lambda: engine.register(other, options={"replace": True}), lambda: engine.restart_query("hot", reset=True),
                 lambda: engine.register(other.replace("STREAM :hot", "QUERY hot"), options={"replace": True, "force": True})):
        assert refused(call, "in-use").extra == {"usedBy": ["reader"]}
    assert engine.patch_query("hot", "paused", force=True).state == "paused"
    assert [info.state for info in engine.queries()] == ["paused"] * 3
    assert refused(lambda: engine.patch_query("reader", "running"), "bad-transition").extra["query"] == "hot"
    refused(lambda: engine.register(READER.replace("QUERY reader", "QUERY new")), "bad-transition")
    engine.push("s", [item(NOW + 100, "5"), item(NOW + 8_500, "1")])
    for name in ("hot", "reader", "last"):
        engine.patch_query(name, "running", "backlog")
    assert answers(running, "last", 2) == [(6_000, 1), (8_000, 1)]
    assert engine.register(other, options={"replace": True, "force": True})[0].epoch == "q1c2"
    assert engine.restart_query("hot", reset=True, force=True).epoch == "q1c3"
    engine.push("s", [item(NOW + 9_000, "9"), item(NOW + 20_500, "1")])
    assert answers(running, "last", 6)[-2:] == [(14_000, 1), (16_000, 1)]
    engine.delete_query("hot", force=True)
    assert engine.queries() == [] and [stream.name for stream in engine.streams()] == ["s"]
    assert engine.results.made("http://ex.org/hot") == [] and "http://ex.org/hot" not in engine.results.stream_states()
    engine.register(HOT)
    engine.register(READER)
    engine.delete_stream("s", force=True)
    assert engine.queries() == []


def test_readers_fail_and_come_back_with_the_query_that_they_read(running: Running) -> None:
    engine = running.engine
    for text in (HOT, CHAINED, LAST):
        engine.register(text)
    running.backend.executor.failing.add("q1c1")
    engine.push("s", [item(NOW + 100, "5"), item(NOW + 2_500, "5")])
    running.until(lambda: engine.query("last").state == "failed")
    assert "'reader', whose stream it reads, has failed" in str(engine.query("last").error)
    assert "'hot', whose stream it reads" in str(engine.query("reader").error)
    assert refused(lambda: engine.restart_query("last"), "bad-transition").extra == {"query": "reader", "state": "failed"}
    running.backend.executor.failing.clear()
    assert engine.restart_query("hot").state == "running"
    assert [info.state for info in engine.queries()] == ["running"] * 3
    engine.push("s", [item(NOW + 3_000, "5"), item(NOW + 8_500, "1")])
    assert answers(running, "last", 1) == [(8_000, 1)]


def test_the_clock_closes_the_windows_of_readers_too(running: Running) -> None:
    """The reader's windows go on when those of the query below have been empty for long."""
    engine = running.engine
    engine.put_stream("arriving", {"iri": "http://ex.org/arriving"})
    engine.register(HOT.replace(":s [", ":arriving ["))
    engine.register(READER.replace("[RANGE 4s STEP 2s]", "[RANGE 7s STEP 1s]")
                    .replace("WHERE", "FROM STREAM :arriving [RANGE 1s] WHERE"))
    engine.push("arriving", [item(None, "5")])
    for _ in range(14):
        running.clock.advance(1_000)
    assert answers(running, "reader", 10) == [(second * 1_000, int(2 < second < 10)) for second in range(1, 11)]
    assert engine.stream("hot").descriptor["time"] == "arrival"


def test_a_restart_finds_what_readers_may_still_see(tmp_path: Path) -> None:
    before = Running(tmp_path)
    engine = before.start()
    engine.put_stream("s", EVENTS)
    for text in (HOT, READER.replace("[RANGE 4s STEP 2s]", "[RANGE 20s STEP 2s]")):
        engine.register(text)
    for second in range(10):
        engine.push("s", [item(NOW + second * 1_000 + 1, "5")])
    assert answers(before, "reader", 3) == [(4_000, 1), (6_000, 1), (8_000, 1)]
    tail, state = engine.tail_part("hot").events, engine.stream("hot").state
    engine.stop()
    after = Running(tmp_path)
    engine = after.start()
    assert engine.tail_part("hot").events == tail and engine.stream("hot").state["items"] == state["items"] == 4
    assert sum(table.num_rows for table in engine.results.made("http://ex.org/hot")) == 4
    engine.push("s", [item(NOW + 40_000, "1")])
    assert answers(after, "reader", 15)[3:] == [*((tick, 1) for tick in range(10_000, 32_000, 2_000)), (32_000, 0)]
    after.until(lambda: not engine.results.made("http://ex.org/hot"))
    engine.stop()


def test_what_a_query_has_made_is_not_in_the_log(running: Running) -> None:
    engine = running.engine
    engine.register(HOT)
    refused(lambda: engine.register(READER, options={"since": "earliest"}), "unsupported-in-streaming")
    assert engine.register(HOT.replace(":hot", ":other"), options={"since": "earliest"})[1]


def test_a_one_shot_query_sees_what_is_kept(running: Running) -> None:
    engine = running.engine
    engine.register(HOT)
    engine.register(READER)
    engine.push("s", [item(NOW + 100, "5"), item(NOW + 4_500, "1")])
    running.ticks(1, "reader")
    found = engine.sparql("SELECT ?s FROM STREAM <http://ex.org/hot> [RANGE 10s STEP 1s] WHERE { ?s ?p ?o }")
    assert found.table.to_pylist() == [{"s": "<http://ex.org/x>"}]

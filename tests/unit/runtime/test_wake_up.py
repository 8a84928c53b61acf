"""A stream that was idle comes back: what is older than an evaluation that was done without it is late, never half-used."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from engine.ir.statement import Statement
from engine.runtime import replay
from engine.runtime.append import Appender, Recovery
from engine.runtime.pump import Pump
from engine.runtime.resources import Item, ResultEvent
from engine.runtime.results import ResultLog
from engine.runtime.rows import Control, Kind, control_rows, controls, prepare
from engine.runtime.streams import Source
from grammar import parse
from tests.unit.runtime.reference_executor import ReferenceCompiled, ReferenceExecutor
from tests.unit.runtime.test_engine import NOW, Running, item

A, B, C = "http://ex.org/a", "http://ex.org/b", "http://ex.org/c"
BOTH = f"REGISTER QUERY both AS SELECT ?o FROM STREAM <{A}> [RANGE 4s STEP 2s] FROM STREAM <{B}> [RANGE 6s STEP 3s] WHERE {{ ?s ?p ?o }}"
CHANGE = BOTH.replace("both AS", "q REPORT ON CHANGE AS")
AFTER = 600_000


def made(name: str, source: str, report: str = "") -> str:
    return f"REGISTER STREAM <http://ex.org/{name}> {report}AS CONSTRUCT {{ ?s ?p ?o }} {source} WHERE {{ ?s ?p ?o }}"


MADE = made("made", f"FROM STREAM <{A}> [RANGE 2s STEP 1s]")
READER = ("REGISTER QUERY reader AS SELECT ?o FROM STREAM <http://ex.org/made> [RANGE 4s STEP 2s] "
          f"FROM STREAM <{B}> [RANGE 4s STEP 2s] WHERE {{ ?s ?p ?o }}")


def appender(*texts: str, **more: object) -> Appender:
    end = Appender(sources={iri: Source(iri, arrival=False, **more) for iri in (A, B, C)})  # type: ignore[arg-type]
    for number, text in enumerate(texts):
        end.register(f"q{number}", {"text": text, "stream": "http://ex.org/made"}, parse(text))
    return end


def push(end: Appender, stream: str, *times: int) -> tuple[int, int]:
    """How many items were taken, and how many late."""
    _, receipt = end.push(stream, prepare([(t, None, (("<x>", "<p>", f'"{t}"'),)) for t in times]), NOW)
    return receipt.accepted, receipt.late


def sleep(end: Appender, *streams: str) -> list[pa.Table]:
    """Declare streams idle; what else is idle stays so."""
    end.sources = {iri: replace(source, active_ms=0 if iri in streams else NOW) for iri, source in end.sources.items()}
    rows = end.declare_idle(NOW)
    assert all(end.sources[stream].idle for stream in streams)
    return rows


@pytest.mark.parametrize(("text", "watermark"), [(BOTH, 8_000), (CHANGE, 8_500)])
def test_what_is_older_than_a_time_that_was_evaluated_is_late(text: str, watermark: int) -> None:
    end = appender(text)
    push(end, A, 1_000)
    push(end, B, 1_000)
    sleep(end, A)
    push(end, B, 8_500)
    assert push(end, A, watermark - 1) == (0, 1) and end.sources[A].idle, "a late item wakes nobody"
    assert end.sources[A].watermark == 1_000 and end.sources[A].late == 1
    assert push(end, A, 500, watermark, watermark - 1) == (1, 2)
    assert (end.sources[A].watermark, end.sources[A].idle) == (watermark, False)


def test_a_watermark_that_is_pushed_wakes_a_stream_no_earlier() -> None:
    end = appender(BOTH)
    push(end, A, 1_000)
    sleep(end, A)
    push(end, B, 8_500)
    rows = end.mark(A, 2_000, NOW)
    assert rows[0]["watermark"].to_pylist() == [8_000] and push(end, A, 7_999) == (0, 1)


def test_where_no_query_reads_it_a_stream_comes_back_as_it_went() -> None:
    for texts in ((), (BOTH.replace(B, A),)):
        end = appender(*texts)
        push(end, A, 1_000)
        sleep(end, A)
        push(end, B, 8_500)
        assert push(end, A, 1_500) == (1, 0)
    end = appender(BOTH)
    end.change(Kind.UNREGISTER, "q0", {})
    push(end, A, 1_000)
    sleep(end, A)
    push(end, B, 8_500)
    assert push(end, A, 1_500) == (1, 0)


def test_where_all_are_idle_the_latest_was_evaluated() -> None:
    end = appender(BOTH)
    push(end, A, 1_000)
    push(end, B, 8_500)
    sleep(end, A, B)
    assert push(end, A, 7_999) == (0, 1) and push(end, A, 8_000) == (1, 0)


def test_streams_are_read_together_through_those_that_queries_make() -> None:
    end = appender(MADE, READER)
    push(end, B, 1_000)
    sleep(end, B)
    push(end, A, 8_500)
    assert push(end, B, 7_999) == (0, 1) and push(end, B, 8_000) == (1, 0)


def test_a_producer_with_idle_streams_alone_is_evaluated_as_far_as_its_readers() -> None:
    end = appender()
    tables = [table for number, text in enumerate((MADE, READER)) for table in register(end, f"q{number}", parse(text))]
    tables += rows_of(end, (A, 1_000), (A, 6_500), (B, 1_000))
    tables += [*sleep(end, A), *rows_of(end, (B, 8_500))]
    found = answers(tables, 1, ["q1c1", "q2c1"])
    assert ("q0", 7_000) in found and found["q1", 8_000] == [show("6500")]
    assert push(end, A, 7_999) == (0, 1) and push(end, A, 8_000) == (1, 0)


def test_what_a_query_that_is_removed_had_done_stays_done() -> None:
    end = appender(MADE, READER)
    push(end, A, 1_000)
    push(end, B, 1_000)
    sleep(end, A)
    push(end, B, 8_500)
    rows = end.change(Kind.UNREGISTER, "q1", {})
    assert [(c.kind, c.stream, c.watermark) for table in rows for c in controls(table)] == [
        (Kind.UNREGISTER, "q1", None), (Kind.IDLE, A, 8_000)]
    assert end.sources[A].idle and push(end, A, 7_999) == (0, 1) and push(end, A, 8_000) == (1, 0)


def test_what_was_done_stays_done_where_another_stream_comes_back() -> None:
    fine = made("made", f"FROM STREAM <{A}> [RANGE 2s STEP 500ms]")
    end = appender(fine, READER.replace(" WHERE", f" FROM STREAM <{C}> [RANGE 4s STEP 2s] WHERE"))
    for stream in (A, B, C):
        push(end, stream, 1_000)
    sleep(end, A, C)
    push(end, B, 8_750)
    push(end, C, 8_000)
    assert (end.sources[C].watermark, end.sources[A].watermark, end.sources[A].idle) == (8_000, 8_500, True)
    assert push(end, A, 8_499) == (0, 1)
    again = appender(fine, READER)
    again.sources[A] = replace(again.sources[A], idle=True)
    Recovery(None, None).follow(again, pa.concat_tables([control_rows(Control(again.position, Kind.IDLE, A, 8_500, {}))]), NOW)
    assert (again.sources[A].watermark, again.sources[A].idle) == (8_500, True)


def rows_of(end: Appender, *items: tuple[str, int]) -> list[pa.Table]:
    return [table for stream, t in items for table in end.push(stream, prepare([(t, None, (("<x>", "<p>", f'"{t}"'),))]), NOW)[0]]


def show(text: str) -> str:
    return repr({"o": {"type": "literal", "value": text}})


SLOW = made("slow", f"FROM STREAM <{A}> [RANGE 6s STEP 3s]")
FINE = made("fine", f"FROM STREAM <{A}> [RANGE 1s STEP 500ms]")
CHANGED = made("changed", f"FROM STREAM <{C}> [RANGE 2s STEP 1s]", "REPORT ON CHANGE ")
JOINED = made("joined", f"FROM STREAM <http://ex.org/fine> [RANGE 2s STEP 1s] FROM STREAM <{C}> [RANGE 1s STEP 500ms]")


def reader(*streams: str, step: str = "2s") -> str:
    windows = " ".join(f"FROM STREAM <http://ex.org/{stream}> [RANGE 4s STEP {step}]" for stream in streams)
    return f"REGISTER QUERY r AS SELECT ?o {windows} WHERE {{ ?s ?p ?o }}"


SETS = [(BOTH,), (CHANGE,), (BOTH, CHANGE), (MADE, READER), (SLOW, reader("slow", "b")), (FINE, reader("fine", "b", "c", step="1s")),
        (FINE, JOINED, reader("joined", "b")), (FINE, CHANGED, reader("fine", "changed", step="1s"), reader("changed", "b")),
        (CHANGED, SLOW, reader("slow", "changed", step="500ms"), reader("slow", "b", "c")), (FINE, JOINED, reader("fine", "joined", "b"))]
steps = st.tuples(st.sampled_from([*["push"] * 6, *["idle"] * 3, "mark", "remove", "add"]), st.sampled_from([A, B, C]),
                  st.integers(-3, 6).map(lambda t: t * 250))


@given(st.lists(steps, min_size=10, max_size=40), st.sampled_from(SETS), st.sampled_from([0, 1_000]), st.integers(1, 5))
def test_no_item_is_half_used(script: list[tuple[str, str, int]], texts: Sequence[str], lateness: int, size: int) -> None:
    """All that was answered live is what a replay of the items that were taken answers, also where queries read what others make. Times are
    offsets to the latest before. The last query may go and come back (as another, that has not seen all)."""
    end = Appender(sources={iri: Source(iri, arrival=False, lateness_ms=lateness) for iri in (A, B, C)})
    statements = {f"q{number}": parse(text) for number, text in enumerate(texts)}
    tables = [table for name, statement in statements.items() for table in register(end, name, statement)]
    taken: dict[str, list[Item]] = {A: [], B: [], C: []}
    *_, last = statements
    clock = 1_000
    for what, stream, offset in script:
        t = max(0, clock + offset)
        clock = max(clock, t)
        if what == "push":
            content = (("<x>", "<p>", f'"{t}"'),)
            rows, receipt = end.push(stream, prepare([(t, None, content)]), NOW)
            tables += rows
            taken[stream] += [Item(t, None, content)] * receipt.accepted
        elif what == "mark":
            tables += end.mark(stream, t, NOW)
        elif what == "remove" and last in end.catalogue.queries:
            tables += end.change(Kind.UNREGISTER, last, {})
        elif what == "add" and last not in end.catalogue.queries:
            tables += register(end, last, statements[last])
        elif what == "idle" and not end.sources[stream].idle:
            tables += sleep(end, *(iri for iri in (A, B, C) if iri == stream or end.sources[iri].idle))
    live = answers(tables, size, [f"q{number}c1" for number, _ in enumerate(texts, 1)])
    later = {stream: [*items, Item(AFTER, None, (("<x>", "<p>", '"after"'),))] for stream, items in taken.items()}
    whole = {(e.query, e.tick): bag(e) for e in replay.run(statements, later, {}, ReferenceExecutor())}
    for (query, tick), found in live.items():
        assert found == whole.get((query, tick), []), (query, tick)


def register(end: Appender, name: str, statement: Statement) -> list[pa.Table]:
    return end.register(name, {"text": statement.text, "stream": None}, statement)


def answers(tables: Sequence[pa.Table], size: int, epochs: Sequence[str]) -> dict[tuple[str, int], list[str]]:
    """What the pump logs of generations of queries, `size` commits at a time."""
    pump = Pump(ReferenceExecutor(), ResultLog(None), parse,
                lambda statement, name, graphs, rules: ReferenceCompiled(statement, name, rules))
    found: dict[tuple[str, int], list[str]] = {}
    for begin in range(0, len(tables), size):
        outcome = pump.process(pa.concat_tables(tables[begin:begin + size]))
        found |= {(event.query, event.tick): bag(event) for event in outcome.results if event.epoch in epochs}
    return found


def bag(event: ResultEvent) -> list[str]:
    if event.kind == "graph":
        return sorted(event.payload.decode().splitlines())
    return sorted(map(repr, json.loads(event.payload)["results"]["bindings"]))


def test_a_stream_that_wakes_after_a_restart_is_late_too(tmp_path: Path) -> None:
    streams = {"a": {"iri": A, "time": "event"}, "b": {"iri": B, "time": "event"}}
    with Running(tmp_path) as running:
        for name, descriptor in streams.items():
            running.engine.put_stream(name, descriptor)
        running.engine.register(BOTH)
        running.engine.push("a", [item(NOW)])
        running.engine.push("b", [item(NOW)])
        running.clock.advance(5_000)
        running.engine._machine.writer.call(lambda end, now: (end.declare_idle(now), None))
        running.engine.push("b", [item(NOW + 9_000)])
        assert running.ticks(1, "both")
    with Running(tmp_path, NOW + 6_000) as running:
        receipt = running.engine.push("a", [item(NOW + 100), item(NOW + 9_100)])
        assert (receipt.accepted, receipt.late) == (1, 1) and running.engine.stream("a").state["late"] == 1

"""What is registered at the end of the log: commands are answered though the pump stands still, and readers see what they wrote."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.ir.spans import DiagnosticError
from engine.runtime.catalogue import Catalogue
from engine.runtime.errors import EngineError
from engine.runtime.pump import Pump
from engine.runtime.resources import QueryInfo
from engine.runtime.rows import Control, Kind
from engine.runtime.service import Engine
from grammar import parse
from tests.unit.runtime.test_derived import HOT, READER
from tests.unit.runtime.test_engine import EVENTS, NOW, TEXT, P, Running, S, item
from tests.unit.runtime.test_rules import RIF, alarm
from tests.waiting import DEADLINE_S

G = "http://ex.org/g"
READS_G = TEXT.replace("QUERY q", "QUERY g").replace("FROM STREAM", f"FROM <{G}> FROM STREAM")
ALARMED = TEXT.replace("QUERY q", "QUERY alarmed").replace("WHERE", "USING RULES alarms WHERE")


class Unsettled(Running):
    """Its commands are answered when they are in the log."""

    engine_class = Engine

    def catch_up(self) -> None:
        """Let the pump go on, and wait until it has come to the end of the log."""
        self.backend.fed.set()
        assert self.machine.wait_for(self.machine.writer.appender.position - 1, DEADLINE_S)


@pytest.fixture
def standing(tmp_path: Path) -> Iterator[Unsettled]:
    """An engine whose pump stands still from now on, with a stream."""
    with Unsettled(tmp_path) as found:
        found.engine.put_stream("s", EVENTS)
        found.catch_up()
        found.backend.fed.clear()
        yield found
        found.backend.fed.set()


def refused(call: object, slug: str) -> EngineError:
    with pytest.raises(EngineError) as error:
        call()  # type: ignore[operator]
    assert error.value.slug == slug
    return error.value


def state(engine: Engine, name: str) -> str:
    return engine.query(name).state


def test_commands_are_answered_while_the_pump_stands(standing: Unsettled) -> None:
    engine = standing.engine
    info, created = engine.register(TEXT)
    assert created and (info.state, info.epoch) == ("starting", "q1c1") and info.progress["lastEventId"] is None
    assert engine.query("q").state == "starting" and [one.name for one in engine.queries()] == ["q"]
    assert engine.stream("s").used_by == ("q",) and not engine.register(TEXT)[1]
    assert engine.plan("q").startswith("logical") and engine.plan_nodes("q")["executor"] is None
    assert engine.stats("q")["results"] == {"epoch": "q1c1", "oldest": 0, "newest": 0, "logged": 0}
    refused(lambda: engine.register(TEXT.replace("2s", "3s")), "name-exists")
    refused(lambda: engine.delete_stream("s"), "in-use")
    assert engine.patch_query("q", "paused").state == "paused" and engine.patch_query("q", "running").state == "starting"
    assert engine.register(TEXT.replace("2s", "3s"), options={"replace": True})[0].epoch == "q1c2"
    assert engine.restart_query("q", reset=True).epoch == "q1c3"
    engine.delete_query("q")
    assert refused(lambda: engine.query("q"), "query-removed").status == 410 and engine.queries() == []
    assert engine.register(TEXT)[0].epoch == "q2c1"
    standing.catch_up()
    assert state(engine, "q") == "running" and engine.stats("q")["results"]["epoch"] == "q2c1"


def test_streams_come_and_go_while_the_pump_stands(standing: Unsettled) -> None:
    engine = standing.engine
    assert engine.put_stream("t", {"iri": "http://ex.org/t"})[1] and not engine.put_stream("t", {"iri": "http://ex.org/t"})[1]
    assert [info.name for info in engine.streams()] == ["s", "t"]
    assert engine.push("t", [item(None)]).accepted == 1 and engine.tail_part("t").events == []
    engine.register(TEXT)
    engine.delete_stream("s", force=True)
    refused(lambda: engine.query("q"), "query-removed")
    refused(lambda: engine.push("s", [item(NOW)]), "no-such-stream")
    with pytest.raises(DiagnosticError, match="No stream has the IRI"):
        engine.register(TEXT)
    assert engine.put_stream("s", {**EVENTS, "lateness": "PT1S"})[1] and engine.stream("s").state["items"] == 0
    standing.catch_up()
    assert [(name, found["lateness"]) for name, _, found in engine.results.streams()] == [("s", "PT1S"), ("t", "PT0S")]
    assert len(engine.tail_part("t").events) == 1


def test_graphs_are_what_was_written_last_while_the_pump_stands(standing: Unsettled) -> None:
    engine = standing.engine
    first, created = engine.put_graph(G, [(S, P, '"1"')])
    assert created and engine.graph(G) == (first, [(S, P, '"1"')]) and engine.put_graph(G, [(S, P, '"1"')]) == (first, False)
    table = engine.sparql("SELECT ?o FROM <http://ex.org/g> WHERE { ?s ?p ?o }").table
    assert table is not None and table.to_pylist() == [{"o": '"1"'}]
    engine.put_graph(G, [(S, P, '"2"'), (S, P, "_:b")], replace=False)
    again, _ = engine.put_graph(G, [(S, P, '"3"')], replace=False)
    info, triples = engine.graph(G)
    assert info == again and info.triples == 4 and {o for _, _, o in triples} >= {'"1"', '"2"', '"3"'} and info.etag != first.etag
    engine.register(READS_G)
    assert refused(lambda: engine.delete_graph(G), "in-use").extra == {"usedBy": ["g"]}
    engine.delete_query("g")
    engine.delete_graph(G)
    refused(lambda: engine.graph(G), "no-such-graph")
    engine.put_graph(G, [(S, P, '"9"')])
    standing.catch_up()
    standing.until(lambda: standing.machine.writer.appender.catalogue.graphs[G].facts is None)
    assert engine.graph(G)[1] == [(S, P, '"9"')] and [one.iri for one in engine.graphs()] == [G]


def test_rule_sets_are_what_was_written_last_while_the_pump_stands(standing: Unsettled) -> None:
    engine = standing.engine
    info, created = engine.put_rules("alarms", RIF, alarm("low"))
    assert created and engine.rule_set("alarms") == info and engine.put_rules("alarms", RIF, alarm("low")) == (info, False)
    assert engine.register(ALARMED)[0].rules == ("alarms",)
    assert refused(lambda: engine.delete_rules("alarms"), "in-use").extra == {"usedBy": ["alarmed"]}
    assert engine.put_rules("alarms", RIF, alarm("high"))[0].used_by == ("alarmed",)
    engine.delete_query("alarmed")
    engine.delete_rules("alarms")
    with pytest.raises(DiagnosticError, match="No rule set is named 'alarms'"):
        engine.register(ALARMED)
    standing.catch_up()
    assert all(one.built_in for one in engine.rule_sets())


def test_what_changes_while_a_query_is_compiled_is_compiled_for_again(standing: Unsettled, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, compile_query = standing.engine, standing.backend.compile
    engine.put_graph(G, [(S, P, '"1"')])
    seen: list[int] = []

    def slow(statement, name, catalog):  # type: ignore[no-untyped-def]
        seen.append(catalog.graphs[G].num_rows)
        if len(seen) == 1:
            engine.put_graph(G, [(S, P, '"2"')], replace=False)
        return compile_query(statement, name, catalog)

    monkeypatch.setattr(standing.backend, "compile", slow)
    assert engine.register(READS_G)[1] and seen == [1, 2]


def test_a_graph_that_is_always_changing_does_not_hold_up_a_registration_for_ever(
        standing: Unsettled, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, values = standing.engine, iter(range(100))
    engine.put_graph(G, [(S, P, '"x"')])
    compile_query = standing.backend.compile

    def slow(statement, name, catalog):  # type: ignore[no-untyped-def]
        engine.put_graph(G, [(S, P, f'"{next(values)}"')])
        return compile_query(statement, name, catalog)

    monkeypatch.setattr(standing.backend, "compile", slow)
    assert refused(lambda: engine.register(READS_G), "engine-overloaded").status == 503


def test_what_the_pump_had_not_reached_is_there_after_a_restart(tmp_path: Path) -> None:
    with Unsettled(tmp_path) as before:
        engine = before.engine
        engine.put_stream("s", EVENTS)
        engine.put_stream("gone", {"iri": "http://ex.org/gone"})
        engine.register(TEXT)
        engine.put_graph(G, [(S, P, '"1"')])
        before.catch_up()
        before.without_feed()
        engine.delete_stream("gone")
        engine.put_stream("late", {"iri": "http://ex.org/late"})
        engine.push("late", [item(None)])
        engine.put_graph(G, [(S, P, '"2"')], replace=False)
        engine.put_rules("alarms", RIF, alarm("low"))
        engine.register(TEXT.replace("2s", "3s"), options={"replace": True})
        engine.register(ALARMED)
        engine.patch_query("alarmed", "paused")
        known = before.machine.writer.appender.catalogue
    with Unsettled(tmp_path) as after:
        engine = after.engine
        found = after.machine.writer.appender.catalogue
        assert (found.streams, found.rules, found.numbers) == (known.streams, known.rules, known.numbers)
        assert {name: query.definition for name, query in found.queries.items()} == {n: q.definition for n, q in known.queries.items()}
        assert [stream.name for stream in engine.streams()] == ["late", "s"] and engine.stream("late").state["items"] == 1
        states = [(info.name, info.epoch, info.state) for info in engine.queries()]
        assert states == [("alarmed", "q2c1", "paused"), ("q", "q1c2", "running")]
        assert {o for _, _, o in engine.graph(G)[1]} == {'"1"', '"2"'}


def test_a_query_that_cannot_be_planned_at_the_pump_has_failed(standing: Unsettled, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = standing.engine
    engine.register(TEXT)

    def broken(*given: object) -> None:
        raise ValueError("cannot be planned")

    monkeypatch.setattr(standing.backend, "compile", broken)
    engine._machine.planned._plans.clear()      # as after a start
    standing.catch_up()
    info: QueryInfo = engine.query("q")
    assert info.state == "failed" and info.error == "ValueError: cannot be planned"
    refused(lambda: engine.plan("q"), "query-failed")
    monkeypatch.undo()
    standing.backend.fed.clear()
    assert engine.restart_query("q").state == "restarting"
    standing.catch_up()
    assert state(engine, "q") == "running"


def test_a_condition_is_checked_when_the_command_is_decided(standing: Unsettled) -> None:
    engine = standing.engine
    asked: list[object] = []
    engine.put_stream("t", {"iri": "http://ex.org/t"}, check=asked.append)
    engine.register(TEXT, check=asked.append)
    engine.delete_query("q", check=lambda info: asked.append(info and info.name))
    assert asked == [None, None, "q"]

    def forbids(info: object) -> None:
        raise EngineError("etag-mismatch", 412, "no")

    for call in (lambda: engine.delete_stream("t", check=forbids), lambda: engine.put_graph(G, [], check=forbids),
                 lambda: engine.register(TEXT, check=forbids), lambda: engine.put_rules("r", RIF, alarm("low"), check=forbids)):
        refused(call, "etag-mismatch")
    assert [one.name for one in engine.streams()] == ["s", "t"] and engine.graphs() == [] and engine.queries() == []


def test_a_registration_that_the_pump_sets_aside_has_failed_and_the_next_ones_have_not(
        standing: Unsettled, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, register = standing.engine, Pump._register

    def broken(pump: Pump, control: Control) -> None:
        if control.stream == "q":
            raise ValueError("nobody can do this")
        register(pump, control)

    monkeypatch.setattr(Pump, "_register", broken)
    engine.register(TEXT)
    assert engine.register(TEXT.replace("QUERY q", "QUERY next"))[0].epoch == "q2c1"
    standing.catch_up()
    assert {info.name: info.state for info in engine.queries()} == {"next": "running", "q": "failed"}
    assert engine.query("q").error == "Its registration could not be carried out: REGISTER of q: ValueError: nobody can do this."
    refused(lambda: engine.plan("q"), "query-failed")
    engine.delete_query("q")
    assert engine.stats("next")["results"]["epoch"] == "q2c1"


# --- the value itself

def catalogue(*texts: str) -> Catalogue:
    found = Catalogue().with_stream("s", {"iri": "http://ex.org/s", "time": "event"})
    found = found.with_stream("t", {"iri": "http://ex.org/t", "time": "arrival"})
    for position, text in enumerate(texts, 1):
        statement = parse(text)
        name = str(statement.name).rsplit("/", 1)[-1]
        found = found.with_query(name, {"text": text, "since": position}, position, statement)
    return found


def test_whether_a_generation_stands() -> None:
    found = catalogue(TEXT)
    assert "q1c1" in found.epochs and "q1c2" not in found.epochs
    replaced = found.with_query("q", {"text": TEXT, "since": 2}, 2, parse(TEXT))
    assert "q1c2" in replaced.epochs and "q1c1" not in replaced.epochs and "q1c1" in found.epochs
    removed = replaced.with_change(Kind.UNREGISTER, "q", 3)
    assert "q1c2" not in removed.epochs and removed.removed == {"q": 3} and removed.reached(3).removed == {}


def test_the_time_of_a_stream_that_a_query_makes() -> None:
    both = READER.replace("WHERE", "FROM STREAM :t [RANGE 1s] WHERE")
    assert catalogue(HOT, both).times["http://ex.org/hot"] == "event"

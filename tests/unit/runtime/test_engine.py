"""The engine's life without Spark: commands, pushes, clock, recovery, failures."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pytest

from engine.execution.due import Answer
from engine.ir.spans import DiagnosticError
from engine.runtime import evaluator
from engine.runtime.errors import EngineError
from engine.runtime.machine import Machine
from engine.runtime.resources import Item, Notice, Rejection, ResultEvent
from engine.runtime.service import Engine
from engine.runtime.settings import Settings
from grammar import parse
from grammar.rule_sets import parse_rules
from tests.clocks import ManualClock
from tests.unit.runtime.memory_backend import MemoryBackend
from tests.unit.runtime.settled import SettledEngine
from tests.waiting import DEADLINE_S

NOW = 1_700_000_000_000
S, P = "<http://ex.org/x>", "<http://ex.org/p>"
TEXT = "REGISTER QUERY q AS SELECT ?s ?o FROM STREAM <http://ex.org/s> [RANGE 2s STEP 1s] WHERE { ?s <http://ex.org/p> ?o }"
EVENTS = {"iri": "http://ex.org/s", "time": "event"}
_UNTOLD_S = 0.05     # how often is looked for what no notice tells

Self = TypeVar("Self", bound="Running")


class Running:
    """An engine over a folder, with its clock, and the waiting that tests need."""

    def __init__(self, folder: Path, now_ms: int = NOW, **more: Any) -> None:
        self.clock = ManualClock(now_ms)
        quick: dict[str, Any] = {"room_poll_s": 0.01, "restart_wait_s": 0.0, "watch_s": 0.01, "silence_s": 0.2}
        self.settings = settings = Settings(data=folder, commit_interval_ms=0, warm_up=False, archive_files=4, **{**quick, **more})
        self.backend = MemoryBackend(settings)
        self.engine = self.engine_class(settings, self.parse, self.clock, self.backend, self.parse_rules)
        self.notices: list[Notice] = []
        self._changed = threading.Condition()

    engine_class: type[Engine] = SettledEngine
    parse = staticmethod(parse)
    parse_rules = staticmethod(parse_rules)

    @property
    def machine(self) -> Machine:
        return self.engine._machine

    def without_feed(self) -> None:
        """From now on what is appended to the log waits there."""
        feed = self.machine._evaluator.feed
        assert feed is not None
        feed.stop()

    def start(self) -> Engine:
        self.engine.subscribe(self._notice)
        self.engine.start()
        self.until(lambda: self.engine.state in ("running", "failed"))
        assert self.engine.ready, self.engine.progress
        return self.engine

    def __enter__(self: Self) -> Self:
        self.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self.engine.stop()

    def _notice(self, notice: Notice) -> None:
        with self._changed:
            self.notices.append(notice)
            self._changed.notify_all()

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait until `condition` is true, which mostly a notice tells."""
        until = time.monotonic() + DEADLINE_S
        with self._changed:
            while not condition():
                assert time.monotonic() < until, f"did not happen: {self.engine.state} {self.engine.progress}"
                self._changed.wait(_UNTOLD_S)

    def results(self, query: str = "q") -> list[ResultEvent]:
        return self.engine.results.read(query, 0)

    def ticks(self, count: int, query: str = "q") -> list[int]:
        """The ticks of the first `count` results."""
        self.until(lambda: len(self.results(query)) >= count)
        return [event.tick for event in self.results(query)]


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    with Running(tmp_path) as found:
        yield found


def item(t_ms: int | None, value: str = "1") -> Item:
    return Item(t_ms, None, ((S, P, f'"{value}"'),))


def test_from_push_to_result(running: Running) -> None:
    engine = running.engine
    assert engine.put_stream("s", EVENTS)[1] and not engine.put_stream("s", EVENTS)[1]
    info, created = engine.register(TEXT)
    assert created and info.state == "running" and info.epoch == "q1c1" and info.variables == ("s", "o")
    receipt = engine.push("s", [item(NOW + 100), item(NOW + 1_100, "2")])
    assert (receipt.accepted, receipt.late, receipt.watermark_ms) == (2, 0, NOW + 1_100)
    assert running.ticks(1) == [NOW + 1_000]
    first = running.results()[0]
    assert first.id == "q1c1-1" and first.windows == [{"stream": "http://ex.org/s", "open": NOW - 1_000, "close": NOW + 1_000}]
    assert json.loads(first.payload)["results"]["bindings"][0]["o"] == {"type": "literal", "value": "1"}
    assert engine.query("q").progress["lastEventId"] == "q1c1-1"
    assert [event.t_ms for event in engine.tail_part("s").events] == [NOW + 100, NOW + 1_100]


def test_a_pump_that_is_behind_reads_the_log_itself(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few rows at a time, and without waiting for another batch of the feed."""
    monkeypatch.setattr(evaluator, "_MOST_NEWER_ROWS", 3)
    engine, backend = running.engine, running.backend
    engine.put_stream("s", EVENTS)
    engine.register(TEXT)
    engine.push("s", [item(NOW)])
    running.until(lambda: len(engine.tail_part("s").events) == 1)
    backend.fed.clear()
    for number in range(1, 12):
        engine.push("s", [item(NOW + number * 500, str(number))])
    reads = backend.reads
    backend.fed.set()
    assert running.ticks(5) == [NOW + second * 1_000 for second in range(1, 6)]
    assert backend.reads <= reads + 1, "the feed was read, at most for the batch that it had begun"


def test_large_files_are_not_read_through_the_feed(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, backend = running.engine, running.backend
    engine.put_stream("s", EVENTS)
    engine.register(TEXT)
    monkeypatch.setattr(evaluator, "_FEW_BYTES", 0)
    reads = backend.reads
    engine.push("s", [item(NOW), item(NOW + 1_500)])
    assert running.ticks(1) == [NOW + 1_000] and backend.reads == reads


def test_an_arrival_stream_is_stamped_and_closes_its_windows_by_the_clock(running: Running) -> None:
    engine = running.engine
    engine.put_stream("s", {"iri": "http://ex.org/s"})
    engine.register(TEXT)
    engine.push("s", [item(None)])
    running.clock.advance(1_000)
    assert running.ticks(1) == [NOW + 1_000]
    running.clock.advance(1_000)
    assert running.ticks(2) == [NOW + 1_000, NOW + 2_000]
    running.clock.advance(500_000)
    assert running.ticks(3)[-1] == NOW + 3_000
    assert json.loads(running.results()[-1].payload)["results"]["bindings"] == []


def test_an_arrival_stream_has_the_clock_s_time_whatever_is_pushed_along(running: Running) -> None:
    engine = running.engine
    engine.put_stream("s", {"iri": "http://ex.org/s"})
    for pushed, watermark, stamp in ((NOW - 5_000, None, NOW), (NOW + 5_000, NOW - 9_000, NOW + 100), (None, NOW + 3_000, NOW + 200),
                                     (NOW, None, NOW + 3_000)):
        last = engine.push("s", [item(pushed)], watermark_ms=watermark).last_id
        running.until(lambda: any(event.position == int(last or 0) for event in engine.tail_part("s").events))
        assert engine.tail_part("s").events[-1].t_ms == stamp
        running.clock.advance(100)


def test_report_on_change_answers_at_once_on_an_arrival_stream(running: Running) -> None:
    engine = running.engine
    engine.put_stream("s", {"iri": "http://ex.org/s"})
    engine.register(TEXT.replace("q AS", "q REPORT ON CHANGE AS"))
    engine.push("s", [item(None)])
    running.until(lambda: len(running.results()) == 1)
    assert running.results()[0].at_ms == NOW


def test_a_silent_stream_does_not_hold_up_the_others(running: Running) -> None:
    engine = running.engine
    engine.put_stream("s", EVENTS)
    engine.put_stream("other", {"iri": "http://ex.org/other", "time": "event"})
    engine.register("REGISTER QUERY q AS SELECT ?o FROM STREAM <http://ex.org/s> [RANGE 2s STEP 1s] "
                    "FROM STREAM <http://ex.org/other> [RANGE 2s STEP 1s] WHERE { ?s <http://ex.org/p> ?o }")
    engine.push("s", [item(NOW), item(NOW + 1_500)])
    running.until(lambda: engine.stream("s").state["items"] == 2 and not running.results())
    running.clock.advance(3_000)
    engine.push("s", [item(NOW + 2_500)])
    running.clock.advance(2_500)
    assert running.ticks(2) == [NOW + 1_000, NOW + 2_000]


def test_a_query_that_has_nothing_to_evaluate_has_no_lag(running: Running) -> None:
    """Neither before its first item nor when its stream has fallen silent is it "0 ms behind"."""
    engine = running.engine
    engine.put_stream("s", EVENTS)
    engine.register(TEXT)
    assert engine.query("q").progress["watermarkLagMs"] is None
    engine.push("s", [item(NOW), item(NOW + 1_500)])
    assert running.ticks(1) == [NOW + 1_000]
    assert engine.query("q").progress["watermarkLagMs"] is not None
    running.clock.advance(6_000)
    running.until(lambda: engine.query("q").state == "idle")
    assert engine.query("q").progress["watermarkLagMs"] is None


def test_a_query_is_not_idle_while_the_log_has_something_for_it(running: Running) -> None:
    engine = running.engine
    engine.put_stream("s", EVENTS)
    engine.register(TEXT)
    engine.push("s", [item(NOW), item(NOW + 1_500)])
    running.clock.advance(6_000)
    running.until(lambda: engine.query("q").state == "idle")
    running.without_feed()
    engine.push("s", [item(NOW + 3_500)])
    info = engine.query("q")
    assert (info.state, info.progress["watermarkLagMs"]) == ("running", 2_000)


def test_the_watermark_of_a_failed_query_stays_where_it_was_evaluated_last(tmp_path: Path) -> None:
    def told(running: Running, name: str) -> tuple[object, object]:
        progress = running.engine.query(name).progress
        return progress["watermark"], progress["watermarkLagMs"]

    last = "2023-11-14T22:13:21Z"
    with Running(tmp_path) as running:
        engine = running.engine
        engine.put_stream("s", EVENTS)
        for name in ("q", "r"):
            engine.register(TEXT.replace("QUERY q", f"QUERY {name}"))
        running.backend.executor.failing.add("q2c1")
        engine.push("s", [item(NOW), item(NOW + 1_500)])
        running.until(lambda: engine.query("r").state == "failed")
        assert told(running, "r") == (None, None)
        running.backend.executor.failing.add("q1c1")
        engine.push("s", [item(NOW + 2_500)])
        running.until(lambda: engine.query("q").state == "failed")
        assert told(running, "q") == (last, 1_500)
        engine.push("s", [item(NOW + 9_500)])
        running.until(lambda: engine._machine.snapshot.streams["http://ex.org/s"].watermark == NOW + 9_500)
        assert (told(running, "q"), told(running, "r")) == ((last, 8_500), (None, None))
    with Running(tmp_path) as running:
        assert (told(running, "q"), told(running, "r")) == ((last, 8_500), (None, None))


def test_the_rate_of_a_stream_is_of_items(running: Running) -> None:
    """Not of their triples, of which `inputRowsPerSecond` of a query tells."""
    engine = running.engine
    engine.put_stream("s", EVENTS)
    engine.register(TEXT)
    engine.push("s", [Item(NOW + n, None, tuple((S, P, f'"{value}"') for value in range(5))) for n in range(20)])
    running.until(lambda: engine.stream("s").state["itemsPerSecond"] == 2.0)
    assert engine.query("q").progress["inputRowsPerSecond"] == 10.0
    engine.delete_stream("s", force=True)
    engine.put_stream("s", EVENTS)
    engine.push("s", [item(NOW + n) for n in range(5)])
    running.until(lambda: engine.stream("s").state["items"] == 5 and len(engine.tail_part("s").events) == 5)
    assert engine.stream("s").state["itemsPerSecond"] == 0.5, "what went by that name before is another stream"


def test_the_rate_of_a_stream_that_a_query_makes_ends_with_it(running: Running) -> None:
    engine, text = running.engine, """REGISTER STREAM made AS CONSTRUCT { ?s <http://ex.org/q> ?o }
        FROM STREAM <http://ex.org/s> [RANGE 1s STEP 1s] WHERE { ?s <http://ex.org/p> ?o }"""
    engine.put_stream("s", EVENTS)
    engine.register(text)
    engine.push("s", [item(NOW), item(NOW + 5_500)])
    running.until(lambda: engine.stream("made").state["itemsPerSecond"] > 0)
    engine.delete_query("made")
    engine.register(text)
    running.until(lambda: engine.stream("made").state["itemsPerSecond"] == 0)


def test_when_the_last_answer_came_is_told_of_the_query_that_gave_it(running: Running) -> None:
    engine = running.engine
    engine.put_stream("s", EVENTS)
    engine.register(TEXT)
    engine.push("s", [item(NOW), item(NOW + 1_500)])
    assert running.ticks(1) == [NOW + 1_000]
    running.until(lambda: engine.query("q").progress["lastResultAt"] == "2023-11-14T22:13:20Z")
    assert engine.query("q").progress["resultLatencyMs"] is None    # stamped ahead of the clock
    engine.register(TEXT.replace("2s", "3s"), options={"replace": True})
    progress = engine.query("q").progress
    assert (progress["lastEventId"], progress["lastResultAt"], progress["resultLatencyMs"]) == (None, None, None)


def test_late_ahead_and_broken_items(running: Running) -> None:
    engine = running.engine
    engine.put_stream("s", {**EVENTS, "late": "dead-letter", "maxAhead": "PT10S"})
    receipt = engine.push("s", [item(NOW), item(NOW - 1, "old"), item(NOW + 10_001, "new")], skip=True,
                          rejected=[Rejection("no triple", "line 3")])
    assert (receipt.accepted, receipt.late, receipt.rejected) == (1, 1, 2)
    running.until(lambda: len(engine.dead_letters("s")) == 3)
    stamped = sorted((letter.reason, letter.t_ms) for letter in engine.dead_letters("s") if letter.t_ms)
    assert stamped == [("ahead", NOW + 10_001), ("late", NOW - 1)]
    assert engine.stream("s").state["late"] == 1 and engine.stream("s").state["deadLetters"] == 3


def test_an_idempotency_key_gives_the_first_answer_again_even_after_a_restart(tmp_path: Path) -> None:
    before = Running(tmp_path)
    engine = before.start()
    engine.put_stream("s", EVENTS)
    first = engine.push("s", [item(NOW)], idempotency_key="k")
    again = engine.push("s", [item(NOW)], idempotency_key="k")
    assert again.repeated and (again.accepted, again.first_id) == (1, first.first_id)
    engine.stop()
    after = Running(tmp_path)
    assert after.start().push("s", [item(NOW)], idempotency_key="k").first_id == first.first_id
    assert after.engine.stream("s").state["items"] == 1
    after.engine.stop()


def test_a_restart_goes_on_where_it_was(tmp_path: Path) -> None:
    before = Running(tmp_path)
    engine = before.start()
    engine.put_stream("s", EVENTS)
    engine.put_graph("http://ex.org/g", [(S, P, '"g"')])
    engine.register(TEXT.replace("SELECT", "ISTREAM SELECT").replace("REGISTER QUERY", "REGISTER QUERY"))
    for second in range(10):
        engine.push("s", [item(NOW + second * 1_000 + 1, str(second))])
    assert len(before.ticks(9)) == 9
    engine.stop()
    after = Running(tmp_path)
    engine = after.start()
    assert engine.graph("http://ex.org/g")[1] == [(S, P, '"g"')]
    engine.push("s", [item(NOW + 10_001, "10")])
    after.until(lambda: len(after.results()) == 10)
    event = after.results()[-1]
    assert event.id == "q1c1-10" and event.tick == NOW + 10_000
    assert [b["o"]["value"] for b in json.loads(event.payload)["results"]["bindings"]] == ["9"]
    assert len(json.loads(event.full)["results"]["bindings"]) == 2
    engine.stop()


def test_the_log_is_merged_into_the_archive(running: Running) -> None:
    engine = running.engine
    engine.put_stream("s", EVENTS)
    for second in range(30):
        engine.push("s", [item(NOW + second)])
    engine.register(TEXT)
    running.until(lambda: any(running.engine.settings.archive_folder.iterdir()))


def test_registration_errors(running: Running) -> None:
    engine = running.engine
    with pytest.raises(DiagnosticError):
        engine.register(TEXT)
    engine.put_stream("s", EVENTS)
    assert engine.register(TEXT)[1] and not engine.register(TEXT)[1]
    for call, slug in ((lambda: engine.register(TEXT.replace("2s", "3s")), "name-exists"),
                       (lambda: engine.register(TEXT, "other"), "name-mismatch"),
                       (lambda: engine.register(TEXT.replace("QUERY q", "QUERY r"), options={"colour": 1}), "unknown-parameter"),
                       (lambda: engine.query("nope"), "no-such-query"), (lambda: engine.stream("nope"), "no-such-stream"),
                       (lambda: engine.graph("urn:nope"), "no-such-graph"), (lambda: engine.delete_stream("s"), "in-use"),
                       (lambda: engine.put_stream("s", {"iri": "http://ex.org/s"}), "name-exists"),
                       (lambda: engine.put_stream("t", {"iri": "http://ex.org/s"}), "name-exists"),
                       (lambda: engine.push("s", [item(None)]), "missing-timestamp"),
                       (lambda: engine.patch_query("q", "finished"), "bad-transition")):
        with pytest.raises(EngineError) as error:
            call()
        assert error.value.slug == slug


def test_a_query_that_replaces_another_does_not_go_on_from_its_relation(tmp_path: Path) -> None:
    """Also where the process ends before its first evaluation: all that is there then is new."""
    with Running(tmp_path) as first:
        first.engine.put_stream("s", EVENTS)
        first.engine.register(TEXT.replace("SELECT", "ISTREAM SELECT"))
        first.engine.push("s", [item(NOW + 500), item(NOW + 1_100, "2")])
        assert first.ticks(1) == [NOW + 1_000]
        first.engine.register(TEXT.replace("SELECT", "ISTREAM SELECT").replace("2s", "5s"), options={"replace": True, "since": "earliest"})
    with Running(tmp_path) as second:
        second.engine.push("s", [item(NOW + 2_100)])
        second.until(lambda: bool(second.results()))
        [event] = second.results()
        assert (event.epoch, event.tick) == ("q1c2", NOW + 2_000) and len(json.loads(event.payload)["results"]["bindings"]) == 2


def test_pause_replace_restart_delete(running: Running) -> None:
    engine = running.engine
    engine.put_stream("s", EVENTS)
    engine.register(TEXT)
    assert engine.patch_query("q", "paused").state == "paused"
    engine.push("s", [item(NOW + 100), item(NOW + 1_100)])
    assert engine.patch_query("q", "running", "backlog").state == "running"
    assert running.ticks(1) == [NOW + 1_000]
    assert engine.register(TEXT.replace("2s", "3s"), options={"replace": True})[0].epoch == "q1c2"
    assert running.results() == []
    assert engine.restart_query("q", reset=True).epoch == "q1c3"
    engine.delete_query("q")
    assert engine.queries() == []
    engine.delete_stream("s")
    assert engine.streams() == []


def test_the_end_of_the_evaluator_fails_the_engine_not_the_query(tmp_path: Path) -> None:
    running = Running(tmp_path)
    engine = running.start()
    engine.put_stream("s", EVENTS)
    engine.register(TEXT)
    running.backend.executor.failing.add("q1c1")
    running.backend.down = True
    engine.push("s", [item(NOW), item(NOW + 1_000)])
    running.until(lambda: engine.state == "failed")
    with pytest.raises(EngineError) as error:
        engine.push("s", [item(NOW + 2_000)])
    assert error.value.status == 503
    engine.stop()
    again = Running(tmp_path)
    again.start()
    assert again.ticks(1) == [NOW + 1_000]
    again.engine.stop()


def test_two_engines_cannot_share_a_folder(running: Running, tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="Another process"):
        Running(tmp_path).engine.start()


def test_one_shot_queries_over_graphs_and_windows(running: Running) -> None:
    engine = running.engine
    engine.put_graph("urn:x-thalweg:default", [(S, P, '"g"')])
    engine.put_stream("s", EVENTS)
    engine.register(TEXT)
    assert engine.sparql("SELECT ?o { ?s ?p ?o }").table.to_pylist() == [{"o": '"g"'}]
    assert engine.sparql("ASK { ?s ?p 1 }").table.num_rows == 0
    engine.push("s", [item(NOW + 100), item(NOW + 1_100)])
    running.ticks(1)
    text = "SELECT ?o FROM STREAM <http://ex.org/s> [RANGE 10s STEP 1s] WHERE { ?s ?p ?o }"
    assert [row["o"] for row in engine.sparql(text).table.to_pylist()] == ['"1"']


def test_a_window_of_which_nothing_is_kept_is_refused(running: Running) -> None:
    engine = running.engine
    engine.put_stream("s", EVENTS)
    text = "SELECT ?o FROM STREAM <http://ex.org/s> [RANGE 10s STEP 1s] WHERE { ?s ?p ?o }"
    engine.push("s", [item(NOW + 100), item(NOW + 1_100)])
    engine.put_graph("http://ex.org/g", [(S, P, '"g"')])  # answered once the pump has come so far
    with pytest.raises(EngineError, match="Not all items that this window .* are kept"):
        engine.sparql(text)


def test_a_window_that_is_only_partly_kept_is_refused(running: Running) -> None:
    """The registered query sees two seconds; of a minute, or of the last three items, only a part is there."""
    engine = running.engine
    engine.put_stream("s", EVENTS)
    engine.register(TEXT)
    for number, at in enumerate((100, 30_100, 31_100, 50_100), 1):
        engine.push("s", [item(NOW + at, str(at))])
        engine.put_graph("http://ex.org/g", [(S, P, f'"{number}"')])    # answered once the pump has come so far
    for window, rows in (("RANGE 1s", 0), ("ITEMS 1", 1), ("RANGE 2m STEP 1s", None), ("ITEMS 3", None)):
        text = f"SELECT ?o FROM STREAM <http://ex.org/s> [{window}] WHERE {{ ?s ?p ?o }}"
        if rows is not None:
            assert engine.sparql(text).table.num_rows == rows
        else:
            with pytest.raises(EngineError, match="Not all items"):
                engine.sparql(text)


REGISTERED = TEXT.replace("RANGE 2s STEP 1s", "RANGE 10s STEP 2s")
BY_ARRIVAL = {"iri": "http://ex.org/s", "time": "arrival", "idle": "PT1S"}


def asked(window: str, stream: str = "s") -> str:
    return f"SELECT ?o FROM STREAM <http://ex.org/{stream}> [{window}] WHERE {{ ?s ?p ?o }}"


def test_a_one_shot_over_a_stream_that_has_fallen_silent_is_answered(running: Running) -> None:
    """The registered query has seen its windows become empty: nothing is kept, and nothing is there."""
    engine = running.engine
    engine.put_stream("s", BY_ARRIVAL)
    engine.register(REGISTERED)
    engine.push("s", [item(None)])
    for _ in range(30):
        running.clock.advance(1_000)
        engine.put_graph("http://ex.org/g", [(S, P, f'"{running.clock.now_ms()}"')])   # answered once the pump has come so far
    running.until(lambda: len(running.results()) == 6)
    assert running.results()[-1].meta["rows"] == 0
    assert engine.sparql(asked("RANGE 10s STEP 2s")).table.num_rows == 0
    assert engine.sparql(asked("RANGE 2s STEP 2s")).table.num_rows == 0


def test_an_idle_stream_is_seen_at_the_time_that_its_queries_have_reached(running: Running) -> None:
    engine = running.engine
    for name in "st":
        engine.put_stream(name, {"iri": f"http://ex.org/{name}", "time": "event", "idle": "PT1S"})
    engine.register("REGISTER QUERY q AS SELECT ?s FROM STREAM <http://ex.org/s> [RANGE 10s STEP 2s] "
                    "FROM STREAM <http://ex.org/t> [RANGE 10s STEP 2s] WHERE { ?s ?p ?o }")
    engine.push("s", [item(NOW + 100)])
    engine.push("t", [item(NOW + 100)])
    running.clock.advance(2_000)
    engine.push("t", [item(NOW + 50_100)])
    running.until(lambda: any(event.at_ms >= NOW + 12_000 for event in running.results()))
    assert engine.sparql(asked("RANGE 10s STEP 2s")).table.num_rows == 0


def test_why_a_tumbling_window_reaches_further_back_is_said(running: Running) -> None:
    engine = running.engine
    engine.put_stream("s", EVENTS)
    engine.register(REGISTERED)
    for number, at in enumerate((100, 30_100, 31_100, 37_100)):
        engine.push("s", [item(NOW + at, str(at))])
        engine.put_graph("http://ex.org/g", [(S, P, f'"{number}"')])    # answered once the pump has come so far
    with pytest.raises(EngineError) as caught:
        engine.sparql(asked("RANGE 10s"))
    error = caught.value
    assert (error.slug, error.status) == ("window-not-kept", 422)
    assert "STEP 10s: its last close was at" in error.detail and "kept from" in error.detail
    assert "[RANGE 10s STEP 2s]" in error.extra["hint"] and error.extra["kept"] == {"q": "[RANGE 10s STEP 2s]"}


def test_items_from_before_a_stream_was_read_are_not_said_to_be_absent(running: Running, tmp_path: Path) -> None:
    """A window that reaches behind the registration does not show part of what was there."""
    engine = running.engine
    engine.put_stream("s", EVENTS)
    engine.push("s", [item(NOW + 100), item(NOW + 3_100)])
    engine.register(REGISTERED)
    engine.push("s", [item(NOW + 4_100), item(NOW + 6_100, "2")])
    running.ticks(1)
    with pytest.raises(EngineError, match="Not all items that this window"):
        engine.sparql(asked("RANGE 10s STEP 2s"))
    with pytest.raises(EngineError, match="Not all items that this window"):
        engine.sparql(asked("ITEMS 3"))
    assert engine.sparql(asked("ITEMS 2")).table.num_rows == 2
    assert engine.sparql(asked("NOW")).table.num_rows == 1


def test_equal_triples_are_counted_once_where_a_window_of_triples_is_kept(running: Running) -> None:
    engine = running.engine
    engine.put_stream("s", EVENTS)
    engine.push("s", [item(NOW + at, str(at)) for at in range(3)])
    engine.put_graph("http://ex.org/g", [(S, P, '"before"')])
    engine.register(TEXT.replace("RANGE 2s STEP 1s", "TRIPLES 2"))
    engine.push("s", [item(NOW + 10, "again"), item(NOW + 10, "again"), item(NOW + 20, "other")])
    running.ticks(1)
    assert engine.sparql(asked("TRIPLES 2")).table.num_rows == 2
    with pytest.raises(EngineError, match="Not all items that this window"):
        engine.sparql(asked("TRIPLES 3"))


def test_explain_and_stats(running: Running) -> None:
    engine = running.engine
    engine.put_stream("s", EVENTS)
    assert engine.explain(TEXT)["form"] == "SELECT" and engine.queries() == []
    engine.register(TEXT)
    assert engine.stats("q")["state"] == "running"
    assert engine.plan("q").startswith("logical")


def test_the_time_of_a_one_shot_query_counts_from_the_reading_of_its_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Running(tmp_path / "data") as running:
        asked: list[float] = []
        monkeypatch.setattr(running.backend, "one_shot", lambda due, timeout_s: asked.append(timeout_s) or Answer("", 0, pa.table({})))
        running.engine.sparql("SELECT ?o { ?s ?p ?o }", 60.0)
        assert 0 < asked.pop() < 60.0
        with pytest.raises(EngineError) as refused:
            running.engine.sparql("SELECT ?o { ?s ?p ?o }", 1e-9)
        assert (refused.value.slug, refused.value.status) == ("query-timeout", 503)
        assert not asked


def test_a_query_says_what_item_it_waits_for(running: Running) -> None:
    """The only item is there, and only a later one, or ?watermark=, closes its window."""
    engine = running.engine
    engine.put_stream("s", {**EVENTS, "lateness": "PT3S", "idle": "PT1S"})
    engine.register(TEXT)
    assert engine.query("q").progress["waits"] is None
    engine.push("s", [item(NOW + 100)])
    running.until(lambda: engine.query("q").progress["waits"] is not None)
    expected = {"at": "2023-11-14T22:13:21Z", "for": [{"stream": "http://ex.org/s", "stamped": "2023-11-14T22:13:24Z"}]}
    assert engine.query("q").progress["waits"] == expected
    running.clock.advance(5_000)
    running.until(lambda: engine.query("q").state == "idle")
    assert engine.query("q").progress["waits"] == expected
    engine.push("s", [], watermark_ms=NOW + 1_000)
    assert running.ticks(1) == [NOW + 1_000]
    running.until(lambda: engine.query("q").progress["waits"]["at"] == "2023-11-14T22:13:22Z")
    engine.push("s", [], watermark_ms=NOW + 60_000)
    running.until(lambda: engine.query("q").progress["waits"] is None)


def test_an_item_by_arrival_waits_for_the_clock_alone(running: Running) -> None:
    engine = running.engine
    engine.put_stream("s", BY_ARRIVAL)
    engine.register(TEXT)
    engine.push("s", [item(None)])
    running.until(lambda: len(engine.tail_part("s").events) == 1)
    assert engine.query("q").progress["waits"] is None

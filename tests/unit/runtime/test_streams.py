"""Descriptors, durations, names, the tail, and what the timer waits for."""

from __future__ import annotations

import threading
from copy import copy

import pytest
from hypothesis import given, strategies as st

from engine.records import Event
from engine.runtime import kept
from engine.runtime.clock import Clock
from engine.runtime.errors import EngineError
from engine.runtime.kept import Tail
from engine.runtime.log_threads import waiting
from engine.runtime.resources import iso
from engine.runtime.streams import Source, check_name, describe, duration_ms, duration_text
from tests.clocks import ManualClock
from tests.encoded import encode

BASE = "http://localhost:8175"


def test_a_descriptor_is_completed_in_one_spelling() -> None:
    assert describe("s", {}, BASE) == {
        "iri": f"{BASE}/streams/s", "time": "arrival", "timestampPredicate": "http://www.w3.org/ns/prov#generatedAtTime",
        "lateness": "PT0S", "idle": "PT5S", "maxAhead": "PT1M", "late": "drop", "retention": "PT1H", "source": {"type": "http"}}
    assert describe("s", {"lateness": "1500ms", "retention": "1d"}, BASE)["lateness"] == "PT1.5S"


@pytest.mark.parametrize(("given_", "member"), [
    ({"iri": "no iri"}, "iri"), ({"iri": 5}, "iri"), ({"time": "sometimes"}, "time"), ({"idle": "5"}, "idle"),
    ({"colour": "red"}, "colour"),
    ({"source": {"type": "kafka"}}, "source"), ({"late": "keep"}, "late"), ({"idle": "P"}, "idle")])
def test_what_is_wrong_with_a_descriptor_is_named(given_: dict[str, object], member: str) -> None:
    with pytest.raises(EngineError) as error:
        describe("s", given_, BASE)
    assert error.value.slug == "bad-descriptor" and error.value.extra["member"] == member


@pytest.mark.parametrize("name", ["", "1a", "a b", "a..b", "ä", "a" * 65, "a/b", "a\n"])
def test_names(name: str) -> None:
    with pytest.raises(EngineError, match="is not a name"):
        check_name(name)
    assert check_name("Temps.v2_x-y") == "Temps.v2_x-y"


@given(st.integers(0, 10**10))
def test_durations_read_back(ms: int) -> None:
    assert duration_ms(duration_text(ms)) == ms


@pytest.mark.parametrize(("text", "ms"), [("PT5S", 5_000), ("P1DT2H", 93_600_000), ("500ms", 500), ("1.5s", 1_500), ("2h", 7_200_000)])
def test_durations(text: str, ms: int) -> None:
    assert duration_ms(text) == ms


def test_times_as_text() -> None:
    assert (iso(0), iso(1_500), iso(-1)) == ("1970-01-01T00:00:00Z", "1970-01-01T00:00:01.500Z", "1969-12-31T23:59:59.999Z")
    assert (iso(None), iso(1 << 60)) == (None, None)


def test_the_tail_keeps_the_last_items() -> None:
    tail = Tail(3)
    for first in range(1, 11, 2):
        tail.add(encode([Event(p, "s", p, None, (("<x>", "<p>", f'"{p}"'), ("<y>", "<p>", "<o>")), p) for p in (first, first + 1)]))
    assert [event.position for event in tail.read(100)][-3:] == [8, 9, 10]
    assert [event.position for event in tail.read(2)] == [9, 10]
    assert [len(event.triples) for event in tail.read(5, 9)] == [2]


def test_the_tail_keeps_whole_items_of_not_too_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "_TAIL_ROWS", 5)
    tail = Tail(100)
    triples = (("<x>", "<p>", "<o>"), ("<y>", "<p>", "<o>"))
    tail.add(encode([Event(p, "s", p, None, triples, p) for p in range(1, 8)]))
    assert [(event.position, event.triples) for event in tail.read(100)] == [(6, triples), (7, triples)]
    for p in (8, 9, 10):
        tail.add(encode([Event(p, "s", p, None, triples, p)]))
    assert [event.position for event in tail.read(100)] == [8, 9, 10]


def test_the_timer_marks_only_streams_that_hold_up_a_tick() -> None:
    sources = {"a": Source("a", watermark=10), "b": Source("b", watermark=30), "e": Source("e", arrival=False)}
    assert waiting([(20, ("a", "b", "e"))], sources, 25) == (["a"], None)
    assert waiting([(20, ("a", "b")), (40, ("b",))], sources, 15) == ([], 20)
    assert waiting([(20, ("e", "gone"))], sources, 25) == ([], None)


def test_a_manual_clock_wakes_who_waits() -> None:
    clock, wake, woken = ManualClock(5), threading.Event(), threading.Event()
    clock.wait(wake, 5)
    thread = threading.Thread(target=lambda: (clock.wait(wake, 10), woken.set()))
    thread.start()
    while not woken.wait(0.001):
        clock.advance(1)
    thread.join()
    assert clock.now_ms() > 5
    system = Clock()
    before = system.now_ms()
    system.wait(wake, before)
    assert system.now_ms() >= before


def test_the_tail_keeps_items_up_to_its_bytes_and_knows_what_is_gone() -> None:
    def large(p: int) -> Event:
        return Event(p, "s", p, None, (("<x>", "<p>", f'"{"x" * 100}"'),), p)

    for batches in ([range(1, 8)], [range(p, p + 1) for p in range(1, 8)], [range(1, 3), range(3, 8)]):
        tail = Tail(100, 400)
        assert tail.gone == 0
        for batch in batches:
            tail.add(encode([large(p) for p in batch]))
        assert [event.position for event in tail.read(100)] == [5, 6, 7]
        assert tail.gone == 4 and copy(tail).gone == 4
    tail = Tail(100, 50)
    tail.add(encode([large(1)]))
    assert tail.read(100) == [] and tail.gone == 1

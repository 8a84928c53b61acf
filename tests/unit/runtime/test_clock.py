"""The machine's clock is set back: stamps, windows, idle times and keys go on with the time that passes, also after a restart."""

from __future__ import annotations

import logging
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.runtime.clock import Clock
from tests.clocks import ManualClock
from tests.unit.runtime.test_engine import EVENTS, NOW, TEXT, Running, item

HOUR = 3_600_000
ARRIVALS = {"iri": "http://ex.org/s", "time": "arrival", "retention": "1m"}


class SteppedClock(ManualClock):
    """The clock of a machine whose time a test sets: `advance` lets time pass, `step` sets the machine's clock."""

    def __init__(self, now_ms: int) -> None:
        super().__init__(now_ms)
        self._passed = 0
        self._system = Clock(lambda: self._now, lambda: self._passed)

    def now_ms(self) -> int:
        return self._system.now_ms()

    def not_before(self, ms: int) -> None:
        self._system.not_before(ms)

    @property
    def ahead_ms(self) -> int:
        return self._system.ahead_ms

    def advance(self, ms: int) -> None:
        self._passed += ms
        super().advance(ms)

    def step(self, ms: int) -> None:
        super().advance(ms)

    def wait(self, wake: threading.Event, until_ms: int | None) -> None:
        super().wait(wake, None if until_ms is None else until_ms - self.ahead_ms)


class Stepped(Running):
    """An engine on a machine whose clock can be set."""

    def __init__(self, folder: Path, now_ms: int = NOW) -> None:
        super().__init__(folder, now_ms)
        self.clock = SteppedClock(now_ms)
        self.engine.clock = self.engine._machine.clock = self.clock


@given(st.lists(st.tuples(st.integers(0, 10_000), st.integers(-5_000, 5_000)), max_size=30))
def test_the_clock_never_runs_backwards_and_never_slower_than_time_passes_while_it_is_ahead(steps: list[tuple[int, int]]) -> None:
    wall, passed = [NOW], [0]
    clock = Clock(lambda: wall[0], lambda: passed[0])
    before = clock.now_ms()
    assert before == NOW
    for elapsed, step in steps:
        wall[0] += elapsed + step
        passed[0] += elapsed
        now = clock.now_ms()
        assert now == max(wall[0], before + elapsed if wall[0] < before else wall[0])
        assert now >= before and (clock.ahead_ms == now - wall[0] or now - wall[0] < 1_000)
        before = now


def test_a_clock_that_was_set_back_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    wall, passed = [NOW], [0]
    clock = Clock(lambda: wall[0], lambda: passed[0])
    clock.now_ms()
    with caplog.at_level(logging.WARNING):
        for _ in range(5):
            wall[0] -= 990 if not passed[0] else 0
            passed[0] += 1
            clock.now_ms()
        assert not caplog.records and clock.ahead_ms == 0, "too little to tell"
        wall[0] -= HOUR
        for _ in range(5):
            passed[0] += 100
            clock.now_ms()
        assert len(caplog.records) == 1 and "set back" in caplog.text and clock.ahead_ms > HOUR
        wall[0] += 2 * HOUR
        assert clock.now_ms() == wall[0] and clock.ahead_ms == 0
        wall[0] -= HOUR
        clock.now_ms()
        assert len(caplog.records) == 2


def test_an_arrival_stream_goes_on_when_the_clock_is_set_back_an_hour(tmp_path: Path) -> None:
    with Stepped(tmp_path) as running:
        engine, clock = running.engine, running.clock
        engine.put_stream("s", ARRIVALS)
        engine.register(TEXT)
        engine.push("s", [item(None)], idempotency_key="k")
        clock.advance(1_000)
        assert running.ticks(1) == [NOW + 1_000]
        clock.step(-HOUR)  # type: ignore[attr-defined]
        clock.advance(500)
        engine.push("s", [item(None, "2")])
        running.until(lambda: len(engine.tail_part("s").events) == 2)
        assert [event.t_ms for event in engine.tail_part("s").events] == [NOW, NOW + 1_500]
        clock.advance(500)
        assert running.ticks(2) == [NOW + 1_000, NOW + 2_000], "windows close as time passes"
        assert [(t["kind"], t["name"]) for t in engine.health()[1]["degraded"]] == [("clock", "server")]
        assert engine.push("s", [item(None)], idempotency_key="k").repeated
        clock.advance(61_000)
        engine.push("s", [item(None, "3")])      # old keys are forgotten after a commit, now and then
        assert not engine.push("s", [item(None)], idempotency_key="k").repeated, "keys are kept as long as the retention says"
        clock.step(HOUR)  # type: ignore[attr-defined]
        assert clock.now_ms() == NOW + 63_000 and not engine.health()[1]["degraded"]


def test_a_restart_with_a_clock_an_hour_behind_the_log_goes_on_after_it(tmp_path: Path) -> None:
    with Stepped(tmp_path) as running:
        running.engine.put_stream("s", ARRIVALS)
        running.engine.register(TEXT)
        running.engine.push("s", [item(None)])
        running.clock.advance(1_000)
        assert running.ticks(1) == [NOW + 1_000]
    with Stepped(tmp_path, NOW - HOUR) as running:
        engine, clock = running.engine, running.clock
        begun = clock.now_ms()
        assert NOW <= begun <= NOW + 2_000 and engine.health()[1]["degraded"]
        engine.push("s", [item(None, "2")])
        clock.advance(3_000)
        running.until(lambda: len(running.results()) >= 3)
        assert engine.push("s", [item(None, "3")]).accepted == 1
        running.until(lambda: len(engine.tail_part("s").events) >= 3)
        assert [event.t_ms for event in engine.tail_part("s").events][1:] == [begun, begun + 3_000]


def test_a_silent_stream_is_idle_when_its_time_has_passed_by_a_clock_that_was_set_back(tmp_path: Path) -> None:
    with Stepped(tmp_path) as running:
        engine, clock = running.engine, running.clock
        engine.put_stream("s", {**EVENTS, "idle": "2s"})
        engine.push("s", [item(NOW)])
        clock.step(-HOUR)  # type: ignore[attr-defined]
        clock.advance(1_999)
        assert not engine._machine.writer.appender.silent(clock.now_ms())
        clock.advance(1)
        running.engine._machine.writer.call(lambda end, now: (end.declare_idle(now), None))
        assert engine.stream("s").state["idle"]

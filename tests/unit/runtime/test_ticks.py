"""Which ticks are due, drawn. The pump's tests compare the same with the reference on random logs."""

from __future__ import annotations

import numpy as np
import pytest

from engine.ir.patterns import BGP, Project
from engine.ir.statement import Select, Statement, StreamSource, TimeWindow, TupleWindow, Window
from engine.runtime.ticks import Need, Ticker, Timetable, query_watermark
from engine.timeline import MAX, MIN, merge


def ticker(*windows: Window, events: tuple[int, ...] = (), floor: int = MIN, **statement: object) -> Ticker:
    query = Select(Project(BGP(()), ()), ())
    sources = tuple(StreamSource("s", window) for window in windows)
    found = Ticker(Timetable.of(Statement(query, "", streams=sources, **statement)), floor)  # type: ignore[arg-type]
    found.see("s", np.array(sorted(set(events)), np.int64))
    return found


def test_sliding() -> None:
    #  time   0    5    10   15   20   25
    #  event    x              x
    #  T           *    *    *    -    *    *     (- the first empty one after content; none while nothing was there)
    found = ticker(TimeWindow(10, 5), events=(2, 24))
    assert found.due(20, 100) == [5, 10, 15]
    assert found.due(40, 100) == [25, 30, 35]


def test_two_grids_are_one() -> None:
    assert ticker(TimeWindow(4, 4), TimeWindow(6, 6), events=(1,)).due(100, 100) == [4, 6, 8, 12]


def test_compute_every_looks_at_the_last_closed_content() -> None:
    #  event at 1, RANGE 10 STEP 10: content at T in [10, 20)
    assert ticker(TimeWindow(10, 10), events=(1,), compute_every_ms=4).due(100, 100) == [12, 16, 20]


def test_start_at_moves_both_grids() -> None:
    assert ticker(TimeWindow(10, 10), events=(1,), start_at_ms=3).due(100, 100) == [3, 13]
    assert ticker(TimeWindow(10, 10), events=(1,), start_at_ms=3, compute_every_ms=5).due(100, 100) == [3, 8, 13]


def test_sampling_sees_some_events_only() -> None:
    assert ticker(TimeWindow(2, 10), events=(5, 19)).due(100, 100) == [20, 30]


def test_report_full_waits_for_a_whole_window() -> None:
    assert ticker(TimeWindow(10, 5), events=(6, 12), report="full").due(100, 100) == [20, 25]


def test_on_change_and_its_expiry() -> None:
    events = (5, 8)
    assert ticker(TimeWindow(10, 5), events=events, report="change").due(100, 100) == [6, 9]
    assert ticker(TimeWindow(10, 5), events=events, report="change", output="dstream").due(100, 100) == [6, 9, 16, 19]
    assert ticker(TupleWindow(1, "items"), events=events).due(100, 100) == [6, 9]


def test_a_limit_is_taken_up_where_it_ended() -> None:
    found = ticker(TimeWindow(1_000, 1), events=(0,))
    due = [tick for _ in range(12) for tick in found.due(5_000, 100)]
    assert due == list(range(1, 1_002)) and found.floor == 5_000


def test_next_and_last() -> None:
    found = ticker(TimeWindow(10, 5), events=(2,))
    assert (found.next(), found.last()) == (5, 10)
    assert found.due(found.last(), 100) == [5, 10]
    assert found.next() == 15 and found.due(15, 100) == [15] and found.next() is None
    assert ticker(TimeWindow(10, 5)).next() is None and ticker(TimeWindow(10, 5)).last() == MIN


def test_needs() -> None:
    found = ticker(TimeWindow(10, 5), TupleWindow(3, "triples"), events=(2,), compute_every_ms=1)
    assert found.needs() == {"s": Need(MIN, triples=3)}
    found.due(17, 100)
    assert found.needs() == {"s": Need(5, triples=3)}


@pytest.mark.parametrize(("ranges", "expected"), [([], []), ([(1, 3), (3, 4)], [(1, 4)]), ([(5, 6), (1, 2)], [(1, 2), (5, 6)])])
def test_merge(ranges: list[tuple[int, int]], expected: list[tuple[int, int]]) -> None:
    assert merge(ranges) == expected


def test_an_idle_stream_holds_nobody_back() -> None:
    assert query_watermark([(5, False), (9, False)]) == 5
    assert query_watermark([(5, True), (9, False)]) == 9
    assert query_watermark([(5, True), (9, True)]) == 9
    assert query_watermark([]) == MIN < MAX

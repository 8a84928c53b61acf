"""Continuous evaluation on records made by hand: which ticks, what content, what the output operators give.

The query shows the objects of its window. Pictures: one column per second, digits are events, ``|`` a close.
"""

from __future__ import annotations

import random
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from engine.ir.patterns import BGP, Project, TriplePattern
from engine.ir.statement import (AllWindow, NowWindow, Select, Statement, StreamSource, TimeWindow, TupleWindow, Window)
from engine.ir.terms import Constant, Variable
from engine.records import End, Event, Idle, Mark, Pause, Record, Register, Resume, Unregister
from engine.reference.streams import Evaluation, run

X = Variable("x")
QUERY = Select(Project(BGP((TriplePattern(Constant("<s>"), Constant("<p>"), X),)), (X,)), (X,))


def statement(*windows: Window) -> Statement:
    return Statement(QUERY, "", streams=tuple(StreamSource(f"s{i}", window) for i, window in enumerate(windows)))


def event(t: int, stream: int = 0, watermark: int | None = None) -> Event:
    """An event that shows its time; `position` is filled in by `log`."""
    return Event(0, f"s{stream}", t, None, (("<s>", "<p>", f'"{t}"'),), t if watermark is None else watermark)


def log(query: Statement, *records: Record) -> list[Evaluation]:
    """The evaluations of one query that is registered first unless a Register is among the records."""
    steps = records if any(isinstance(r, Register) for r in records) else (Register(0, "q", "", 0), *records)
    placed: list[Record] = []
    for position, record in enumerate(steps, 1):
        record = replace(record, position=position)
        placed.append(replace(record, since=position) if isinstance(record, Register) and record.since == 0 else record)
    return run(placed, lambda text: query)["q"]


def shown(evaluations: list[Evaluation]) -> dict[int, str]:
    """at -> the values, joined."""
    return {e.at: " ".join(sorted(row["x"].strip('"') for row in e.result.rows)) for e in evaluations}


def test_half_open_windows_and_early_ones() -> None:
    """
    t   0 1 2 3 4 5 6
          1   3   5        RANGE 4 STEP 2
    C       |   |   |
    """
    found = shown(log(statement(TimeWindow(4, 2)), event(1), event(3), event(5), End(0)))
    assert found == {2: "1", 4: "1 3", 6: "3 5", 8: "5"}


def test_an_event_at_the_close_is_in_the_next_window() -> None:
    assert shown(log(statement(TimeWindow(2, 2)), event(1), event(2), event(4), End(0))) == {2: "1", 4: "2", 6: "4"}


def test_the_first_empty_result_is_logged_and_a_year_is_jumped() -> None:
    year = 31_536_000_000
    assert shown(log(statement(TimeWindow(2, 1)), event(0), event(year))) == {1: "0", 2: "0", 3: ""}
    assert shown(log(statement(TimeWindow(2, 1)), event(0), event(year), End(0))) == {
        1: "0", 2: "0", 3: "", year + 1: str(year), year + 2: str(year)}


def test_step_over_range_samples() -> None:
    """
    t   0 1 2 3 4 5 6 7 8 9
          1     4       8      RANGE 1 STEP 3: [2,3) [5,6) [8,9)
    C         |     |     |
    """
    assert shown(log(statement(TimeWindow(1, 3)), event(1), event(4), event(8), event(12), End(0))) == {9: "8", 12: ""}


def test_compute_every_off_the_grid_sees_the_last_close() -> None:
    """
    t   0 1 2 3 4 5 6 7 8
          1   3   5           RANGE 4 STEP 4, COMPUTE EVERY 3
    C           |       |
    T         .     .     .   at 3 nothing has closed, at 6 [0,4), at 9 [4,8), at 12 [8,12): empty
    """
    query = replace(statement(TimeWindow(4, 4)), compute_every_ms=3)
    assert shown(log(query, event(1), event(3), event(5), event(20))) == {6: "1 3", 9: "5", 12: ""}
    assert shown(log(query, event(1), event(3), event(5), End(0))) == {6: "1 3", 9: "5"}


def test_two_steps_evaluate_at_the_union_of_their_closes() -> None:
    """Windows of 4 and 3 over two streams; each T sees the last closed content of each."""
    query = statement(TimeWindow(4, 4), TimeWindow(3, 3))
    found = shown(log(query, event(1), event(2, 1), event(9), event(9, 1)))
    assert found == {3: "2", 4: "1 2", 6: "1", 8: ""}


def test_the_least_watermark_counts_and_an_idle_stream_does_not() -> None:
    query = statement(TimeWindow(2, 2), TimeWindow(2, 2))
    assert shown(log(query, event(1), event(5), event(1, 1))) == {}
    assert shown(log(query, event(1), event(5), event(1, 1), event(3, 1))) == {2: "1"}
    assert shown(log(query, event(1), event(5), event(1, 1), Idle(0, "s1"))) == {2: "1", 4: ""}


def test_all_streams_idle_go_on_to_the_greatest_watermark() -> None:
    query = statement(TimeWindow(2, 2), TimeWindow(2, 2))
    assert shown(log(query, event(5), event(1, 1), Idle(0, "s0"))) == {}
    assert shown(log(query, event(5), event(1, 1), Idle(0, "s0"), Idle(0, "s1"))) == {2: "1", 4: ""}


def test_a_stream_that_wakes_up_cannot_change_what_is_done() -> None:
    """s1 brings 3 after 4 was evaluated without it: only later Ts see it."""
    query = statement(TimeWindow(4, 2), TimeWindow(4, 2))
    found = shown(log(query, event(1), Idle(0, "s1"), event(4), event(3, 1, watermark=3), event(6), event(6, 1)))
    assert found == {2: "1", 4: "1", 6: "3 4"}


def test_report_on_change() -> None:
    """Window (t-2, t], one evaluation per instant, none for expiry."""
    query = replace(statement(TimeWindow(2, 1)), report="change")
    found = log(query, event(1), event(1), event(2), event(9), Mark(0, "s0", 20))
    assert shown(found) == {1: "1", 2: "1 2", 9: "9"}
    assert [e.tick for e in found] == [2, 3, 10]


def test_dstream_on_change_evaluates_at_expiry() -> None:
    query = replace(statement(TimeWindow(2, 1)), report="change", output="dstream")
    assert shown(log(query, event(1), event(2), event(9), End(0))) == {1: "", 2: "", 3: "1", 4: "2", 9: ""}


def test_istream() -> None:
    query = replace(statement(TimeWindow(4, 2)), output="istream")
    found = log(query, event(1), event(3), event(5), End(0))
    assert shown(found) == {2: "1", 4: "3", 6: "5", 8: ""}
    assert [len(e.relation.rows) for e in found] == [1, 2, 2, 1]


def test_report_full_waits_for_a_whole_window() -> None:
    """First event 1, RANGE 4: the window [1,5) closes at 5; with STEP 2 the first close with C - 4 >= 1 is 6."""
    query = replace(statement(TimeWindow(4, 2)), report="full")
    assert shown(log(query, event(1), event(3), event(5), End(0))) == {6: "3 5", 8: "5"}


def test_report_full_waits_for_every_stream() -> None:
    query = replace(statement(TimeWindow(2, 2), TimeWindow(2, 2)), report="full")
    assert shown(log(query, event(0), event(2), event(4, 1), event(7), event(7, 1))) == {6: "4"}


def test_delayed_window() -> None:
    """[FROM NOW-3 TO NOW-1 STEP 1]: at C the events with C - 3 <= t < C - 1."""
    assert shown(log(statement(TimeWindow(2, 1, delay_ms=1)), event(1), End(0))) == {3: "1", 4: "1"}


def test_start_at_moves_the_grid() -> None:
    query = replace(statement(TimeWindow(4, 4)), start_at_ms=1)
    assert shown(log(query, event(0), event(2), End(0))) == {1: "0", 5: "2"}


def test_last_triples() -> None:
    """Implied report on change: the last two by (t, token)."""
    found = shown(log(statement(TupleWindow(2, "triples")), event(1), event(2), event(2), event(3), End(0)))
    assert found == {1: "1", 2: "1 2", 3: "2 3"}


def test_last_items_are_whole() -> None:
    item = Event(0, "s0", 1, None, (("<s>", "<p>", '"a"'), ("<s>", "<p>", '"b"')), 1)
    found = shown(log(statement(TupleWindow(1, "items")), item, event(2), End(0)))
    assert found == {1: "a b", 2: "2"}


def test_now_and_all() -> None:
    assert shown(log(statement(NowWindow()), event(1), event(1), event(2), End(0))) == {1: "1", 2: "2"}
    assert shown(log(statement(AllWindow()), event(1), event(2), End(0))) == {1: "1", 2: "1 2"}


def test_tuple_window_with_compute_every_keeps_its_content() -> None:
    query = replace(statement(TupleWindow(1, "triples")), compute_every_ms=2)
    assert shown(log(query, event(1), Mark(0, "s0", 6), End(0))) == {2: "1", 4: "1", 6: "1"}


def test_registration_in_mid_stream_sees_later_items_and_later_ticks() -> None:
    """Registered at watermark 3: nothing before is seen, T > 3 only."""
    assert shown(log(statement(TimeWindow(4, 2)), event(1), event(3), Register(0, "q", "", 0), event(5), End(0))) == {6: "5", 8: "5"}


def test_registration_since_an_earlier_position_sees_old_items_at_new_ticks() -> None:
    """`since` 1 hides the first record only."""
    found = shown(log(statement(TimeWindow(4, 2)), event(1), event(3), Register(0, "q", "", 1), event(5), End(0)))
    assert found == {4: "3", 6: "3 5", 8: "5"}


def test_unregister_ends_it() -> None:
    assert shown(log(statement(TimeWindow(2, 2)), event(1), event(3), Unregister(0, "q"), event(5), End(0))) == {2: "1"}


def test_pause_drops_or_catches_up() -> None:
    query = replace(statement(TimeWindow(2, 2)), output="istream")
    records = [event(1), event(3), Pause(0, "q"), event(5), Resume(0, "q", True), event(7)]
    assert shown(log(query, *records)) == {2: "1", 4: "3", 6: "5"}
    records[4] = Resume(0, "q", False)
    found = log(query, *records)
    assert shown(found) == {2: "1", 6: "5"}


def test_a_late_mark_does_not_turn_time_back() -> None:
    assert shown(log(statement(TimeWindow(2, 2)), event(5), Mark(0, "s0", 3), event(7))) == {6: "5"}


WINDOWS = st.one_of(
    st.builds(TimeWindow, st.integers(1, 8), st.integers(1, 8), st.integers(0, 3)), st.just(NowWindow()), st.just(AllWindow()),
    st.builds(TupleWindow, st.integers(1, 3), st.sampled_from(["triples", "items"])))
TIMES = st.lists(st.integers(-5, 40), min_size=1, max_size=8).map(sorted)


@given(st.lists(WINDOWS, min_size=1, max_size=2), st.none() | st.integers(1, 7), st.integers(-3, 3), TIMES, TIMES, st.randoms())
def test_every_tick_of_a_range_looked_at(windows: list[Window], every: int | None, start: int, first: list[int], second: list[int],
                                         rng: random.Random) -> None:
    """The log is that of looking at each T one after the other; and it is the same however two streams take turns."""
    query = replace(statement(*windows), compute_every_ms=every, start_at_ms=start)
    steps = {w.step_ms for w in windows if isinstance(w, TimeWindow)}
    if every is None and not steps:
        return
    streams = [first, second][:len(windows)]
    turns = [event(t, number) for number, times in enumerate(streams) for t in times]
    rng.shuffle(turns)
    order = {number: iter(times) for number, times in enumerate(streams)}
    found = log(query, *(event(next(order[int(e.stream[1:])]), int(e.stream[1:])) for e in turns), End(0))
    grid = [every] if every is not None else sorted(steps)
    last = max((end_of(window, times, start) for window, times in zip(windows, streams, strict=True)), default=-20)
    watermark = min(map(max, streams))
    expected, before, done = [], False, False
    for tick in range(-20, 80):
        if (not done or tick <= watermark) and any((tick - start) % step == 0 for step in grid):
            done = tick >= last
            filled = any(seen(window, times, tick, start) for window, times in zip(windows, streams, strict=True))
            expected += [tick] if filled or before else []
            before = filled
    assert [e.at for e in found] == expected


def end_of(window: Window, times: list[int], start: int) -> int:
    """The last close that still sees an event; for windows without closes just after the last event."""
    if not isinstance(window, TimeWindow):
        return max(times) + 1
    return max((c for c in range(-20, 80) if (c - start) % window.step_ms == 0 and seen(window, times, c, start)), default=-20)


def seen(window: Window, times: list[int], tick: int, start: int) -> bool:
    """Whether a window has content at a tick, by the definition."""
    if not isinstance(window, TimeWindow):
        return min(times) < tick
    close = max(c for c in range(tick - window.step_ms, tick + 1) if (c - start) % window.step_ms == 0)
    return any(close - window.delay_ms - window.range_ms <= t < close - window.delay_ms for t in times)

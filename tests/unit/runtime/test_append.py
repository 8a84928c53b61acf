"""What an append decides: stamps, lateness, watermarks, positions, blank nodes, keys."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from engine.runtime.append import Appender, Recovery
from engine.runtime.errors import EngineError
from engine.runtime.resources import Rejection
from engine.runtime.rows import Control, Kind, control_rows, controls, prepare
from engine.runtime.streams import KeptKeys, LetterLimits, Source, Terms
from engine.timeline import MIN

NOW = 1_000_000


def appender(**source: object) -> Appender:
    return Appender(1, {"s": Source("s", **{"arrival": False, **source})})  # type: ignore[arg-type]


def items(times: Sequence[int | None], blank: bool = False) -> object:
    return prepare([(t, None, (("_:x" if blank else "<x>", "<p>", f'"{t}"'),)) for t in times])


def push(end: Appender, times: Sequence[int | None], **more: object) -> tuple[pa.Table, object]:
    rows, receipt = end.push("s", items(times, bool(more.pop("blank", False))), NOW, Terms(**more))  # type: ignore[arg-type]
    return pa.concat_tables(rows) if rows else None, receipt


@given(st.lists(st.integers(0, 100), max_size=20), st.integers(0, 10), st.integers(0, 20))
def test_verdicts_are_those_of_one_item_after_the_other(times: list[int], lateness: int, cut: int) -> None:
    watermark, taken, late = MIN, [], 0
    for t in times:
        if t < watermark:
            late += 1
            continue
        watermark = max(watermark, t - lateness)
        taken.append((t, watermark))
    end = appender(lateness_ms=lateness)
    found, counted = [], 0
    for part in (times[:cut], times[cut:]):
        rows, receipt = end.push("s", items(part), NOW)  # type: ignore[arg-type]
        counted += receipt.late
        found += [row for table in rows for row in table.to_pylist() if row["record"] == Kind.EVENT]
    assert [(row["t"], row["watermark"]) for row in found] == taken
    assert counted == late and end.sources["s"].watermark == watermark


def test_positions_have_no_gap() -> None:
    end = appender(keep_late=True)
    rows, receipt = push(end, [5, 9, 3, 12], key="k", watermark_ms=20)
    assert [(row["position"], row["record"]) for row in rows.to_pylist()] == [
        (1, Kind.EVENT), (2, Kind.EVENT), (3, Kind.EVENT), (4, Kind.REFUSED), (5, Kind.MARK), (6, Kind.KEY)]
    assert (receipt.first_id, receipt.last_id, receipt.watermark_ms) == ("1", "3", 20)  # type: ignore[attr-defined]
    assert end.position == 7


def test_an_item_beyond_the_clock_refuses_the_push_unless_it_may_be_left_out() -> None:
    end = appender(ahead_ms=100)
    with pytest.raises(EngineError, match="nothing was taken") as error:
        push(end, [5, NOW + 101])
    assert error.value.slug == "timestamp-ahead" and [e["item"] for e in error.value.extra["errors"]] == [1]
    _, receipt = push(end, [NOW + 101, 5, NOW + 100], skip=True)
    assert (receipt.accepted, receipt.rejected, receipt.watermark_ms) == (2, 1, NOW + 100)  # type: ignore[attr-defined]
    with pytest.raises(EngineError, match="ahead"):
        push(end, [], watermark_ms=NOW + 101)


def test_where_all_is_refused_the_watermark_stays() -> None:
    end = appender(ahead_ms=100)
    rows, receipt = push(end, [NOW + 101], skip=True, watermark_ms=NOW, rejected=(Rejection("no triple"),))
    assert receipt.refused and receipt.watermark_ms is None and receipt.rejected == 2  # type: ignore[attr-defined]
    assert [control.kind for control in controls(rows)] == [Kind.REFUSED]
    late = push(appender(watermark=10), [5], watermark_ms=NOW)[1]
    assert not late.refused and late.watermark_ms == NOW  # type: ignore[attr-defined]


def test_an_arrival_stream_stamps_what_comes_and_never_runs_backwards() -> None:
    end = appender(arrival=True)
    rows, _ = push(end, [None, 7])
    assert rows["t"].to_pylist() == [NOW, NOW]
    end.clock_marks(["s"], NOW + 5)
    rows, _ = push(end, [None])
    assert rows["t"].to_pylist() == [NOW + 5]


def test_an_event_stream_wants_time_stamps() -> None:
    with pytest.raises(EngineError) as error:
        push(appender(), [5, None])
    assert error.value.slug == "missing-timestamp" and error.value.extra == {"items": [1]}


def test_blank_nodes_are_the_items_own_whatever_else_is_in_the_log() -> None:
    end = appender()
    rows, _ = push(end, [1, 2], blank=True)
    first = rows["s"].to_pylist()
    assert len(set(first)) == 2 and all(token.startswith("_:i") and token.endswith(".x") for token in first)
    end.command(Kind.NOTE, "", {})
    rows, _ = push(end, [3], blank=True)
    without = appender()
    assert push(without, [1, 2, 3], blank=True)[0]["s"].to_pylist() == [*first, *rows["s"].to_pylist()]


def test_a_known_key_appends_nothing() -> None:
    end = appender()
    _, first = push(end, [5], key="k")
    rows, again = push(end, [6], key="k")
    assert rows is None and again.repeated and again.first_id == first.first_id  # type: ignore[attr-defined]
    with pytest.raises(EngineError) as error:
        for digest in ("one", "other"):
            push(end, [7], key="with digest", digest=digest)
    assert error.value.slug == "idempotency-key-reused"
    end.keys.forget(NOW + 3_600_001)
    assert push(end, [6], key="k")[0] is not None


def test_of_the_keys_of_a_stream_the_oldest_are_forgotten() -> None:
    end = appender()
    end.keys = KeptKeys(2)
    for key in "abc":
        fork = end.fork()
        push(fork, [5], key=key)
        end.adopt(fork)
    assert [end.keys.get("s", key) is not None for key in "abc"] == [False, True, True]
    assert push(end, [6], key="c")[0] is None
    assert push(end, [6], key="a")[0] is not None, "a push under a forgotten key is a new one"
    assert [end.keys.get("s", key) is not None for key in "abc"] == [True, False, True]
    assert push(end, [7], key="c")[0] is None and end.keys.get("other", "a") is None


def test_the_keys_of_a_stream_go_with_it() -> None:
    end = appender()
    end.catalogue = end.catalogue.with_stream("s", {"iri": "s"})
    push(end, [5], key="k")
    fork = end.fork()
    fork.remove_stream("s")
    assert end.keys.get("s", "k") is not None and fork.keys.get("s", "k") is None
    end.adopt(fork)
    assert end.keys.get("s", "k") is None


def test_bounds_of_dead_letters() -> None:
    end = appender(keep_late=True, watermark=100)
    end.letters = LetterLimits(2, 5)
    rows, _ = end.push("s", prepare([(t, None, (("<x>", "<p>", '"late"'),)) for t in range(3)]), NOW)
    letters = controls(rows[0])[0].payload["letters"]
    assert [(found["reason"], found["text"], found.get("more")) for found in letters] == [
        ("late", "<x> <", 11), ("late", "<x> <", 11), ("omitted", "", 1)]


def test_idle_streams_and_their_return() -> None:
    end = appender(idle_ms=10, active_ms=NOW)
    assert end.silent(NOW + 9) == [] and end.next_silence() == NOW + 10
    assert [c.kind for table in end.declare_idle(NOW + 10) for c in controls(table)] == [Kind.IDLE]
    assert end.declare_idle(NOW + 20) == [] and end.next_silence() is None
    push(end, [5])
    assert not end.sources["s"].idle


def test_a_fork_that_is_not_adopted_has_not_happened() -> None:
    end = appender()
    fork = end.fork()
    push(fork, [5], key="k")
    assert end.position == 1 and end.keys.get("s", "k") is None and end.sources["s"].watermark == MIN
    end.adopt(fork)
    assert end.position == 3 and end.keys.get("s", "k") is not None


def test_the_end_of_a_log_is_found_again_from_its_rows() -> None:
    end = appender(idle_ms=1, keep_late=True)
    rows = [push(end, [5, 9, 3], key="k")[0], *end.declare_idle(NOW + 5), *end.mark("s", 11, NOW), *end.command(Kind.NOTE, "", {})[0]]
    found = appender(idle_ms=1, keep_late=True)
    Recovery(None, None).follow(found, pa.concat_tables(rows), 0)
    assert found.position == end.position and found.keys.get("s", "k").receipt == end.keys.get("s", "k").receipt  # type: ignore[union-attr]
    old, new = end.sources["s"], found.sources["s"]
    assert (new.watermark, new.idle, new.items, new.late) == (old.watermark, old.idle, old.items, old.late)


@pytest.mark.parametrize("arrival", [False, True])
def test_a_watermark_far_beyond_the_clock_is_refused(arrival: bool) -> None:
    """On an arrival stream it would stamp all that comes after it."""
    end = appender(arrival=arrival, ahead_ms=100)
    with pytest.raises(EngineError) as error:
        push(end, [5], watermark_ms=NOW + 101)
    assert error.value.slug == "watermark-ahead"
    taken = push(appender(arrival=arrival, ahead_ms=100), [5], watermark_ms=NOW + 100)[1]
    assert taken.watermark_ms == NOW + 100  # type: ignore[attr-defined]


def test_a_mark_that_is_no_time_is_passed_over_when_the_end_of_the_log_is_found_again() -> None:
    """As the pump does, which sets it aside: else all that comes after it would be late."""
    end = appender()
    marks = [control_rows(Control(position, Kind.MARK, "s", watermark, {})) for position, watermark in ((1, 500), (2, 1 << 60), (3, 600))]
    Recovery(None, None).follow(end, pa.concat_tables(marks), NOW)  # type: ignore[arg-type]
    assert (end.sources["s"].watermark, end.position) == (600, 4)


def test_dead_letters_that_are_not_kept_whole_or_at_all_say_so() -> None:
    end = appender(ahead_ms=10, keep_late=True)
    long = Rejection("no triple", None, "x" * 5_000)
    times = [NOW, *[NOW + 11] * 130, *[NOW - 1] * 120]
    rows, receipt = push(end, times, skip=True, rejected=(long,) * 150)
    (refused,) = [control for control in controls(rows) if control.kind is Kind.REFUSED]
    letters = refused.payload["letters"]
    assert [sum(letter["reason"] == reason for letter in letters) for reason in ("no triple", "ahead", "late")] == [100, 100, 100]
    assert letters[0] == {"reason": "no triple", "t": None, "text": "x" * 4_096, "more": 904} and "more" not in letters[100]
    assert letters[-1] == {"reason": "omitted", "t": None, "text": "", "more": 50 + 30 + 20}
    shown = receipt.to_json()  # type: ignore[attr-defined]
    assert (shown["rejected"], len(shown["errors"]), shown["truncated"]) == (280, 200, True)
    _, whole = push(end, [NOW], skip=True, rejected=(long,))
    assert "truncated" not in whole.to_json()  # type: ignore[attr-defined]


def test_items_without_a_time_stamp_are_counted() -> None:
    with pytest.raises(EngineError) as refused:
        push(appender(), [None] * 130)
    assert (len(refused.value.extra["items"]), refused.value.extra["count"]) == (100, 130)

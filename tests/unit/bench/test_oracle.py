"""The pure parts of the benchmarks: bags as hashes, the oracle of the join, and what is read out of a feed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.bench import latency, many
from tests.bench.client import Push
from tests.bench.feed import Event
from tests.bench.hashing import bag_of, bag_of_bindings, row_hash
from tests.bench.join import answers, milliseconds
from tests.bench.observations import BENCH, DECIMAL, THRESHOLD, Observations, Oracle

BEGIN = 1_700_000_000_000
HASHES = st.lists(st.integers(0, 2**64 - 1))


@given(HASHES, HASHES)
def test_bags_add_up(left: list[int], right: list[int]) -> None:
    assert bag_of(left) + bag_of(right) == bag_of(right + left)
    assert bag_of(left + right) - bag_of(left) == bag_of(right)


def test_a_bag_counts_repetitions_and_knows_its_columns() -> None:
    row = {"s": {"type": "uri", "value": "x"}}
    assert bag_of_bindings(["s"], [row, row]) != bag_of_bindings(["s"], [row])
    assert bag_of_bindings(["s", "t"], [row]) != bag_of_bindings(["t", "s"], [row])
    assert bag_of_bindings(["s"], [{"s": {"type": "literal", "value": "x"}}]) != bag_of_bindings(["s"], [row])
    assert row_hash(["a", None]) != row_hash(["a", ""])


@pytest.mark.parametrize("per_second", [1, 3, 100, 999, 3_333])
def test_the_oracle_is_the_window_of_the_pushed_text(per_second: int) -> None:
    """[T-10s, T) of what `body` says, row by row."""
    data, seconds = Observations(BEGIN, per_second, seed=7), 13
    oracle = Oracle(data, seconds * 1000)
    pushed = b"".join(data.body(ms, ms + 250) for ms in range(0, seconds * 1000, 250))
    rows = _rows(pushed.decode())
    for second in (1, 9, 10, 11, 13):
        tick = BEGIN + second * 1000
        inside = [row for t, row in rows if tick - 10_000 <= t < tick and float(row["v"]["value"]) > THRESHOLD]
        assert oracle.at(tick) == bag_of_bindings(["o", "s", "v"], inside)


def test_about_half_of_the_observations_pass() -> None:
    data = Observations(BEGIN, 1_000)
    passed = sum(data.answer_hash(number) is not None for number in range(10_000))
    assert 0.45 < passed / 10_000 < 0.55


def test_a_slice_holds_the_times_that_it_names() -> None:
    data = Observations(BEGIN, 300)
    times = [data.time_ms(number) - BEGIN for number in data.numbers(250, 500)]
    assert times[0] == 250 and times[-1] < 500 and len(times) == 75


def test_answers_in_chunks_are_put_together() -> None:
    def chunk(number: int, last: bool, *values: str) -> dict[str, Any]:
        return {**_result("2026-11-21T05:00:01Z", "x", values), "chunk": number, "last": last}
    events = [_event("hello", {}), _event("result", chunk(0, False, "1", "2")), _event("result", chunk(1, True, "3"), "q-1", 5.0),
              _event("result", _result("2026-11-21T05:00:02.500Z", "x", ["1"]), "q-2", 6.0)]
    first, second = answers(iter(events))
    assert (first.bag.rows, first.arrived, second.bag.rows) == (3, 5.0, 1)
    assert second.at_ms - first.at_ms == 1500
    assert first.bag == bag_of_bindings(["x"], [{"x": {"type": "literal", "value": v}} for v in "321"])


def test_a_gap_is_not_passed_over() -> None:
    with pytest.raises(RuntimeError, match="gap"):
        list(answers(iter([_event("gap", {"reason": "slow-consumer"})])))


def test_latencies_are_counted_to_the_first_event_that_shows_a_push() -> None:
    pushes = [Push(number, number, float(number), number + 0.01) for number in range(30)]
    rows = [([0], 0.5), ([0, 10], 10.25), ([10], 11.0)]
    assert latency.latencies(pushes, iter(rows), exact=True) == ([500.0, 250.0], [20])
    greatest = [([28], 30.0), ([27], 30.5)]
    lags, missing = latency.latencies(pushes, iter(greatest), exact=False)
    assert (lags[0], lags[28], missing) == (30_000.0, 2_000.0, [29])


def test_what_a_result_shows() -> None:
    result = _result("2026-11-21T05:00:00Z", "n", ["3", "4"])
    assert list(latency.shown(iter([_event("hello", {}), _event("result", result, "q-1", 9.0)]), "rows")) == [([3, 4], 9.0)]


@pytest.mark.parametrize("load", many.LOADS)
def test_the_texts_of_many_queries_differ_and_parse(load: str) -> None:
    from grammar import parse

    texts = many.LOADS[load].texts()
    assert len(texts) == len({text.partition(" AS ")[2] for text in texts.values()}) == many.LOADS[load].queries
    assert all(parse(text).name == name for name, text in texts.items())


def test_an_evaluation_without_event_is_named() -> None:
    tick, names = milliseconds("2026-11-21T05:00:00Z"), list(many.LOADS["50"].texts())
    events = [_event("result", {**_result("2026-11-21T05:00:00Z", "s", []), "query": name}, "x", tick / 1000 + 0.25)
              for name in names if name != "q3-1"]
    lags, missing = many.judge(events, names, range(tick, tick + 1000, 1000))
    assert set(lags.values()) == {250.0} and missing == [f"q3-1 at {tick}"]


def _rows(pushed: str) -> list[tuple[int, dict[str, dict[str, str]]]]:
    """(t, row) of each observation in a timed text, read without the code under test."""
    lines = [line.split("\t") for line in pushed.splitlines()]
    found = []
    for (t, _), (_, sensor), (_, value) in zip(lines[0::3], lines[1::3], lines[2::3], strict=True):
        o, _, s, _ = sensor.split(" ")
        lexical = value.split('"')[1]
        found.append((int(t), {"o": {"type": "uri", "value": o[1:-1]}, "s": {"type": "uri", "value": s[1:-1]},
                               "v": {"type": "literal", "value": lexical, "datatype": DECIMAL}}))
        assert o.startswith(f"<{BENCH}o/") and value.split(" ")[0] == o
    return found


def _result(at: str, variable: str, values: Sequence[str]) -> dict[str, Any]:
    rows = [{variable: {"type": "literal", "value": value}} for value in values]
    return {"head": {"vars": [variable]}, "results": {"bindings": rows}, "rsp": {"at": at, "truncated": False}}


def _event(name: str, data: dict[str, Any], id_: str | None = None, arrived: float = 0.0) -> Event:
    return Event(name, id_, json.dumps(data).encode(), arrived)

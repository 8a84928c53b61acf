"""What is decided on records of a topic: which items are taken, where partitions go on, when a stream moves and falls silent."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from engine.runtime.append import Appender, Recovery
from engine.runtime.errors import EngineError
from engine.runtime.rows import Control, Kind, control_rows, controls
from engine.runtime.streams import Source, describe
from engine.runtime.topics import RECORDS, Lost, MovedError, Partition, Records, Topic, no_records, records_of, servers_of
from engine.timeline import MIN
from tests.unit.runtime.test_append import items

NOW = 1_000_000
TOPIC = Topic("h:1", "t", "application/n-triples", "earliest", True, True, "http://p")


def appender(partitions: Iterable[int] = (0,), **source: Any) -> Appender:
    given = {"arrival": False, "topic": TOPIC, "partitions": {number: Partition(0, MIN, NOW) for number in partitions}, **source}
    return Appender(1, {"s": Source("s", **given)})


def read(rows: Sequence[tuple[int, int, int]], begins: dict[int, int], lost: tuple[Lost, ...] = ()) -> Records:
    """Records of one item each: partition, offset, time."""
    columns: dict[str, Any] = {"partition": [r[0] for r in rows], "offset": [r[1] for r in rows], "item": [0] * len(rows),
                               "t": [r[2] for r in rows], "s": ["<x>"] * len(rows), "p": ["<p>"] * len(rows),
                               "o": [f'"{r[0]} {r[1]}"' for r in rows]}
    table = pa.table([pa.array(columns[field.name], field.type) if field.name in columns else pa.nulls(len(rows), field.type)
                      for field in RECORDS], schema=RECORDS)
    return records_of("id", table, begins, lost)


def taken(rows: Iterable[pa.Table]) -> list[str]:
    return [row["o"] for table in rows for row in table.to_pylist() if row["record"] == Kind.EVENT]


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 60)), max_size=40), st.integers(0, 10), st.randoms(use_true_random=False))
def test_how_partitions_are_read_side_by_side_decides_nothing(items: list[tuple[int, int]], lateness: int, chance: random.Random) -> None:
    """The oracle takes each partition for itself, record by record."""
    by_partition: dict[int, list[int]] = {0: [], 1: [], 2: []}
    for partition, t in items:
        by_partition[partition].append(t)
    expected, reached = [], {}
    for partition, times in by_partition.items():
        watermark = MIN
        for offset, t in enumerate(times):
            if t >= watermark:
                expected.append(f'"{partition} {offset}"')
                watermark = max(watermark, t - lateness)
        reached[partition] = watermark
    end, found, at = appender(by_partition, lateness_ms=lateness), list[str](), dict.fromkeys(by_partition, 0)
    while any(at[partition] < len(times) for partition, times in by_partition.items()):
        batch, begins = [], {}
        for partition, times in by_partition.items():
            if more := chance.randint(0, len(times) - at[partition]):
                begins[partition] = at[partition]
                batch += [(partition, offset, times[offset]) for offset in range(at[partition], at[partition] + more)]
                at[partition] += more
        found += taken(end.records("s", TOPIC, read(batch, begins), NOW)[0])
        assert end.sources["s"].watermark <= min(known.watermark for known in end.sources["s"].partitions.values())
    assert sorted(found) == sorted(expected)
    assert end.sources["s"].watermark == min(reached.values())
    assert {number: known.watermark for number, known in end.sources["s"].partitions.items()} == reached


@given(st.lists(st.integers(0, 60), max_size=20), st.integers(0, 10), st.integers(0, 20))
def test_one_partition_is_taken_as_pushes_are(times: list[int], lateness: int, cut: int) -> None:
    pushed = Appender(1, {"s": Source("s", arrival=False, lateness_ms=lateness)})
    expected = [pushed.push("s", items([t]), NOW)[1].accepted for t in times]  # type: ignore[arg-type]
    end, found = appender(lateness_ms=lateness), list[str]()
    for begin, part in ((0, times[:cut]), (cut, times[cut:])):
        rows = [(0, begin + number, t) for number, t in enumerate(part)]
        found += taken(end.records("s", TOPIC, read(rows, {0: begin} if rows else {}), NOW)[0])
    assert found == [f'"0 {offset}"' for offset, one in enumerate(expected) if one]
    assert (end.sources["s"].watermark, end.sources["s"].late) == (pushed.sources["s"].watermark, pushed.sources["s"].late)


def test_the_watermark_stands_behind_the_items() -> None:
    rows, _ = appender().records("s", TOPIC, read([(0, 0, 5), (0, 1, 9)], {0: 0}), NOW)
    table = pa.concat_tables(rows)
    assert table["record"].to_pylist() == [Kind.EVENT, Kind.EVENT, Kind.MARK, Kind.OFFSETS]
    assert table["watermark"].to_pylist() == [MIN, MIN, 9, None]
    assert controls(table)[-1].payload == {"topic": "id", "partitions": {"0": [2, 9]}, "lost": [], "count": 0}


def test_records_are_taken_once() -> None:
    end = appender()
    batch = read([(0, 0, 5)], {0: 0})
    end.records("s", TOPIC, batch, NOW)
    with pytest.raises(MovedError):
        end.fork().records("s", TOPIC, batch, NOW)
    with pytest.raises(MovedError):     # of a stream that is there no more, or was made anew
        end.fork().records("s", replace(TOPIC), read([(0, 1, 5)], {0: 1}), NOW)
    assert end.sources["s"].items == 1


def test_a_start_goes_on_where_the_log_ends() -> None:
    end = appender((0, 1), lateness_ms=2)
    tables = end.records("s", TOPIC, read([(0, 0, 50), (0, 1, 40), (1, 0, 45)], {0: 0, 1: 0}), NOW)[0]
    again = appender((0, 1), lateness_ms=2)
    Recovery(lambda text: None, lambda *_: None).follow(again, pa.concat_tables(tables), NOW)  # type: ignore[arg-type,return-value]
    assert again.sources["s"].partitions == end.sources["s"].partitions == {0: Partition(2, 48, NOW), 1: Partition(1, 43, NOW)}
    assert again.sources["s"].watermark == 43


def test_a_partition_that_is_silent_at_its_end_holds_the_others_back_no_more() -> None:
    end = appender((0, 1), idle_ms=100)
    end.records("s", TOPIC, read([(0, 0, 50)], {0: 0}), NOW)
    assert end.sources["s"].watermark == MIN
    assert end.hush("s", TOPIC, [1], NOW + 99)[0] == []
    end.records("s", TOPIC, read([(0, 1, 60)], {0: 1}), NOW + 90)
    rows, _ = end.hush("s", TOPIC, [1], NOW + 100)
    assert pa.concat_tables(rows)["watermark"].to_pylist() == [60]
    rows, _ = end.records("s", TOPIC, read([(1, 0, 55), (1, 1, 70)], {1: 0}), NOW + 110)
    assert taken(rows) == ['"1 1"'] and end.sources["s"].late == 1


def test_a_partition_of_which_there_is_more_is_not_silent() -> None:
    end = appender((0, 1), idle_ms=100)
    end.records("s", TOPIC, read([(0, 0, 50)], {0: 0}), NOW)
    assert not end.hush("s", TOPIC, [0], NOW + 50)[0] and not end.hush("s", TOPIC, [], NOW + 1_000)[0]
    assert not any(one.silent for one in end.sources["s"].partitions.values())
    assert not end.silent(NOW + 10_000_000), "whoever cannot read does not know of silence"


def test_a_topic_that_is_silent_makes_the_stream_idle_at_the_last_of_its_items() -> None:
    end = appender((0, 1), idle_ms=100)
    end.records("s", TOPIC, read([(0, 0, 50), (1, 0, 70)], {0: 0, 1: 0}), NOW)
    rows, _ = end.hush("s", TOPIC, [0, 1], NOW + 200)
    control, = controls(pa.concat_tables(rows))
    assert (control.kind, control.watermark) == (Kind.IDLE, 70) and end.sources["s"].idle
    assert end.hush("s", TOPIC, [0, 1], NOW + 300)[0] == []


def test_blank_nodes_are_those_of_the_record_however_it_was_read() -> None:
    def one(offsets: list[tuple[int, int]]) -> list[str]:
        end = appender((0, 1))
        batch = read([(partition, offset, 5) for partition, offset in offsets], dict.fromkeys((0, 1), 0))
        batch = replace(batch, items=replace(batch.items, table=batch.items.table.set_column(
            batch.items.table.schema.get_field_index("s"), "s", pa.array(["_:b0"] * len(offsets)))))
        return sorted(row["s"] for table in end.records("s", TOPIC, batch, NOW)[0] for row in table.to_pylist() if row["s"])
    assert one([(0, 0), (1, 0)]) == one([(1, 0), (0, 0)])
    assert len(set(one([(0, 0), (0, 1), (1, 0)]))) == 3


def test_items_ahead_of_the_clock_are_letters_and_move_nothing() -> None:
    end = appender(ahead_ms=10)
    rows, _ = end.records("s", TOPIC, read([(0, 0, NOW + 11), (0, 1, 5)], {0: 0}), NOW)
    refused, = [control for control in controls(pa.concat_tables(rows)) if control.kind is Kind.REFUSED]
    assert refused.payload["letters"][0]["reason"] == "ahead" and taken(rows) == ['"0 1"'] and end.sources["s"].watermark == 5


def test_an_arrival_stream_is_stamped_by_the_server() -> None:
    end = appender(arrival=True)
    rows, _ = end.records("s", TOPIC, read([(0, 0, 5)], {0: 0}), NOW)
    assert pa.concat_tables(rows)["t"].to_pylist()[0] == NOW


def test_what_is_lost_stands_in_the_log() -> None:
    rows, _ = appender().records("s", TOPIC, read([(0, 7, 5)], {0: 0}, (Lost(0, 0, 6),)), NOW)
    assert controls(pa.concat_tables(rows))[-1].payload == {
        "topic": "id", "partitions": {"0": [8, 5]}, "lost": [[0, 0, 6]], "count": 7}


def test_a_record_of_offsets_that_cannot_be_read_does_not_end_the_start() -> None:
    end = appender()
    bad = control_rows(Control(1, Kind.OFFSETS, "s", None, {"topic": "id", "partitions": {"0": ["x", 1]}, "lost": []}))
    Recovery(lambda text: None, lambda *_: None).follow(end, bad, NOW)  # type: ignore[arg-type,return-value]
    assert end.position == 2 and end.sources["s"].partitions[0].offset == 0


def test_another_topic_of_the_same_name_has_partitions_of_its_own() -> None:
    """One that had two had an item at 70; the one that follows has one, which alone counts."""
    end = appender((0, 1))
    tables = end.records("s", TOPIC, read([(0, 0, 50), (1, 0, 70)], {0: 0, 1: 0}), NOW)[0]
    tables += end.records("s", TOPIC, no_records("other", {0: 1, 1: 1}, {0: 0}), NOW)[0]
    assert end.sources["s"].partitions == {0: Partition(0, 50, NOW)} and end.sources["s"].topic_id == "other"
    again = appender((0, 1))
    Recovery(lambda text: None, lambda *_: None).follow(again, pa.concat_tables(tables), NOW)  # type: ignore[arg-type,return-value]
    assert again.sources["s"].partitions == end.sources["s"].partitions
    rows, _ = end.records("s", TOPIC, replace(read([(0, 0, 60)], {0: 0}), identity="other"), NOW)
    assert taken(rows) == ['"0 0"'] and end.sources["s"].watermark == 60


def test_silence_counts_from_when_a_topic_is_read_again() -> None:
    end = appender((0, 1), idle_ms=100)
    end.records("s", TOPIC, read([(0, 0, 50)], {0: 0}), NOW)
    end.read_again("s", NOW + 1_000)
    assert not end.hush("s", TOPIC, [0, 1], NOW + 1_050)[0] and end.hush("s", TOPIC, [0, 1], NOW + 1_100)[0]


def described(source: dict[str, Any], allowed: tuple[str, ...] = ("a:1",)) -> dict[str, Any]:
    return dict(describe("x", {"time": "event", "source": {"type": "kafka", **source}}, "http://base", allowed)["source"])


def test_a_descriptor_has_one_spelling() -> None:
    whole = {"type": "kafka", "bootstrapServers": "a:1", "topic": "t", "format": "application/n-triples", "timestamp": "item",
             "startingOffsets": "latest"}
    assert described({"topic": "t"}) == whole == described({**whole})
    assert described({"topic": "t", "startingOffsets": {"10": 5, "2": 0}})["startingOffsets"] == {"2": 0, "10": 5}


@pytest.mark.parametrize(("source", "allowed", "said"), [
    ({}, ("a:1",), "topic must be"), ({"topic": "a/b"}, ("a:1",), "topic must be"), ({"topic": ".."}, ("a:1",), "topic must be"),
    ({"topic": "t"}, (), "--kafka"), ({"topic": "t"}, ("a:1", "b:2"), "bootstrapServers"),
    ({"topic": "t", "bootstrapServers": "internal:22"}, ("a:1",), "bootstrapServers"),
    ({"topic": "t", "bootstrapServers": ["a:1"]}, ("a:1",), "bootstrapServers"),
    ({"topic": "t", "format": "text/csv"}, ("a:1",), "format"), ({"topic": "t", "format": []}, ("a:1",), "format"),
    ({"topic": "t", "timestamp": "now"}, ("a:1",), "timestamp"), ({"topic": "t", "startingOffsets": "last"}, ("a:1",), "startingOffsets"),
    ({"topic": "t", "startingOffsets": {"0": -1}}, ("a:1",), "startingOffsets"),
    ({"topic": "t", "startingOffsets": {}}, ("a:1",), "startingOffsets"),
    ({"topic": "t", "startingOffsets": {"0": 1, "00": 5}}, ("a:1",), "startingOffsets"),
    ({"topic": "__consumer_offsets"}, ("a:1",), "none of Kafka's own"),
    ({"topic": "t", "kafka.ssl.key.password": "x"}, ("a:1",), "no member")])
def test_a_wrong_descriptor_is_told(source: dict[str, Any], allowed: tuple[str, ...], said: str) -> None:
    with pytest.raises(EngineError, match=said) as refused:
        described(source, allowed)
    assert (refused.value.slug, refused.value.status) == ("bad-descriptor", 422)


def test_a_stream_of_arrival_has_no_time_stamps_of_records() -> None:
    with pytest.raises(EngineError, match="timestamp is of a stream"):
        describe("x", {"source": {"type": "kafka", "topic": "t", "timestamp": "record"}}, "http://base", ("a:1",))


@pytest.mark.parametrize("text", ["", "host", "host:", ":9092", "host:9092,", "host:9092 other:1", "host:9092\nx:1", "h;rm:1"])
def test_servers_have_ports(text: str) -> None:
    with pytest.raises(ValueError, match="bootstrap servers"):
        servers_of(text)
    assert servers_of("a:1,[::1]:9092") == "a:1,[::1]:9092"

"""The feed of a topic, without Spark: where it begins, what it does when the topic is another one, shorter, or lacks records, and what it
tells of itself."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from engine.runtime.topics import RECORDS, ReadRecords, Topic
from tests.unit.runtime.test_engine import Running
from tests.waiting import wait_until

SERVERS = "broker:9092"
IRI = "http://ex.org/readings"


@dataclass
class Topics:
    """One topic: its id, its partitions with the time stamps of their records by offset, and the ends of what is there. While it is `away`
    nothing can be asked. Batches of more than the `largest` fail; `sizes` are those that were asked for."""

    identity: str = "one"
    partitions: dict[int, dict[int, int]] = field(default_factory=lambda: {0: {}})
    ends: dict[int, int] = field(default_factory=dict)
    away: bool = False
    is_missing: bool = False
    largest: int = 1_000_000
    sizes: list[int] = field(default_factory=list)

    def add(self, partition: int, *times: int) -> None:
        for time in times:
            self.partitions[partition][self.end(partition)] = time
            self.ends[partition] = self.end(partition)

    def end(self, partition: int) -> int:
        return max([self.ends.get(partition, 0), *(offset + 1 for offset in self.partitions[partition])])


class Missing(RuntimeError):
    is_missing = True


class FakeQuery:
    """Reads all that is there every few milliseconds, as batches of at most so many records."""

    def __init__(self, topics: Topics) -> None:
        self._topics, self._ended = topics, threading.Event()
        self._failure: BaseException | None = None
        self._at: dict[int, int] = {}

    def _ask(self) -> Topics:
        if self._topics.away:
            raise RuntimeError("the brokers are away")
        if self._topics.is_missing:
            raise Missing("there is no such topic")
        return self._topics

    def offsets(self) -> tuple[str, dict[int, int], dict[int, int]]:
        topics = self._ask()
        return topics.identity, {number: min(found, default=topics.end(number)) for number, found in topics.partitions.items()}, self.ends()

    def ends(self) -> dict[int, int]:
        return {number: self._ask().end(number) for number in self._topics.partitions}

    def start(self, begins: Mapping[int, int], most: int, read: ReadRecords, schema: pa.Schema, most_bytes: int,
              on_records: Callable[[Callable[[], pa.Table]], None]) -> None:
        self._at = dict(begins)
        self._topics.sizes.append(most)

        def run() -> None:
            while not self._ended.wait(0.005):
                try:
                    if not self._topics.away:
                        self._batch(most, on_records)
                except BaseException as failure:  # the query's end
                    self._failure = failure
                    return

        threading.Thread(target=run, daemon=True).start()

    def _batch(self, most: int, on_records: Callable[[Callable[[], pa.Table]], None]) -> None:
        found = [(number, offset, time) for number, records in self._topics.partitions.items()
                 for offset, time in sorted(records.items()) if offset >= self._at.get(number, 0)][:most]
        ends = {number: self._topics.end(number) for number in self._topics.partitions} if len(found) < most else {}

        def table() -> pa.Table:
            if len(found) > self._topics.largest:
                raise RuntimeError("too many records at once")
            columns: dict[str, Any] = {"partition": [one[0] for one in found], "offset": [one[1] for one in found],
                                       "item": [0] * len(found), "t": [one[2] for one in found], "s": ["<s>"] * len(found),
                                       "p": ["<p>"] * len(found), "o": [f'"{one[2]}"' for one in found]}
            return pa.table([pa.array(columns[name], RECORDS.field(name).type) if name in columns
                             else pa.nulls(len(found), RECORDS.field(name).type) for name in RECORDS.names], schema=RECORDS)

        if found:
            on_records(table)
        for number, offset, _ in found:
            self._at[number] = offset + 1
        self._at |= {number: end for number, end in ends.items() if end > self._at.get(number, 0)}

    def failure(self) -> BaseException | None:
        return self._failure

    def read_to(self) -> dict[int, int]:
        return dict(self._at)

    def close(self) -> None:
        self._ended.set()


@pytest.fixture
def topics() -> Topics:
    return Topics()


@pytest.fixture
def run(topics: Topics, tmp_path: Path) -> Iterator[Callable[..., Running]]:
    """Begins an engine over the same folder, again and again."""
    begun: list[Running] = []

    def begin(**more: Any) -> Running:
        for before in begun:
            before.engine.stop()
        made = Running(tmp_path, kafka={SERVERS: None}, topic_s=0.01, **more)
        made.backend.topic = lambda servers, name: FakeQuery(topics)  # type: ignore[attr-defined]
        made.machine.reader_of = read_nothing
        made.start()
        begun.append(made)
        return made

    yield begin
    for one in begun:
        one.engine.stop()


def read_nothing(topic: Topic) -> ReadRecords:
    return lambda batches: iter(())


def put(running: Running, **source: Any) -> None:
    running.engine.put_stream("r", {"iri": IRI, "time": "event", "idle": "PT10S", "maxAhead": "P999D", "source": {
        "type": "kafka", "topic": "t", "startingOffsets": "earliest", **source}})


def state(running: Running) -> dict[str, Any]:
    return dict(running.engine.stream("r").state)


def await_items(running: Running, items: int) -> dict[str, Any]:
    wait_until(lambda: state(running)["items"] == items, 10, lambda: f"{state(running)}")
    return state(running)


def reasons(running: Running, count: int) -> list[str]:
    wait_until(lambda: len(running.engine.dead_letters("r")) == count, 10, lambda: f"{running.engine.dead_letters('r')}")
    return sorted(letter.reason for letter in running.engine.dead_letters("r"))


@pytest.mark.parametrize(("start", "taken"), [("earliest", 5), ("latest", 2), ({"0": 1}, 4), ({"0": 99}, 2), ({"1": 0}, 5)])
def test_a_new_stream_begins_where_it_is_said(run: Callable[..., Running], topics: Topics, start: object, taken: int) -> None:
    topics.add(0, 0, 1, 2)
    running = run()
    put(running, startingOffsets=start)
    wait_until(lambda: state(running)["topic"] == "reading", 10, lambda: f"{state(running)}")
    topics.add(0, 3, 4)
    found = await_items(running, taken)
    assert (found["partitions"]["0"]["offset"], found["watermark"], found["lost"]) == (5, "1970-01-01T00:00:00.004Z", 0)


def test_a_start_goes_on_where_it_was(run: Callable[..., Running], topics: Topics) -> None:
    topics.add(0, 0, 1, 2)
    put(running := run())
    await_items(running, 3)
    running.engine.stop()
    topics.add(0, 3)
    await_items(run(), 4)


def test_brokers_that_are_away_are_told_and_awaited(run: Callable[..., Running], topics: Topics) -> None:
    topics.away = True
    put(running := run())
    wait_until(lambda: state(running)["topic"] == "waiting", 10, lambda: f"{state(running)}")
    assert state(running)["error"] == "the brokers are away"
    well, told = running.engine.health()
    assert well and [(each["kind"], each["reason"]) for each in told["degraded"]] == [("topic", "the brokers are away")]
    topics.away = False
    topics.add(0, 1)
    assert await_items(running, 1)["lost"] == 0
    wait_until(lambda: (state(running)["topic"], state(running)["error"]) == ("reading", None), 10, lambda: f"{state(running)}")
    assert running.engine.health()[1]["degraded"] == []


@pytest.mark.parametrize("restarted", [False, True])
def test_all_of_a_topic_that_comes_after_its_stream_is_new(run: Callable[..., Running], topics: Topics, restarted: bool) -> None:
    topics.is_missing = True
    put(running := run(), startingOffsets="latest")
    wait_until(lambda: state(running)["topic"] == "waiting", 10, lambda: f"{state(running)}")
    topics.add(0, 1, 2, 3)
    if restarted:
        running.engine.stop()
    topics.is_missing = False
    found = await_items(run() if restarted else running, 3)
    assert found["lost"] == found["deadLetters"] == 0


def test_what_went_while_nobody_read_is_lost_and_told_once(run: Callable[..., Running], topics: Topics) -> None:
    topics.add(0, 0, 1)
    put(running := run())
    await_items(running, 2)
    running.engine.stop()
    topics.add(0, 2, 3, 4)
    for offset in range(4):
        del topics.partitions[0][offset]
    running = run()
    await_items(running, 3)
    assert reasons(running, 1) == ["lost"]
    wait_until(lambda: state(running)["lost"] == 2, 10, lambda: f"{state(running)}")


def test_offsets_that_never_had_records_are_no_loss(run: Callable[..., Running], topics: Topics) -> None:
    """The mark of a transaction at the end, behind which the feed goes on once nothing comes."""
    topics.add(0, 0)
    topics.ends[0] = 2
    put(running := run())
    wait_until(lambda: state(running)["partitions"].get("0", {}).get("offset") == 2, 10, lambda: f"{state(running)}")
    running.engine.stop()
    topics.partitions[0].clear()
    topics.add(0, 5)
    running = run()
    await_items(running, 2)
    assert state(running)["lost"] == 0 and not running.engine.dead_letters("r")


@pytest.mark.parametrize("partitions", [1, 3])
def test_a_topic_made_anew_is_read_from_its_beginning(run: Callable[..., Running], topics: Topics, partitions: int) -> None:
    """Also one that is longer than the one before was, and has fewer partitions."""
    topics.partitions = {number: {} for number in range(2)}
    topics.add(0, 0, 1)
    topics.add(1, 0)
    put(running := run())
    await_items(running, 3)
    running.engine.stop()
    topics.identity, topics.partitions, topics.ends = "other", {number: {} for number in range(partitions)}, {}
    for number in range(partitions):
        topics.add(number, 5, 6, 7)
    running = run()
    found = await_items(running, 3 + 3 * partitions)
    assert reasons(running, 1)[0].startswith("topic-replaced") and list(found["partitions"]) == [str(n) for n in range(partitions)]
    assert found["watermark"] == "1970-01-01T00:00:00.007Z"


def test_a_topic_that_is_shorter_than_it_was_is_read_on_from_its_end(run: Callable[..., Running], topics: Topics) -> None:
    """Its leader has lost what another had: what was taken is not taken again."""
    topics.add(0, 0, 1, 2)
    put(running := run())
    await_items(running, 3)
    del topics.partitions[0][2]
    topics.ends[0] = 2
    wait_until(lambda: state(running)["partitions"]["0"]["offset"] == 2, 10, lambda: f"{state(running)}")
    topics.add(0, 3)
    assert await_items(running, 4)["deadLetters"] == 0


def test_fewer_records_are_read_at_once_where_they_are_too_many(run: Callable[..., Running], topics: Topics) -> None:
    topics.largest = 20
    topics.add(0, *range(200))
    put(running := run(topic_records=100))
    await_items(running, 200)
    assert topics.sizes[0] == 100 and min(topics.sizes) <= 20


def test_a_silent_topic_makes_its_stream_idle(run: Callable[..., Running], topics: Topics) -> None:
    topics.add(0, 1, 7)
    put(running := run())
    await_items(running, 2)
    assert not state(running)["idle"]
    running.clock.advance(10_000)
    wait_until(lambda: state(running)["idle"], 10, lambda: f"{state(running)}")
    assert state(running)["watermark"] == "1970-01-01T00:00:00.007Z"


def test_a_stream_made_anew_reads_the_topic_anew(run: Callable[..., Running], topics: Topics) -> None:
    topics.add(0, 0, 1)
    put(running := run())
    await_items(running, 2)
    running.engine.delete_stream("r")
    put(running)
    await_items(running, 2)
    assert running.engine.stream("r").state["partitions"]["0"]["offset"] == 2

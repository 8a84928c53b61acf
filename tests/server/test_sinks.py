"""What a query's sink writes: each result once and in order, what is told of those that are gone, and where it goes on."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engine.runtime.resources import Notice
from engine.runtime.results import ResultLog, Retention
from engine.runtime.settings import Settings
from server.limits import Limits
from server.sinks import Sinks
from tests.unit.runtime.test_results import event, write
from tests.waiting import wait_until

SERVERS = "broker:9092"
EMPTY = b'{"head":{"vars":["x"]},"results":{"bindings":[]}}'


@dataclass
class Brokers:
    """Stands for the engine and its brokers: `topic` has what was committed; the next `refusals` transactions are not."""

    settings: Settings
    results: ResultLog
    wanted: dict[str, tuple[str, dict[str, Any]]] = field(default_factory=dict)
    topic: list[tuple[str, Any]] = field(default_factory=list)
    refusals: int = 0
    writers: list[str] = field(default_factory=list)
    ready: bool = True
    hear: Callable[[Notice], None] = lambda notice: None

    def sinks(self) -> dict[str, tuple[str, dict[str, Any]]]:
        return dict(self.wanted)

    def subscribe(self, listener: Callable[[Notice], None]) -> None:
        self.hear = listener

    def query(self, name: str) -> Any:
        return SimpleNamespace(output="rstream", iri=f"http://s/queries/{name}")

    def topic_writer(self, servers: str, topic: str, transactions: str) -> Any:
        self.writers.append(transactions)
        return SimpleNamespace(send=self.send, close=lambda: None)

    def send(self, records: Iterable[tuple[bytes, bytes]], together: bytes) -> None:
        if self.refusals:
            self.refusals -= 1
            raise RuntimeError("the brokers are away")
        self.topic += [(key.decode(), json.loads(value)) for key, value in records]

    @property
    def keys(self) -> list[str]:
        return [key for key, _ in self.topic]

    def log(self, *seqs: int, epoch: str = "q1c1", payload: bytes = EMPTY) -> None:
        write(self.results, max(seqs), *(replace(event(seq, epoch=epoch, payload=payload), meta={"rows": 0}) for seq in seqs))
        self.hear(Notice("result", "q"))


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[Brokers]:
    made = Brokers(Settings(data=tmp_path, kafka={SERVERS: None}), ResultLog(None, Retention(count=5)))
    made.wanted["q"] = "q1c1", {"bootstrapServers": SERVERS, "topic": "t"}
    yield made
    made.results.close()


@pytest.fixture
def begin(brokers: Brokers) -> Iterator[Callable[[], Sinks]]:
    begun: list[Sinks] = []

    def begin() -> Sinks:
        begun.append(Sinks(brokers, Limits(result_event=200)))
        begun[-1].start()
        return begun[-1]

    yield begin
    for sinks in begun:
        sinks.stop()


def await_keys(brokers: Brokers, *keys: str) -> None:
    wait_until(lambda: brokers.keys == [*keys], 10, lambda: f"{brokers.keys}")


def test_each_result_is_a_record(brokers: Brokers, begin: Callable[[], Sinks]) -> None:
    brokers.log(1, 2)
    sinks = begin()
    await_keys(brokers, "q:q1c1-1", "q:q1c1-2")
    brokers.log(3)
    await_keys(brokers, "q:q1c1-1", "q:q1c1-2", "q:q1c1-3")
    value = brokers.topic[0][1]
    assert (value["id"], value["event"], value["data"]["results"]) == ("q1c1-1", "result", {"bindings": []})
    wait_until(lambda: sinks.sent("q", brokers.wanted["q"][1]).last_id == "q1c1-3", 5, lambda: "it is not told")
    other = sinks.sent("q", {"bootstrapServers": "other:1"})
    assert (other.last_id, other.error) == ("q1c1-3", "the server was not started with --kafka other:1")
    assert sinks.troubles() == []
    brokers.wanted["q"] = "q1c1", {"bootstrapServers": "other:1", "topic": "t"}
    assert sinks.troubles() == [{"kind": "sink", "name": "q", "reason": "the server was not started with --kafka other:1"}]


def test_a_start_goes_on_behind_what_was_written(brokers: Brokers, begin: Callable[[], Sinks]) -> None:
    brokers.log(1, 2)
    sinks = begin()
    await_keys(brokers, "q:q1c1-1", "q:q1c1-2")
    sinks.stop()
    brokers.log(3)
    begin()
    await_keys(brokers, "q:q1c1-1", "q:q1c1-2", "q:q1c1-3")
    assert len(set(brokers.writers)) == 1, "the transactions of a query have one id, so that a writer of before is shut out"


def test_what_brokers_refuse_is_written_again(brokers: Brokers, begin: Callable[[], Sinks]) -> None:
    brokers.refusals = 1
    brokers.log(1, 2)
    sinks = begin()
    wait_until(lambda: sinks.sent("q", brokers.wanted["q"][1]).error == "the brokers are away", 5, lambda: "no error is told")
    await_keys(brokers, "q:q1c1-1", "q:q1c1-2")
    wait_until(lambda: sinks.sent("q", brokers.wanted["q"][1]).state == "writing", 5, lambda: "the error stays")


def test_what_the_log_has_no_longer_is_told_and_the_rest_follows(brokers: Brokers, begin: Callable[[], Sinks]) -> None:
    brokers.log(*range(1, 300))
    kept = [f"q:q1c1-{one.seq}" for one in brokers.results.read("q", 0)]
    assert 0 < len(kept) < 299
    begin()
    await_keys(brokers, "q:q1c1-1/gap", *kept)
    assert brokers.topic[0][1]["data"]["dropped"] == 299 - len(kept)


def test_a_new_generation_is_written_from_its_first_result(brokers: Brokers, begin: Callable[[], Sinks]) -> None:
    brokers.log(1)
    begin()
    await_keys(brokers, "q:q1c1-1")
    brokers.wanted["q"] = "q1c2", brokers.wanted["q"][1]
    brokers.log(1, 2, epoch="q1c2")
    await_keys(brokers, "q:q1c1-1", "q:q1c2-1", "q:q1c2-2")


def test_a_large_result_comes_in_pieces(brokers: Brokers, begin: Callable[[], Sinks]) -> None:
    rows = ",".join(f'{{"x":{{"type":"literal","value":"{number}"}}}}' for number in range(20))
    brokers.log(1, payload=f'{{"head":{{"vars":["x"]}},"results":{{"bindings":[{rows}]}}}}'.encode())
    begin()
    wait_until(lambda: bool(brokers.topic), 10, lambda: "nothing is written")
    assert len(brokers.keys) > 1 and brokers.keys == [f"q:q1c1-1/{number}" for number in range(len(brokers.keys))]
    assert sum(len(value["data"]["results"]["bindings"]) for _, value in brokers.topic) == 20


def test_the_place_of_a_query_that_has_gone_is_forgotten(brokers: Brokers, begin: Callable[[], Sinks]) -> None:
    brokers.log(1)
    begin()
    place = brokers.settings.sinks_folder / "q"
    await_keys(brokers, "q:q1c1-1")
    wait_until(place.exists, 5, lambda: "there is no place")
    del brokers.wanted["q"]
    wait_until(lambda: not place.exists(), 5, lambda: "the place stays")
    brokers.log(2)
    threading.Event().wait(0.1)
    assert brokers.keys == ["q:q1c1-1"]

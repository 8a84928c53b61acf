"""Streams that live in Kafka, and results that go there, with a real broker: whatever is killed in between, and what a topic loses."""

from __future__ import annotations

import json
import os
import random
import signal
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import requests
from confluent_kafka import TopicPartition

from tests.broker import Broker, running_broker
from tests.live import ServerProcess
from tests.server.test_kill import BEGIN_MS, EVENTS, FIRST, LATENESS_MS, QUERIES, SPACING_MS, STREAM, Logged, change, jvm, logged, pushes
from tests.waiting import wait_until

pytestmark = [pytest.mark.spark]

__all__ = ["pushes"]    # a fixture
TIMED = "text/x-timed-ntriples"
END_MS = BEGIN_MS + EVENTS * SPACING_MS
SEED = 20_261_127
COUNT = "SELECT (COUNT(*) AS ?n) FROM STREAM <http://test.example/{stream}> [RANGE {range} STEP {step}] WHERE {{ ?s ?p ?o }}"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with running_broker(tmp_path_factory.mktemp("kafka") / "broker") as found:
        yield found


def put_stream(base: str, name: str, topic: str, iri: str | None = None, **more: Any) -> None:
    source = {"type": "kafka", "topic": topic, "startingOffsets": "earliest", "format": TIMED, **more.pop("source", {})}
    stream = {"iri": iri or f"http://test.example/{name}", "time": "event", "idle": "PT1H", **more, "source": source}
    answer = requests.put(f"{base}/streams/{name}", json=stream, timeout=60)
    assert answer.status_code == 201, answer.text


def put_query(base: str, name: str, text: str, **options: Any) -> None:
    answer = requests.put(f"{base}/queries/{name}", json={"text": text, **options}, timeout=60)
    assert answer.status_code == 201, answer.text


def sink(topic: str, **more: str) -> dict[str, str]:
    return {"type": "kafka", "topic": topic, **more}


def written(broker: Broker, topic: str) -> list[tuple[str, dict[str, Any]]]:
    """Key and value of the records of a topic, partition by partition, without those that were sent again."""
    found = dict[str, dict[str, Any]]()
    for key, value in broker.records(topic):
        assert key is not None and value is not None
        if (name := key.decode()) in found:
            assert found[name] == json.loads(value), f"{name} was sent again, and is another"
        found[name] = json.loads(value)
    return [*found.items()]


def state(base: str, name: str) -> dict[str, Any]:
    return dict(requests.get(f"{base}/streams/{name}", timeout=60).json()["state"])


def await_state(server: ServerProcess, name: str, holds: Callable[[dict[str, Any]], bool], seconds: float = 60) -> dict[str, Any]:
    wait_until(lambda: holds(state(server.base, name)), seconds, lambda: f"{state(server.base, name)} {server.log.read_text()[-3000:]}")
    return state(server.base, name)


def letters(base: str, name: str) -> list[dict[str, Any]]:
    return list(requests.get(f"{base}/streams/{name}/dead-letters", timeout=60).json()["deadLetters"])


def counted(base: str, query: str) -> list[tuple[str, int]]:
    """The first evaluation time of a query and what it counted then."""
    answer = requests.get(f"{base}/queries/{query}/results?since=earliest&limit=1", headers={"Accept": "application/jsonl"}, timeout=60)
    found = [line["data"] for line in map(json.loads, answer.text.splitlines()) if line["event"] == "result"]
    return [(one["rsp"]["at"], int(one["results"]["bindings"][0]["n"]["value"])) for one in found]


def item(at_ms: int, number: int) -> bytes:
    return f"{at_ms}\t<http://test.example/{number}> <http://test.example/p> \"{number}\" .\n".encode()


@pytest.mark.timeout(300)
def test_a_topic_is_read_as_it_is_written(broker: Broker, tmp_path: Path) -> None:
    broker.create("read", partitions=2)
    broker.send("read", [item(1_000, 1), b"oops", None, item(2_000, 2)])
    broker.send("read", [item(1_500, 3)], partition=1)
    with ServerProcess(tmp_path / "data", ["--kafka", broker.servers]) as server:
        put_stream(server.base, "read", "read")
        broker.create("counts", partitions=3)
        put_query(server.base, "n", COUNT.format(stream="read", range="2s", step="1s"), sink=sink("counts"))
        found = await_state(server, "read", lambda state: state["items"] == 3)
        assert (found["topic"], found["deadLetters"], found["watermark"]) == ("reading", 1, "1970-01-01T00:00:01.500Z")
        assert {number: part["offset"] for number, part in found["partitions"].items()} == {"0": 4, "1": 1}
        wait_until(lambda: len(letters(server.base, "read")) == 1, 30, lambda: f"{letters(server.base, 'read')}")
        letter, = letters(server.base, "read")
        assert letter["reason"].startswith("rdf-syntax") and letter["reason"].endswith("(partition 0, offset 1)")
        assert letter["text"] == "oops"

        aborted = broker.producer(**{"transactional.id": "t"})
        aborted.init_transactions(30)
        for value, end in ((item(2_100, 4), aborted.abort_transaction), (item(2_200, 5), aborted.commit_transaction)):
            aborted.begin_transaction()
            aborted.produce("read", value, partition=0)
            aborted.flush(30)
            end(30)
        broker.send("read", [item(3_000, 6)], partition=1)
        found = await_state(server, "read", lambda state: state["items"] == 5)
        assert found["watermark"] == "1970-01-01T00:00:02.200Z" and found["lost"] == 0
        await_state(server, "read", lambda state: state["behind"] == 0)
        wait_until(lambda: requests.get(f"{server.base}/queries/n", timeout=60).json()["sink"]["lastEventId"] == "q1c1-1", 30,
                   lambda: requests.get(f"{server.base}/queries/n", timeout=60).text)
        (key, value), = written(broker, "counts")
        assert (key, value["id"], value["event"]) == ("n:q1c1-1", "q1c1-1", "result")
        assert value["data"]["results"]["bindings"][0]["n"]["value"] == "2"

        answer = requests.post(f"{server.base}/streams/read", data=item(5_000, 7), headers={"Content-Type": TIMED}, timeout=60)
        assert answer.status_code == 405 and "topic" in answer.json()
        assert requests.delete(f"{server.base}/streams/read?force=true", timeout=60).status_code == 204
        put_stream(server.base, "read", "read", idle="PT1S")      # from the beginning again; once silent, up to the last item
        found = await_state(server, "read", lambda state: state["idle"])
        assert found["items"] == 5 and found["watermark"] == "1970-01-01T00:00:03Z"

        put_stream(server.base, "none", "no-such-topic")
        found = await_state(server, "none", lambda state: state["topic"] == "waiting")
        assert "UnknownTopicOrPartition" in found["error"]
        broker.create("no-such-topic")
        await_state(server, "none", lambda state: state["topic"] == "reading")


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_kills_of_server_broker_and_jvm_change_nothing(broker: Broker, pushes: list[bytes], tmp_path: Path) -> None:
    """Two partitions, the results to a topic; the result log is that of a run in which nothing is killed."""
    undisturbed = run(broker, "undisturbed", pushes, tmp_path)
    assert run(broker, "killed", pushes, tmp_path, kills(4, SEED)) == undisturbed


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.timeout(3_000)
def test_ten_kills_change_nothing(broker: Broker, pushes: list[bytes], tmp_path: Path) -> None:
    undisturbed = run(broker, "alone", pushes, tmp_path)
    assert run(broker, "ten", pushes, tmp_path, kills(10, SEED + 1)) == undisturbed


def kills(count: int, seed: int) -> dict[int, str]:
    """What is killed behind which record, all kinds in turn."""
    made = random.Random(seed)
    numbers = sorted(made.sample(range(10, EVENTS // 8 - 10), count))
    return dict(zip(numbers, [("server", "broker", "jvm")[number % 3] for number in range(count)], strict=True))


def run(broker: Broker, topic: str, pushes: Sequence[bytes], folder: Path, kills: dict[int, str] | None = None) -> tuple[Logged, int, int]:
    """What is logged of the recorded events, from a topic of two partitions; how many items were taken, and how many were late."""
    broker.create(topic, partitions=2)
    broker.create(f"{topic}-results", partitions=2)
    with ServerProcess(folder / topic, ["--kafka", broker.servers]) as server:
        put_stream(server.base, "readings", topic, STREAM, lateness=f"PT{LATENESS_MS / 1000}S")
        change(server.base, *FIRST)
        for name, text in QUERIES.items():
            put_query(server.base, name, text, sink=sink(f"{topic}-results"))
        producer = broker.producer(**{"message.timeout.ms": "120000"})
        for number, value in enumerate(pushes):
            producer.produce(topic, value, partition=number % 2)
            if (killed := (kills or {}).get(number)) is not None:
                end(killed, server, broker)
        for partition in (0, 1):
            producer.produce(topic, item(END_MS + 20_000, 1), partition=partition)
        assert producer.flush(120) == 0
        found = await_state(server, "readings", lambda state: (state["watermark"] or "") >= "2026-01-01T00:01:3", 180)
        server.wait_processed()
        assert (found["lost"], found["deadLetters"]) == (0, 0)
        for name in QUERIES:
            wait_until(lambda: is_written(server.base, name), 60, lambda: requests.get(f"{server.base}/queries/{name}", timeout=60).text)
        server.stop()
    log = logged(folder / topic)
    ids = [key for key, _ in written(broker, f"{topic}-results")]
    for name in QUERIES:
        expected = [f"{name}:{epoch}-{seq}" for query, epoch, seq, *_ in log if query == name]
        assert [key for key in ids if key.startswith(f"{name}:")] == expected
    return log, found["items"], found["late"]


def is_written(base: str, name: str) -> bool:
    """Whether a query's sink has written all that is logged."""
    query = requests.get(f"{base}/queries/{name}", timeout=60).json()
    return bool(query["sink"]["lastEventId"] == query["progress"]["lastEventId"])


def end(killed: str, server: ServerProcess, broker: Broker) -> None:
    if killed == "server":
        server.kill()
        server.start()
        server.wait_ready()
    elif killed == "broker":
        broker.kill()
        broker.start()
    else:
        os.kill(jvm(server), signal.SIGKILL)
        wait_until(lambda: requests.get(f"{server.base}/health/ready", timeout=60).status_code != 200, 60, lambda: "it stays ready")
        server.wait_ready()


@pytest.mark.soak
@pytest.mark.timeout(400)
def test_what_a_topic_has_lost_is_told(broker: Broker, tmp_path: Path) -> None:
    """Records that went while the server was down; and a topic that was made anew."""
    broker.create("lost")
    broker.send("lost", [item(1_000 * number, number) for number in range(10)])
    server = ServerProcess(tmp_path / "data", ["--kafka", broker.servers])
    with server:
        put_stream(server.base, "lost", "lost")
        put_query(server.base, "n", COUNT.format(stream="lost", range="20s", step="20s"))
        await_state(server, "lost", lambda state: state["items"] == 10)
        server.stop()
        broker.send("lost", [item(1_000 * number, number) for number in range(10, 16)])
        admin = broker.admin
        for future in admin.delete_records([TopicPartition("lost", 0, 13)]).values():
            future.result(30)
        server.start()
        server.wait_ready()
        await_state(server, "lost", lambda state: state["items"] == 13 and state["lost"] == 3)
        assert {"lost": "records 10 to 12 of partition 0 are no longer in the topic"} == {
            letter["reason"]: letter["text"] for letter in letters(server.base, "lost")}

        broker.delete("lost")
        wait_until(lambda: "lost" not in broker.admin.list_topics(timeout=10).topics, 30, lambda: "the topic is there still")
        broker.create("lost")
        broker.send("lost", [item(1_000 * number, number) for number in range(16, 22)])
        found = await_state(server, "lost", lambda state: state["items"] == 19)
        assert found["partitions"]["0"]["offset"] == 6
        server.wait_processed()
        assert {letter["reason"].partition(":")[0] for letter in letters(server.base, "lost")} == {"lost", "topic-replaced"}
        assert counted(server.base, "n") == [("1970-01-01T00:00:20Z", 17)]

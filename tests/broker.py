"""A Kafka broker on this machine, one node in KRaft mode, from Kafka's own Maven artifact; and clients that write to it and read from it.

``python -m tests.broker`` fetches the jars once, with Spark's Ivy, into the cache folder.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyspark
import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from engine.spark.jars import fetch_jars
from engine.spark.java import ensure_java
from engine.spark.launch import SparkStartError
from engine.spark.session import start_session
from engine.spark.settings import from_environment

ARTIFACT = "org.apache.kafka:kafka_2.13:4.1.0"
_CLUSTER = "ThalwegTestsClusterIdA"     # 16 bytes in base64url; a random one can begin with "-", and would be read as an option
_START_S = 60.0
_SCALA = next((Path(pyspark.__file__).parent / "jars").glob("scala-library-*.jar"))     # Spark's Ivy leaves it out
_PROPERTIES = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={folder}/data
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
auto.create.topics.enable=false
log.retention.check.interval.ms=500
log.segment.delete.delay.ms=0
"""


def _folder() -> Path:
    return from_environment().cache.expanduser() / "broker"


def jars() -> Path | None:
    """The folder of the broker's jars, fetched once; None where that cannot be done."""
    folder = _folder()
    if not (folder / "whole").exists():
        subprocess.run([sys.executable, "-m", "tests.broker"], check=False, timeout=300)
    return folder / "ivy" / "jars" if (folder / "whole").exists() else None


def _fetch() -> int:
    settings = from_environment(cache=_folder(), graphframes="")
    entries = fetch_jars(settings, [ARTIFACT]) | {"spark.jars.excludes": ""}
    try:
        start_session(from_environment(graphframes="", extra=entries), print).stop()
    except SparkStartError as failure:
        print(failure, file=sys.stderr)
        return 1
    (_folder() / "whole").touch()
    return 0


class Broker:
    """Runs from `start` to `kill` or `stop`, again and again on the same data and ports."""

    def __init__(self, folder: Path, jars: Path) -> None:
        self._folder, self._jars = folder, jars
        self._java = ensure_java(lambda message: None).home / "bin" / "java"
        port, controller = _free_ports(2)
        self.servers = f"127.0.0.1:{port}"
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True, exist_ok=True)
        self._properties = folder / "server.properties"
        self._properties.write_text(_PROPERTIES.format(port=port, controller=controller, folder=folder), encoding="utf-8")
        subprocess.run(self._command("kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", str(self._properties)), check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def _command(self, main: str, *arguments: str) -> list[str]:
        options = os.environ.get("THALWEG_JAVA_OPTIONS", "").split()
        return [str(self._java), "-Xmx512m", *options, "-cp", f"{self._jars}/*:{_SCALA}", main, *arguments]

    def start(self) -> None:
        """Start it; returns when it answers."""
        with (self._folder / "broker.log").open("ab") as log:
            self._process = subprocess.Popen(self._command("kafka.Kafka", str(self._properties)), stdout=log, stderr=log,
                                             start_new_session=True)
        deadline = time.monotonic() + _START_S
        while True:
            try:
                self.admin.list_topics(timeout=2)
                return
            except KafkaException:
                if time.monotonic() > deadline or self._process.poll() is not None:
                    raise

    @property
    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.servers, "log_level": 0})

    def kill(self, how: signal.Signals = signal.SIGKILL) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(30)
            self._process = None

    def create(self, topic: str, partitions: int = 1, **settings: str) -> None:
        admin = self.admin     # it must outlive its answer
        for future in admin.create_topics([NewTopic(topic, partitions, 1, config=dict(settings))]).values():
            future.result(30)

    def delete(self, topic: str) -> None:
        admin = self.admin
        for future in admin.delete_topics([topic]).values():
            future.result(30)

    def producer(self, **settings: str) -> Producer:
        """One that keeps the order of what it sends, through a restart of the broker too."""
        return Producer({"bootstrap.servers": self.servers, "linger.ms": 2, "enable.idempotence": True, "log_level": 0, **settings})

    def send(self, topic: str, values: Iterable[bytes | None], partition: int = 0, times: Mapping[int, int] | None = None) -> None:
        """Write records, in order; `times` has the time stamps (ms) of some, by number."""
        producer = self.producer()
        for number, value in enumerate(values):
            producer.produce(topic, value, partition=partition, timestamp=(times or {}).get(number, 0))
        assert producer.flush(60) == 0

    def records(self, topic: str, within_s: float = 10.0) -> list[tuple[bytes | None, bytes | None]]:
        """Key and value of all committed records of a topic, partition by partition."""
        consumer = Consumer({"bootstrap.servers": self.servers, "group.id": "reader", "enable.auto.commit": False,
                             "isolation.level": "read_committed", "enable.partition.eof": True, "log_level": 0})
        try:
            return [record for number in self.admin.list_topics(topic, within_s).topics[topic].partitions
                    for record in _all(consumer, TopicPartition(topic, number, 0), within_s)]
        finally:
            consumer.close()


def _all(consumer: Consumer, place: TopicPartition, within_s: float) -> Iterator[tuple[bytes | None, bytes | None]]:
    consumer.assign([place])
    while (message := consumer.poll(within_s)) is not None and message.error() is None:
        yield message.key(), message.value()


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


@contextmanager
def running_broker(folder: Path) -> Iterator[Broker]:
    """A broker on an empty folder, ended with the block. A test is skipped where the jars cannot be fetched, in CI it fails."""
    found = jars()
    if found is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"{ARTIFACT} cannot be fetched")
    broker = Broker(folder, found)
    try:
        broker.start()
        yield broker
    finally:
        broker.kill()


if __name__ == "__main__":
    sys.exit(_fetch())

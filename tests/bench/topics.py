"""W1's stream from a Kafka topic: a record for each ms, at 100,000/s of 100 triples; rows and AVG, every answer compared with an oracle.

The broker runs on this machine too, beside the server and the producer.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from tests.bench.figures import Figure
from tests.bench.observations import Observations
from tests.bench.questions import shapes
from tests.bench.settings import Settings, running_server
from tests.bench.shapes import measure
from tests.broker import Broker, running_broker

SHAPES = ("rows", "avg")
_BATCH_MS = 20      # of the producer: records are sent when so many ms of the stream are over


def run(settings: Settings) -> tuple[list[Figure], dict[str, Any]]:
    """The figures of each shape, and details."""
    known, figures, details = shapes(0), list[Figure](), dict[str, Any]()
    with tempfile.TemporaryDirectory(prefix="thalweg-bench-") as folder, running_broker(Path(folder) / "broker") as broker:
        for name in settings.shapes or SHAPES:
            broker.create(name)
            with running_server(Settings(server=(*settings.server, "--kafka", broker.servers), keep=settings.keep)) as server:
                source = {"type": "kafka", "topic": name, "timestamp": "record", "startingOffsets": "earliest"}
                found = measure(server, name, known[name], settings.rate, settings.duration(60, 14),
                                lambda stream, data, seconds: produce(broker, name, data, seconds), source=source)
            figures += found.figures(f"topic {name}")
            details[name] = found.details()
            print(f"  {name}: {found.right} of {found.expected} right {found.wrong[:2] or ''}", flush=True)
    return figures, details


def produce(broker: Broker, topic: str, data: Observations, seconds: int) -> None:
    """Send the observations as these are made, a record of N-Triples for each ms, and one behind the last that closes the last window."""
    producer = broker.producer(**{"queue.buffering.max.messages": "1000000"})
    for at in range(0, seconds * 1000, _BATCH_MS):
        time.sleep(max(0.0, (data.begin_ms + at + _BATCH_MS) / 1000 - time.time()))
        for ms in range(at, at + _BATCH_MS):
            _send(producer, topic, data, ms, ms + 1)
        producer.poll(0)
    _send(producer, topic, data, seconds * 1000, seconds * 1000 + 1)
    producer.flush(60)


def _send(producer: Producer, topic: str, data: Observations, begin: int, end: int) -> None:
    lines = [line.split(b"\t", 1)[1] for line in data.body(begin, end).splitlines()]
    if lines:
        producer.produce(topic, b"\n".join(lines), timestamp=data.begin_ms + begin)

"""Kafka topics. Reading, through Structured Streaming: ``readStream.format("kafka")``, records parsed in the tasks, one Arrow table per
batch. Writing, with the connector's own client, which tells the offsets of a topic too.

Where to begin is said by whoever asks (the input log), so the checkpoint is disposable, as that of the log's own feed is.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame
from pyspark.sql.functions import col, unix_millis
from pyspark.sql.streaming.query import StreamingQuery

from engine.ipc import PACKED, pack_each, unpack_each

if TYPE_CHECKING:
    from engine.spark.session import Session

POLL = "100 milliseconds"
# Of the questions for offsets; a broker that is gone is asked again later. Transactions that were aborted have brought nothing.
_ASK = {"default.api.timeout.ms": "10000", "request.timeout.ms": "5000"}
_READ = {"isolation.level": "read_committed"}
# Of a producer. What it sends is compressed before the broker's limit for a record counts.
_WRITE = {"acks": "all", "enable.idempotence": "true", "compression.type": "lz4", "max.request.size": str(16 << 20),
          "max.block.ms": "10000", "request.timeout.ms": "10000", "delivery.timeout.ms": "30000"}
_BYTES = "org.apache.kafka.common.serialization.ByteArraySerializer"
OnRecords = Callable[[Callable[[], pa.Table]], None]


class TopicError(RuntimeError):
    """The brokers did not tell of a topic, or did not take what was sent; the message has what their client says."""


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except Py4JJavaError as failure:
        cause = failure.java_exception.getCause() or failure.java_exception
        raise TopicError(f"{cause.getClass().getSimpleName()}: {cause.getMessage()}") from failure


class TopicQuery:
    """One topic of one cluster. Errors of Py4J and of Spark, which have no common base, are raised as they are."""

    def __init__(self, session: Session, servers: str, topic: str, properties: Path | None, checkpoint: Path) -> None:
        """`properties`: a Java properties file of the client's settings, such as those of security; None for none. `checkpoint`: a folder
        that is emptied."""
        self._session, self._topic, self._checkpoint = session, topic, checkpoint
        self._jvm: Any = session.spark.sparkContext._jvm
        self._options = _READ | _loaded(self._jvm, properties) | {"bootstrap.servers": servers}
        self._admin: Any = None
        self._query: StreamingQuery | None = None
        self._from: dict[int, int] = {}

    def offsets(self) -> tuple[dict[int, int], dict[int, int]]:
        """By partition: the first offset that there is, and the one behind the last record. Raises TopicError."""
        with _told():
            if self._admin is None:
                self._admin = self._jvm.org.apache.kafka.clients.admin.Admin.create(_properties(self._jvm, self._options | _ASK))
            described = self._admin.describeTopics([self._topic]).allTopicNames().get()
            partitions = [part.partition() for part in described[self._topic].partitions()]
            spec = self._jvm.org.apache.kafka.clients.admin.OffsetSpec
            return self._ask(partitions, spec.earliest()), self._ask(partitions, spec.latest())

    def _ask(self, partitions: list[int], spec: Any) -> dict[int, int]:
        isolation = self._jvm.org.apache.kafka.common.IsolationLevel
        level = isolation.READ_COMMITTED if self._options["isolation.level"] == "read_committed" else isolation.READ_UNCOMMITTED
        name = self._jvm.org.apache.kafka.common.TopicPartition
        places = {partition: name(self._topic, partition) for partition in partitions}
        options = self._jvm.org.apache.kafka.clients.admin.ListOffsetsOptions(level)
        found = self._admin.listOffsets(dict.fromkeys(places.values(), spec), options).all().get()
        return {partition: found[place].offset() for partition, place in places.items()}

    def start(self, begins: Mapping[int, int], most: int, read: Callable[..., Any], schema: pa.Schema, on_records: OnRecords) -> None:
        """Read from the offsets `begins` on, those of all partitions, at most so many records at once. `read` makes tables of `schema` of
        them in the tasks; `on_records` asks for these, in a thread of Py4J's, and what it raises ends the query."""
        self._from = dict(begins)
        shutil.rmtree(self._checkpoint, ignore_errors=True)
        options = {f"kafka.{name}": value for name, value in self._options.items()}
        source = (self._session.spark.readStream.format("kafka").options(**options).option("subscribe", self._topic)
                  .option("startingOffsets", json.dumps({self._topic: {str(number): offset for number, offset in begins.items()}}))
                  .option("failOnDataLoss", "false")    # what is lost is found by its offsets (engine/runtime/topic_feeds.py)
                  .option("maxOffsetsPerTrigger", str(most)).load()
                  .select("partition", "offset", unix_millis(col("timestamp")).alias("timestamp"), "value")
                  .mapInArrow(partial(pack_each, read), f"{PACKED} binary"))

        def batch(frame: DataFrame, number: int) -> None:
            try:
                on_records(lambda: pa.concat_tables([schema.empty_table(), *unpack_each(frame.toArrow())]))
            except BaseException as failure:  # SystemExit too: it would leave the query active and stop() hanging
                raise RuntimeError(f"batch {number}: {failure!r}") from failure

        self._query = (source.writeStream.foreachBatch(batch).option("checkpointLocation", str(self._checkpoint))
                       .trigger(processingTime=POLL).start())

    def failure(self) -> BaseException | None:
        """Why the query has ended; None while it runs."""
        assert self._query is not None
        return None if self._query.isActive else self._query.exception() or RuntimeError("the streaming query ended by itself")

    def read_to(self) -> dict[int, int]:
        """By partition: the offset up to which batches are done, records or none."""
        assert self._query is not None
        progress: Any = self._query._jsq.lastProgress()     # PySpark's own makes another text of the offsets
        ended = None if progress is None else json.loads(progress.sources()[0].endOffset() or "null")
        return self._from if ended is None else {int(number): offset for number, offset in ended.get(self._topic, {}).items()}

    def stop(self) -> None:
        """End the query after the batch that runs."""
        if self._query is not None:
            self._query.stop()
            self._query = None
        shutil.rmtree(self._checkpoint, ignore_errors=True)

    def close(self) -> None:
        self.stop()
        if self._admin is not None:
            self._admin.close()
            self._admin = None


class TopicWriter:
    """Appends records to one topic of one cluster."""

    def __init__(self, session: Session, servers: str, topic: str, properties: Path | None) -> None:
        """`properties` as of `TopicQuery`. Raises TopicError."""
        jvm: Any = session.spark.sparkContext._jvm
        self._jvm, self._topic = jvm, topic
        settings = _WRITE | _loaded(jvm, properties) | {"bootstrap.servers": servers, "key.serializer": _BYTES, "value.serializer": _BYTES}
        with _told():
            self._producer: Any = jvm.org.apache.kafka.clients.producer.KafkaProducer(_properties(jvm, settings))

    def send(self, records: Iterable[tuple[bytes, bytes]], together: bytes) -> None:
        """Append records, keys and values, to the partition of all that has the same `together`, in order. They are there when this
        returns; raises TopicError where some may not be."""
        with _told():
            partition = crc32(together) % self._producer.partitionsFor(self._topic).size()
            record = self._jvm.org.apache.kafka.clients.producer.ProducerRecord
            sent = [self._producer.send(record(self._topic, partition, key, value)) for key, value in records]
            self._producer.flush()
            for one in sent:
                one.get()

    def close(self) -> None:
        self._producer.close(self._jvm.java.time.Duration.ofSeconds(1))


def _properties(jvm: Any, settings: Mapping[str, str]) -> Any:
    found = jvm.java.util.Properties()
    for name, value in settings.items():
        found.put(name, value)
    return found


def _loaded(jvm: Any, path: Path | None) -> dict[str, str]:
    if path is None:
        return {}
    properties = jvm.java.util.Properties()
    properties.load(jvm.java.io.StringReader(path.read_text(encoding="utf-8")))
    return {str(name): str(properties.getProperty(name)) for name in properties.stringPropertyNames()}

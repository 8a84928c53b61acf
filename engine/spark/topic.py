"""Kafka topics. Reading, through Structured Streaming: ``readStream.format("kafka")``, records parsed in the tasks, one Arrow table per
batch. Writing, with the connector's own client, which tells the offsets of a topic too.

Where to begin is said by whoever asks (the input log), so the checkpoint is disposable, as that of the log's own feed is.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame
from pyspark.sql.functions import col, unix_millis
from pyspark.sql.streaming.query import StreamingQuery

from engine.ipc import SIZE, packed_schema, pack_each, unpack_each

if TYPE_CHECKING:
    from engine.spark.session import Session

POLL = "100 milliseconds"
_DESCRIBED = 10     # questions for the ends of a topic until its partitions are asked for again
_AT_ONCE = 200      # records in a batch of Arrow: of the largest that brokers take by default, 200 MB
# Of the questions for offsets; a broker that is gone is asked again later. Transactions that were aborted have brought nothing.
_ASK = {"default.api.timeout.ms": "10000", "request.timeout.ms": "5000"}
_READ = {"isolation.level": "read_committed"}
# Of a producer. What it sends is compressed before the broker's limit for a record counts.
_WRITE = {"compression.type": "lz4", "max.request.size": str(16 << 20), "max.block.ms": "10000", "request.timeout.ms": "10000",
          "delivery.timeout.ms": "30000"}
_BYTES = "org.apache.kafka.common.serialization.ByteArraySerializer"
# Settings of consumers that Spark's source has itself, and refuses.
_OF_SOURCE = frozenset(("auto.offset.reset", "enable.auto.commit", "group.id", "interceptor.classes", "key.deserializer",
                        "value.deserializer"))
_SETTING = re.compile(r"configuration:? \"?([A-Za-z0-9._]+)")
_OF_BROKERS = "org.apache.kafka.common.errors."     # errors that say nothing of the client's settings
OnRecords = Callable[[Callable[[], pa.Table]], None]


class TopicError(RuntimeError):
    """The brokers did not tell of a topic, or did not take what was sent; the message has what their client says. `is_missing`: there is no
    such topic."""

    is_missing = False


class TooLargeError(RuntimeError):
    """A batch is larger than the driver may take at once."""


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except Py4JJavaError as failure:
        causes = [*_causes(failure.java_exception)]
        known = (cause for cause in causes if cause.getClass().getName().startswith(_OF_BROKERS))
        cause = next(known, causes[-1])
        name, said = cause.getClass().getName(), str(cause.getMessage())
        if not name.startswith(_OF_BROKERS):    # its message may hold what the settings say
            setting = _SETTING.search(said)
            said = f"the setting {setting[1]}" if setting else "see the properties of the client"
        error = TopicError(f"{name.rpartition('.')[2]}: {said}")
        error.is_missing = name.endswith(".UnknownTopicOrPartitionException")
        raise error from failure


def _causes(failure: Any) -> Iterator[Any]:
    while failure is not None:
        yield failure
        failure = failure.getCause()


class TopicQuery:
    """One topic of one cluster. Errors of Py4J and of Spark, which have no common base, are raised as they are."""

    def __init__(self, session: Session, servers: str, topic: str, properties: Path | None, folder: Path) -> None:
        """`properties`: a Java properties file of the client's settings, such as those of security; None for none. Checkpoints lie below
        `folder`."""
        self._spark, self._topic = session.spark.newSession(), topic
        self._spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(_AT_ONCE))
        self._jvm: Any = session.spark.sparkContext._jvm
        self._options = _READ | _loaded(self._jvm, properties) | {"bootstrap.servers": servers}
        folder.mkdir(parents=True, exist_ok=True)
        self._checkpoint = tempfile.mkdtemp(dir=folder)
        self._admin: Any = None
        self._places: dict[int, Any] = {}
        self._asked = 0
        self._query: StreamingQuery | None = None
        self._closing = False
        self._from: dict[int, int] = {}

    def offsets(self) -> tuple[str, dict[int, int], dict[int, int]]:
        """The id of the topic, and by partition the first offset that there is, and the one behind the last record. Raises TopicError."""
        with _told():
            identity, spec = self._describe(), self._jvm.org.apache.kafka.clients.admin.OffsetSpec
            return identity, self._ask(spec.earliest()), self._ask(spec.latest())

    def ends(self) -> dict[int, int]:
        """By partition: the offset behind the last record. Raises TopicError."""
        with _told():
            self._asked += 1
            if self._asked % _DESCRIBED == 0:
                self._describe()
            return self._ask(self._jvm.org.apache.kafka.clients.admin.OffsetSpec.latest())

    def _describe(self) -> str:
        if self._admin is None:
            self._admin = self._jvm.org.apache.kafka.clients.admin.Admin.create(_properties(self._jvm, self._options | _ASK))
        described = self._admin.describeTopics([self._topic]).allTopicNames().get()[self._topic]
        place = self._jvm.org.apache.kafka.common.TopicPartition
        numbers = [part.partition() for part in described.partitions()]
        self._places = {number: self._places.get(number) or place(self._topic, number) for number in numbers}
        return str(described.topicId().toString())

    def _ask(self, spec: Any) -> dict[int, int]:
        isolation = self._jvm.org.apache.kafka.common.IsolationLevel
        level = isolation.READ_COMMITTED if self._options["isolation.level"] == "read_committed" else isolation.READ_UNCOMMITTED
        options = self._jvm.org.apache.kafka.clients.admin.ListOffsetsOptions(level)
        found = self._admin.listOffsets(dict.fromkeys(self._places.values(), spec), options).all().get()
        return {number: found[place].offset() for number, place in self._places.items()}

    def start(self, begins: Mapping[int, int], most: int, read: Callable[..., Any], schema: pa.Schema, most_bytes: int,
              on_records: OnRecords) -> None:
        """Read from the offsets `begins` on, those of all partitions, at most so many records at once. `read` makes tables of `schema` of
        them in the tasks; `on_records` asks for these, in a thread of Py4J's, and what it raises ends the query. It is not given more than
        `most_bytes` at once, unless they are of one record: TooLargeError."""
        self._from = dict(begins)
        options = {f"kafka.{name}": value for name, value in self._options.items() if name not in _OF_SOURCE}
        source = (self._spark.readStream.format("kafka").options(**options).option("subscribe", self._topic)
                  .option("startingOffsets", json.dumps({self._topic: {str(number): offset for number, offset in begins.items()}}))
                  .option("failOnDataLoss", "false")    # what is lost is found by its offsets (engine/runtime/topic_feeds.py)
                  .option("maxOffsetsPerTrigger", str(most)).load()
                  .select("partition", "offset", unix_millis(col("timestamp")).alias("timestamp"), "value")
                  .mapInArrow(partial(pack_each, read), packed_schema()))

        def batch(frame: DataFrame, number: int) -> None:
            def tables() -> pa.Table:
                packed = frame.toArrow()
                if most > 1 and sum(packed[SIZE].to_pylist()) > most_bytes:
                    raise TooLargeError(f"{most} records at once are more than {most_bytes} bytes")
                return pa.concat_tables([schema.empty_table(), *unpack_each(packed)])

            try:
                on_records(tables)
            except BaseException as failure:  # SystemExit too: it would leave the query active and stop() hanging
                if self._closing:       # it was cancelled; whatever it has not brought is read again
                    return
                raise RuntimeError(f"batch {number}: {failure!r}") from failure

        self._query = (source.writeStream.foreachBatch(batch).option("checkpointLocation", self._checkpoint)
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

    def close(self) -> None:
        """End the query; a batch that runs is cancelled."""
        self._closing = True
        try:
            if self._query is not None:
                self._query.stop()
        finally:
            shutil.rmtree(self._checkpoint, ignore_errors=True)
            if self._admin is not None:
                self._admin.close(self._jvm.java.time.Duration.ofSeconds(1))


class TopicWriter:
    """Appends records to one topic of one cluster."""

    def __init__(self, session: Session, servers: str, topic: str, properties: Path | None, transactions: str) -> None:
        """`properties` as of `TopicQuery`. Whoever wrote in transactions of the same id before can write no more. Raises TopicError."""
        jvm: Any = session.spark.sparkContext._jvm
        self._jvm, self._topic = jvm, topic
        settings = _WRITE | _loaded(jvm, properties) | {"bootstrap.servers": servers, "transactional.id": transactions,
                                                        "key.serializer": _BYTES, "value.serializer": _BYTES}
        with _told():
            self._producer: Any = jvm.org.apache.kafka.clients.producer.KafkaProducer(_properties(jvm, settings))
            self._producer.initTransactions()
            self._producer.partitionsFor(topic)     # fails where there is none

    def send(self, records: Iterable[tuple[bytes, bytes]], together: bytes) -> None:
        """Append records, keys and values, to the partition of all that has the same `together`, in order: all of them, or none. Raises
        TopicError where they may not be there; nothing can be sent any more then."""
        with _told():
            partition = crc32(together) % self._producer.partitionsFor(self._topic).size()
            record = self._jvm.org.apache.kafka.clients.producer.ProducerRecord
            self._producer.beginTransaction()
            try:
                for key, value in records:
                    self._producer.send(record(self._topic, partition, key, value))
                self._producer.commitTransaction()      # fails where one of them has failed
            except Py4JJavaError:
                with suppress(Py4JJavaError):   # brokers that are gone end it themselves
                    self._producer.abortTransaction()
                raise

    def close(self) -> None:
        """What was begun and not committed is given up."""
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

"""The streams that are read from Kafka: a thread for each, which reads its topic through Spark and appends what it brings to the input log.

What goes wrong with one topic, its broker or its records is no fault of the evaluator: the thread begins again, after longer and longer
waits, where the log says that the stream goes on."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from engine.runtime.errors import plain
from engine.runtime.resources import Rejection
from engine.runtime.topics import RECORDS, Lost, MovedError, ReaderOf, Reading, ReadRecords, Records, Topic, offsets_of, records_of
from engine.supervision import ANY_NUMBER, Backoff, Worker

if TYPE_CHECKING:
    from engine.runtime.machine import Machine

_LOG = logging.getLogger(__name__)
_STEADY_BATCHES = 5     # so many batches went well: more records are read at once again
_FEWER = 4
_RETRY_S = 0.2


class Query(Protocol):
    """What is needed of `engine.spark.topic.TopicQuery`."""

    def offsets(self) -> tuple[dict[int, int], dict[int, int]]: ...

    def start(self, begins: Mapping[int, int], most: int, read: ReadRecords, schema: pa.Schema,
              on_records: Callable[[Callable[[], pa.Table]], None]) -> None: ...

    def failure(self) -> BaseException | None: ...
    def read_to(self) -> dict[int, int]: ...
    def stop(self) -> None: ...
    def close(self) -> None: ...


class TopicFeed:
    """Reads the topic of one stream until `stop`."""

    def __init__(self, machine: Machine, iri: str, topic: Topic, read: ReadRecords) -> None:
        self.topic, self.reading = topic, Reading()
        self._machine, self._iri, self._read = machine, iri, read
        self._most = machine.settings.topic_records
        self._query: Query | None = None
        self._next: dict[int, int] = {}
        self._batches = self._total = 0
        self._ended = threading.Event()
        self._backoff = Backoff(ANY_NUMBER, machine.settings.topic_s)
        self.worker = Worker(f"topic {topic.name}"[:40], self._run, most=ANY_NUMBER)

    def stop(self) -> None:
        self._ended.set()

    def _run(self) -> None:
        while not self._ended.is_set():
            try:
                self._follow()
            except Exception as failure:  # Spark's, Py4J's, the client's or the log's
                self._fail(failure)
            finally:
                self._close()

    def _fail(self, failure: Exception) -> None:
        if self._ended.is_set():
            return
        wait_s = self._backoff.failed(self._total) or 0.0
        self.reading = Reading("waiting", None, plain(failure))
        (_LOG.info if isinstance(failure, MovedError) else _LOG.warning)(
            "the topic %s of the stream %s is read again after %g s: %s", self.topic.name, self._iri, wait_s, plain(failure))
        self._ended.wait(max(wait_s, _RETRY_S))

    def _close(self) -> None:
        query, self._query = self._query, None
        try:
            if query is not None:
                query.close()
        except Exception:  # a dead JVM refuses
            _LOG.debug("closing the query of %s", self.topic.name, exc_info=True)

    def _follow(self) -> None:
        """Read from where the stream goes on, until that fails or the stream goes."""
        settings = self._machine.settings
        query = self._query = self._machine.backend.topic(self.topic.servers, self.topic.name, self._iri)
        first, end = query.offsets()
        self._next = self._begin(first, end)
        most, self._batches = self._most, 0
        query.start(self._next, most, self._read, RECORDS, self._batch)
        self._backoff.began()
        while not self._ended.wait(settings.topic_s):
            if (failure := query.failure()) is not None:
                raise failure
            self._look(query)
            if most < settings.topic_records and self._batches >= _STEADY_BATCHES:
                self._most = min(settings.topic_records, most * _FEWER)
                return

    def _begin(self, first: Mapping[int, int], end: Mapping[int, int]) -> dict[int, int]:
        """Where to begin, by partition. What the log does not know yet is recorded in it before anything is read."""
        known = self._machine.writer.appender.source(self._iri).partitions
        begins = {number: known[number].offset if number in known else self._first(number, first, end, bool(known)) for number in end}
        anew = {number: known[number].offset for number in end if number in known and known[number].offset > end[number]}
        if anew or any(number not in known for number in end):
            begins |= {number: first[number] for number in anew}
            told = tuple(Rejection("topic-replaced", f"partition {number}", f"the topic ends at offset {end[number]}, before {offset}")
                         for number, offset in anew.items())
            empty = records_of(RECORDS.empty_table(), {})
            self._append(Records(empty.items, empty.partitions, begins | anew, begins, told))
        return begins

    def _first(self, number: int, first: Mapping[int, int], end: Mapping[int, int], is_late: bool) -> int:
        """Where a partition is begun of which nothing was read; one that came later has nothing that was there before."""
        start = self.topic.start
        if start == "earliest" or is_late:
            return first[number]
        if isinstance(start, str):
            return end[number]
        return min(max(start.get(number, 0), first[number]), end[number])

    def _look(self, query: Query) -> None:
        """Tell how far behind the feed is, and of partitions of which there is nothing more to read."""
        _, end = query.offsets()
        if any(offset > end.get(number, offset) for number, offset in self._next.items()):
            raise MovedError
        read_to = query.read_to()
        self.reading = Reading("reading", sum(max(0, offset - read_to.get(number, 0)) for number, offset in end.items()))
        ended = [number for number, offset in end.items() if read_to.get(number, 0) >= offset]
        source = self._machine.writer.appender.sources.get(self._iri)
        if source is not None and source.topic is self.topic and source.may_hush(ended, self._machine.clock.now_ms()):
            self._machine.writer.call(lambda log, now: log.hush(self._iri, self.topic, ended, now))

    def _batch(self, read: Callable[[], pa.Table]) -> None:
        """Append what was read; it waits where the pump is behind. Raises where it could not be appended: it is read again then."""
        machine = self._machine
        while machine.backlog > machine.settings.max_backlog_items and not self._ended.wait(_RETRY_S):
            pass
        try:
            table = read()
        except BaseException:   # perhaps for its size
            self._most = max(1, self._most // _FEWER)
            raise
        if self._ended.is_set() or not table.num_rows:
            return
        machine.room.check()
        offsets = offsets_of(table)
        begins = {number: self._next.get(number, 0) for number in offsets}
        records = records_of(table, begins, self._lost(offsets, begins))
        self._append(records)
        self._next |= records.following
        self._batches += 1
        self._total += table.num_rows

    def _append(self, records: Records) -> None:
        machine = self._machine
        machine.writer.call(lambda end, now: end.records(self._iri, self.topic, records, now), machine.settings.push_wait_s, soon=True)

    def _lost(self, offsets: Mapping[int, Any], begins: Mapping[int, int]) -> tuple[Lost, ...]:
        """The offsets between those that were read of which the topic no longer has records. Others were never records: marks of
        transactions, and what compaction has left out."""
        holes = [(number, before + 1, after - 1) for number, found in offsets.items()
                 for before, after in zip([begins[number] - 1, *found.tolist()], found.tolist()) if after > before + 1]
        if not holes or self._query is None:
            return ()
        first, _ = self._query.offsets()
        return tuple(Lost(number, begin, min(end, first[number] - 1)) for number, begin, end in holes if first[number] > begin)


class TopicFeeds:
    """The feeds of one life of the evaluator: one for each stream that is read from a topic."""

    def __init__(self, machine: Machine, reader_of: ReaderOf) -> None:
        self._machine, self._reader_of = machine, reader_of
        self._feeds: dict[str, TopicFeed] = {}
        self._ending: list[TopicFeed] = []
        self._ended = threading.Event()
        self.worker = Worker("topics", self._run, most=ANY_NUMBER)

    def reading(self, iri: str) -> Reading:
        feed = self._feeds.get(iri)
        return Reading() if feed is None else feed.reading

    @property
    def workers(self) -> list[Worker]:
        return [self.worker, *(feed.worker for feed in list(self._feeds.values()))]

    def stop(self, within_s: float = 10.0) -> None:
        """End all feeds: each after the batch that it is at."""
        self._ended.set()
        self.worker.join(within_s)
        for feed in (*self._feeds.values(), *self._ending):
            feed.stop()
        for feed in (*self._feeds.values(), *self._ending):
            feed.worker.join(within_s)

    def _run(self) -> None:
        while not self._ended.is_set():
            self._settle()
            self._ended.wait(self._machine.settings.topic_s)

    def _settle(self) -> None:
        """Begin the feeds of new streams, end those of streams that have gone. Topics of servers that this one was not started with stay
        unread."""
        sources, known = self._machine.writer.appender.sources, self._machine.settings.kafka
        wanted = {iri: source.topic for iri, source in sources.items() if source.topic is not None and source.topic.servers in known}
        for iri, feed in list(self._feeds.items()):
            if wanted.get(iri) is not feed.topic:       # a stream that was made anew has another
                feed.stop()
                self._ending.append(self._feeds.pop(iri))
        self._ending = [feed for feed in self._ending if feed.worker.alive]
        for iri, topic in wanted.items():
            if iri not in self._feeds:
                feed = self._feeds[iri] = TopicFeed(self._machine, iri, topic, self._reader_of(topic))
                feed.worker.start()

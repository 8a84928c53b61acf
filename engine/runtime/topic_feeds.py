"""The streams that are read from Kafka: a thread for each, which reads its topic through Spark and appends what it brings to the input log.

What goes wrong with one topic, its broker or its records is no fault of the evaluator: the thread begins again, after longer and longer
waits, where the log says that the stream goes on."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from engine.runtime.errors import plain
from engine.runtime.resources import Rejection
from engine.runtime.topics import (MISSING, MOST_BYTES, RECORDS, Lost, MovedError, ReaderOf, Reading, ReadRecords, Records, Topic,
                                   no_records, offsets_of, records_of)
from engine.supervision import Keeper, Persistent

if TYPE_CHECKING:
    from engine.runtime.machine import Machine

_LOG = logging.getLogger(__name__)
_FEWER = 4
_STEADY_BATCHES = 5     # so many went well: more records are read at once again
_STEADIER = 8           # each time that they were too many, so many times as many
_RETRY_S = 0.2
_SLOW_S = 1.0       # a broker that takes so long may have been away


class Query(Protocol):
    """What is needed of `engine.spark.topic.TopicQuery`."""

    def offsets(self) -> tuple[str, dict[int, int], dict[int, int]]: ...

    def ends(self) -> dict[int, int]: ...

    def start(self, begins: Mapping[int, int], most: int, read: ReadRecords, schema: pa.Schema, most_bytes: int,
              on_records: Callable[[Callable[[], pa.Table]], None]) -> None: ...

    def failure(self) -> BaseException | None: ...

    def read_to(self) -> dict[int, int]: ...

    def close(self) -> None: ...


class TopicFeed:
    """Reads the topic of one stream until `stop`."""

    def __init__(self, machine: Machine, iri: str, topic: Topic, read: ReadRecords) -> None:
        self.topic = topic
        self._machine, self._iri, self._read = machine, iri, read
        self._behind: int | None = None
        self._identity = ""
        self._next: dict[int, int] = {}
        self._still: dict[int, int] = {}
        self._batches = self._total = 0
        self._steady = _STEADY_BATCHES
        self.thread = Persistent(f"topic of {iri}", self._follow, self._failed, _RETRY_S, lambda: self._total)

    @property
    def reading(self) -> Reading:
        if (error := self.thread.error) is not None:
            return Reading("waiting", None, error)
        return Reading("starting" if self._behind is None else "reading", self._behind)

    def stop(self) -> None:
        self.thread.stop()

    def _failed(self, failure: Exception, wait_s: float) -> str:
        self._behind, said = None, plain(failure)
        _LOG.log(logging.INFO if isinstance(failure, MovedError) or said == self.thread.error else logging.WARNING,
                 "the topic %s of the stream %s is read again after %g s: %s", self.topic.name, self._iri, wait_s, said)
        return said

    def _follow(self) -> None:
        """Read from where the stream goes on, until that fails or the stream goes."""
        query = self._machine.backend.topic(self.topic.servers, self.topic.name)
        try:
            self._read_from(query)
        finally:
            try:
                query.close()
            except Exception:  # a dead JVM refuses
                _LOG.debug("closing the query of %s", self.topic.name, exc_info=True)

    def _read_from(self, query: Query) -> None:
        settings, most = self._machine.settings, self._most
        try:
            self._identity, first, end = query.offsets()
        except Exception as missing:
            if getattr(missing, "is_missing", False) and self._machine.writer.appender.source(self._iri).topic_id is None:
                self._append(no_records(MISSING, {}, {}))
            raise
        self._next, self._batches, self._still = self._begin(first, end), 0, {}
        self._count_silence()
        query.start(self._next, most, self._read, RECORDS, MOST_BYTES, partial(self._batch, query))
        self.thread.began()
        while not self.thread.ended.wait(settings.topic_s):
            if (failure := query.failure()) is not None:
                raise failure
            self._look(query)
            if most < settings.topic_records and self._batches >= self._steady:
                self._most = most * _FEWER
                return

    @property
    def _most(self) -> int:
        """How many records are read at once: fewer after a batch that was too large, also where that ended the JVM."""
        return min(self._machine.topic_sizes.get(self._iri, self._machine.settings.topic_records), self._machine.settings.topic_records)

    @_most.setter
    def _most(self, records: int) -> None:
        self._machine.topic_sizes[self._iri] = max(1, records)

    def _count_silence(self) -> None:
        """From now on: the brokers could not be asked before, and those who write may have waited, too."""
        self._machine.writer.call(lambda log, now: log.read_again(self._iri, now))

    def _begin(self, first: Mapping[int, int], end: Mapping[int, int]) -> dict[int, int]:
        """Where to begin, by partition. What the log does not know yet is recorded in it before anything is read: where a new stream
        begins, that there are more partitions, that what was not read is lost, or that the topic is another one, which is read from its
        beginning."""
        source = self._machine.writer.appender.source(self._iri)
        known = {number: one.offset for number, one in source.partitions.items()}
        if source.topic_id not in (None, MISSING, self._identity):
            self._append(no_records(self._identity, known, first, (Rejection("topic-replaced: the topic is another one than before"),)))
            return dict(first)
        begins = {number: min(max(known[number], first[number]), end[number]) if number in known
                  else self._first(number, first, end, bool(known) or source.topic_id == MISSING) for number in end}
        if begins != known:
            lost = tuple(Lost(number, known[number], offset - 1) for number, offset in begins.items()
                         if known.get(number, offset) < offset)
            self._append(no_records(self._identity, {**begins, **known}, begins, lost=lost))
        return begins

    def _first(self, number: int, first: Mapping[int, int], end: Mapping[int, int], is_late: bool) -> int:
        """Where a partition is begun of which nothing was read; one that came later than the stream has nothing from before it."""
        start = self.topic.start
        if start == "earliest" or is_late:
            return first[number]
        if isinstance(start, str):
            return end[number]
        return min(max(start.get(number, 0), first[number]), end[number])

    def _look(self, query: Query) -> None:
        """Tell how far behind the feed is, and of partitions of which there is nothing more to read."""
        known, began = self._next, time.monotonic()
        end = query.ends()
        if time.monotonic() - began > _SLOW_S:
            self._count_silence()
        if any(offset > end.get(number, offset) for number, offset in known.items()):
            raise MovedError
        read_to = query.read_to()
        self._behind = sum(max(0, offset - read_to.get(number, 0)) for number, offset in end.items())
        self._pass_by(known, read_to)
        ended = [number for number, offset in end.items() if read_to.get(number, 0) >= offset]
        source = self._machine.writer.appender.sources.get(self._iri)
        if source is not None and source.topic is self.topic and source.may_hush(ended, self._machine.clock.now_ms()):
            self._machine.writer.call(lambda log, now: log.hush(self._iri, self.topic, ended, now))

    def _pass_by(self, known: Mapping[int, int], read_to: Mapping[int, int]) -> None:
        """Go on behind offsets at which there was no record, once nothing comes: they must not be taken for lost records later."""
        behind = {number: offset for number, offset in read_to.items() if known.get(number, offset) < offset}
        if behind and read_to == self._still and known is self._next:
            try:
                self._append(no_records(self._identity, {number: known[number] for number in behind}, behind))
                self._next = {**known, **behind}
            except MovedError:      # something has come
                pass
        self._still = dict(read_to)

    def _batch(self, query: Query, read: Callable[[], pa.Table]) -> None:
        """Append what was read; it waits where the pump is behind. Raises where it could not be appended: it is read again then."""
        machine = self._machine
        while machine.backlog > machine.settings.max_backlog_items and not self.thread.ended.wait(_RETRY_S):
            pass
        size = self._most
        self._most = size // _FEWER     # if it ends the JVM, or is refused for its size
        self._steady *= _STEADIER
        table = read()
        self._most, self._steady = size, self._steady // _STEADIER
        if self.thread.ended.is_set() or not table.num_rows:
            return
        machine.room.check()
        offsets = offsets_of(table)
        begins = {number: self._next.get(number, 0) for number in offsets}
        records = records_of(self._identity, table, begins, _lost(query, offsets, begins))
        self._append(records)
        self._next = {**self._next, **records.following}
        self._batches += 1
        self._total += table.num_rows

    def _append(self, records: Records) -> None:
        machine = self._machine
        wait_s = machine.settings.push_wait_s
        machine.writer.call(lambda end, now: end.records(self._iri, self.topic, records, now), wait_s, soon=True)


def _lost(query: Query, offsets: Mapping[int, Any], begins: Mapping[int, int]) -> tuple[Lost, ...]:
    """The offsets before those that were read, and between them, which the topic no longer has. Others were never records: marks of
    transactions, and what compaction has left out."""
    holes = [(number, before + 1, after - 1) for number, found in offsets.items()
             for before, after in zip([begins[number] - 1, *found.tolist()], found.tolist()) if after > before + 1]
    if not holes:
        return ()
    _, first, _ = query.offsets()
    return tuple(Lost(number, begin, min(end, first[number] - 1)) for number, begin, end in holes if first[number] > begin)


class TopicFeeds:
    """The feeds of one life of the evaluator: one for each stream that is read from a topic of the servers of ``--kafka``."""

    def __init__(self, machine: Machine, reader_of: ReaderOf) -> None:
        def wanted() -> dict[str, Topic]:
            sources, known = machine.writer.appender.sources, machine.settings.kafka
            for gone in machine.topic_sizes.keys() - sources.keys():
                machine.topic_sizes.pop(gone, None)
            return {iri: source.topic for iri, source in sources.items() if source.topic is not None and source.topic.servers in known}

        def make(iri: str, topic: Topic) -> TopicFeed:
            return TopicFeed(machine, iri, topic, reader_of(topic))

        self.keeper = Keeper("topics", wanted, make, machine.settings.topic_s)

    def reading(self, iri: str) -> Reading:
        feed = self.keeper.get(iri)
        return Reading() if feed is None else feed.reading

    def stop(self, within_s: float = 10.0) -> None:
        """End all feeds, each after the batch that it is at."""
        if not self.keeper.stop(within_s):
            _LOG.warning("feeds of topics have not ended within %g s", within_s)

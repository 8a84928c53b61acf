"""Results to Kafka: each event of a query that has a `sink` is a record of its topic.

A sink follows its query as a client of the feeds does, from the last event that the brokers have acknowledged. That place is kept in a
file: after a crash what was sent and not noted is sent again, under the same keys, so that a reader can leave it out. All events of a query
go to one partition, in order.
"""

import logging
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.files import whole_file
from engine.runtime.errors import plain
from engine.supervision import ANY_NUMBER, Backoff, Worker
from server.feeds.exchange import Exchange
from server.feeds.feed import Feed
from server.feeds.frames import Frame, jsonl
from server.feeds.options import Options

_LOG = logging.getLogger(__name__)
_LOOK_S = 1.0       # between two looks at what queries there are
_WAIT_S = 15.0      # the longest sleep of a sink that hears of nothing
_EVENTS = frozenset(("result", "graph", "delta", "snapshot", "gap"))     # those that become records


@dataclass(frozen=True, slots=True)
class Sent:
    """What a query's resource tells of its sink: ``starting``, ``writing`` or ``waiting`` (it has failed with `error`, and is begun again);
    the last event that has been written."""

    state: str = "starting"
    last_id: str | None = None
    error: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {"state": self.state, "lastEventId": self.last_id, "error": self.error}


class Sink:
    """Writes the events of one query until `stop`."""

    def __init__(self, exchange: Exchange, name: str, epoch: str, given: Mapping[str, Any], place: Path) -> None:
        self.given, self.epoch = given, epoch
        self._exchange, self._name, self._file = exchange, name, place
        try:
            self._place: str = place.read_text(encoding="utf-8")
        except FileNotFoundError:
            self._place = f"{epoch}-0"
        self.sent = Sent(last_id=self._last)
        self._woken, self._ended = threading.Event(), threading.Event()
        self._backoff = Backoff(ANY_NUMBER, _LOOK_S)
        self._count = 0
        self.worker = Worker(f"sink {name}"[:40], self._run, most=ANY_NUMBER)

    @property
    def _last(self) -> str | None:
        return None if self._place.endswith("-0") else self._place

    def stop(self) -> None:
        self._ended.set()
        self._woken.set()

    def _run(self) -> None:
        while not self._ended.is_set():
            try:
                self._write()
            except Exception as failure:  # Py4J's, the client's, or that of a query which has gone
                if self._ended.is_set():
                    return
                wait_s = max(_LOOK_S, self._backoff.failed(self._count) or 0.0)
                self.sent = Sent("waiting", self._last, plain(failure))
                _LOG.warning("the results of %s are written to %s again after %g s: %s", self._name, self.given["topic"], wait_s,
                             plain(failure))
                self._ended.wait(wait_s)

    def _write(self) -> None:
        writer = self._exchange.engine.topic_writer(self.given["bootstrapServers"], self.given["topic"])
        try:
            options = Options(mode=self.given.get("mode"), last_event_id=self._place)
            feed = Feed(self._exchange, self._name, options, self._woken.set)
            try:
                self._follow(feed, writer)
            finally:
                feed.close()
        finally:
            writer.close()

    def _follow(self, feed: Feed, writer: Any) -> None:
        frames, waiting = feed.open(time.time_ns() // 1_000_000), list[Frame]()
        self._backoff.began()
        while not self._ended.is_set():
            waiting += [frame for frame in frames if frame.event in _EVENTS]
            records, place, waiting = _records(self._name, waiting)
            if records:
                writer.send(records, self._name.encode())
                self._count += len(records)
            if place is not None:
                self._note(place)
            self.sent = Sent("writing", self._last)
            if feed.done:
                return
            self._woken.clear()
            frames = feed.poll(time.monotonic(), True) or []
            if not frames:
                due = feed.due_in(time.monotonic())
                self._woken.wait(_WAIT_S if due is None else min(due, _WAIT_S))

    def _note(self, place: str) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(self._file, self._file.with_name(f"{self._file.name}.part")) as file:
            file.write(place.encode())
        self._place = place


def _records(name: str, frames: Sequence[Frame]) -> tuple[list[tuple[bytes, bytes]], str | None, list[Frame]]:
    """Keys and values of whole events, the id of the last one, and the pieces of one that is not whole yet. A key is ``query:epoch-seq``;
    of one that comes in pieces ``query:epoch-seq/number``."""
    records: list[tuple[bytes, bytes]] = []
    place, pieces = None, list[Frame]()
    for frame in frames:
        pieces.append(frame)
        if frame.event == "gap":
            records.append((f"{name}:gap".encode(), jsonl(pieces.pop())[:-1]))
        elif frame.id is not None:
            place = frame.id
            keys = [f"{name}:{place}"] if len(pieces) == 1 else [f"{name}:{place}/{number}" for number in range(len(pieces))]
            records += [(key.encode(), jsonl(piece)[:-1]) for key, piece in zip(keys, pieces)]
            pieces = []
    return records, place, pieces


class Sinks:
    """The sinks of all queries that have one."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._sinks: dict[str, Sink] = {}
        self._ended = threading.Event()
        self.worker = Worker("sinks", self._run, most=ANY_NUMBER)

    def start(self) -> None:
        """Begin, if there are brokers to write to."""
        if self._exchange.engine.settings.kafka:
            self.worker.start()

    def stop(self, within_s: float = 5.0) -> None:
        self._ended.set()
        self.worker.join(within_s)
        for sink in self._sinks.values():
            sink.stop()
        for sink in self._sinks.values():
            sink.worker.join(within_s)

    def sent(self, name: str) -> Sent:
        sink = self._sinks.get(name)
        return Sent() if sink is None else sink.sent

    def _run(self) -> None:
        while not self._ended.is_set():
            self._settle()
            self._ended.wait(_LOOK_S)

    def _settle(self) -> None:
        """Begin the sinks of new queries; end those of queries that have another now, or have gone, whose places are forgotten."""
        engine = self._exchange.engine
        if not engine.ready:
            return
        wanted = engine.sinks()
        folder: Path = engine.settings.sinks_folder
        for name, sink in list(self._sinks.items()):
            if wanted.get(name, ("", None))[1] != sink.given:
                sink.stop()
                sink.worker.join()
                del self._sinks[name]
        for left in folder.iterdir() if folder.is_dir() else ():
            if left.name not in wanted:
                left.unlink(missing_ok=True)
        for name, (epoch, given) in wanted.items():
            if name not in self._sinks and given["bootstrapServers"] in engine.settings.kafka:
                sink = self._sinks[name] = Sink(self._exchange, name, epoch, given, folder / name)
                sink.worker.start()

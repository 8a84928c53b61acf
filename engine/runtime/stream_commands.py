"""Commands on streams: descriptors, pushes, what came in last. The first part of the engine's surface (service.py)."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from engine.runtime.clock import Clock
from engine.runtime.errors import EngineError, conflict, not_found, unavailable
from engine.runtime.machine import Machine
from engine.runtime.output import triples_in
from engine.runtime.query import LiveQuery
from engine.runtime.receipts import Terms
from engine.runtime.resources import DeadLetter, Item, Receipt, Rejection, StreamInfo, TailEvent, iso
from engine.runtime.results import ResultLog
from engine.runtime.rows import Kind, Prepared, prepare, prepare_table
from engine.runtime.settings import Settings
from engine.runtime.streams import StreamState, check_name, check_pushable, describe, describe_made, made_by_a_query, source_of


class StreamCommands:
    """What may be done with streams. Commands that change the catalog hold its lock until they are carried out."""

    def __init__(self, settings: Settings, clock: Clock, machine: Machine) -> None:
        self.settings = settings
        self.clock = clock
        self._machine = machine
        self._catalog = threading.RLock()
        self._streams: dict[str, dict[str, Any]] = {}

    @property
    def results(self) -> ResultLog:
        return self._machine.results

    def put_stream(self, name: str, descriptor: dict[str, Any]) -> tuple[StreamInfo, bool]:
        """Register a stream; the same descriptor again is no change, another one is 409."""
        described = describe(check_name(name), descriptor, self.settings.base_url)
        with self._catalog:
            self._machine.check_running()
            if name in self._streams:
                if self._streams[name] != described:
                    raise conflict(f"The stream {name!r} has another descriptor.", name=name)
                return self.stream(name), False
            self._check_free(name, described["iri"])
            if owner := next((n for n, d in self._streams.items() if d["iri"] == described["iri"]), None):
                raise conflict(f"The stream {owner!r} has the IRI {described['iri']} already.", name=owner)
            self.results.put_stream(name, described["iri"], described)
            self._machine.writer.call(lambda end, now: ([], end.sources.setdefault(described["iri"], source_of(described, {}, now))))
            self._streams[name] = described
            return self.stream(name), True

    def streams(self) -> list[StreamInfo]:
        """All streams, those that queries make under the names of the queries."""
        return [self.stream(name) for name in sorted([*self._streams, *self._makers()])]

    def stream(self, name: str) -> StreamInfo:
        """A stream with its state."""
        maker = self._makers().get(name)
        if maker is not None and maker.makes is not None:
            return self._made_info(maker, maker.makes)
        descriptor = self._descriptor(name)
        source = self._machine.writer.appender.sources.get(descriptor["iri"])
        state: dict[str, Any] = {"items": 0, "late": 0, "deadLetters": 0, "watermark": None, "itemsPerSecond": 0.0}
        if source is not None:
            state |= {"items": source.items, "late": source.late, "deadLetters": source.refused + source.late * source.keep_late,
                      "watermark": iso(source.watermark), "idle": source.idle,
                      "itemsPerSecond": self._machine.meters.stream(source.iri, self.clock.now_ms())}
        return StreamInfo(name, descriptor["iri"], descriptor, state, self._users(descriptor["iri"]))

    def _made_info(self, maker: LiveQuery, iri: str) -> StreamInfo:
        kept = self._machine.pump.kept.states.get(iri, StreamState())
        state = {"items": kept.items, "late": 0, "deadLetters": 0, "watermark": iso(kept.watermark), "idle": kept.idle,
                 "itemsPerSecond": self._machine.meters.stream(iri, self.clock.now_ms())}
        return StreamInfo(maker.name, iri, describe_made(iri, maker.name, self._times()[iri]), state, self._users(iri))

    def delete_stream(self, name: str, force: bool = False) -> None:
        """Remove a stream; `force` removes the queries on it too, and those on theirs; otherwise they are 409."""
        with self._catalog:
            if name in self._makers():
                raise made_by_a_query(name, f"Remove the query {name!r}.")
            iri = self._descriptor(name)["iri"]
            users = self._dependents(iri)
            if users and not force:
                raise EngineError("in-use", 409, f"Queries use the stream {name!r}.", {"usedBy": list(self._users(iri))})
            for query in reversed(users):
                self._command(Kind.UNREGISTER, query, {})
            position = self._machine.writer.call(lambda end, now: end.remove(iri))
            self._settle(position)
            self._machine.run(lambda pump: pump.kept.forget(iri))
            del self._streams[name]
            self.results.delete_stream(name, iri)

    def push(self, name: str, items: Sequence[Item], *, watermark_ms: int | None = None, idempotency_key: str | None = None,
             rejected: Sequence[Rejection] = (), skip: bool = False, digest: str | None = None) -> Receipt:
        """Append items to a stream; returns when they are on disk. `skip` takes the rest where some are too far ahead of the clock;
        `digest` stands for the request: the same key with another one is refused."""
        prepared = prepare([(item.t_ms, item.graph, item.triples) for item in items], [item.scope_ms for item in items])
        return self._push(name, prepared, Terms(watermark_ms, idempotency_key, digest, skip, tuple(rejected)))

    def push_table(self, name: str, table: pa.Table, *, watermark_ms: int | None = None, idempotency_key: str | None = None,
                   skip: bool = False, digest: str | None = None) -> Receipt:
        """The same for items in columns: item (from 0, ascending), t (ms), s, p, o tokens; g where items are graphs, scope (ms) where they
        share blank nodes."""
        return self._push(name, prepare_table(table), Terms(watermark_ms, idempotency_key, digest, skip))

    def tail(self, name: str, limit: int = 100, since: int = 0) -> list[TailEvent]:
        """The last items that the pump has taken in, after the position `since`, oldest first. The items of a stream that a query
        makes are its logged results, their positions the numbers of these."""
        if name in self._makers():
            newest = self.results.bounds(name).newest
            events = self.results.items(name, since if since <= newest else 0, limit)
            return [TailEvent(event.seq, event.at_ms, None, triples_in(event.payload)) for event in events]
        tail = self._machine.pump.kept.tails.get(self._descriptor(name)["iri"])
        return tail.read(limit, since) if tail else []

    def dead_letters(self, name: str) -> list[DeadLetter]:
        """Items that were not taken, the latest first."""
        return self.results.letters(self.stream(name).iri)

    def _push(self, name: str, prepared: Prepared, terms: Terms) -> Receipt:
        self._machine.check_running()
        check_pushable(name, self.stream(name).descriptor)
        iri = self._descriptor(name)["iri"]
        if self._machine.backlog > self.settings.max_backlog_items:
            raise unavailable("engine-overloaded", f"{self._machine.backlog} records wait to be processed.", 1)
        self._machine.room.check()
        return self._machine.writer.call(lambda end, now: end.push(iri, prepared, now, terms), self.settings.push_wait_s)

    def _descriptor(self, name: str) -> dict[str, Any]:
        if name not in self._streams:
            raise not_found("stream", name)
        return self._streams[name]

    def _makers(self) -> dict[str, LiveQuery]:
        """The queries that make streams, by name; none while the engine starts."""
        return {query.name: query for query in self._live() if query.makes is not None} if self._machine.state == "running" else {}

    def _times(self) -> dict[str, str]:
        """``event`` or ``arrival`` of each stream by IRI; what is made of arrival streams alone has their clock."""
        times = {descriptor["iri"]: descriptor["time"] for descriptor in self._streams.values()}
        for level in self._machine.pump.queries.levels():
            for query in level:
                if query.makes is not None:
                    times[query.makes] = "arrival" if all(times.get(iri) == "arrival" for iri in query.streams) else "event"
        return times

    def _check_free(self, name: str, iri: str) -> None:
        """Refuse a stream whose name or IRI a query has for its own stream."""
        for query in self._live():
            if query.makes is not None and query.name == name:
                raise conflict(f"The query {name!r} makes a stream of this name.", name=name)
            if query.definition.stream == iri:
                raise conflict(f"The query {query.name!r} makes the stream {iri} already.", name=query.name)

    def _live(self) -> list[LiveQuery]:
        return list(self._machine.pump.queries.values())

    def _dependents(self, iri: str) -> list[str]:
        """The queries that read a stream, directly or through others; each after those that it reads."""
        queries = self._machine.pump.queries
        found: dict[str, None] = {}
        for query in queries.readers(iri):
            for name in (query.name, *(reader.name for reader in queries.dependents(query))):
                found.pop(name, None)
                found[name] = None
        return list(found)

    def _users(self, iri: str) -> tuple[str, ...]:
        return tuple(sorted(query.name for query in self._live() if iri in query.streams))

    def _command(self, kind: Kind, name: str, payload: dict[str, Any]) -> None:
        self._commands(kind, (name,), payload)

    def _commands(self, kind: Kind, names: Sequence[str], payload: dict[str, Any]) -> None:
        """One command to each of several, written together before any is waited for."""
        self._settle(self._machine.writer.call(lambda end, now: end.commands(kind, names, payload)))

    def _settle(self, position: int) -> None:
        """Wait until the pump has carried out the record at `position`."""
        if not self._machine.wait_for(position, self.settings.register_wait_s):
            self._machine.check_running()
            raise unavailable("engine-overloaded", "The command is on disk and will be carried out; the engine is behind.", 5)

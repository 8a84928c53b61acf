"""How a command is carried out: what is slow first, against a view; then, on the log writer's thread, what decides, and its record. And the
commands on streams: descriptors, pushes, what came in last.

A command is answered when its record is on disk. No lock is held, and nobody waits for the pump."""

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from types import MappingProxyType
from typing import Any, TypeVar

import pyarrow as pa

from engine.compiler import Catalog
from engine.execution.compiled import Compiled
from engine.output import triples_in
from engine.runtime.append import Appender
from engine.runtime.catalogue import Catalogue, check_growth, plan_key
from engine.runtime.describe import made_info, stream_info
from engine.runtime.errors import conflict, in_use, not_found, unavailable
from engine.runtime.machine import Machine
from engine.runtime.registered import Registered
from engine.runtime.resources import DeadLetter, Item, Receipt, Rejection, StreamInfo, TailEvent, TailPart
from engine.runtime.results import ResultLog
from engine.runtime.rows import Kind, Prepared, prepare, prepare_table
from engine.runtime.streams import Terms, check_name, check_pushable, describe, made_by_a_query
from engine.runtime.view import View

Reply = TypeVar("Reply")
Info = TypeVar("Info")
Rows = list[pa.Table]
Decision = Callable[[Appender, View, int], tuple[Rows, Reply]]
"""Checks a command against the end of the log, appends its records there, and replies; at a time in ms."""
Proposal = tuple[Decision[Reply], Mapping[str, Compiled]]
"""A decision, with plans of queries by name for the pump."""
Check = Callable[[Info | None], None]
"""Refuses a command by raising, after a look at what it is to change (None: nothing is there)."""
NO_PLANS: Mapping[str, Compiled] = MappingProxyType({})
_TRIES, _FREE_TRIES = 20, 2
LARGE_PUSH = 4_096     # rows: it is worth a file, and does not wait for others to share one while the pump is slow


def unchecked(info: object) -> None:
    """The check that refuses nothing."""


class StaleError(Exception):
    """What was prepared was prepared for something else."""


class Commands:
    """What all parts of the engine's surface share (service.py), and what may be done with streams."""

    def __init__(self, machine: Machine) -> None:
        self.settings, self.clock = machine.settings, machine.clock
        self._machine = machine
        self._turn = threading.Lock()

    @property
    def results(self) -> ResultLog:
        return self._machine.results

    def _names(self, options: Mapping[str, Any], view: View) -> Catalog:
        own, known = self.settings, view.catalogue
        return Catalog(known.times, view.graphs, known.rule_sets, own.max_window_ms, own.window_steps, own.window_items,
                       bool(options.get("mixedTime", False)))

    def _write(self, decide: Decision[Reply], plans: Mapping[str, Compiled] = NO_PLANS) -> tuple[Reply, View]:
        """Decide a command and append its records: its reply, and the view just after it. The pump gets the plans of queries, by name, as
        they are from the end of the log on."""
        self._machine.check_running()

        def decided(end: Appender, now: int) -> tuple[Rows, tuple[Reply, View]]:
            snapshot = self._machine.view.snapshot
            rows, reply = decide(end, View(end.catalogue, snapshot, end.sources), now)
            if rows and plans:
                graphs = {iri: version.position for iri, version in end.catalogue.graphs.items()}
                for query, compiled in ((end.catalogue.queries[name], compiled) for name, compiled in plans.items()):
                    self._machine.planned.hand(plan_key(query.definition, query.statement, graphs, end.catalogue.rules), compiled)
            return rows, (reply, View(end.catalogue, snapshot, end.sources))

        try:
            written = self._machine.writer.call(decided, self.settings.command_wait_s, soon=True)
        except BaseException:
            self._machine.planned.drop(plans)
            raise
        self._machine.end_removed()
        return written

    def _write_prepared(self, prepare: Callable[[View], Proposal[Reply]]) -> tuple[Reply, View]:
        """Prepare what is slow, then decide; again where too much has changed (`StaleError`)."""
        for number in range(_TRIES):
            with self._turn if number >= _FREE_TRIES else nullcontext():    # who lost often waits for the others who did, not for luck
                try:
                    return self._write(*prepare(self._machine.view))
                except StaleError:
                    continue
        raise unavailable("engine-overloaded", "What the command depends on changes faster than it can be prepared.", 1)

    # --- streams

    def put_stream(self, name: str, descriptor: dict[str, Any], check: Check[StreamInfo] = unchecked) -> tuple[StreamInfo, bool]:
        """Register a stream; the same descriptor again is no change, another one is 409."""
        described = describe(check_name(name), descriptor, self.settings.base_url, self.settings.kafka)

        def decide(end: Appender, view: View, now: int) -> tuple[Rows, bool]:
            known = view.catalogue.streams.get(name)
            check(self._pushed_info(name, view) if known is not None else None)
            if known is None:
                _check_free(name, described["iri"], view.catalogue)
                rows = end.put_stream(name, described, now)
                check_growth(view.catalogue, end.catalogue, self.settings)
                return rows, True
            if known != described:
                raise conflict(f"The stream {name!r} has another descriptor.", name=name)
            return [], False

        created, view = self._write(decide)
        return self._pushed_info(name, view), created

    def streams(self) -> list[StreamInfo]:
        """All streams, those that queries make under the names of the queries."""
        view = self._machine.view
        return [self._stream(name, view) for name in sorted([*view.catalogue.streams, *_makers(view)])]

    def stream(self, name: str) -> StreamInfo:
        return self._stream(name, self._machine.view)

    def _stream(self, name: str, view: View) -> StreamInfo:
        maker = _makers(view).get(name)
        if maker is not None and maker.makes is not None:
            return made_info(maker, maker.makes, view, self.clock.now_ms())
        return self._pushed_info(name, view)

    def _pushed_info(self, name: str, view: View) -> StreamInfo:
        descriptor = _descriptor(name, view)
        return stream_info(name, descriptor, view, self.clock.now_ms(), self._machine.reading(descriptor["iri"]))

    def delete_stream(self, name: str, force: bool = False, check: Check[StreamInfo] = unchecked) -> None:
        """Remove a stream; `force` removes the queries on it too, and those on theirs; otherwise they are 409."""
        def decide(end: Appender, view: View, now: int) -> tuple[Rows, None]:
            info = self._stream(name, view)
            check(info)
            if name in _makers(view):
                raise made_by_a_query(name, f"Remove the query {name!r}.")
            if info.used_by and not force:
                raise in_use(f"Queries use the stream {name!r}.", info.used_by)
            removed = [rows for query in reversed(view.catalogue.queries.below(info.iri))
                       for rows in end.change(Kind.UNREGISTER, query.name, {})]
            return [*removed, *end.remove_stream(name)], None

        self._write(decide)

    def push(self, name: str, items: Sequence[Item], *, watermark_ms: int | None = None, idempotency_key: str | None = None,
             rejected: Sequence[Rejection] = (), skip: bool = False, digest: str | None = None) -> Receipt:
        """Append items; returns when they are on disk. `skip` and `digest` are as in Terms."""
        prepared = prepare([(item.t_ms, item.graph, item.triples) for item in items], [item.scope_ms for item in items])
        return self._push(name, prepared, Terms(watermark_ms, idempotency_key, digest, skip, tuple(rejected)))

    def push_table(self, name: str, table: pa.Table, *, watermark_ms: int | None = None, idempotency_key: str | None = None,
                   skip: bool = False, digest: str | None = None) -> Receipt:
        """The same for items in columns: item (from 0, ascending), t (ms), s, p, o tokens; g where items are graphs, scope (ms) where they
        share blank nodes."""
        return self._push(name, prepare_table(table), Terms(watermark_ms, idempotency_key, digest, skip))

    def tail_part(self, name: str, limit: int = 100, since: int = 0) -> TailPart:
        """The last items that the pump has taken in, after the position `since`, oldest first. The items of a stream that a query
        makes are its logged results, their positions the numbers of these."""
        self._machine.check_running()
        self._machine.catch_up()
        view = self._machine.view
        if (maker := _makers(view).get(name)) is not None:
            bounds = self.results.bounds(name)
            since = since if since <= bounds.newest else 0
            logged = self.results.items(name, since, limit + 1)
            events = [TailEvent(event.seq, event.at_ms, None, triples_in(event.payload)) for event in logged if event.epoch == maker.epoch]
            return TailPart(events[-limit:] if limit else [], len(logged) <= limit and bounds.oldest <= since + 1)
        tail = view.snapshot.tails.get(_descriptor(name, view)["iri"])
        if tail is None:
            return TailPart([])
        events = tail.read(limit + 1, since)
        return TailPart(events[-limit:] if limit else [], len(events) <= limit and tail.gone <= since)

    def dead_letters(self, name: str) -> list[DeadLetter]:
        self._machine.catch_up()
        return self.results.letters(self.stream(name).iri, self.settings.letters_shown)

    def _push(self, name: str, prepared: Prepared, terms: Terms) -> Receipt:
        view = self._machine.view
        check_pushable(name, self._stream(name, view).descriptor)
        iri = _descriptor(name, view)["iri"]
        if self._machine.backlog > self.settings.max_backlog_items:
            raise unavailable("engine-overloaded", f"{self._machine.backlog} records wait to be processed.", 1)
        self._machine.room.check()
        large = prepared.table.num_rows >= LARGE_PUSH
        return self._machine.writer.call(lambda end, now: end.push(iri, prepared, now, terms), self.settings.push_wait_s, soon=large)


def _descriptor(name: str, view: View) -> dict[str, Any]:
    descriptor = view.catalogue.streams.get(name)
    if descriptor is None:
        raise not_found("stream", name)
    return dict(descriptor)


def _makers(view: View) -> dict[str, Registered]:
    return {query.name: query for query in view.catalogue.queries.makers.values()}


def _check_free(name: str, iri: str, catalogue: Catalogue) -> None:
    for query in catalogue.queries.values():
        if query.makes is not None and query.name == name:
            raise conflict(f"The query {name!r} makes a stream of this name.", name=name)
        if query.definition.stream == iri:
            raise conflict(f"The query {query.name!r} makes the stream {iri} already.", name=query.name)
    if owner := next((n for n, d in catalogue.streams.items() if d["iri"] == iri), None):
        raise conflict(f"The stream {owner!r} has the IRI {iri} already.", name=owner)

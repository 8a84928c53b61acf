"""Commands on queries: registration, states, removal. The second part of the engine's surface (service.py).

What a query that makes a stream does is its readers' matter too: it is not removed, paused or replaced under them unless forced.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from engine.compiler import Catalog
from engine.ir.statement import Statement
from engine.runtime.backend import Backend
from engine.runtime.chains import check_sources, producers
from engine.runtime.clock import Clock
from engine.runtime.derived import given_name, own_iri
from engine.runtime.describe import query_info
from engine.runtime.errors import EngineError, conflict, not_found
from engine.runtime.machine import Machine
from engine.runtime.query import LiveQuery
from engine.runtime.resources import QueryInfo
from engine.runtime.rows import Kind
from engine.runtime.settings import Settings
from engine.runtime.stream_commands import StreamCommands
from engine.runtime.streams import check_name


@dataclass(frozen=True, slots=True)
class Wish:
    """How a text is to be registered: `options` stay with the query, the others are for this command."""

    options: dict[str, Any]
    replace: bool
    force: bool
    since: int | None

    @classmethod
    def of(cls, given: dict[str, Any]) -> Wish:
        """From the options of a request; 400 names what is wrong."""
        options = dict(given)
        replace, force, since = options.pop("replace", False), options.pop("force", False), _since(options.pop("since", None))
        for name, value in options.items():
            if not (name == "mixedTime" and isinstance(value, bool)):
                raise EngineError("unknown-parameter", 400, f"There is no option {name!r}, or its value is wrong.", {"parameter": name})
        return cls(options, bool(replace), bool(force), since)


class QueryCommands(StreamCommands):
    """What may be done with queries."""

    def __init__(self, settings: Settings, clock: Clock, machine: Machine, parse: Callable[[str], Statement]) -> None:
        super().__init__(settings, clock, machine)
        self._parse = parse

    def register(self, text: str, name: str | None = None, options: dict[str, Any] | None = None) -> tuple[QueryInfo, bool]:
        """Register a continuous query under `name`, the name in its text, or a new one. The same again is no change; another text
        under a name is 409, or with ``replace`` a new generation (``force``: also of a query that others read). Options: ``mixedTime``,
        and ``since``: ``earliest`` or the id of an item, after which its windows see what the log still has."""
        wish = Wish.of(options or {})
        statement = self._parse(text)
        with self._catalog:
            pump = self._machine.pump
            name = self._query_name(statement, name)
            stream = self._own_stream(statement, name)
            self._compile(statement, name, wish.options, stream)
            old = pump.queries.get(name)
            if old is not None and old.definition.text == text and dict(old.definition.options) == wish.options:
                return self.query(name), False
            if old is not None and not wish.replace:
                raise conflict(f"The query {name!r} has another text.", name=name)
            if old is None and len(pump.queries) >= self.settings.max_queries:
                raise EngineError("quota-queries", 429, f"There may be {self.settings.max_queries} queries.",
                                  {"limit": self.settings.max_queries, "current": len(pump.queries)})
            self._check_producers(statement, name, wish)
            if old is not None:
                self._check_readers(old, "replaced", wish.force and _makes(statement, stream) == old.makes)
            self._register(name, text, wish, old, stream)
            return self.query(name), True

    def queries(self) -> list[QueryInfo]:
        return [self._info(query) for query in sorted(self._live(), key=lambda query: query.name)]

    def query(self, name: str) -> QueryInfo:
        return self._info(self._query(name))

    def delete_query(self, name: str, force: bool = False) -> None:
        """Stop a query and remove it with its results; `force` removes those that read it too, otherwise they are 409."""
        with self._catalog:
            query = self._query(name)
            self._check_readers(query, "removed", force)
            readers = reversed(self._machine.pump.queries.dependents(query))
            self._commands(Kind.UNREGISTER, [*(reader.name for reader in readers), name], {})

    def patch_query(self, name: str, state: str, resume: str = "now", force: bool = False) -> QueryInfo:
        """Pause a running query (`state` ``paused``; `force` pauses those that read it too), or let a paused one go on (``running``)
        with its ``backlog`` or from ``now``."""
        with self._catalog:
            query = self._query(name)
            before = query.state
            if (before, state) not in (("running", "paused"), ("paused", "running"), (state, state)):
                raise EngineError("bad-transition", 409, f"The query is {before}; it cannot become {state}.", {"state": before})
            if before != state and state == "paused":
                self._check_readers(query, "paused", force)
                affected = (*reversed(self._machine.pump.queries.dependents(query)), query)
                self._commands(Kind.PAUSE, [reader.name for reader in affected if reader.state == "running"], {})
            elif before != state:
                self._check_producers(query.statement, name)
                self._command(Kind.RESUME, name, {"backlog": resume == "backlog"})
            return self.query(name)

    def restart_query(self, name: str, reset: bool = False, force: bool = False) -> QueryInfo:
        """Start a query again after a failure, with the readers that failed with it; `reset` forgets what it saw and begins a new
        generation (`force`: also of a query that others read)."""
        with self._catalog:
            query = self._query(name)
            if reset or query.state == "failed":
                self._check_producers(query.statement, name)
            if reset:
                if query.state != "failed":
                    self._check_readers(query, "reset", force)
                wish = Wish(dict(query.definition.options), True, force, None)
                self._register(name, query.definition.text, wish, query, query.definition.stream, query.definition.restarts + 1)
            elif query.state == "failed":
                self._command(Kind.RESUME, name, {"backlog": False})
            return self.query(name)

    # --- what must hold

    def _compile(self, statement: Statement, name: str, options: dict[str, Any], stream: str | None = None) -> Any:
        """The statement compiled against the catalog, as a query that makes `stream`."""
        check_sources(statement, name, _makes(statement, stream), self._machine.pump.queries, self.settings.base_url)
        return self.backend.compile(statement, name, self._catalog_for(options))

    def _check_producers(self, statement: Statement, name: str, wish: Wish | None = None) -> None:
        """Refuse to begin a query that could not go on: one that it reads is paused or has failed. What a query has made is in no log."""
        below = producers(statement, self._machine.pump.queries)
        for query in below:
            if query.state != "running":
                raise EngineError("bad-transition", 409, f"The query {query.name!r}, whose stream {name!r} reads, is {query.state}: "
                                  "let that one go on first.", {"query": query.name, "state": query.state})
        if below and wish is not None and wish.since is not None:
            raise EngineError("unsupported-in-streaming", 422, "since asks for items of the log, and those that a query has made are not "
                              f"in it: {', '.join(str(query.makes) for query in below)}.", {"parameter": "since"})

    def _check_readers(self, query: LiveQuery, change: str, force: bool) -> None:
        readers = self._users(query.makes) if query.makes is not None else ()
        if readers and not force:
            raise EngineError("in-use", 409, f"Queries read the stream of {query.name!r}; it is not {change} under them.",
                              {"usedBy": list(readers)})

    def _own_stream(self, statement: Statement, name: str) -> str | None:
        """The IRI of the stream that a statement registers: the one in its text, or the query's own. 409 if it is another's."""
        iri = own_iri(statement, f"{self.settings.base_url}/queries/{name}")
        if iri is None:
            return None
        if name in self._streams and statement.form != "SELECT":
            raise conflict(f"Items are pushed to the stream {name!r}; a query cannot make one of this name.", name=name)
        taken = {d["iri"]: n for n, d in self._streams.items()} | {q.definition.stream: q.name for q in self._live() if q.name != name}
        if iri in taken:
            raise conflict(f"The stream {iri} is that of {taken[iri]!r}.", name=taken[iri])
        return iri

    @property
    def backend(self) -> Backend:
        return self._machine.backend

    def _query(self, name: str) -> LiveQuery:
        query = self._machine.pump.queries.get(name)
        if query is None:
            if self.results.was_removed(name):
                raise EngineError("query-removed", 410, f"The query {name!r} has been removed.", {"name": name})
            raise not_found("query", name)
        return query

    def _info(self, query: LiveQuery) -> QueryInfo:
        measured = self._machine.meters.query(query.name, query.streams, self.clock.now_ms())
        return query_info(query, self._machine.pump, self._machine.writer.appender.sources, self.settings.base_url, measured)

    def _query_name(self, statement: Statement, name: str | None) -> str:
        written = given_name(statement)
        if name is not None and written is not None and name != written:
            raise EngineError("name-mismatch", 422, f"The text registers {written!r}, the request {name!r}.", {"name": name})
        if name is None and written is None:
            number = 1
            while f"query-{number}" in self._machine.pump.queries:
                number += 1
            return f"query-{number}"
        return check_name(name or written or "")

    def _register(self, name: str, text: str, wish: Wish, old: LiveQuery | None, stream: str | None, restarts: int = 0) -> None:
        payload: dict[str, Any] = {"text": text, "options": wish.options, "registered": self.clock.now_ms(), "restarts": restarts}
        payload |= {key: value for key, value in (("since", wish.since), ("stream", stream)) if value is not None}
        self._command(Kind.REGISTER, name, payload)
        query = self._query(name)
        if query.compiled is None and old is None:
            raise EngineError("internal", 500, f"The query could not be planned: {query.error}")

    def _catalog_for(self, options: dict[str, Any]) -> Catalog:
        return Catalog(self._times(), dict(self._machine.pump.graphs), self._machine.pump.rules, max_range_ms=self.settings.max_window_ms,
                       mixed_time=bool(options.get("mixedTime", False)))


def _makes(statement: Statement, stream: str | None) -> str | None:
    """The stream of triples that a statement makes, if `stream` is its own."""
    return stream if statement.form in ("CONSTRUCT", "DESCRIBE") else None


def _since(value: object) -> int | None:
    """The position after which a new query sees items; None: that of its registration."""
    if value is None:
        return None
    if value == "earliest":
        return 0
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    raise EngineError("unknown-parameter", 400, "since must be 'earliest' or the id of an item.", {"parameter": "since"})

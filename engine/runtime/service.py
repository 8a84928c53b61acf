"""The engine as the server sees it: streams, graphs, queries, one-shot queries. Every method may be called from any thread.

Commands that change the catalog are serialised by one lock, written to the input log, and answered when the pump has carried them out
(or, if it is busy for long, when they are on disk).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace as changed
from typing import Any

from engine.compiler import Catalog
from engine.compiler import triples as triples_of
from engine.ir.statement import GraphSource, Statement, StreamSource
from engine.plan.explain import plan_tree
from engine.records import Triple
from engine.runtime.backend import Backend, SparkBackend
from engine.runtime.clock import Clock, SystemClock
from engine.runtime.describe import query_info, variables
from engine.runtime.errors import EngineError, conflict, not_found
from engine.runtime.machine import Machine
from engine.runtime.query import LiveQuery
from engine.runtime.resources import DEFAULT_GRAPH, GraphInfo, Listener, OneShot, QueryInfo, RuleSetInfo
from engine.runtime.rows import Kind, own_blank_nodes
from engine.runtime.settings import Settings
from engine.runtime.stream_commands import StreamCommands
from engine.runtime.streams import check_name
from engine.spark.executor import Due
from engine.timeline import MAX, MIN

RULE_SETS = (RuleSetInfo("rdfs", True, "The RDFS entailment rules rdfs2, 3, 5, 7, 9 and 11: domain, range, sub-property, sub-class."),)


class Engine(StreamCommands):
    """Continuous queries over streams. Errors are EngineError (a problem slug with status) and DiagnosticError (places in a text)."""

    def __init__(self, settings: Settings, parse: Callable[[str], Statement], clock: Clock | None = None,
                 backend: Backend | None = None) -> None:
        clock = clock or SystemClock()
        super().__init__(settings, clock, Machine(settings, parse, clock, backend or SparkBackend(settings)))
        self._parse = parse

    # --- life

    def start(self) -> None:
        """Open the data folder and begin to start Spark; `ready` tells when it is done."""
        self._machine.start()
        self._streams = {name: {**descriptor, "iri": iri} for name, iri, descriptor in self.results.streams()}

    def stop(self) -> None:
        self._machine.stop()

    @property
    def ready(self) -> bool:
        return self._machine.state == "running"

    @property
    def state(self) -> str:
        return self._machine.state

    @property
    def progress(self) -> str:
        """What start-up is doing, or why the engine failed."""
        return self._machine.progress

    def info(self) -> dict[str, Any]:
        """What ``/info`` adds of the engine."""
        return {"backlog": self._machine.backlog if self.ready else None, "totals": dict(self._machine.meters.totals),
                **self._machine.backend.describe()}

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` with each notice, from engine threads, until the returned function is called."""
        return self._machine.subscribe(listener)

    # --- graphs and rules

    def put_graph(self, iri: str, triples: Sequence[Triple], replace: bool = True) -> tuple[GraphInfo, bool]:
        """Replace a static graph, or add to it; the queries that use it are planned anew."""
        with self._catalog:
            store = self._machine.pump.store
            before = triples_of(store.tables[iri]) if iri in store.tables else None
            if before is not None and set(own_blank_nodes(triples, store.mark(iri))) == set(before):
                return self._graph_info(iri), False
            fresh = own_blank_nodes(triples, store.mark(iri, following=True))
            content = list(dict.fromkeys(fresh if replace or before is None else [*before, *fresh]))
            self._settle(self._machine.writer.call(lambda end, now: end.graph(iri, content)))
            return self._graph_info(iri), before is None

    def graphs(self) -> list[GraphInfo]:
        return [self._graph_info(iri) for iri in sorted(self._machine.pump.graphs)]

    def graph(self, iri: str) -> tuple[GraphInfo, list[Triple]]:
        """A static graph with its triples."""
        info = self._graph_info(iri)
        return info, triples_of(self._machine.pump.graphs[iri])

    def delete_graph(self, iri: str) -> None:
        """Remove a static graph that no query uses."""
        with self._catalog:
            if users := self._graph_info(iri).used_by:
                raise EngineError("in-use", 409, f"Queries use the graph <{iri}>.", {"usedBy": list(users)})
            self._settle(self._machine.writer.call(lambda end, now: end.graph(iri, None)))

    def rule_sets(self) -> list[RuleSetInfo]:
        return list(RULE_SETS)

    def _graph_info(self, iri: str) -> GraphInfo:
        pump = self._machine.pump
        if iri not in pump.graphs:
            raise not_found("graph", iri)
        users = tuple(sorted(query.name for query in self._live() if iri in query.graphs))
        return GraphInfo(iri, pump.graphs[iri].num_rows, str(pump.store.versions[iri]), users)

    # --- queries

    def register(self, text: str, name: str | None = None, options: dict[str, Any] | None = None) -> tuple[QueryInfo, bool]:
        """Register a continuous query under `name`, the name in its text, or a new one. The same again is no change; another text
        under a name is 409, or with ``replace`` a new generation. Options: ``mixedTime``, ``replace``, and ``since``: ``earliest`` or the
        id of an item, after which its windows see what the log still has."""
        options = dict(options or {})
        replacing, since = options.pop("replace", False), _since(options.pop("since", None))
        _check_options(options)
        statement = self._parse(text)
        with self._catalog:
            pump = self._machine.pump
            name = self._query_name(statement, name)
            self.backend.compile(statement, name, self._catalog_for(options))
            old = pump.queries.get(name)
            if old is not None and old.definition.text == text and dict(old.definition.options) == options:
                return self.query(name), False
            if old is not None and not replacing:
                raise conflict(f"The query {name!r} has another text.", name=name)
            if old is None and len(pump.queries) >= self.settings.max_queries:
                raise EngineError("quota-queries", 429, f"There may be {self.settings.max_queries} queries.",
                                  {"limit": self.settings.max_queries, "current": len(pump.queries)})
            self._register(name, text, options, old, since=since)
            return self.query(name), True

    def queries(self) -> list[QueryInfo]:
        return [self._info(query) for query in sorted(self._live(), key=lambda query: query.name)]

    def query(self, name: str) -> QueryInfo:
        return self._info(self._query(name))

    def delete_query(self, name: str) -> None:
        """Stop a query and remove it with its results."""
        with self._catalog:
            self._query(name)
            self._command(Kind.UNREGISTER, name, {})

    def patch_query(self, name: str, state: str, resume: str = "now") -> QueryInfo:
        """Pause a running query (`state` ``paused``), or let a paused one go on (``running``) with its ``backlog`` or from ``now``."""
        with self._catalog:
            before = self._query(name).state
            if (before, state) not in (("running", "paused"), ("paused", "running"), (state, state)):
                raise EngineError("bad-transition", 409, f"The query is {before}; it cannot become {state}.", {"state": before})
            if before != state:
                self._command(Kind.PAUSE if state == "paused" else Kind.RESUME, name,
                              {} if state == "paused" else {"backlog": resume == "backlog"})
            return self.query(name)

    def restart_query(self, name: str, reset: bool = False) -> QueryInfo:
        """Start a query again after a failure; `reset` forgets what it saw and begins a new generation."""
        with self._catalog:
            query = self._query(name)
            if reset:
                self._register(name, query.definition.text, dict(query.definition.options), query, query.definition.restarts + 1)
            elif query.state == "failed":
                self._command(Kind.RESUME, name, {"backlog": False})
            return self.query(name)

    def explain(self, text: str, stage: str = "logical") -> dict[str, Any]:
        """What would become of a text: its plan at `stage` as text and as nodes. Nothing is registered."""
        statement = self._parse(text)
        compiled: Any = self.backend.compile(self._with_data(statement), statement.name or "", self._catalog_for({}))
        return {"stage": stage, "plan": compiled.explain(stage), "form": statement.form, "vars": list(variables(statement)),
                "nodes": _nodes(compiled)}

    def plan(self, name: str, stage: str = "logical") -> str:
        return self._compiled(name).explain(stage)  # type: ignore[no-any-return]

    def plan_nodes(self, name: str) -> dict[str, Any]:
        """The plan as nested nodes, with executor and strategy of the last evaluation."""
        return {"query": name, **self._chosen(self._query(name)), "plan": _nodes(self._compiled(name))}

    def stats(self, name: str) -> dict[str, Any]:
        """Progress and lag of a query, and the last batches of the pump."""
        info, query = self.query(name), self._query(name)
        bounds = self.results.bounds(name)
        return {"query": name, "state": info.state, "progress": info.progress, **self._chosen(query),
                "results": {"epoch": query.definition.epoch, "oldest": bounds.oldest, "newest": bounds.newest, "logged": query.seq},
                "backlog": self._machine.backlog, "batches": list(self._machine.meters.batches)}

    def _chosen(self, query: LiveQuery) -> dict[str, str | None]:
        """Executor and strategy of a query's last evaluation, where the executor has a choice."""
        executor, strategy = getattr(self._machine.pump.executor, "choices", {}).get(query.definition.epoch, (None, None))
        return {"executor": executor, "strategy": strategy}

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

    def _compiled(self, name: str) -> Any:
        query = self._query(name)
        if query.compiled is None:
            raise EngineError("query-failed", 409, f"The query {name!r} has no plan: {query.error}")
        return query.compiled

    def _info(self, query: LiveQuery) -> QueryInfo:
        measured = self._machine.meters.query(query.name, query.streams, self.clock.now_ms())
        return query_info(query, self._machine.pump, self._machine.writer.appender.sources, self.settings.base_url, measured)

    def _query_name(self, statement: Statement, name: str | None) -> str:
        written = statement.name
        if written is not None and "/" in written:
            written = written.rstrip("/").rpartition("/")[2].rpartition("#")[2]
        if name is not None and written is not None and name != written:
            raise EngineError("name-mismatch", 422, f"The text registers {written!r}, the request {name!r}.", {"name": name})
        if name is None and written is None:
            number = 1
            while f"query-{number}" in self._machine.pump.queries:
                number += 1
            return f"query-{number}"
        return check_name(name or written or "")

    def _register(self, name: str, text: str, options: dict[str, Any], old: LiveQuery | None, restarts: int = 0,
                  since: int | None = None) -> None:
        payload = {"text": text, "options": options, "registered": self.clock.now_ms(), "restarts": restarts}
        if since is not None:
            payload["since"] = since
        self._command(Kind.REGISTER, name, payload)
        query = self._query(name)
        if query.compiled is None and old is None:
            raise EngineError("internal", 500, f"The query could not be planned: {query.error}")

    def _catalog_for(self, options: dict[str, Any]) -> Catalog:
        return Catalog({d["iri"]: d["time"] for d in self._streams.values()}, dict(self._machine.pump.graphs),
                       max_range_ms=self.settings.max_window_ms, mixed_time=bool(options.get("mixedTime", False)))

    # --- one-shot queries

    def sparql(self, text: str, timeout_s: float | None = None) -> OneShot:
        """Evaluate a query once: over static graphs (all of them where it names none) and the windows it names, as they are now."""
        statement = self._with_data(self._parse(text))
        compiled: Any = self.backend.compile(statement, "", self._catalog_for({"mixedTime": True}))
        pump = self._machine.pump
        streams = {source.stream for source in statement.streams}
        contents = {stream: pump.kept.snapshot(stream) for stream in streams}
        reached = [pump.kept.states[stream].watermark for stream in streams if stream in pump.kept.states]
        tick = max(reached, default=MIN) + 1 if streams else self.clock.now_ms()
        for source in statement.streams:
            self._check_kept(source)
        due = Due("one-shot", compiled, (max(tick, 0),), -1, contents, dict(pump.graphs))
        try:
            answer = self.backend.one_shot(due, timeout_s or self.settings.one_shot_timeout_s)
        except TimeoutError as late:
            raise EngineError("query-timeout", 503, f"The query was cancelled: {late}.") from late
        if answer.error is not None or answer.table is None:
            raise EngineError("internal", 500, f"The query failed: {answer.error}")
        table = answer.table
        return OneShot(statement.form, variables(statement), table, table.num_rows > 0 if statement.form == "ASK" else None)

    def _check_kept(self, source: StreamSource) -> None:
        """Refuse a window on a stream of which the pump keeps nothing: it keeps what registered queries may still see."""
        state = self._machine.pump.kept.states.get(source.stream)
        if state is not None and state.items and state.kept_from == MAX:
            raise EngineError("unsupported-in-streaming", 422, f"No registered query reads <{source.stream}>, so none of its items is "
                              "kept for a window. Register a query with this window.", {"stream": source.stream})

    def _with_data(self, statement: Statement) -> Statement:
        """A plain query that names no data reads the default graph of the catalog, and every other graph by its name."""
        if statement.registered or statement.streams or statement.graphs:
            return statement
        known = sorted(self._machine.pump.graphs)
        return changed(statement, graphs=tuple(GraphSource(iri, named=iri != DEFAULT_GRAPH) for iri in known))


def _nodes(compiled: Any) -> dict[str, Any] | None:
    """The plan as nested nodes; None of a compiled form that has no plan."""
    return plan_tree(compiled.plan, compiled.estimate) if hasattr(compiled, "plan") else None


def _since(value: object) -> int | None:
    """The position after which a new query sees items; None: that of its registration."""
    if value is None:
        return None
    if value == "earliest":
        return 0
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    raise EngineError("unknown-parameter", 400, "since must be 'earliest' or the id of an item.", {"parameter": "since"})


def _check_options(options: dict[str, Any]) -> None:
    for name, value in options.items():
        if name == "mixedTime" and isinstance(value, bool):
            continue
        raise EngineError("unknown-parameter", 400, f"There is no option {name!r}, or its value is wrong.", {"parameter": name})

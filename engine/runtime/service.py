"""The engine as the server sees it: streams, graphs, queries, one-shot queries. Every method may be called from any thread.

Commands that change the catalog are serialised by one lock, written to the input log, and answered when the pump has carried them out
(or, if it is busy for long, when they are on disk).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace as changed
from typing import Any

from engine.compiler import triples as triples_of
from engine.ir.statement import GraphSource, Statement
from engine.records import Triple
from engine.runtime.backend import Backend, SparkBackend
from engine.runtime.clock import Clock, SystemClock
from engine.runtime.derived import own_iri
from engine.runtime.describe import variables
from engine.runtime.errors import EngineError, not_found
from engine.runtime.evidence import Evidence, evidence_of
from engine.runtime.machine import Machine
from engine.runtime.one_shot import check_kept
from engine.runtime.query import Compiled, LiveQuery
from engine.runtime.resources import DEFAULT_GRAPH, GraphInfo, Listener, OneShot
from engine.runtime.rows import own_blank_nodes
from engine.runtime.rule_commands import RuleCommands
from engine.runtime.rule_store import ParseRules, reads_no_rules
from engine.runtime.settings import Settings
from engine.spark.executor import Due
from engine.timeline import MIN


class Engine(RuleCommands):
    """Continuous queries over streams. Errors are EngineError (a problem slug with status) and DiagnosticError (places in a text)."""

    def __init__(self, settings: Settings, parse: Callable[[str], Statement], clock: Clock | None = None,
                 backend: Backend | None = None, parse_rules: ParseRules = reads_no_rules) -> None:
        clock = clock or SystemClock()
        machine = Machine(settings, parse, parse_rules, clock, backend or SparkBackend(settings))
        super().__init__(settings, clock, machine, parse, parse_rules)

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

    def health(self) -> tuple[bool, dict[str, Any]]:
        """Whether the engine does its work, and what ``/health/ready`` tells beside that."""
        return self._machine.health()

    def info(self) -> dict[str, Any]:
        """What ``/info`` adds of the engine."""
        return {"backlog": self._machine.backlog if self.ready else None, "reserveBytes": self._machine.reserve,
                "totals": dict(self._machine.meters.totals), **self._machine.backend.describe()}

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` with each notice, from engine threads, until the returned function is called."""
        return self._machine.subscribe(listener)

    # --- graphs

    def put_graph(self, iri: str, triples: Sequence[Triple], replace: bool = True) -> tuple[GraphInfo, bool]:
        """Replace a static graph, or add to it; the queries that use it are planned anew."""
        with self._catalog:
            store = self._machine.pump.store
            before = triples_of(store.tables[iri]) if iri in store.tables else None
            if before is not None and set(own_blank_nodes(triples, store.mark(iri))) == set(before):
                return self._graph_info(iri), False
            fresh = own_blank_nodes(triples, store.mark(iri, following=True))
            content = list(dict.fromkeys(fresh if replace or before is None else [*before, *fresh]))
            self._machine.room.check()
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

    def _graph_info(self, iri: str) -> GraphInfo:
        pump = self._machine.pump
        if iri not in pump.graphs:
            raise not_found("graph", iri)
        users = tuple(sorted(query.name for query in self._live() if iri in query.graphs))
        return GraphInfo(iri, pump.graphs[iri].num_rows, str(pump.store.versions[iri]), users)

    # --- plans

    def explain(self, text: str, stage: str = "logical") -> dict[str, Any]:
        """What would become of a text: its plan at `stage` as text and as nodes. Nothing is registered."""
        statement = self._with_data(self._parse(text))
        name = self._query_name(statement, None) if statement.registered else ""
        compiled = self._compile(statement, name, {}, own_iri(statement, f"{self.settings.base_url}/queries/{name}"))
        return {"stage": stage, "plan": compiled.explain(stage), "form": statement.form, "vars": list(variables(statement)),
                "nodes": compiled.tree(), "streams": self._sources(statement)}

    def plan(self, name: str, stage: str = "logical") -> str:
        """The plan of a query at `stage` as text."""
        return self._compiled(name).explain(stage)

    def plan_nodes(self, name: str) -> dict[str, Any]:
        """The plan as nested nodes, with executor, strategy and graph problems of the last evaluation."""
        query = self._query(name)
        return {"query": name, **self._chosen(query), "graphs": self._graph_problems(query),
                "streams": self._sources(query.statement), "plan": self._compiled(name).tree()}

    def stats(self, name: str) -> dict[str, Any]:
        """Progress and lag of a query, and the last batches of the pump."""
        info, query = self.query(name), self._query(name)
        bounds = self.results.bounds(name)
        return {"query": name, "state": info.state, "progress": info.progress, **self._chosen(query),
                "results": {"epoch": query.definition.epoch, "oldest": bounds.oldest, "newest": bounds.newest, "logged": query.seq},
                "backlog": self._machine.backlog, "batches": list(self._machine.meters.batches)}

    def _compiled(self, name: str) -> Compiled:
        query = self._query(name)
        if query.compiled is None:
            raise EngineError("query-failed", 409, f"The query {name!r} has no plan: {query.error}")
        return query.compiled

    def _sources(self, statement: Statement) -> list[dict[str, str | None]]:
        """The streams that a statement reads, each with the query that makes it."""
        makers = self._machine.pump.queries.makers
        return [{"iri": iri, "query": makers[iri].name if iri in makers else None}
                for iri in dict.fromkeys(source.stream for source in statement.streams)]

    def _graph_problems(self, query: LiveQuery) -> list[dict[str, Any]]:
        """The graph problems of a query's last evaluation in Spark SQL: how each was solved, for how many edges."""
        found = getattr(self._machine.pump.executor, "graph_choices", {}).get(query.definition.epoch, ())
        return [{"problem": chosen.problem, "edges": chosen.edges, "way": chosen.way} for chosen in found]

    def _chosen(self, query: LiveQuery) -> dict[str, str | None]:
        """Executor and strategy of a query's last evaluation, where the executor has a choice."""
        executor, strategy = getattr(self._machine.pump.executor, "choices", {}).get(query.definition.epoch, (None, None))
        return {"executor": executor, "strategy": strategy}

    def evidence(self, name: str, result_id: str) -> Evidence:
        """What the evaluation of a result saw: 404 ``no-such-result``, 410 ``no-longer-kept`` where some of it is no longer there."""
        return evidence_of(self._machine, self._query(name), result_id)

    # --- one-shot queries

    def sparql(self, text: str, timeout_s: float | None = None, graphs: Sequence[GraphSource] = ()) -> OneShot:
        """Evaluate a query once: over static graphs (`graphs`, else those that it names, else all of them) and the windows it names, as
        they are now. The time counts from here, so that reading and compiling the text are part of it."""
        timeout_s = timeout_s or self.settings.one_shot_timeout_s
        deadline = time.monotonic() + timeout_s
        statement = self._parse(text)
        statement = changed(statement, graphs=tuple(graphs)) if graphs else self._with_data(statement)
        _check_in_time(deadline, timeout_s)
        compiled = self._compile(statement, "", {"mixedTime": True})
        left_s = _check_in_time(deadline, timeout_s)
        pump = self._machine.pump
        streams = {source.stream for source in statement.streams}
        contents = {stream: pump.kept.snapshot(stream) for stream in streams}
        reached = [pump.kept.states[stream].watermark for stream in streams if stream in pump.kept.states]
        reached += [query.reached for stream in streams for query in pump.queries.readers(stream)]     # that of an idle stream stands still
        tick = max(reached, default=MIN) + 1 if streams else self.clock.now_ms()
        due = Due("one-shot", compiled, (max(tick, 0),), -1, contents, dict(pump.graphs))
        for source in statement.streams:
            check_kept(source, contents[source.stream], pump.kept.states.get(source.stream), due.evaluation,
                       pump.queries.readers(source.stream))
        try:
            answer = self.backend.one_shot(due, left_s)
        except TimeoutError as late:
            raise EngineError("query-timeout", 503, f"The query was cancelled: {late}.") from late
        if answer.error is not None or answer.table is None:
            raise EngineError("internal", 500, f"The query failed: {answer.error}")
        table = answer.table
        return OneShot(statement.form, variables(statement), table, table.num_rows > 0 if statement.form == "ASK" else None)

    def _with_data(self, statement: Statement) -> Statement:
        """A plain query that names no data reads the default graph of the catalog, and every other graph by its name."""
        if statement.registered or statement.streams or statement.graphs:
            return statement
        known = sorted(self._machine.pump.graphs)
        return changed(statement, graphs=tuple(GraphSource(iri, named=iri != DEFAULT_GRAPH) for iri in known))


def _check_in_time(deadline: float, timeout_s: float) -> float:
    """The seconds until a time of the monotonic clock; 503 if there are none."""
    left_s = deadline - time.monotonic()
    if left_s <= 0:
        raise EngineError("query-timeout", 503, f"The query was cancelled before it was evaluated: it had {timeout_s:g} s.")
    return left_s

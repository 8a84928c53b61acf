"""Commands on static graphs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace as changed

import pyarrow as pa

from engine.compiler import triples as triples_of
from engine.ir.spans import DiagnosticError
from engine.records import Triple
from engine.runtime.append import Appender
from engine.runtime.commands import Check, Commands, Decision, Rows, StaleError
from engine.runtime.errors import in_use
from engine.runtime.graphs import graph_mark, static_facts
from engine.runtime.query import Compiled
from engine.runtime.quotas import check_graph
from engine.runtime.resources import GraphInfo
from engine.runtime.rows import graph_rows, own_blank_nodes
from engine.runtime.timed_use import check_rederived
from engine.runtime.view import View


class GraphCommands(Commands):
    """What may be done with static graphs."""

    def put_graph(self, iri: str, triples: Sequence[Triple], replace: bool = True,
                  check: Check[GraphInfo] = None) -> tuple[GraphInfo, bool]:
        """Replace a static graph, or add to it; the queries that use it are planned anew."""
        plans = dict[str, Compiled]()

        def prepare(view: View) -> Decision[bool]:
            version, made = view.catalogue.graphs.get(iri), None
            count = version.count if version is not None else 0
            before = triples_of(view.graph(iri)[1]) if iri in view.graphs else None
            if before is None or set(own_blank_nodes(triples, graph_mark(iri, count))) != set(before):
                fresh = own_blank_nodes(triples, graph_mark(iri, count + 1))
                rows = graph_rows(0, iri, list(dict.fromkeys(fresh if replace or before is None else [*before, *fresh])))
                made = rows, static_facts(rows)
            basis = _basis(iri, view)
            plans.clear()
            if made is not None:
                plans.update(self._graph_plans(iri, made[1], view))

            def decide(end: Appender, view: View, now: int) -> tuple[Rows, bool]:
                known = view.catalogue.graphs.get(iri)
                if check is not None:
                    check(view.graph(iri)[0] if iri in view.graphs else None)
                if (known and known.position) != (version and version.position) and (made is None or not replace):
                    raise StaleError
                if made is None:
                    return [], False
                check_rederived(view.catalogue, iri)
                check_graph(view.catalogue, self.settings, iri, made[1].num_rows)
                self._machine.room.check()
                if _basis(iri, view) != basis:      # the pump makes the plans
                    plans.clear()
                return end.graph(iri, made), iri not in view.graphs

            return decide

        created, view = self._write_prepared(prepare, plans)
        return view.graph(iri)[0], created

    def _graph_plans(self, iri: str, facts: pa.Table, view: View) -> dict[str, Compiled]:
        """The plans with other facts in a graph of the queries that use it, by name. One that cannot be planned fails at the pump."""
        plans = {}
        for query in view.catalogue.queries.values():
            if iri in query.graphs and view.standing(query) != "failed":
                names = self._names(query.definition.options, view)
                with suppress(DiagnosticError, ValueError):
                    plans[query.name] = self._machine.backend.compile(query.statement, query.name,
                                                                      changed(names, graphs={**names.graphs, iri: facts}))
        return plans

    def graphs(self) -> list[GraphInfo]:
        view = self._view()
        return [view.graph(iri)[0] for iri in sorted(view.graphs)]

    def graph(self, iri: str) -> tuple[GraphInfo, list[Triple]]:
        """A static graph with its triples."""
        info, facts = self._view().graph(iri)
        return info, triples_of(facts)

    def delete_graph(self, iri: str, check: Check[GraphInfo] = None) -> None:
        """Remove a static graph that no query uses."""
        def decide(end: Appender, view: View, now: int) -> tuple[Rows, None]:
            info, _ = view.graph(iri)
            if check is not None:
                check(info)
            if info.used_by:
                raise in_use(f"the graph <{iri}>", info.used_by)
            return end.graph(iri, None), None

        self._write(decide)


def _basis(iri: str, view: View) -> list[object]:
    """What plans with another version of a graph depend on."""
    users = [query for query in view.catalogue.queries.values() if iri in query.graphs]
    return [(query.epoch, view.catalogue.basis(query.statement)) for query in users]

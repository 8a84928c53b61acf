"""Commands on static graphs and rule sets: the queries that use them are planned anew."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace as changed
from typing import Any, TypeVar

import pyarrow as pa

from engine.compiler import BUILT_IN_RULES, triples as triples_of
from engine.execution.compiled import Compiled
from engine.ir.rules import RuleSet
from engine.ir.spans import DiagnosticError
from engine.ir.stages import timeline_of
from engine.ir.windows import rule_windows
from engine.records import Triple
from engine.runtime.append import Appender
from engine.runtime.catalogue import check_growth, check_rederived
from engine.runtime.commands import Check, Proposal, Rows, StaleError, unchecked
from engine.runtime.errors import EngineError, in_use
from engine.runtime.query_commands import QueryCommands
from engine.runtime.registered import Registered
from engine.runtime.resources import GraphInfo, RuleSetInfo
from engine.runtime.rows import graph_rows, own_blank_nodes
from engine.runtime.stores import StoredRules, checked, graph_mark, static_facts
from engine.runtime.streams import check_name
from engine.runtime.view import View

Upload = TypeVar("Upload", GraphInfo, RuleSetInfo)


class UploadCommands(QueryCommands):
    """What may be done with static graphs and rule sets. The sets that are built in can only be read."""

    # --- static graphs

    def put_graph(self, iri: str, triples: Sequence[Triple], replace: bool = True,
                  check: Check[GraphInfo] = unchecked) -> tuple[GraphInfo, bool]:
        """Replace a static graph, or add to it; the queries that use it are planned anew."""
        def prepare(view: View) -> Proposal[bool]:
            version, made = view.catalogue.graphs.get(iri), None
            count = version.count if version is not None else 0
            before = triples_of(view.graph(iri)[1]) if iri in view.graphs else None
            if before is None or set(own_blank_nodes(triples, graph_mark(iri, count))) != set(before):
                fresh = own_blank_nodes(triples, graph_mark(iri, count + 1))
                rows = graph_rows(0, iri, list(dict.fromkeys(fresh if replace or before is None else [*before, *fresh])))
                made = rows, static_facts(rows)
            basis = _basis(view.catalogue.queries.using_graph(iri), view)
            plans = {} if made is None else self._graph_plans(iri, made[1], view)

            def decide(end: Appender, view: View, now: int) -> tuple[Rows, bool]:
                known = view.catalogue.graphs.get(iri)
                check(view.graph(iri)[0] if iri in view.graphs else None)
                if (known and known.position) != (version and version.position) and (made is None or not replace):
                    raise StaleError
                if made is None:
                    return [], False
                check_rederived(view.catalogue, iri)
                rows = end.graph(iri, made)
                check_growth(view.catalogue, end.catalogue, self.settings)
                self._machine.room.check()
                if _basis(view.catalogue.queries.using_graph(iri), view) != basis:      # the pump makes the plans
                    plans.clear()
                return rows, iri not in view.graphs

            return decide, plans

        created, view = self._write_prepared(prepare)
        return view.graph(iri)[0], created

    def _graph_plans(self, iri: str, facts: pa.Table, view: View) -> dict[str, Compiled]:
        """The plans with other facts in a graph of the queries that use it, by name. One that cannot be planned fails at the pump."""
        plans, others = {}, {**view.graphs, iri: facts}
        for query in view.catalogue.queries.using_graph(iri):
            if view.standing(query) != "failed":
                with suppress(DiagnosticError, ValueError):
                    plans[query.name] = self._plan(query, view, graphs=others)
        return plans

    def _plan(self, query: Registered, view: View, **other: Any) -> Compiled:
        """The plan of a query with other `graphs` or `rules` than there are."""
        names = changed(self._names(query.definition.options, view), **other)
        return self._machine.backend.compile(query.statement, query.name, names)

    def graphs(self) -> list[GraphInfo]:
        view = self._machine.view
        return [view.graph(iri)[0] for iri in sorted(view.graphs)]

    def graph(self, iri: str) -> tuple[GraphInfo, list[Triple]]:
        info, facts = self._machine.view.graph(iri)
        return info, triples_of(facts)

    def delete_graph(self, iri: str, check: Check[GraphInfo] = unchecked) -> None:
        """Remove a static graph that no query uses."""
        self._remove(f"the graph <{iri}>", lambda view: view.graph(iri)[0], lambda end: end.graph(iri, None), check)

    # --- rule sets

    def put_rules(self, name: str, media: str, text: str, check: Check[RuleSetInfo] = unchecked) -> tuple[RuleSetInfo, bool]:
        """Set a rule set, or replace it: the queries that use it are planned anew. The same text again is no change."""
        _check_writable(check_name(name))
        rules = checked(self._machine.parse_rules(text, media, name), self.settings.max_window_ms)

        def prepare(view: View) -> Proposal[bool]:
            before = view.catalogue.rules.get(name)
            same = before is not None and (before.media, before.text) == (media, text)
            basis = before and before.version, _basis(view.catalogue.queries.using_rules(name), view)

            def decide(end: Appender, view: View, now: int) -> tuple[Rows, bool]:
                check(view.rule_set(name) if name in view.catalogue.rules else None)
                stored = view.catalogue.rules.get(name)
                if (stored and stored.version, _basis(view.catalogue.queries.using_rules(name), view)) != basis:
                    raise StaleError
                rows = [] if same else end.rules(name, StoredRules(media, text, 0, rules))
                check_growth(view.catalogue, end.catalogue, self.settings)
                return rows, before is None

            return decide, {} if same else self._plans(name, rules, view)

        created, view = self._write_prepared(prepare)
        return view.rule_set(name), created

    def check_rules(self, media: str, text: str) -> int:
        """How many rules and facts a text has, read as `put_rules` does; nothing is set."""
        rules = checked(self._machine.parse_rules(text, media, "rules"), self.settings.max_window_ms)
        return len(rules.rules) + len(rules.facts)

    def rule_sets(self) -> list[RuleSetInfo]:
        """All rule sets, the built-in ones first."""
        view = self._machine.view
        return [view.rule_set(name) for name in view.catalogue.rule_sets]

    def rule_set(self, name: str) -> RuleSetInfo:
        return self._machine.view.rule_set(name)

    def delete_rules(self, name: str, check: Check[RuleSetInfo] = unchecked) -> None:
        """Remove a rule set that no query uses."""
        _check_writable(name)
        self._remove(f"the rule set {name!r}", lambda view: view.rule_set(name), lambda end: end.rules(name, None), check)

    def _remove(self, what: str, find: Callable[[View], Upload], end_of: Callable[[Appender], Rows], check: Check[Upload]) -> None:
        def decide(end: Appender, view: View, now: int) -> tuple[Rows, None]:
            info = find(view)
            check(info)
            if info.used_by:
                raise in_use(f"Queries use {what}.", info.used_by)
            return end_of(end), None

        self._write(decide)

    def _plans(self, name: str, rules: RuleSet, view: View) -> dict[str, Compiled]:
        """The plans with new rules of the queries that use them, by name. Refuses rules with which one that runs could not be planned."""
        plans, others, old = {}, {**view.catalogue.rule_sets, name: rules}, view.catalogue.rule_sets.get(name)
        for query in view.catalogue.queries.using_rules(name):
            if view.standing(query) == "failed":
                continue
            for hinders, why in (
                    (query.statement.timed_rules, "with a time of their own: what was derived cannot be taken back"),
                    (timeline_of(rules),
                     "as rules without a time of their own: the new ones have one, and what they need of the past is not kept"),
                    (old and rule_windows([rules]) != rule_windows([old]), "with another Window: what they have to see is not kept")):
                if hinders:
                    raise in_use(f"The query {query.name!r} uses these rules {why}.", [query.name])
            try:
                plans[query.name] = self._plan(query, view, rules=others)
            except (DiagnosticError, ValueError) as error:
                reason = error.diagnostics[0].message if isinstance(error, DiagnosticError) else str(error)
                raise in_use(f"The query {query.name!r} cannot be planned with these rules: {reason}", [query.name]) from error
        return plans


def _basis(users: Iterable[Registered], view: View) -> list[object]:
    """What plans of these queries depend on, with another version of what they use."""
    return [(query.epoch, view.catalogue.basis(query.statement)) for query in users]


def _check_writable(name: str) -> None:
    if name in BUILT_IN_RULES:
        raise EngineError("method-not-allowed", 405, f"The rule set {name!r} is built in; it can only be read.",
                          {"name": name, "allowed": ["GET", "HEAD"]})

"""What is registered at the end of the input log: streams, queries, static graphs, rule sets; and what these make impossible.

An immutable value. The log writer's thread makes the next one when the record of a command is appended (append.py), so that commands
are decided one after another against what stands in the log, whatever the pump has reached of it. Anyone may keep and read one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import pyarrow as pa

from engine.compiler import BUILT_IN_RULES
from engine.execution.compiled import Compiled
from engine.grouping import by_key
from engine.ir.rules import RuleSet
from engine.ir.statement import Statement
from engine.runtime.errors import EngineError, in_use
from engine.runtime.registered import Definition, FixedQueries, Registered, own_iri
from engine.runtime.rows import Kind
from engine.runtime.settings import Settings
from engine.runtime.stores import StoredRules, understood
from engine.runtime.ticks import Timetable
from engine.timeline import MAX, MIN

MOST_WAITING = 1_024
Key = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class GraphVersion:
    """A version of a static graph, the `count`-th, set by the record at `position`. `facts` is None once the pump has them."""

    position: int
    count: int
    triples: int
    facts: pa.Table | None = None


@dataclass(frozen=True)
class Catalogue:
    """`streams` has the descriptors of pushed streams by name, `graphs` goes by IRI, the others by name. `removed` are queries removed
    at a position that the pump had not reached, `numbers` is how many queries there have been."""

    streams: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    queries: FixedQueries[Registered] = field(default_factory=FixedQueries)
    graphs: Mapping[str, GraphVersion] = field(default_factory=dict)
    rules: Mapping[str, StoredRules] = field(default_factory=dict)
    removed: Mapping[str, int] = field(default_factory=dict)
    numbers: int = 0

    # --- what others ask

    def done(self, pushed: Callable[[str], tuple[int, bool]]) -> dict[str, int]:
        """The last evaluation time that each query may have done, by its epoch, given (watermark, idle) of pushed streams."""
        reaches = self.queries.reaches(pushed)
        return {query.epoch: query.timetable.evaluated(reaches[name]) for name, query in self.queries.items()}

    def used(self, stream: str, done: Mapping[str, int]) -> int:
        """The latest of the times `done` of the queries that a pushed stream comes to, or MIN."""
        return max((done.get(query.epoch, MIN) for query in self._read.get(stream, ())), default=MIN)

    @cached_property
    def _read(self) -> Mapping[str, Sequence[Registered]]:
        """By pushed stream: the queries that it comes to, itself or through others."""
        return by_key((stream, query) for query in self.queries.values() for stream in self.queries.pushed(query))

    @cached_property
    def times(self) -> Mapping[str, str]:
        """``event`` or ``arrival`` of each stream by IRI; what is made of arrival streams alone has their clock."""
        times: dict[str, str] = {descriptor["iri"]: descriptor["time"] for descriptor in self.streams.values()}
        for level in self.queries.levels():
            for query in level:
                if query.makes is not None:
                    times[query.makes] = "arrival" if all(times.get(iri) == "arrival" for iri in query.streams) else "event"
        return times

    @cached_property
    def rule_sets(self) -> Mapping[str, RuleSet]:
        return {**BUILT_IN_RULES, **understood(self.rules)}

    def basis(self, statement: Statement) -> tuple[object, ...]:
        """All of the catalogue that the compiled form of a statement depends on; equal where that is the same."""
        streams = sorted({source.stream for source in statement.streams})
        graphs = {iri: version.position for iri, version in self.graphs.items()}
        return tuple((iri, self.times.get(iri)) for iri in streams), *_versions(statement, graphs, self.rules)

    @cached_property
    def epochs(self) -> frozenset[str]:
        return frozenset(query.epoch for query in self.queries.values())

    # --- what the records of commands make of it

    def with_stream(self, name: str, descriptor: Mapping[str, Any] | None) -> Catalogue:
        return replace(self, streams=_with(self.streams, name, descriptor))

    def with_query(self, name: str, payload: Mapping[str, Any], position: int, statement: Statement) -> Catalogue:
        """After a registration; `statement` has the windows of its rules."""
        old = self.queries.get(name)
        definition = Definition.of(name, payload, own_iri(statement, payload.get("stream")), old.definition if old else None, self.numbers)
        query = Registered(definition, statement, Timetable.of(statement), "running", position, position)
        numbers = max(self.numbers, definition.number)
        return replace(self, queries=FixedQueries(_with(self.queries, name, query)),
                       removed=_with(self.removed, name, None), numbers=numbers)

    def with_change(self, kind: Kind, name: str, position: int) -> Catalogue:
        """After the end of a query, a pause or a resumption."""
        if kind is Kind.UNREGISTER:
            return replace(self, queries=FixedQueries(_with(self.queries, name, None)), removed=_with(self.removed, name, position))
        wish = "paused" if kind is Kind.PAUSE else "running"
        query = replace(self.queries[name], wish=wish, changed=position)
        return replace(self, queries=FixedQueries({**self.queries, name: query}))

    def with_graph(self, iri: str, facts: pa.Table | None, position: int) -> Catalogue:
        count = self.graphs[iri].count + 1 if iri in self.graphs else 1
        version = None if facts is None else GraphVersion(position, count, facts.num_rows, facts)
        return replace(self, graphs=_with(self.graphs, iri, version))

    def with_rules(self, name: str, stored: StoredRules | None) -> Catalogue:
        return replace(self, rules=_with(self.rules, name, stored))

    @cached_property
    def waits_for(self) -> int:
        """The first position until whose processing something is kept here; MAX where there is none."""
        versions = (version.position for version in self.graphs.values() if version.facts is not None)
        return min((*versions, *self.removed.values()), default=MAX)

    def reached(self, position: int) -> Catalogue:
        """Without what the pump, at `position`, keeps itself."""
        graphs = {iri: replace(version, facts=None) if version.position <= position else version for iri, version in self.graphs.items()}
        return replace(self, graphs=graphs, removed={name: at for name, at in self.removed.items() if at > position})


def _with(known: Mapping[str, Any], name: str, value: Any) -> dict[str, Any]:
    """A copy with another value under a name, or with none."""
    changed = {key: kept for key, kept in known.items() if key != name}
    return changed if value is None else {**changed, name: value}


def plan_key(definition: Definition, statement: Statement, graphs: Mapping[str, int], rules: Mapping[str, StoredRules]) -> Key:
    """All that the compiled form of a registered statement depends on: its name and text, and the versions of what it uses."""
    return definition.name, definition.media, definition.text, *_versions(statement, graphs, rules)


def _versions(statement: Statement, graphs: Mapping[str, int], rules: Mapping[str, StoredRules]) -> Key:
    """The versions of the graphs and rule sets that a statement uses (None: it is built in, or not there)."""
    iris = sorted({source.iri for source in (*statement.graphs, *statement.reasoning_graphs)})
    sets = [(source.name, rules[source.name].version if source.name in rules else None) for source in statement.rules]
    return tuple((iri, graphs.get(iri)) for iri in iris), tuple(sets)


class Planned:
    """The last plan of each query that the pump has not taken. Used by any thread. What nobody takes goes when there is too much."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._plans: dict[object, tuple[Key, Compiled]] = {}

    def hand(self, key: Key, compiled: Compiled) -> None:
        """For the pump, when it comes to the record. The caller must not use it afterwards."""
        with self._lock:
            self._plans[key[0]] = key, compiled
            while len(self._plans) > MOST_WAITING:
                del self._plans[next(iter(self._plans))]

    def take(self, key: Key) -> Compiled | None:
        with self._lock:
            known, compiled = self._plans.get(key[0], (None, None))
            if known != key:
                return None
            del self._plans[key[0]]
            return compiled

    def drop(self, names: Iterable[str]) -> None:
        """The records of these queries were not written: the next ones have their positions."""
        with self._lock:
            for name in names:
                self._plans.pop(name, None)


class _Quota(NamedTuple):
    """Of what there may not be any number: the problem's slug, the words for it, the setting, and how much there is."""

    slug: str
    what: str
    setting: str
    count: Callable[[Catalogue], int]


_QUOTAS = {
    "streams": _Quota("quota-streams", "streams", "max_streams", lambda known: len(known.streams)),
    "topics": _Quota("quota-streams", "streams and sinks of Kafka topics", "max_topics", lambda known: (
        sum(descriptor["source"]["type"] == "kafka" for descriptor in known.streams.values())
        + sum("sink" in query.definition.options for query in known.queries.values()))),
    "queries": _Quota("quota-queries", "queries", "max_queries", lambda known: len(known.queries)),
    "graphs": _Quota("quota-graphs", "static graphs", "max_graphs", lambda known: len(known.graphs)),
    "graphTriples": _Quota("quota-graphs", "triples in all static graphs together", "max_graph_triples",
                           lambda known: sum(version.triples for version in known.graphs.values())),
    "ruleSets": _Quota("quota-rules", "rule sets", "max_rule_sets", lambda known: len(known.rules)),
    "ruleText": _Quota("quota-rules", "characters in all rule sets together", "max_rule_text",
                       lambda known: sum(len(stored.text) for stored in known.rules.values()))}


def check_growth(before: Catalogue, after: Catalogue, settings: Settings) -> None:
    """Refuse what grows beyond a limit. That there is too much already is allowed: the limit was lowered. Raises EngineError (429)."""
    for slug, what, setting, count in _QUOTAS.values():
        limit, wanted = getattr(settings, setting), count(after)
        if wanted > max(limit, count(before)):
            raise EngineError(slug, 429, f"There may be {limit} {what}; this would make {wanted}.", {"limit": limit, "current": wanted})


def usage(catalogue: Catalogue, settings: Settings) -> dict[str, Any]:
    return {name: {"current": quota.count(catalogue), "limit": getattr(settings, quota.setting)} for name, quota in _QUOTAS.items()}


def check_rederived(catalogue: Catalogue, graph: str) -> None:
    """Refuse another version of a graph that such a query uses: 409 ``in-use``."""
    users = sorted(query.name for query in catalogue.queries.using_graph(graph) if query.statement.keeps_state)
    if users:
        raise in_use(f"The query {users[0]!r} has derived facts from the graph <{graph}>, which stay: remove it first, or register it anew "
                     "afterwards.", users)

"""What others see. The pump: one immutable value after each batch, set by its owner in one assignment, with figures that decide no result.
Nothing is copied but references: contents are lists of chunks that never change, tables are Arrow's. One request: the catalogue at the
end of the log and the last snapshot of the pump, taken once."""

from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from engine.compiler import BUILT_IN_RULES
from engine.execution.compiled import Compiled
from engine.execution.content import Chunk, StreamContent
from engine.execution.due import ProgramPosition
from engine.execution.plan_job import Ran
from engine.ir.statement import Statement
from engine.runtime.batch import Outcome
from engine.runtime.catalogue import Catalogue
from engine.runtime.data_folder import Trouble
from engine.runtime.errors import not_found
from engine.runtime.kept import StreamState, Tail
from engine.runtime.pump import Pump
from engine.runtime.registered import Definition, FixedQueries, Reader, Registered
from engine.runtime.resources import GraphInfo, RuleSetInfo, iso
from engine.runtime.stores import StoredRules
from engine.runtime.streams import Source
from engine.runtime.ticks import Timetable
from engine.timeline import MIN

_SPAN_MS = 10_000
_BATCHES = 50
_PROGRESS_MS = 1_000     # as `progress_seconds`: a feed shows no more
BUILT_IN = "built-in"
"""The version of a rule set that is built in."""
_ABOUT = {"rdfs": "The RDFS entailment rules rdfs2, 3, 5, 6, 7, 9, 10 and 11: domain, range, sub-property, sub-class.",
          "owl2rl": "The OWL 2 RL/RDF rules (OWL 2 Profiles, section 4.3)."}


@dataclass(slots=True)
class _Told:
    """The last progress message of a query, and the evaluations since."""

    at_ms: int = 0
    watermark: int = MIN
    closed: int = 0
    empty: int = 0


@dataclass(frozen=True, slots=True)
class _Came:
    """How many triples and items a batch that ended at `at_ms` brought, by stream; streams that have ended since are left out."""

    at_ms: int
    counts: Mapping[str, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Measured:
    """The figures after a batch, which do not change any more."""

    batches: tuple[dict[str, Any], ...] = ()
    totals: Mapping[str, int] = field(default_factory=dict)
    came: tuple[_Came, ...] = ()
    latency: Mapping[str, int | None] = field(default_factory=dict)
    answered: Mapping[str, int] = field(default_factory=dict)

    def query(self, name: str, streams: Iterable[str], now_ms: int) -> dict[str, Any]:
        """What `describe` shows of a query: rows per second over the last ten seconds, when its last result of this run was logged, and how
        old (ms) it was then; None where its time was yet to come."""
        rate = sum(self.rows(stream, now_ms) for stream in streams)
        return {"inputRowsPerSecond": round(rate, 1), "resultLatencyMs": self.latency.get(name),
                "lastResultAt": iso(self.answered.get(name))}

    def rows(self, iri: str, now_ms: int) -> float:
        """Triples per second of a stream over the last ten seconds."""
        return sum(batch.counts.get(iri, (0, 0))[0] for batch in self.recent(now_ms)) * 1000 / _SPAN_MS

    def stream(self, iri: str, now_ms: int) -> float:
        """Items per second of a stream over the last ten seconds."""
        return round(sum(batch.counts.get(iri, (0, 0))[1] for batch in self.recent(now_ms)) * 1000 / _SPAN_MS, 1)

    def recent(self, now_ms: int) -> list[_Came]:
        return [batch for batch in self.came if batch.at_ms >= now_ms - _SPAN_MS]


class Meters:
    """The owner's: what was `measured` up to the last batch."""

    def __init__(self) -> None:
        self.measured = Measured()
        self._told: dict[str, _Told] = {}

    def batch(self, outcome: Outcome, now_ms: int) -> None:
        before, results, recent = self.measured, len(outcome.results), self.measured.recent(now_ms)
        shown = {"at": iso(now_ms), "rows": outcome.rows, "ticks": outcome.ticks, "results": results,
                 "evaluateMs": round(outcome.evaluate_ms, 1), "totalMs": round(outcome.total_ms, 1)}
        totals = {name: before.totals.get(name, 0) + more for name, more in (("batches", 1), ("rows", outcome.rows), ("results", results))}
        begun = {notice.query: notice.data.get("epoch") for notice in outcome.notices
                 if notice.query is not None and notice.kind in ("epoch", "removed")}
        latency = {name: ms for name, ms in before.latency.items() if name not in begun}
        answered = {name: at for name, at in before.answered.items() if name not in begun}
        for event in outcome.results:
            if event.epoch != begun.get(event.query, event.epoch):
                continue
            latency[event.query] = None if event.at_ms > now_ms else now_ms - event.at_ms
            answered[event.query] = now_ms
            told = self._told.setdefault(event.query, _Told())
            told.closed += 1
            told.empty += event.meta.get("rows") == 0
        kept = ({iri: count for iri, count in batch.counts.items() if iri not in outcome.gone} for batch in recent)
        came = (*(_Came(batch.at_ms, counts) for batch, counts in zip(recent, kept)), _Came(now_ms, outcome.came))
        self.measured = Measured((*before.batches, shown)[-_BATCHES:], totals, came, latency, answered)

    def news(self, name: str, watermark: int, now_ms: int) -> dict[str, Any] | None:
        """What a progress message says beside the query's progress; None if it has not moved, or was told of a moment ago."""
        told = self._told.setdefault(name, _Told())
        if watermark == told.watermark or now_ms - told.at_ms < _PROGRESS_MS:
            return None
        news = {"processedAt": iso(now_ms), "windowsClosed": told.closed, "empty": told.empty}
        self._told[name] = _Told(now_ms, watermark)
        return news


@dataclass(frozen=True, slots=True)
class Seen(Reader):
    """A query at the pump after a batch, as LiveQuery has it. `beside`: it is being evaluated beside the pump."""

    definition: Definition
    statement: Statement
    timetable: Timetable
    compiled: Compiled | None
    state: str
    error: str | None
    seq: int
    reached: int
    next_tick: int | None = None
    beside: bool = False
    program: ProgramPosition | None = None
    behind: bool = False


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The pump after the record at `position`. Queries and rule sets by name, `choices` and `ran` by epoch, the others by IRI."""

    position: int = 0
    queries: FixedQueries[Seen] = field(default_factory=FixedQueries)
    streams: Mapping[str, StreamState] = field(default_factory=dict)
    chunks: Mapping[str, tuple[Chunk, ...]] = field(default_factory=dict)
    tails: Mapping[str, Tail] = field(default_factory=dict)
    graphs: Mapping[str, pa.Table] = field(default_factory=dict)
    versions: Mapping[str, int] = field(default_factory=dict)
    rules: Mapping[str, StoredRules] = field(default_factory=dict)
    choices: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    ran: Mapping[str, Ran] = field(default_factory=dict)
    graph_choices: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    troubles: tuple[Trouble, ...] = ()
    oldest_needed: int = 0
    measured: Measured = field(default_factory=Measured)

    def content(self, stream: str) -> StreamContent:
        """What is kept of a stream; nothing of one that no query reads."""
        return StreamContent(self.chunks.get(stream, ()))


def snapshot_of(pump: Pump, measured: Measured) -> Snapshot:
    """The pump as it is; called by its owner between batches."""
    queries = {name: Seen(query.definition, query.statement, query.timetable, query.compiled, query.state, query.error, query.seq,
                          query.reached, query.next_tick, pump.is_beside(query), query.program, query.behind)
               for name, query in pump.queries.items()}
    kept, executor = pump.kept, pump.executor
    return Snapshot(pump.position, FixedQueries(queries), {stream: replace(state) for stream, state in kept.states.items()},
                    {stream: content.chunks for stream, content in kept.contents.items()},
                    {stream: copy(tail) for stream, tail in kept.tails.items()}, dict(pump.store.tables), dict(pump.store.versions),
                    dict(pump.rule_store.stored), dict(getattr(executor, "choices", {})), dict(getattr(executor, "ran", {})),
                    dict(getattr(executor, "graph_choices", {})), (*pump.troubles(), *pump.set_aside), pump.oldest_needed, measured)


@dataclass(frozen=True, slots=True)
class View:
    """`catalogue`: what there is; `snapshot`: how far the pump is; `sources`: the pushed streams at the end of the log, by IRI."""

    catalogue: Catalogue
    snapshot: Snapshot
    sources: Mapping[str, Source]

    # --- queries

    def seen(self, query: Registered) -> Seen | None:
        """The query at the pump; None where the pump has not come to its registration."""
        seen = self.snapshot.queries.get(query.name)
        return seen if seen is not None and seen.epoch == query.epoch else None

    def standing(self, query: Registered) -> str:
        """``running``, ``paused`` or ``failed``, as it will be when the pump has come to the end of the log, if nothing fails till then."""
        seen = self.seen(query)
        if seen is None and self._passed_over(query):
            return "failed"
        return query.wish if seen is None or query.changed > self.snapshot.position else seen.state

    def error(self, query: Registered) -> str | None:
        seen = self.seen(query)
        if self.standing(query) != "failed":
            return None
        if seen is not None:
            return seen.error
        reason = next((trouble.reason for trouble in self.snapshot.troubles
                       if trouble.kind == "record" and trouble.name == str(query.registered)), "it is no longer known why")
        return f"Its registration could not be carried out: {reason}."

    def _passed_over(self, query: Registered) -> bool:
        """Whether the pump has gone past the registration without the query: the record was set aside."""
        known = self.snapshot.queries.get(query.name)
        return query.registered <= self.snapshot.position and (known is None or known.definition.order < query.definition.order)

    def state(self, query: Registered) -> str:
        """The state to show: of a query that the pump has not come to ``starting``, of one that is to go on after a failure
        ``restarting``, of a running one all of whose streams are idle, and of which nothing is left to evaluate, ``idle``."""
        seen, standing = self.seen(query), self.standing(query)
        if standing != "running":
            return standing
        if seen is None:
            return "starting"
        if seen.state == "failed":
            return "restarting"
        states = [self.snapshot.streams.get(stream) for stream in query.streams]
        asleep = all(state is not None and state.idle for state in states) and all(source.idle for source in self.origins(query))
        return "idle" if asleep and not seen.behind else "running"

    def origins(self, query: Registered) -> list[Source]:
        """The pushed streams, at the end of the log, that everything it sees comes from."""
        return [self.sources[stream] for stream in self.catalogue.queries.pushed(query) if stream in self.sources]

    def reached(self, query: Registered) -> int:
        seen = self.seen(query)
        return MIN if seen is None else seen.reached

    # --- graphs

    def graph(self, iri: str) -> tuple[GraphInfo, pa.Table]:
        """A static graph with its facts. One that the pump has is the pump's, which may have come to a later version meanwhile."""
        version = self.catalogue.graphs.get(iri)
        facts = None if version is None else version.facts if version.facts is not None else self.snapshot.graphs.get(iri)
        if version is None or facts is None:
            raise not_found("graph", iri)
        position = version.position if version.facts is not None else self.snapshot.versions[iri]
        users = sorted(query.name for query in self.catalogue.queries.using_graph(iri))
        return GraphInfo(iri, facts.num_rows, str(position), tuple(users)), facts

    @property
    def graphs(self) -> dict[str, pa.Table]:
        found = {iri: self.snapshot.graphs.get(iri) if version.facts is None else version.facts
                 for iri, version in self.catalogue.graphs.items()}
        return {iri: facts for iri, facts in found.items() if facts is not None}

    # --- rule sets

    def rule_set(self, name: str) -> RuleSetInfo:
        users = tuple(sorted(query.name for query in self.catalogue.queries.using_rules(name)))
        if (stored := self.catalogue.rules.get(name)) is not None:
            return RuleSetInfo(name, False, None, stored.media, len(stored.rules.rules) + len(stored.rules.facts), str(stored.version),
                               users, stored.text)
        if name in BUILT_IN_RULES:
            return RuleSetInfo(name, True, _ABOUT.get(name), None, None, BUILT_IN, users)
        raise not_found("rules", name)

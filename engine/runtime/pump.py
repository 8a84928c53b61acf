"""The pump: rows of the input log in, logged results out.

A batch is cut at its barriers (a registration, a graph version, the first record of a stream that was idle), and all that is due is
evaluated before each of them, so that results never depend on how the log was cut into batches. Everything that a batch changes is
written in one transaction with the position it reached.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from engine.ir.statement import Statement
from engine.runtime.graphs import GraphStore
from engine.runtime.kept import KeptStreams
from engine.runtime.query import Compiled, Definition, LiveQuery
from engine.runtime.resources import Notice, ResultEvent
from engine.runtime.results import Changes, ResultLog
from engine.runtime.rows import Control, Kind, controls, in_order
from engine.runtime.segments import segments
from engine.runtime.streams import StreamState
from engine.runtime.ticks import Need
from engine.spark.executor import Answer, Due
from engine.timeline import MAX, MIN

Compile = Callable[[str, str, Mapping[str, pa.Table]], Compiled]
History = Callable[[Mapping[str, int], int], Iterable[pa.Table]]


class Executor(Protocol):
    """What the pump needs of engine.spark.executor.Executor."""

    def evaluate(self, dues: Sequence[Due]) -> list[Answer]: ...

    def forget(self, query: str) -> None: ...


class LogGapError(RuntimeError):
    """A batch does not begin where the one before ended: files of the input log are missing."""


class EvaluatorDownError(RuntimeError):
    """The executor failed because what it runs on is gone: no query's fault."""


@dataclass(slots=True)
class Outcome:
    """What a batch brought: the results logged, what listeners should know, and how long each phase took."""

    results: list[ResultEvent] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    rows: int = 0
    rows_by_stream: dict[str, int] = field(default_factory=dict)
    ticks: int = 0
    evaluate_ms: float = 0.0
    total_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Limits:
    """`ticks` per job, `rows` of a result that are logged, and how much time of a paused query's backlog is kept."""

    ticks: int = 512
    rows: int = 250_000
    backlog_ms: int = 3_600_000
    tail: int = 1_000


class Pump:
    """All state that results depend on, moved on by `process` alone. One thread at a time."""

    def __init__(self, executor: Executor, results: ResultLog, parse: Callable[[str], Statement], compile_query: Compile, *,
                 graph_folder: Path | None = None, limits: Limits = Limits(), now: Callable[[], int] = lambda: 0,
                 alive: Callable[[], bool] = lambda: True, history: History = lambda needed, position: ()) -> None:
        """`graph_folder` None keeps static graphs in memory only (a replay). `now` dates rows for retention; it decides no result.
        `alive` is asked when an evaluation failed: whether that was the query's fault or the end of the evaluator.
        `history(from_ms by stream, position)` reads the items of the log up to `position` that are not older, in order."""
        self.executor = executor
        self.results = results
        self.position = 0
        self.queries: dict[str, LiveQuery] = {}
        self.kept = KeptStreams(limits.tail)
        self.store = GraphStore(graph_folder)
        self._parse, self._compile = parse, compile_query
        self._limits, self._now, self._alive, self._history = limits, now, alive, history
        self._numbers = 0
        self._outcome = Outcome()
        self._changes = Changes(0)

    @property
    def graphs(self) -> Mapping[str, pa.Table]:
        """The static graphs by IRI."""
        return self.store.tables

    # --- batches

    def process(self, table: pa.Table) -> Outcome:
        """Take in rows of the log (`rows.ROWS`, any order, those processed before are left out) and log what is due.

        An exception leaves the pump unusable: make a new one and `restore` it.
        """
        began = time.perf_counter()
        table = self._fresh(table)
        self._outcome = Outcome(rows=table.num_rows)
        if not table.num_rows:
            return self._outcome
        self._changes = Changes(table["position"][-1].as_py())
        for segment, barrier in segments(table, self.kept.idle):
            if barrier is not None:
                self._apply(barrier, segment)
            self._take(segment)
            self._evaluate()
        self.position = self._changes.position
        self._evict()
        self._commit()
        self._outcome.total_ms = (time.perf_counter() - began) * 1000
        return self._outcome

    def _fresh(self, table: pa.Table) -> pa.Table:
        table = in_order(table.filter(pc.greater(table["position"], self.position)).combine_chunks())
        first, last = (end.as_py() for end in pc.min_max(table["position"]).values())
        if first is not None and (first != self.position + 1 or pc.count_distinct(table["position"]).as_py() != last - self.position):
            raise LogGapError(f"the log goes on at position {self.position + 1}, but there are only some of {first} to {last}")
        return table

    # --- one segment

    def _take(self, segment: pa.Table) -> None:
        """Items into the contents, watermarks and idleness on; the order within a segment does not matter."""
        events = segment.filter(pc.equal(segment["record"], int(Kind.EVENT)))
        for stream in pc.unique(events["stream"]).to_pylist():
            self._take_events(stream, events.filter(pc.equal(events["stream"], stream)))
        if events.num_rows == segment.num_rows:
            return
        for control in controls(segment):
            match control.kind:
                case Kind.MARK:
                    self.kept.state(control.stream).advance(control.watermark)
                case Kind.IDLE:
                    self.kept.state(control.stream).idle = True
                case Kind.REFUSED:
                    self.kept.state(control.stream).refuse(control.payload)
                    self._changes.letters.append((control.stream, control.position, control.payload["letters"]))
                case Kind.KEY:
                    self._changes.receipts.append((control.stream, control.payload))

    def _take_events(self, stream: str, rows: pa.Table) -> None:
        users = [query for query in self.queries.values() if stream in query.streams and query.state != "failed"]
        times = self.kept.take(stream, rows, bool(users))
        self._outcome.rows_by_stream[stream] = self._outcome.rows_by_stream.get(stream, 0) + rows.num_rows
        for query in users:
            query.ticker.see(stream, times)

    def _evaluate(self) -> None:
        """Evaluate all that is due, all queries in one call, at most `ticks` of a query at a time."""
        while dues := self._dues():
            began = time.perf_counter()
            answers = self.executor.evaluate(dues)
            self._outcome.evaluate_ms += (time.perf_counter() - began) * 1000
            if failures := [answer.error for answer in answers if answer.error is not None]:
                if not self._alive():
                    raise EvaluatorDownError(f"the evaluator is down: {failures[0]}") from failures[0]
            for answer in answers:
                self._log(answer)

    def _dues(self) -> list[Due]:
        dues = []
        for query in self.queries.values():
            if query.state != "running" or query.compiled is None:
                continue
            watermark = self.watermark(query)
            while query.ticker.floor < watermark:
                if ticks := query.ticker.due(watermark, self._limits.ticks):
                    dues.append(self._due(query, ticks))
                    break
        return dues

    def _due(self, query: LiveQuery, ticks: Sequence[int]) -> Due:
        self._outcome.ticks += len(ticks)
        contents = {stream: self.kept.content(stream) for stream in query.streams}
        graphs = {graph: self.graphs[graph] for graph in query.graphs if graph in self.graphs}
        return Due(query.definition.epoch, query.compiled, tuple(ticks), query.definition.since, contents, graphs)  # type: ignore[arg-type]

    def _log(self, answer: Answer) -> None:
        query = next(q for q in self.queries.values() if q.definition.epoch == answer.query)
        if query.state != "running":
            return
        if answer.error is not None or answer.table is None:
            self._fail(query, answer.error or RuntimeError("the executor gave no table"))
            return
        self._outcome.results.append(query.log(answer.tick, answer.table, answer.inconsistencies, self._limits.rows))

    def _fail(self, query: LiveQuery, error: BaseException) -> None:
        before = query.state
        query.fail(error)
        self.executor.forget(query.definition.epoch)
        self._status(query, before, "failure")

    def _status(self, query: LiveQuery, before: str | None, reason: str) -> None:
        data: dict[str, Any] = {"state": query.state, "previous": before, "reason": reason}
        if query.error is not None:
            data["problem"] = {"title": "The query failed", "detail": query.error}
        self._outcome.notices.append(Notice("status", query.name, data=data))

    # --- barriers

    def _apply(self, control: Control, segment: pa.Table) -> None:
        """Carry out the record at a barrier; all that was due before it is done."""
        match control.kind:
            case Kind.REGISTER:
                self._register(control)
            case Kind.GRAPH:
                self._graph_version(control, segment)
            case Kind.END:
                self._end()
            case _ if control.stream in self.queries:
                self._change_state(self.queries[control.stream], control)

    def _register(self, control: Control) -> None:
        name, payload = control.stream, control.payload
        old = self.queries.pop(name, None)
        if old is not None:
            self.executor.forget(old.definition.epoch)
        else:
            self._numbers += 1
        definition = Definition(name, payload["text"], old.definition.number if old else self._numbers,
                                old.definition.generation + 1 if old else 1, payload["since"], payload.get("options", {}),
                                payload.get("registered"), payload.get("restarts", 0))
        self.queries[name] = query = self._build(definition, MIN)
        query.ticker.floor = self.watermark(query)
        if definition.since < control.position - 1:
            self.kept.refill(query.streams, self._history(dict.fromkeys(query.streams, MIN), control.position))
            self._see_again([query])
        self._outcome.notices.append(Notice("epoch", name, data={"epoch": definition.epoch, "replaced": old is not None}))
        self._status(query, None, "registered")

    def _build(self, definition: Definition, floor: int) -> LiveQuery:
        statement = self._parse(definition.text)
        query = LiveQuery(definition, statement, None, floor)
        self._plan(query)
        return query

    def _plan(self, query: LiveQuery) -> None:
        """Compile, against the graphs as they are now."""
        try:
            query.compiled = self._compile(query.definition.text, query.name, self.graphs)
        except Exception as error:  # whatever a compiler raises is this query's failure, not the pump's
            query.fail(error)

    def _change_state(self, query: LiveQuery, control: Control) -> None:
        before, watermark = query.state, self.watermark(query)
        if control.kind is Kind.UNREGISTER:
            del self.queries[query.name]
            self._changes.queries[query.name] = None
            self.executor.forget(query.definition.epoch)
            self._outcome.notices.append(Notice("removed", query.name))
            return
        if control.kind is Kind.PAUSE and query.state == "running":
            query.state = "paused"
        elif control.kind is Kind.RESUME and query.state == "failed":
            query.restart(watermark, control.position)
            self._plan(query)
        elif control.kind is Kind.RESUME and query.state == "paused":
            query.state = "running"
            query.skip(self._backlog_from(watermark) if control.payload["backlog"] else watermark)
        if query.state != before:
            self._status(query, before, "failure" if query.state == "failed" else control.kind.name.lower())

    def _backlog_from(self, watermark: int) -> int:
        return watermark - self._limits.backlog_ms if watermark > MIN else MIN

    def _graph_version(self, control: Control, segment: pa.Table) -> None:
        iri = control.stream
        self._changes.graphs[iri] = self.store.apply(control, segment)
        for query in self.queries.values():
            if iri in query.graphs:
                before = query.state
                self.executor.forget(query.definition.epoch)
                self._plan(query)
                self._status(query, before, f"graph {iri} {'changed' if iri in self.graphs else 'removed'}")

    def _end(self) -> None:
        """Nothing more comes: each query is evaluated up to the last close that still sees an event."""
        for query in self.queries.values():
            query.ended = query.ticker.last()

    # --- after the segments

    def watermark(self, query: LiveQuery) -> int:
        """The time up to which the query may be evaluated."""
        return self.kept.watermark(query.streams) if query.ended is None else query.ended

    def _evict(self) -> None:
        needs: dict[str, Need] = {}
        for query in self.queries.values():
            for stream, need in query.needs(self._backlog_from(self.watermark(query))).items():
                needs[stream] = needs[stream].join(need) if stream in needs else need
        self.kept.evict(needs)

    def _commit(self) -> None:
        changes = self._changes
        changes.results = self._outcome.results
        for name, query in self.queries.items():
            changes.queries[name] = (query.definition.to_json(), query.snapshot())
            if query.relation_changed:
                changes.relations[name] = query.relation
                query.relation_changed = False
        changes.streams = self.kept.to_json()
        changes.meta["numbers"] = self._numbers
        self.results.commit(changes, self._now())
        self.store.committed()

    def next_ticks(self) -> list[tuple[int, tuple[str, ...]]]:
        """For each running query the next tick that will be logged if nothing else comes, with its streams."""
        found = [(query.ticker.next(), query.streams) for query in self.queries.values() if query.state == "running"]
        return [(tick, streams) for tick, streams in found if tick is not None]

    # --- recovery

    def restore(self) -> None:
        """Take up where the result log ends."""
        self.position = self.results.position
        self._numbers = self.results.meta("numbers", 0)
        self.kept.states = {iri: StreamState.from_json(state) for iri, state in self.results.stream_states().items()}
        self.store.restore(self.results.graphs())
        for definition, state, relation in self.results.queries():
            query = self._build(Definition.from_json(definition), MIN)
            self.queries[query.name] = query
            failed = query.error if query.state == "failed" else None
            query.restore(state, relation)
            if failed is not None:
                query.state, query.error = "failed", failed
        needed = {stream: state.kept_from for stream, state in self.kept.states.items() if state.kept_from < MAX}
        self.kept.recall(self._history(needed, self.position), needed)
        self._see_again(list(self.queries.values()))

    def _see_again(self, queries: Sequence[LiveQuery]) -> None:
        """Show the kept events to queries that have not seen them."""
        for query in queries:
            for stream in query.streams:
                query.ticker.see(stream, self.kept.times(stream, query.definition.since))

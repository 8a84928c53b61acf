"""The pump: rows of the input log in, logged results out.

What a batch changes is written in one transaction with the position it reached; a query's state
only where an older one would not do (`LiveQuery.written_as`)."""

import json
import logging
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from engine.arrays import each_once
from engine.execution.compiled import Compiled
from engine.execution.due import ProgramPosition
from engine.ir.statement import Statement
from engine.runtime.batch import (BEYOND, Compile, EvaluatorDownError, Executor, History, Limits, LogGapError, Outcome, ProducerFailedError,
                                  check_storable, segments, sound_items, sound_watermark)
from engine.runtime.catalogue import Key
from engine.runtime.data_folder import SetAside, Trouble
from engine.runtime.errors import is_full
from engine.runtime.evaluations import Evaluations
from engine.runtime.kept import StreamState
from engine.runtime.query import LiveQuery
from engine.runtime.registered import Definition, Queries
from engine.runtime.resources import Notice
from engine.runtime.results import Changes, ResultLog
from engine.runtime.rows import UNREADABLE, Control, Kind, controls, in_order, where
from engine.runtime.stores import ParseRules, reads_no_rules
from engine.runtime.threads import Lane
from engine.runtime.ticks import Known, KnownNeeds, Need
from engine.runtime.topics import Lost, partitions_of
from engine.runtime.verdicts import Decide
from engine.timeline import MAX, MIN

_LOG = logging.getLogger(__name__)
_MOST_SET_ASIDE = 100
_LONGEST_REASON, _LONGEST_TEXT = 500, 4_096


class Pump(Evaluations):
    """All state that results depend on, moved on by `process` alone. One thread at a time."""

    def __init__(self, executor: Executor, results: ResultLog, parse: Callable[[str], Statement], compile_query: Compile, *,
                 parse_rules: ParseRules = reads_no_rules, graph_folder: Path | None = None, limits: Limits = Limits(),
                 now: Callable[[], int] = lambda: 0, alive: Callable[[], bool] = lambda: True,
                 history: History = lambda needed, position: (), following: Callable[[int], int] = lambda position: position + 1,
                 aside: SetAside | None = None, full: Callable[[Exception], None] | None = None,
                 decide: Decide = lambda name, epoch, tick, error: 0, later: Callable[[int], Sequence[Control]] = lambda position: (),
                 stands: Callable[[str], bool] = lambda epoch: True, lane: Lane | None = None,
                 planned: Callable[[Key], Compiled | None] = lambda key: None) -> None:
        """`graph_folder` None keeps static graphs in memory only (a replay). `now` dates rows for retention; it decides no result.
        `alive` is asked when an evaluation failed: whether that was the query's fault or the end of the evaluator.
        `history(from_ms by stream, position)` reads the items of the log up to `position` that are not older, in order.
        `following` is the position of the record after one (a later one where records are known to be lost).
        `full` waits for room on the disk, or raises. `decide` logs that an evaluation failed by a limit, before the results of the batch
        are committed. `later(position)` reads the records of the log beyond a position that are not items, to its end. `stands` tells
        whether a generation of a query is neither removed nor replaced by any of them. `lane` is where slow queries are evaluated; without
        one every batch waits for them. `planned` gives statements that are compiled already."""
        super().__init__(executor, parse, parse_rules, compile_query, graph_folder, limits, history, aside, planned, alive=alive,
                         decide=decide, stands=stands, lane=lane)
        self.results = results
        self.position = 0
        self.set_aside: deque[Trouble] = deque(maxlen=_MOST_SET_ASIDE)
        self._now, self._following = now, following
        self._full, self._later = full, later
        self._failure: BaseException | None = None
        self._held: dict[str, ProgramPosition | None] = {}
        self._defined: dict[str, Definition] = {}      # by name: as it is in the result log
        self._states: dict[str, Hashable | None] = {}      # by name: what its state was written as last

    # --- batches

    def process(self, table: pa.Table) -> Outcome:
        """Take in rows of the log (`rows.ROWS`, any order, those processed before are left out) and
        log what is due. An exception leaves the pump unusable: make a new one and `restore` it."""
        began = time.perf_counter()
        table = self._fresh(table)
        self._outcome = Outcome(rows=table.num_rows)
        if not table.num_rows and (self._lane is None or not self._lane.has_ended):
            return self._outcome
        if self._failure is not None:
            raise EvaluatorDownError("the pump has failed") from self._failure
        try:
            self._process(table)
        except BaseException as failure:
            self._failure = failure
            raise
        self._outcome.total_ms = (time.perf_counter() - began) * 1000
        return self._outcome

    def _process(self, table: pa.Table) -> None:
        self._changes = Changes(table["position"][-1].as_py() if table.num_rows else self.position)
        self._at = self.position
        self.ahead.note(controls(table))
        self._take_back()
        if not table.num_rows:
            self._evaluate(self.position)
        for segment, barrier in segments(table, self.kept.idle, self.ahead.cuts):
            if barrier is not None:
                self._settle(self.changed_by(barrier))
                with self._one_record(barrier):
                    self._apply(barrier, segment)
            self._pause_ahead(segment["position"][0].as_py())
            self._take(segment)
            self._at = segment["position"][-1].as_py()
            self._evaluate(self._at)
            self._changes.seen(len(self._outcome.results), self._at)
        self.position = self._changes.position
        self._settle_late(self.position)
        self.ahead.reach(self.position)
        self._evict()
        self._commit()
        self._outcome.committed = True

    def parts(self, table: pa.Table) -> Iterator[pa.Table]:
        """A batch in parts of about `Limits.commit` evaluations, to be committed one by one."""
        table = self._fresh(table)
        ends = pc.min_max(table["t"].filter(pc.equal(table["record"], int(Kind.EVENT)))).as_py()
        span = (ends["max"] or 0) - (ends["min"] or 0)
        expected = sum(query.ticker.timetable.expected(span) for query in self.queries.values() if query.state == "running")
        positions = table["position"].to_numpy()
        count = 1 + expected // self._limits.commit
        if count > 1:
            count = min(count, len(each_once(positions)))
        cuts = np.searchsorted(positions, positions[np.arange(1, count) * len(positions) // count]).tolist() if table.num_rows else []
        for begin, end in pairwise(sorted({0, *cuts, table.num_rows})):
            yield table.slice(begin, end - begin)

    def _fresh(self, table: pa.Table) -> pa.Table:
        if (pc.min(table["position"]).as_py() or 0) <= self.position:
            table = table.filter(pc.greater(table["position"], self.position))
        table = in_order(table)
        positions = table["position"].to_numpy()
        before = self.position
        for place in np.flatnonzero(np.diff(positions, prepend=before) > 1):
            before = positions[place - 1] if place else before
            if (following := self._following(int(before))) != positions[place]:
                raise LogGapError(f"the log goes on at position {following}, but there are only some of {positions[0]} to {positions[-1]}")
        return table

    # --- one segment

    def _take(self, segment: pa.Table) -> None:
        """Items into the contents, watermarks and idleness on; the order within a segment does not matter."""
        events = where(segment, "record", int(Kind.EVENT))
        for stream in pc.unique(events["stream"]).to_pylist():
            rows, others = sound_items(where(events, "stream", stream))
            for position in others:
                self._set_aside(Control(position, Kind.EVENT, stream, None, {}), ValueError(BEYOND))
            if rows.num_rows:
                self._take_events(stream, rows)
        if events.num_rows == segment.num_rows:
            return
        for control in controls(segment):
            with self._one_record(control):
                self._take_control(control)

    def _take_control(self, control: Control) -> None:
        match control.kind:
            case Kind.MARK:
                self.kept.states[control.stream].advance(sound_watermark(control.watermark))
            case Kind.IDLE:
                self.kept.states[control.stream].sleep(sound_watermark(control.watermark))
            case Kind.REFUSED:
                letters = control.payload["letters"]
                for letter in letters:
                    check_storable((letter["reason"], letter["t"], letter["text"]))
                state = self.kept.states[control.stream]
                state.late += control.payload["late"]
                state.refused += control.payload["refused"]
                self._changes.letters.append((control.stream, control.position, letters))
            case Kind.KEY:
                check_storable((control.payload["key"], control.payload["until"]))
                self._changes.receipts.append((control.stream, control.payload))
            case Kind.OFFSETS:
                self._take_offsets(control)
            case Kind.NOTE if UNREADABLE in control.payload:
                raise ValueError(control.payload[UNREADABLE])

    def _take_offsets(self, control: Control) -> None:
        """How far a topic is read. Records that it has no longer are letters, and those who read the stream are told."""
        partitions_of(control.payload["partitions"], 0)     # raises where the next start could not read it
        check_storable((control.payload["topic"], control.payload["count"]))
        lost = [Lost(*values) for values in control.payload["lost"]]
        state = self.kept.states[control.stream]
        before = state.partitions if state.topic_id == control.payload["topic"] else {}
        state.partitions, state.topic_id = {**before, **control.payload["partitions"]}, control.payload["topic"]
        state.lost += control.payload["count"]
        if lost:
            letters = [{"reason": "lost", "t": None, "text": one.text} for one in lost]
            self._changes.letters.append((control.stream, control.position, letters))
            detail = f"Of the stream {control.stream} {'; '.join(one.text for one in lost)}"[:_LONGEST_REASON]
            self._tell_readers(control.stream, "records-lost", {"title": "Records of a topic are lost", "detail": detail})

    @contextmanager
    def _one_record(self, control: Control) -> Iterator[None]:
        """Carry out what one record asks. What cannot be done for the record's own sake is set aside: the same would happen at each
        start. What the evaluator, the disk or the memory is to blame for is raised."""
        try:
            yield
        except (EvaluatorDownError, LogGapError, OSError, MemoryError):
            raise
        except Exception as error:
            if is_full(error) or not self._alive():
                raise
            self._set_aside(control, error)

    def _set_aside(self, control: Control, error: Exception) -> None:
        kind, detail = control.kind.name, f"{type(error).__name__}: {error}"[:_LONGEST_REASON]
        _LOG.error("the record at %s (%s of %s) cannot be applied and is set aside: %s", control.position, kind, control.stream, detail,
                   exc_info=error)
        self.set_aside.append(Trouble("record", str(control.position), f"{kind} of {control.stream}: {detail}"))
        text = json.dumps(control.payload, default=str)[:_LONGEST_TEXT]
        self._changes.letters.append((control.stream, control.position, [{"reason": f"set aside: {detail}", "t": None, "text": text}]))
        problem = {"title": "A record of the input log was set aside", "detail": f"{kind} at {control.position}: {detail}"}
        self._tell_readers(control.stream, "record-set-aside", problem)

    def _tell_readers(self, name: str, reason: str, problem: dict[str, str]) -> None:
        """Tell the query of a name, or those that read the stream of an IRI."""
        for query in self.queries.values():
            if query.name == name or name in query.streams:
                self._outcome.notices.append(Notice("status", query.name, data={
                    "state": query.state, "previous": query.state, "reason": reason, "problem": problem}))

    def _take_events(self, stream: str, rows: pa.Table) -> None:
        users = self._users(stream)
        before = self.kept.states[stream].items
        times = self.kept.take(stream, rows, bool(users))
        self._outcome.count(stream, rows.num_rows, self.kept.states[stream].items - before)
        known: Known = {}
        for query in users:
            query.ticker.see(stream, times, known)

    # --- after the segments

    def _evict(self) -> None:
        known, watermarks = KnownNeeds(), dict[tuple[str, ...], int]()
        found: dict[int, dict[str, Need]] = {}   # by id: of many queries it is one
        for query in self.queries.values():
            # it fails once it is resumed: nothing need be kept for that
            query.overrun = query.overrun or query.state == "paused" and self.overruns(query)
            needs = query.needs(self._backlog_from(self.watermark(query, watermarks)), known)
            found[id(needs)] = needs
        joined: dict[str, Need] = {}
        for needs in found.values():
            for stream, need in needs.items():
                joined[stream] = joined[stream].join(need) if stream in joined else need
        self.kept.evict(joined)

    def _commit(self) -> None:
        changes = self._changes
        changes.results = self._outcome.results
        for name, query in self.queries.items():
            if (written := query.written_as()) is None or written != self._states.get(name):
                defined = self._defined.get(name) is query.definition
                changes.queries[name] = (None if defined else query.definition.to_json(), query.snapshot())
                self._states[name] = written
            if query.relation_changed:
                changes.relations[name] = None if query.relation_logged else query.relation
                query.relation_changed = False
        changes.streams = self.kept.to_json()
        changes.meta |= {"numbers": self._numbers, "clock": self._now()}
        self._write(changes)
        self._defined = {name: query.definition for name, query in self.queries.items()}
        self._states = {name: written for name, written in self._states.items() if name in self._defined}
        self.store.committed()
        self._retain()
        self._reach()

    def _retain(self) -> None:
        """What programs with a time of their own held before is not needed any more, once what they hold now is committed."""
        held = {query.definition.epoch: query.program for query in self.queries.values()
                if query.statement.keeps_state and query.state != "failed"}
        if held != self._held:
            self.executor.retain(held)
            self._held = held

    def _write(self, changes: Changes) -> None:
        """All or nothing; where there is no room, again when there may be."""
        while True:
            try:
                self.store.save()
                self.results.commit(changes, self._now())
                return
            except Exception as failure:  # the system's or SQLite's
                if self._full is None or not is_full(failure):
                    raise
                self._full(failure)

    def _reach(self) -> None:
        watermarks: dict[tuple[str, ...], int] = {}
        for query in self.queries.values():
            watermark, floor = self.watermark(query, watermarks), query.ticker.floor
            query.behind = query.state == "running" and floor < watermark   # it is in the lane, or was when the process ended
            query.reached = query.evaluated if query.state == "failed" else floor if query.behind else watermark
            query.next_tick = query.ticker.next() if query.state == "running" else None

    def next_ticks(self) -> list[tuple[int, tuple[str, ...]]]:
        """Times that pushed streams must reach for the next ticks of the running queries, if nothing else comes."""
        return self.queries.awaited((query, query.next_tick) for query in self.queries.values() if query.next_tick is not None)

    def soonest_ticks(self) -> list[tuple[int, tuple[str, ...]]]:
        """The same, of the times at which something may be due whatever comes. Queries that are evaluated in the lane are left out."""
        return self.queries.awaited((query, query.ticker.soonest) for query in self.queries.values()
                                    if query.state == "running" and not query.behind)

    @property
    def oldest_needed(self) -> int:
        """The time from which on items of the log may still be read again."""
        makers = self.queries.makers
        return min((state.kept_from for stream, state in self.kept.states.items() if stream not in makers), default=0)

    # --- recovery

    def restore(self) -> None:
        self.position = self.results.position
        self._numbers = self.results.meta("numbers", 0)
        self.kept.states |= {iri: StreamState(**state) for iri, state in self.results.stream_states().items()}
        self.store.restore(self.results.graphs())
        self.rule_store.restore(self.results.rules())
        for definition, state, relation in self.results.queries():
            self._restore_query(Definition.from_json(definition), state, relation)
        self._fail_readers_of_lost()
        needed = {stream: state.kept_from for stream, state in self.kept.states.items() if state.kept_from < MAX}
        made = {stream: needed.pop(stream) for stream in self.queries.makers if stream in needed}
        self.kept.recall(self._history(needed, self.position), needed)
        for stream, from_ms in made.items():
            for table in self.results.made(stream):
                self.kept.contents[stream].append(table.filter(pc.greater_equal(table["t"], from_ms)))
        self._see_again(list(self.queries.values()))
        for query in self.queries.values():     # its state is as it was when it was written last
            if query.state == "running":
                query.ticker.move_on(self.watermark(query))
        self._reach()
        self.ahead.note(self._later(self.position))

    def end_removed(self) -> None:
        """End what is being evaluated for queries that the log says further on are removed or replaced. From any thread."""
        queries = Queries[LiveQuery](self.queries)      # in one step: the pump changes its own meanwhile
        for query in queries.values():
            if query.state == "running" and self._is_removed(query, queries):
                self.executor.cancel(query.definition.epoch)

    def _restore_query(self, definition: Definition, state: dict[str, object], relation: pa.Table | None) -> None:
        statement, failure = self._statement(definition.text, definition.media)
        query = LiveQuery(definition, statement, None, MIN)
        self._plan(query, failure)
        self.queries[query.name] = query
        failed = (query.error, query.failed_with) if query.state == "failed" else None
        query.restore(state, relation)
        if failed is not None:
            query.state, (query.error, query.failed_with) = "failed", failed
            _LOG.error("the query %r cannot go on: %s", query.name, query.error)

    def _fail_readers_of_lost(self) -> None:
        lost = [query for query in self.queries.values() if query.state == "failed"]
        while lost:
            maker = lost.pop()
            for reader in self.queries.readers(maker.definition.stream):
                if reader.state != "failed":
                    reader.fail(ProducerFailedError(f"the query {maker.name!r}, whose stream it reads, has failed"), maker.name)
                    lost.append(reader)

"""Continuous queries over the records of an input log, one record after the other: the oracle of the whole system.

Everything follows docs/architecture.md, "Time", "Windows" and "Order"; nothing is shared with the runtime but the time module,
the statement and the records. A tick T sees events with ``t < T``; `Evaluation.at` is its label.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from engine.functions.expressions import Context
from engine.ir.programs import last_told_at, timed_statement
from engine.ir.rules import RuleSet
from engine.ir.statement import Program, Statement, TimedProgram, TimeWindow
from engine.ir.windows import with_rule_windows
from engine.records import End, Event, GraphVersion, Idle, Mark, Pause, Record, Register, Resume, RulesVersion, Triple, Unregister
from engine.reference.content import History, close_of, content_of, dataset_at, held_at, window_bounds, window_events
from engine.reference.dataset import EMPTY, Graph
from engine.reference.program import ProgramState, TimedState
from engine.reference.sparql import Result, evaluate, output
from engine.timeline import MAX, MIN, closes, event_validity, first_close_after, last_close_by


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One logged evaluation: `result` is what the output operator gives, `relation` all answers; `at` and `tick` in ms. `ceased`: facts
    of a rule program that hold no longer, its stream N."""

    at: int
    tick: int
    result: Result
    relation: Result
    ceased: bool = False


ParseRules = Callable[[str, str, str], RuleSet]
"""(text, media type, name) -> rules."""


@dataclass(slots=True)
class Stream:
    """The state of a stream so far: an idle one holds no query back."""

    watermark: int = MIN
    idle: bool = False


def run(records: Iterable[Record], parse: Callable[[str], Statement], parse_rules: ParseRules | None = None,
        built_in: Mapping[str, RuleSet] | None = None) -> dict[str, list[Evaluation]]:
    """The evaluations of every query registered in `records`, in order; each under the query's id of the Register record. The stream N of a
    rule program stands beside its stream P, under the id with ``/n`` behind it. `parse_rules` reads the rule sets of the log; those of
    `built_in` (and the rules of entailment profiles, by IRI) are there before."""
    system = _System(parse, parse_rules, dict(built_in or {}))
    for record in records:
        system.take(record)
    return system.logged


@dataclass
class _System:
    """Streams, graphs, rule sets and queries after some records. A query that makes a stream is evaluated before those that read it."""

    parse: Callable[[str], Statement]
    parse_rules: ParseRules | None
    rules: dict[str, RuleSet]
    streams: dict[str, Stream] = field(default_factory=dict)
    graphs: dict[str, Graph] = field(default_factory=dict)
    live: dict[str, ContinuousQuery] = field(default_factory=dict)
    logged: dict[str, list[Evaluation]] = field(default_factory=dict)
    past: list[Event] = field(default_factory=list)

    def take(self, record: Record) -> None:
        """Take in a record, then evaluate what it made due."""
        match record:
            case Event():
                self._see(record)
                _advance(self.streams.setdefault(record.stream, Stream()), record.watermark)
            case Mark():
                _advance(self.streams.setdefault(record.stream, Stream()), record.watermark)
            case Idle():
                _advance(self.streams.setdefault(record.stream, Stream()), MIN if record.watermark is None else record.watermark)
                self.streams[record.stream].idle = True
            case Register():
                self._register(record)
            case Unregister():
                self.live.pop(record.query, None)
            case Pause() if record.query in self.live:
                self.live[record.query].pause()
            case Resume() if record.query in self.live:
                query = self.live[record.query]
                self._log(query, query.resume(record.backlog), record.position)
            case GraphVersion():
                self.graphs[record.graph] = Graph(record.triples or ())
            case RulesVersion():
                self._set_rules(record)
        for query in self._producers_first():
            until = query.last_tick() if isinstance(record, End) else self._until(query)
            found = list(query.evaluate_until(until, self.graphs, self.rules))
            if query.held is None:
                self._log(query, found, record.position)
                continue
            query.held += found
            if query.makes:
                self.streams.setdefault(query.makes, Stream()).idle = False

    def _register(self, record: Register) -> None:
        query = self.live[record.query] = ContinuousQuery(record, with_rule_windows(self._statement(record), self.rules))
        query.done = self._until(query)
        if query.makes in self.streams:
            query.done = max(query.done, self.streams[query.makes].watermark)
        self.logged.setdefault(record.query, [])
        if isinstance(query.statement.query, Program):
            self.logged.setdefault(f"{record.query}/n", [])
        for event in self.past:
            query.see(event)

    def _statement(self, record: Register) -> Statement:
        if record.media is None:
            return self.parse(record.text)
        assert self.parse_rules is not None, "the log has rule programs"
        return timed_statement(self.parse_rules(record.text, record.media, record.query), record.text, record.media)

    def _until(self, query: ContinuousQuery) -> int:
        """The time up to which a query is evaluated. While all that it reads is idle nobody waits for it, so it goes as far as its readers
        do, for what they see of it must be there before."""
        own = query.watermark(self.streams)
        asleep = all(self.streams.get(iri, Stream()).idle for iri in query.reads)
        return max(own, self._as_if_none_was_paused()[query.name]) if asleep and query.makes else own

    def _as_if_none_was_paused(self) -> dict[str, int]:
        """By query the time that it could have reached by the pushed streams: what a query with idle streams needs depends on its readers,
        what others need on what they read, so they rise in turns until none does."""
        queries = self._producers_first()
        makers = {query.makes: query for query in queries if query.makes}
        readers = {query.name: [reader.name for reader in queries if query.makes in reader.reads] for query in queries if query.makes}
        until = dict.fromkeys((query.name for query in queries), MIN)

        def stream(iri: str) -> Stream:
            if iri not in makers:
                return self.streams.get(iri, Stream())
            maker = makers[iri]
            return Stream(maker.last_tick_by(until[maker.name]), all(stream(below).idle for below in maker.reads))

        while True:
            risen = {}
            for query in queries:
                own = {iri: stream(iri) for iri in query.reads}
                asleep = all(one.idle for one in own.values())
                behind = readers.get(query.name, []) if asleep else []
                risen[query.name] = max([query.watermark(own), *(until[name] for name in behind)])
            if risen == until:
                return until
            until = risen

    def _set_rules(self, record: RulesVersion) -> None:
        self.rules.pop(record.name, None)
        if record.text is not None:
            assert self.parse_rules is not None, "the log has rule sets"
            self.rules[record.name] = self.parse_rules(record.text, record.media, record.name)

    def _see(self, event: Event) -> None:
        self.past.append(event)
        for query in self.live.values():
            query.see(event)

    def _log(self, query: ContinuousQuery, found: Iterable[Evaluation], position: int) -> None:
        """Log evaluations; those of a query that makes a stream are its items, and its watermark is the last T that was evaluated. A stream
        is idle while all that its query reads is; one whose query is paused is not, for what is held back may still come."""
        for evaluation in found:
            self.logged[f"{query.name}/n" if evaluation.ceased else query.name].append(evaluation)
            if query.makes and evaluation.result.triples:
                self._see(Event(position, query.makes, evaluation.at, None, tuple(sorted(evaluation.result.triples)), evaluation.at))
        if query.makes:
            made = self.streams.setdefault(query.makes, Stream())
            made.watermark = max(made.watermark, query.last_tick_by(query.done))
            made.idle = all(self.streams.get(iri, Stream()).idle for iri in query.reads)

    def _producers_first(self) -> list[ContinuousQuery]:
        makers = {query.makes: query for query in self.live.values() if query.makes}

        def depth(query: ContinuousQuery) -> int:
            return 1 + max((depth(makers[iri]) for iri in query.reads if iri in makers), default=0)

        return sorted(self.live.values(), key=depth)


class ContinuousQuery:
    """One registered query: what it has seen, which ticks are done (all up to `done`), and its previous evaluation."""

    def __init__(self, registration: Register, statement: Statement) -> None:
        self.name = registration.query
        self.makes = stream_made(statement, registration.stream)
        self.reads = frozenset(source.stream for source in statement.streams)
        self.since = registration.since
        self.statement = statement
        self.done = MIN
        steps = {s.window.step_ms for s in statement.streams if isinstance(s.window, TimeWindow)}
        self.on_change = statement.on_change
        self.steps = steps if statement.compute_every_ms is None else {statement.compute_every_ms}
        self.history = History()
        self.candidates: set[int] = set()
        self.endless_from = MAX
        self.last_close = MIN
        self.filled_at: int | None = None
        self.previous: Result | None = None
        self.program = TimedState() if isinstance(statement.query, TimedProgram) else ProgramState()
        self.held: list[Evaluation] | None = None
        self.held_before: tuple[int, Graph] | None = None
        self._before_pause: tuple[Result | None, ProgramState | TimedState] = None, self.program

    def watermark(self, streams: Mapping[str, Stream]) -> int:
        """The least watermark of the streams that hold this query back; the greatest of all where every one is idle."""
        own = [streams.get(iri, Stream()) for iri in sorted(self.reads)]
        active = [stream.watermark for stream in own if not stream.idle]
        return min(active) if active else max((stream.watermark for stream in own), default=MIN)

    def see(self, event: Event) -> None:
        """Take in an event if the query may see it, with the ticks at which some window holds it."""
        sources = [s for s in self.statement.windows if s.stream == event.stream]
        if event.position <= self.since or not sources:
            return
        self.history.add(event)
        for source in sources:
            if isinstance(source.window, TimeWindow):
                self._sees_until(event.t, source.window)
            elif not self.on_change:
                self.endless_from = min(self.endless_from, event.t + 1)
                self.last_close = max(self.last_close, event.t + 1)
        if self.on_change:
            self.candidates.add(event.t + 1)
            self.last_close = max(self.last_close, event.t + 1)

    def pause(self) -> None:
        """Hold back what is evaluated from here on: it counts only if the query resumes with its backlog."""
        if self.held is None:
            self.held, self._before_pause = [], (self.previous, replace(self.program))

    def resume(self, backlog: bool) -> list[Evaluation]:
        """Go on: the evaluations that were held back, or none of them, as if they had never been."""
        held, self.held = self.held or [], None
        if isinstance(self.program, TimedState):
            if not backlog and isinstance(before := self._before_pause[1], TimedState):     # what holds meanwhile still follows
                self.program.told = before.told
        elif not backlog and held:
            self.previous, self.program = self._before_pause
        return held if backlog else []

    def last_tick(self) -> int:
        """The last tick of a replay: the last close that still sees an event, or the first evaluation time from it on; for a rule program
        the one at which the last event leaves, with a time of its own as far as one of its rules looks back behind that."""
        query = self.statement.query
        if isinstance(query, TimedProgram):
            return MIN if self.last_close == MIN else last_told_at(query, self.last_close - 1)
        if self.last_close != MIN and isinstance(self.statement.query, Program):
            return self.last_close + 1
        if self.on_change or self.last_close == MIN:
            return self.last_close
        return self._next_tick(self.last_close - 1)

    def last_tick_by(self, time: int) -> int:
        """The last tick at or before a time."""
        if self.on_change or time == MIN:
            return time
        return max(last_close_by(time, step, self.statement.start_at_ms) for step in self.steps)

    def evaluate_until(self, watermark: int, graphs: Mapping[str, Graph], rules: Mapping[str, RuleSet]) -> Iterator[Evaluation]:
        """Evaluate the ticks that are due: those after the last done up to `watermark`, unless skipped."""
        if watermark <= self.done:
            return
        if isinstance(self.statement.query, TimedProgram):
            yield from self._advance(self.statement.query, watermark, graphs)
            return
        for tick in self._due(watermark):
            contents = {source: content_of(window_events(source, tick, self.history, self.statement, self.on_change))
                        for source in self.statement.windows}
            filled = any(content.graph for content in contents.values())
            held, changed = self._held(tick, graphs, rules) if self.statement.timed_rules else (EMPTY, False)
            if (filled or self._filled_before(tick) or changed) and self._full(tick):
                at = tick - 1 if self.on_change else tick
                if isinstance(self.statement.query, Program):
                    yield from self._changes(at, tick, graphs, rules)
                else:
                    bounds = window_bounds(self.statement, tick, self.on_change)
                    dataset = dataset_at(self.statement, contents, graphs, bounds, rules, held)
                    yield self._report(at, tick, evaluate(self.statement.query, dataset, Context(at, self.name)))
            if filled:
                self.filled_at = tick
            elif self.on_change:
                self.filled_at = None
        self.done = watermark
        self.candidates = {tick for tick in self.candidates if tick > watermark}

    def _advance(self, program: TimedProgram, watermark: int, graphs: Mapping[str, Graph]) -> Iterator[Evaluation]:
        """What a program with a time of its own tells up to a watermark."""
        assert isinstance(self.program, TimedState)
        self.program.done = max(self.program.done, self.done)
        events = [event for source in self.statement.streams for event in self.history.between(source.stream, None, watermark)]
        for at, result, ceased in self.program.advance(program, watermark, events, self._static(graphs)):
            yield Evaluation(at, at + program.grain_ms, result, result, ceased)
        self.done = watermark

    def _static(self, graphs: Mapping[str, Graph]) -> set[Triple]:
        return {triple for source in self.statement.graphs for triple in graphs.get(source.iri, Graph(())).triples}

    def _held(self, tick: int, graphs: Mapping[str, Graph], rules: Mapping[str, RuleSet]) -> tuple[Graph, bool]:
        """What rules with a time of their own derive that holds at a tick, and whether that is not what held at the tick before."""
        def held(at: int) -> Graph:
            return held_at(self.statement, at, self.on_change, self.history, graphs, rules)

        before = self.held_before
        if not self.on_change:
            last = max(last_close_by(tick - 1, step, self.statement.start_at_ms) for step in self.steps)
            before = before if before is not None and before[0] == last else (last, held(last))
        self.held_before = tick, held(tick)
        return self.held_before[1], self.held_before[1].triples != (EMPTY if before is None else before[1]).triples

    def _due(self, watermark: int) -> list[int]:
        """The ticks that may have to be reported: any with content, and the one after it; all after the first event where something else
        may have changed."""
        if self.on_change:
            return sorted(t for t in self.candidates if self.done < t <= watermark)
        if self.statement.timed_rules:
            seen = [first for stream in self.reads if (first := self.history.earliest(stream)) is not None]
            return sorted({t for step in self.steps if seen
                           for t in closes(max(self.done, min(seen)), watermark, step, self.statement.start_at_ms)})
        filled = {t for t in self.candidates if self.done < t <= watermark}
        begin = max(self.done, self.endless_from - 1)
        if begin < watermark:
            filled.update(t for step in self.steps for t in closes(begin, watermark, step, self.statement.start_at_ms))
        following = {self._next_tick(t) for t in filled | ({self.filled_at} if self.filled_at is not None else set())}
        return sorted(filled | {t for t in following if self.done < t <= watermark})

    def _filled_before(self, tick: int) -> bool:
        """Whether some window had content at the previous tick."""
        return self.filled_at is not None and (self.on_change or self._next_tick(self.filled_at) == tick)

    def _full(self, tick: int) -> bool:
        """REPORT FULL: every window reaches back no further than its first event."""
        if self.statement.report != "full":
            return True
        for source in self.statement.streams:
            first = self.history.earliest(source.stream)
            if first is None or first >= tick:
                return False
            if isinstance(source.window, TimeWindow):
                close = close_of(source.window, tick, self.statement, self.on_change)
                if close - source.window.delay_ms - source.window.range_ms < first:
                    return False
        return True

    def _sees_until(self, ms: int, window: TimeWindow) -> None:
        """Note the ticks at which `window` holds an event of `ms`, and where that ends."""
        if self.on_change:
            expiry = ms + window.delay_ms + window.range_ms
            self.last_close = max(self.last_close, expiry)
            if self.statement.expires:
                self.candidates.add(expiry + 1)
            return
        start = self.statement.start_at_ms
        valid = event_validity(ms, window.range_ms, window.step_ms, start, window.delay_ms)
        if valid is None:
            return
        self.last_close = max(self.last_close, last_close_by(ms + window.delay_ms + window.range_ms, window.step_ms, start))
        first, last = (valid.lo + 1) // 2, (valid.hi + 1) // 2
        for step in self.steps:
            self.candidates.update(closes(first - 1, last, step, start))

    def _next_tick(self, after: int) -> int:
        return min(first_close_after(after, step, self.statement.start_at_ms) for step in self.steps)

    def _changes(self, at: int, tick: int, graphs: Mapping[str, Graph], rules: Mapping[str, RuleSet]) -> Iterator[Evaluation]:
        """What a rule program reports at an instant: facts that begin to hold and such that cease, where there are any."""
        events = dict.fromkeys(event for source in self.statement.streams
                               for event, _ in window_events(source, tick, self.history, self.statement, self.on_change))
        assert isinstance(self.program, ProgramState)
        for result, ceased in zip(self.program.step(self.statement, at, events, self._static(graphs), rules), (False, True)):
            if result.rows:
                yield Evaluation(at, tick, result, result, ceased)

    def _report(self, at: int, tick: int, relation: Result) -> Evaluation:
        before, self.previous = self.previous, relation
        return Evaluation(at, tick, output(self.statement.output, relation, before), relation)


def stream_made(statement: Statement, default: str | None) -> str:
    """The IRI of the stream that a statement's results are: that in its text, else `default`; empty where they are none."""
    if statement.kind != "stream" or statement.form not in ("CONSTRUCT", "DESCRIBE"):
        return ""
    return statement.name if statement.name is not None and ":" in statement.name else default or ""


def _advance(stream: Stream, watermark: int) -> None:
    stream.watermark = max(stream.watermark, watermark)
    stream.idle = False

"""One registered query as the pump runs it: its compiled form, its ticks, its last relation, and the results it logs."""

from bisect import bisect_left
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from engine.execution.compiled import Compiled
from engine.execution.content import StreamContent
from engine.execution.due import ENDS, Answer, ProgramPosition
from engine.ipc import pack
from engine.ir.statement import Program, Statement, TimedProgram, TimeWindow
from engine.output import bindings, difference, first_rows, payloads
from engine.runtime import holding
from engine.runtime.registered import Definition, Reader
from engine.runtime.resources import RESULT_KINDS, ResultEvent
from engine.runtime.ticks import KnownNeeds, Need, Ticker, Timetable
from engine.runtime.timed_ticks import MixedTicker, TimedTicker
from engine.timeline import MAX, MIN
from engine.worker.bundles import Written

Payloads = Mapping[tuple[str, int], bytes]
"""By epoch and T, of queries that show their answers as they are."""
MOST_INCONSISTENCIES = 100
"""So many a result lists."""


@dataclass(frozen=True, slots=True)
class _Result:
    """What an evaluation at `tick` has to tell: what its output operator shows, unless it is `written` already, of a stepwise query the
    `whole` relation; and what is inconsistent there."""

    tick: int
    shown: pa.Table
    output: str
    whole: pa.Table | None = None
    more: Mapping[str, Any] = field(default_factory=dict)
    written: Written | None = None
    inconsistencies: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        return self.shown.num_rows if self.written is None else self.written.rows


def _of_stream(tick: int, rows: pa.Table, ceases: bool, inconsistencies: tuple[str, ...] = ()) -> _Result:
    """A result of a rule program: of stream N facts that cease, else of stream P such that begin to hold."""
    return _Result(tick, rows, "dstream" if ceases else "istream", None, {"stream": "n" if ceases else "p"}, None, inconsistencies)


def _ticker(statement: Statement, timetable: Timetable, floor: int) -> Ticker:
    query = statement.query
    if isinstance(query, TimedProgram):
        return TimedTicker(timetable, query, floor)
    return MixedTicker(timetable, floor) if statement.timed_rules else Ticker(timetable, floor)


class LiveQuery(Reader):
    """The state of a query between batches. `state` is ``running``, ``paused`` or ``failed`` (`failed_with` names the producer whose
    failure it was, or what it needs that is lost: ``graph <iri>``, ``rules name``). `evaluated` is the T of the last evaluation that was
    logged, `reached` the watermark up to which its results are committed: of a failed query `evaluated`. `next_tick` is the next
    evaluation of a running one that will be logged if nothing else comes. `behind`: something is left to evaluate up to the watermark.
    `overrun`: while it was paused more came than its rules may have to see at once. `relation_logged`: the last result has the relation."""

    def __init__(self, definition: Definition, statement: Statement, compiled: Compiled | None, floor: int) -> None:
        self.definition = definition
        self.statement = statement
        self.compiled = compiled
        self.timetable = Timetable.of(statement)
        self.ticker = _ticker(statement, self.timetable, floor)
        self.program: ProgramPosition | None = None
        self.state = "running"
        self.error: str | None = None
        self.cause: BaseException | None = None
        self.seq = 0
        self.relation: pa.Table | None = None
        self.relation_changed = self.relation_logged = False
        self.failed_with: str | None = None
        self.evaluated = self.reached = MIN
        self.behind = False
        self.overrun = False
        self.next_tick: int | None = None

    @property
    def stepwise(self) -> bool:
        """Whether its output is a difference, so that the last relation must be kept."""
        return self.statement.output != "rstream"

    def fail(self, error: BaseException, producer: str | None = None) -> None:
        self.state, self.cause, self.failed_with, self.program = "failed", error, producer, None
        self.error = f"{type(error).__name__}: {error}"

    def restart(self, floor: int, since: int) -> None:
        """Go on after a failure: from the next T, with the events that are still to come."""
        self.definition = replace(self.definition, since=since, restarts=self.definition.restarts + 1)
        self.timetable = Timetable.of(self.statement)
        self.ticker = _ticker(self.statement, self.timetable, floor)
        self.state, self.error, self.failed_with, self.overrun = "running", None, None, False
        if isinstance(self.statement.query, TimedProgram) and self.relation is not None:    # it begins anew
            held, gone = holding.parts(self.relation, self.relation)
            self.relation, self.relation_changed = holding.whole(held.slice(0, 0), [gone, held]), True

    def needs(self, paused_from: int = MIN, known: KnownNeeds | None = None) -> dict[str, Need]:
        if self.state == "failed" or self.overrun:
            return {}
        needs = self.ticker.needs(paused_from if self.state == "paused" else MIN, known)
        if self.statement.timed_rules:      # what the rules have not seen
            first = Need(MIN if self.program is None else (self.program.until + 1) // 2)
            needs = {stream: need.join(first) for stream, need in needs.items()}
        return needs

    def unseen(self, contents: Mapping[str, StreamContent]) -> int:
        """How many rows of its streams rules with a time of their own have not seen, at most."""
        if not self.statement.keeps_state:
            return 0
        first = MIN if self.program is None else (self.program.until + 1) // 2
        return sum(content.between(first, MAX, self.definition.since).num_rows for content in contents.values())

    @property
    def shows_answers(self) -> bool:
        """Whether a result is the relation at T as it is."""
        return not self.stepwise and self.statement.form != "PROGRAM"

    def log(self, answers: Sequence[Answer], max_rows: int, known: Payloads | None = None) -> list[tuple[ResultEvent, pa.Table]]:
        """The results of answers by the query's output operator: each as it is logged, and whole. A rule program gives what begins to hold
        (stream P, as ISTREAM) and what ceases (stream N, as DSTREAM), if anything. `known` has payloads that are written already."""
        results = self._results(answers)
        ready = {number: result.written.text for number, result in enumerate(results) if result.written is not None}
        if known and self.shows_answers:
            keys = [(self.epoch, result.tick) for result in results]
            ready |= {number: known[key] for number, key in enumerate(keys) if key in known}
        left = iter(payloads(self.statement.form, [first_rows(r.shown, max_rows) for n, r in enumerate(results) if n not in ready]))
        shown = [ready[number] if number in ready else next(left) for number in range(len(results))]
        events = [(self._event(result, text, None if result.whole is None else pack(first_rows(result.whole, max_rows)), max_rows),
                   result.shown) for result, text in zip(results, shown)]
        if results and (whole := results[-1].whole) is not None:
            self.relation_logged = whole.num_rows <= max_rows
        self.evaluated = max((answer.tick for answer in answers if answer.reported), default=self.evaluated)
        return events

    def _results(self, answers: Sequence[Answer]) -> list[_Result]:
        if isinstance(self.statement.query, TimedProgram):
            return [result for answer in answers for result in self._of_timed(answer)]
        if isinstance(self.statement.query, Program):
            return self._of_program(answers)
        self.program = next((answer.state for answer in reversed(answers) if answer.state is not None), self.program)
        self._follow()
        return [self._difference(answer) for answer in answers if answer.reported]

    def _follow(self) -> None:
        if isinstance(self.ticker, MixedTicker) and self.program is not None:
            self.ticker.follow((self.program.until + 1) // 2, self.program.next)

    def _of_timed(self, answer: Answer) -> list[_Result]:
        """What a program with a time of its own tells: by time what begins, and what ceases of that which was told to begin."""
        assert isinstance(self.ticker, TimedTicker) and answer.state is not None and answer.table is not None
        self.program, self.ticker.next_point = answer.state, answer.state.next
        telling = holding.Telling(answer.table, self.timetable.grain_ms, self.ticker.is_silent)
        results = [_of_stream(tick, rows, ceased) for tick, ceased, rows in telling.told()]
        unsaid = [(tick, holding.begun_as(rows)) for tick, rows in telling.unsaid()]
        held, gone = holding.parts(self.relation, telling.rows.slice(0, 0))
        if results or unsaid:
            begun, ceased = ([r.shown for r in results if r.output == output] for output in ("istream", "dstream"))
            held = holding.after(held, begun, [*map(holding.begun_as, ceased), *(rows for _, rows in unsaid)])
            return self._hold(held, results, [(MIN, gone), *unsaid])
        return []

    def _of_program(self, answers: Sequence[Answer]) -> list[_Result]:
        """What begins at each instant, and what was reported before it and ceases there. What lasts longer is kept."""
        if not answers:
            return []
        tables: list[pa.Table] = [answer.table for answer in answers]
        before, gone = holding.parts(self.relation, tables[0].slice(0, 0))
        reported = pa.concat_tables([before, *tables]).combine_chunks()
        order = reported[ENDS].fill_null(MAX).to_numpy().argsort(kind="stable")
        ends = reported[ENDS].fill_null(MAX).to_numpy()[order]
        instants = [self.ticker.timetable.label(answer.tick) for answer in answers]
        cuts = list(zip(np.searchsorted(ends, instants).tolist(), np.searchsorted(ends, instants, "right").tolist()))
        done = cuts[-1][1]
        ceased = reported.take(order[:done])
        results, unsaid, past = list[_Result](), [(MIN, gone)], 0
        for answer, table, (first, last) in zip(answers, tables, cuts):
            unsaid.append((answer.tick, ceased.slice(past, first - past)))      # it ceased at an instant that was left out
            pairs = (table, False), (ceased.slice(first, last - first), True)
            results += [_of_stream(answer.tick, rows.drop_columns([ENDS]), ceases, answer.inconsistencies)
                        for rows, ceases in pairs if rows.num_rows]
            past = last
        if done or reported.num_rows > before.num_rows:
            return self._hold(reported.take(order[done:]), results, unsaid)
        return results

    def _hold(self, held: pa.Table, results: Sequence[_Result], unsaid: Sequence[tuple[int, pa.Table]]) -> list[_Result]:
        """Keep what a program has told to hold. The results with what is `unsaid` before them, by T: facts that ceased in silence."""
        ticks = [result.tick for result in results]
        places = [(bisect_left(ticks, tick), rows) for tick, rows in unsaid if rows.num_rows]
        self.relation = holding.whole(held, [rows for place, rows in places if place == len(results)])
        self.relation_changed = True
        found = []
        for number, result in enumerate(results):
            goes_on = {"goesOn": True} if number + 1 < len(ticks) and ticks[number + 1] == ticks[number] else {}
            silently = [rows.select(result.shown.column_names) for place, rows in places if place == number]
            also = {"unsaid": bindings(pa.concat_tables(silently))} if silently else {}
            found.append(replace(result, more={**result.more, **goes_on, **also}))
        return found

    def _difference(self, answer: Answer) -> _Result:
        output, relation = self.statement.output, answer.table
        assert relation is not None
        if not self.stepwise:
            return _Result(answer.tick, relation, output, written=answer.written, inconsistencies=answer.inconsistencies)
        before = relation.slice(0, 0) if self.relation is None else self.relation
        self.relation, self.relation_changed = relation, True
        shown = difference(relation, before) if output == "istream" else difference(before, relation)
        return _Result(answer.tick, shown, output, relation, inconsistencies=answer.inconsistencies)

    def _event(self, result: _Result, text: bytes, whole: bytes | None, max_rows: int) -> ResultEvent:
        """The next result, with what is shown as text, and of a stepwise query the whole relation, packed."""
        self.seq += 1
        meta: dict[str, Any] = {"windows": self._windows(result.tick), "rows": result.rows, **result.more}
        if found := result.inconsistencies:
            meta["inconsistencies"] = list(found[:MOST_INCONSISTENCIES])
            meta |= {"inconsistent": len(found)} if len(found) > MOST_INCONSISTENCIES else {}
        if max(result.rows, 0 if result.whole is None else result.whole.num_rows) > max_rows:
            meta["truncated"], meta["limit"] = True, max_rows
        return ResultEvent(self.name, self.definition.epoch, self.seq, result.tick, self.ticker.timetable.label(result.tick),
                           RESULT_KINDS[self.statement.form], result.output, text, whole, meta)

    def _windows(self, tick: int) -> list[dict[str, Any]]:
        """The time windows that the query's patterns looked at, ``open`` and ``close`` in ms; of the same extent on one stream once."""
        table, found = self.ticker.timetable, []
        shift = 1 if table.on_change else 0
        for source in self.statement.streams:
            if isinstance(source.window, TimeWindow):
                begin, end = table.content(source.window, tick)
                entry = {"stream": source.stream, "open": begin - shift, "close": end - shift}
                if entry not in found:
                    found.append(entry)
        return found

    def written_as(self) -> Hashable | None:
        """Equal to that of an older snapshot where this will do as well (`Ticker.written_as`), None where that is not known."""
        ticker = self.ticker.written_as()
        return None if ticker is None else (ticker, self.definition, self.state, self.error, self.seq, self.failed_with, self.evaluated,
                                            self.program, self.overrun)

    def snapshot(self) -> dict[str, Any]:
        """The state as JSON, without the relation."""
        return {"state": self.state, "error": self.error, "seq": self.seq, "ticker": self.ticker.snapshot(),
                "failedWith": self.failed_with, "evaluated": self.evaluated,
                "program": asdict(self.program) if self.program is not None else None, "overrun": self.overrun}

    def restore(self, state: Mapping[str, Any], relation: pa.Table | None) -> None:
        self.state, self.error, self.seq, self.relation = state["state"], state["error"], state["seq"], relation
        self.failed_with, self.evaluated = state.get("failedWith"), state.get("evaluated", MIN)
        self.overrun = state.get("overrun", False)
        self.ticker.restore(state["ticker"])
        self.program = ProgramPosition.from_json(state["program"]) if state.get("program") is not None else None
        self._follow()

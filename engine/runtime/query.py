"""One registered query as the pump runs it: its compiled form, its ticks, its last relation, and the results it logs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from engine.ir.statement import Program, Statement, TimeWindow
from engine.ir.terms import Variable
from engine.runtime.output import difference, first_rows, payload
from engine.runtime.resources import RESULT_KINDS, ResultEvent
from engine.runtime.ticks import Need, Ticker, Timetable
from engine.spark.instances import ENDS
from engine.timeline import MIN


class Compiled(Protocol):
    """What the runtime needs of engine.compiler.Compiled."""

    @property
    def statement(self) -> Statement: ...

    @property
    def variables(self) -> tuple[Variable, ...]: ...

    def tree(self) -> dict[str, Any] | None: ...

    def explain(self, stage: str = "spark") -> str: ...


@dataclass(frozen=True, slots=True)
class Definition:
    """What was registered: query number `number` in its generation `generation`; it sees events of positions > `since`. `stream`
    is the IRI of the stream that it registers, if it does."""

    name: str
    text: str
    number: int
    generation: int
    since: int
    options: Mapping[str, Any] = field(default_factory=dict)
    registered_ms: int | None = None
    restarts: int = 0
    stream: str | None = None

    @property
    def epoch(self) -> str:
        """The id of this generation; results have the ids ``{epoch}-{seq}``."""
        return f"q{self.number}c{self.generation}"

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "text": self.text, "number": self.number, "generation": self.generation, "since": self.since,
                "options": dict(self.options), "registered": self.registered_ms, "restarts": self.restarts, "epoch": self.epoch,
                "stream": self.stream}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Definition:
        return cls(value["name"], value["text"], value["number"], value["generation"], value["since"], value["options"],
                   value["registered"], value["restarts"], value.get("stream"))


class LiveQuery:
    """The state of a query between batches. `state` is ``running``, ``paused`` or ``failed`` (`failed_with` names the producer whose
    failure it was). `reached` is the watermark up to which its results are committed."""

    def __init__(self, definition: Definition, statement: Statement, compiled: Compiled | None, floor: int) -> None:
        self.definition = definition
        self.statement = statement
        self.compiled = compiled
        self.ticker = Ticker(Timetable.of(statement), floor)
        self.state = "running"
        self.error: str | None = None
        self.cause: BaseException | None = None
        self.seq = 0
        self.relation: pa.Table | None = None
        self.relation_changed = False
        self.failed_with: str | None = None
        self.reached = MIN

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def streams(self) -> tuple[str, ...]:
        return self.ticker.timetable.streams

    @property
    def makes(self) -> str | None:
        """The stream that its results are: only triples can be read."""
        return self.definition.stream if RESULT_KINDS[self.statement.form] == "graph" else None

    @property
    def graphs(self) -> frozenset[str]:
        """Static graphs that it reads or reasons with."""
        return frozenset(source.iri for source in (*self.statement.graphs, *self.statement.reasoning_graphs))

    @property
    def rules(self) -> frozenset[str]:
        """Rule sets that it reasons by."""
        return frozenset(source.name for source in self.statement.rules)

    @property
    def stepwise(self) -> bool:
        """Whether its output is a difference, so that the last relation must be kept."""
        return self.statement.output != "rstream"

    def fail(self, error: BaseException, producer: str | None = None) -> None:
        """Stop evaluating it; the others go on."""
        self.state, self.cause, self.failed_with = "failed", error, producer
        self.error = f"{type(error).__name__}: {error}"

    def restart(self, floor: int, since: int) -> None:
        """Go on after a failure: from the next T, with the events that are still to come."""
        self.definition = replace(self.definition, since=since, restarts=self.definition.restarts + 1)
        self.ticker = Ticker(Timetable.of(self.statement), floor)
        self.state, self.error, self.failed_with = "running", None, None

    def skip(self, watermark: int) -> None:
        """Leave out the ticks up to `watermark`."""
        self.ticker.floor = max(self.ticker.floor, watermark)

    def needs(self, paused_from: int = MIN) -> dict[str, Need]:
        """What must be kept of each stream; nothing for a failed query."""
        return {} if self.state == "failed" else self.ticker.needs(paused_from if self.state == "paused" else MIN)

    def log(self, tick: int, relation: pa.Table, inconsistencies: tuple[str, ...], max_rows: int) -> list[tuple[ResultEvent, pa.Table]]:
        """The relation at `tick` through the query's output operator: as it is logged, and whole. Of a rule program what begins to hold
        (stream P, as ISTREAM) and what ceases (stream N, as DSTREAM), where there is anything."""
        if isinstance(self.statement.query, Program):
            begun, ceased = self._changes(self.ticker.timetable.label(tick), relation)
            return [(self._event(tick, shown, None, output, inconsistencies, max_rows, {"stream": stream}), shown)
                    for shown, output, stream in ((begun, "istream", "p"), (ceased, "dstream", "n")) if shown.num_rows]
        return [self._difference(tick, relation, inconsistencies, max_rows)]

    def _changes(self, at: int, found: pa.Table) -> tuple[pa.Table, pa.Table]:
        """What begins at the instant `at`, and what was reported before and ceases now; what lasts longer is kept for later."""
        before = found.slice(0, 0) if self.relation is None else self.relation
        ceased = before.filter(pc.equal(before[ENDS], at)).drop_columns([ENDS])
        lasting = pa.concat_tables([before, found])
        lasting = lasting.filter(pc.greater(lasting[ENDS], at))
        if found.num_rows or lasting.num_rows < before.num_rows:
            self.relation, self.relation_changed = lasting, True
        return found.drop_columns([ENDS]), ceased

    def _difference(self, tick: int, relation: pa.Table, inconsistencies: tuple[str, ...], max_rows: int) -> tuple[ResultEvent, pa.Table]:
        output, shown = self.statement.output, relation
        if self.stepwise:
            before = relation.slice(0, 0) if self.relation is None else self.relation
            shown = difference(relation, before) if output == "istream" else difference(before, relation)
            self.relation, self.relation_changed = relation, True
        whole = relation if self.stepwise else None
        return self._event(tick, shown, whole, output, inconsistencies, max_rows), shown

    def _event(self, tick: int, shown: pa.Table, relation: pa.Table | None, output: str, inconsistencies: tuple[str, ...],
               max_rows: int, more: Mapping[str, Any] | None = None) -> ResultEvent:
        """The next result: what is `shown`, and of a stepwise query the whole relation."""
        form = self.statement.form
        self.seq += 1
        meta: dict[str, Any] = {"windows": self._windows(tick), "rows": shown.num_rows, **(more or {})}
        if inconsistencies:
            meta["inconsistencies"] = list(inconsistencies)
        if max(shown.num_rows, 0 if relation is None else relation.num_rows) > max_rows:
            meta["truncated"], meta["limit"] = True, max_rows
        return ResultEvent(self.name, self.definition.epoch, self.seq, tick, self.ticker.timetable.label(tick), RESULT_KINDS[form],
                           output, payload(form, first_rows(shown, max_rows)),
                           None if relation is None else payload(form, first_rows(relation, max_rows)), meta)

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

    def snapshot(self) -> dict[str, Any]:
        """The state as JSON, without the relation."""
        return {"state": self.state, "error": self.error, "seq": self.seq, "ticker": self.ticker.snapshot(),
                "failedWith": self.failed_with}

    def restore(self, state: Mapping[str, Any], relation: pa.Table | None) -> None:
        """Take back a snapshot."""
        self.state, self.error, self.seq, self.relation = state["state"], state["error"], state["seq"], relation
        self.failed_with = state.get("failedWith")
        self.ticker.restore(state["ticker"])

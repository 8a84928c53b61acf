"""What the pump lets others see: one immutable value after each batch, set by its owner in one assignment.

Nothing is copied but references: contents are lists of chunks that never change, tables are Arrow's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from engine.execution.content import Chunk, StreamContent
from engine.execution.due import ProgramPosition
from engine.execution.plan_job import Ran
from engine.ir.statement import Statement
from engine.runtime.derived import FixedQueries
from engine.runtime.meters import Measured
from engine.runtime.pump import Pump
from engine.runtime.query import Compiled
from engine.runtime.registered import Definition, Reader
from engine.runtime.rule_store import StoredRules
from engine.runtime.set_aside import Trouble
from engine.runtime.streams import StreamState, Tail
from engine.runtime.ticks import Timetable


@dataclass(frozen=True, slots=True)
class Seen(Reader):
    """A query at the pump after a batch. `reached` is the watermark up to which its results are committed, `next_tick` its next
    evaluation that will be logged if nothing else comes. `beside`: it is being evaluated beside the pump. `behind`: something is left to
    evaluate of what the pump has seen. `program` is how far a program with a time of its own is."""

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
        return StreamContent(stream, self.chunks.get(stream, ()))


def snapshot_of(pump: Pump, measured: Measured) -> Snapshot:
    """The pump as it is; called by its owner between batches."""
    queries = {name: Seen(query.definition, query.statement, query.timetable, query.compiled, query.state, query.error, query.seq,
                          query.reached, query.next_tick, pump.is_beside(query),
                          query.program, query.behind)
               for name, query in pump.queries.items()}
    kept, executor = pump.kept, pump.executor
    return Snapshot(pump.position, FixedQueries(queries), {stream: replace(state) for stream, state in kept.states.items()},
                    {stream: content.chunks for stream, content in kept.contents.items()},
                    {stream: tail.fixed() for stream, tail in kept.tails.items()}, dict(pump.store.tables), dict(pump.store.versions),
                    dict(pump.rule_store.stored), dict(getattr(executor, "choices", {})), dict(getattr(executor, "ran", {})),
                    dict(getattr(executor, "graph_choices", {})), (*pump.troubles(), *pump.set_aside), pump.oldest_needed, measured)

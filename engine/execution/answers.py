"""Answers kept with their intervals: what strategy `incremental` brings up to date with each batch and samples at T.

An answer (engine/plan/incremental.py says where from) lives in driver Arrow from the greatest ``lo`` to the least ``hi`` of its
facts; it leaves through the driver anyway.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from engine.execution.compiled import Compiled
from engine.execution.content import StreamContent
from engine.execution.projection import projected
from engine.ir.terms import Constant
from engine.plan.nodes import WindowSource
from engine.sql.companions import comparable_variables
from engine.sql.delta import DeltaEmitter
from engine.sql.dialect import DIALECTS
from engine.sql.lower import Lowering
from engine.timeline import evaluation_point


class Answers:
    """The answer relation of one query: columns ``lo hi`` and a token per variable of its basic graph pattern."""

    def __init__(self, compiled: Compiled) -> None:
        assert compiled.delta is not None
        self.compiled, self._plan = compiled, compiled.delta
        self._emitters: dict[tuple[str, bool], DeltaEmitter] = {}
        self._variables = self._plan.variables
        self._names = [f"c{number}" for number in range(len(self._variables))]
        self._seen = -1
        self._table: pa.Table | None = None

    def delta_text(self, since: int, executor: str, typed: bool, tables: Mapping[str, str]) -> str:
        """SQL of the answers that facts after the last seen position make, over `tables` (stream IRI -> name)."""
        if (executor, typed) not in self._emitters:
            self._emitters[executor, typed] = self._emitter(executor, typed)
        return self._emitters[executor, typed].text(since, max(self._seen, since), tables)

    def _emitter(self, executor: str, typed: bool) -> DeltaEmitter:
        dialect, compiled = DIALECTS[executor], self.compiled
        lowering = Lowering(dialect, compiled.identity, -1 if compiled.on_change else 0, quick=typed)
        compared = frozenset().union(*map(comparable_variables, self._plan.filters)) if typed else frozenset()
        return DeltaEmitter(self._plan, compiled.statement.streams, dialect, lowering, compared, compiled.statement.start_at_ms)

    def touched(self, contents: Mapping[str, StreamContent], since: int) -> pa.Table | None:
        """For a star, the facts that can matter to `delta_text`: those of the subjects that new facts touch.

        None for other plans: any old fact may join with a new one.
        """
        source = self._plan.scans[0].source
        if self._plan.star is None or not isinstance(source, WindowSource):
            return None
        predicates = pa.array([s.predicate.token for s in self._plan.scans if isinstance(s.predicate, Constant)])
        content = contents[self.compiled.statement.streams[source.index].stream]
        seen = max(self._seen, since)
        fresh = _only(content.after(seen), "p", predicates)
        old = _only(_only(content.upto(seen, since), "s", pc.unique(fresh["s"])), "p", predicates)
        return pa.concat_tables([old, fresh])

    def answers(self, fresh: pa.Table, position: int, ticks: Sequence[int]) -> list[pa.Table]:
        """Take new answers, computed up to log position `position`; the solutions at each of the `ticks`."""
        self._take(fresh, position, ticks[0])
        return [self._sample(tick) for tick in ticks]

    def _take(self, fresh: pa.Table, position: int, first_tick: int) -> None:
        """Add new answers; forget those that ended before `first_tick`."""
        kept = fresh if self._table is None else pa.concat_tables([self._table, fresh])
        self._table = kept.filter(pc.greater_equal(kept["hi"], evaluation_point(first_tick)))
        self._seen = max(self._seen, position)

    def _sample(self, tick: int) -> pa.Table:
        """The solutions at T: a set over the pattern's variables, projected to the query's own."""
        assert self._table is not None
        point = evaluation_point(tick)
        inside = pc.and_(pc.less_equal(self._table["lo"], point), pc.greater_equal(self._table["hi"], point))
        now = self._table.filter(inside).select(self._names)
        if self._names and now.num_rows > 1:
            now = now.group_by(self._names, use_threads=False).aggregate([])
        return projected(self.compiled, now, dict(zip(self._variables, self._names)))


def _only(table: pa.Table, column: str, values: pa.Array) -> pa.Table:
    return table.filter(pc.is_in(table[column], value_set=values))

"""Answers kept with their intervals: what strategy `incremental` brings up to date with each batch and samples at T.

Expiration times as in imars-csparql.txt (section 4), valid windows as in coder-r4.tex: an answer lives in driver Arrow from the
greatest ``lo`` to the least ``hi`` of its facts; it leaves through the driver anyway.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from engine.spark.compiled import Compiled
from engine.ir.statement import Construct
from engine.ir.terms import Constant, Variable
from engine.spark.sql.dialect import DUCKDB, SPARK
from engine.spark.sql.delta import DeltaEmitter
from engine.spark.sql.lower import Lowering, comparable_variables
from engine.timeline import evaluation_point


class Answers:
    """The answer relation of one query: columns ``lo hi`` and a token per variable of its basic graph pattern."""

    def __init__(self, compiled: Compiled, executor: str, typed: bool) -> None:
        plan = compiled.delta
        assert plan is not None
        dialect = SPARK if executor == "sql" else DUCKDB
        lowering = Lowering(dialect, compiled.identity, -1 if compiled.on_change else 0)
        compared = frozenset().union(*map(comparable_variables, plan.filters)) if typed and plan.filters else frozenset()
        self._emitter = DeltaEmitter(plan, compiled.statement.streams, dialect, lowering, compared, compiled.statement.start_at_ms)
        self._made_for = (id(compiled), executor, typed)
        self._compiled = compiled
        self._names = [f"c{number}" for number in range(len(self._emitter.variables))]
        self._seen = -1
        self._table: pa.Table | None = None

    def serves(self, compiled: Compiled, executor: str, typed: bool) -> bool:
        """Whether this relation can be brought up to date with the same plan on the same executor."""
        return self._made_for == (id(compiled), executor, typed)

    @property
    def rows(self) -> int:
        return 0 if self._table is None else self._table.num_rows

    def delta_text(self, since: int) -> str:
        """SQL of the answers that facts after the last seen position make."""
        return self._emitter.text(since, max(self._seen, since))

    def take(self, fresh: pa.Table, position: int, first_tick: int) -> None:
        """Add new answers, computed up to log position `position`; forget those that ended before `first_tick`."""
        kept = fresh if self._table is None else pa.concat_tables([self._table, fresh])
        self._table = kept.filter(pc.greater_equal(kept["hi"], evaluation_point(first_tick)))
        self._seen = max(self._seen, position)

    def sample(self, tick: int) -> pa.Table:
        """The solutions at T: a set over the pattern's variables, projected to the query's own."""
        assert self._table is not None
        point = evaluation_point(tick)
        inside = pc.and_(pc.less_equal(self._table["lo"], point), pc.greater_equal(self._table["hi"], point))
        now = self._table.filter(inside).select(self._names)
        if self._names and now.num_rows > 1:
            now = now.group_by(self._names, use_threads=False).aggregate([])
        return self._projected(now)

    def _projected(self, now: pa.Table) -> pa.Table:
        column = dict(zip(self._emitter.variables, self._names))
        query = self._compiled.rewritten.query
        if isinstance(query, Construct):
            return self._instances(now, column, query)
        absent = pa.nulls(now.num_rows, pa.string())
        listed = [now[column[v]] if v in column else absent for v in self._compiled.variables]
        return pa.table(listed, names=list(self._compiled.column_names))

    @staticmethod
    def _instances(now: pa.Table, column: dict[Variable, str], query: Construct) -> pa.Table:
        """The template's distinct well-formed triples (SPARQL 1.1 section 16.2)."""
        def instance(term: object) -> pa.Array | pa.ChunkedArray:
            if isinstance(term, Constant):
                return pa.array([term.token] * now.num_rows, pa.string())
            return now[column[term]] if isinstance(term, Variable) and term in column else pa.nulls(now.num_rows, pa.string())

        parts = [pa.table([instance(t) for t in triple.terms], names=["s", "p", "o"]) for triple in query.template]
        made = pa.concat_tables(parts) if parts else pa.table({c: pa.array([], pa.string()) for c in "spo"})
        good = pc.and_(pc.invert(pc.starts_with(made["s"], '"')), pc.starts_with(made["p"], "<"))
        made = made.filter(pc.and_(good, pc.is_valid(made["o"])))
        return made.group_by(["s", "p", "o"], use_threads=False).aggregate([])

"""What a rule program has derived, kept with its intervals: a batch derives from its new events and from what is kept of older ones.

This is expiration-time maintenance (Barbieri et al., "Incremental Reasoning on Streams and Rich Background Knowledge", section 4), with
the valid windows of CoDeR (Monks et al., "Continuous Deductive Reasoning over Streamed RDF Data"): nothing is ever deleted because a fact
lost a justification, since each knows until when its best one lasts.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from engine.functions.datetimes import format_moment, from_ms
from engine.functions.terms import literal
from engine.ir.statement import Program
from engine.ir.terms import XSD
from engine.plan.nodes import Instances
from engine.spark.compiled import Compiled
from engine.spark.sql.fixpoint import ClosureText
from engine.timeline import MAX, MIN, evaluation_point

ENDS = "ends"
_TYPES = {"lo": pa.int64(), "hi": pa.int64(), "shown": pa.int8(), "kind": pa.int8(), "number": pa.float64(), "micros": pa.int64()}
_GROWTH = 1.25


class KeptInstances:
    """The rows of a program's lasting closure: those whose begin is past as the best of each fact, the others one by one."""

    def __init__(self, compiled: Compiled) -> None:
        assert isinstance(compiled.plan, Instances) and isinstance(compiled.statement.query, Program)
        self.compiled, self.source = compiled, compiled.plan.source
        self.seen = -1
        self._variables = [v.name for v in compiled.statement.query.variables]
        self._settled = 0
        self.state = _schema(closure_of(compiled).columns).empty_table()

    def answers(self, found: pa.Table, position: int, ticks: Sequence[int]) -> list[pa.Table]:
        """Take what was found up to log position `position`; the facts that begin to hold at each of the `ticks`.

        Columns as Program.variables has them, and `ENDS`: when each ceases, in ms (null: never).
        """
        fresh = found.select(self.state.column_names).cast(self.state.schema)
        state = pa.concat_tables([self.state, fresh])
        self.state = state.filter(pc.greater_equal(state["hi"], evaluation_point(ticks[0])))
        self.seen = max(self.seen, position)
        begun = [self._beginning(tick) for tick in ticks]
        self._settle(evaluation_point(ticks[-1]))
        return begun

    def _settle(self, point: int) -> None:
        """Of what began up to `point` the last end of each fact counts: whatever comes begins later."""
        if self.state.num_rows <= self._settled * _GROWTH:
            return
        past = pc.less_equal(self.state["lo"], point)
        ends = [("lo", "min"), ("hi", "max")]
        keys = [name for name in self.state.column_names if name not in ("lo", "hi")]
        best = self.state.filter(past).group_by(keys, use_threads=False).aggregate(ends)
        best = best.rename_columns([name.split("_")[0] if name not in keys else name for name in best.column_names])
        self.state = pa.concat_tables([best.select(self.state.column_names), self.state.filter(pc.invert(past))]).combine_chunks()
        self._settled = max(self.state.num_rows, 1_000)

    def _beginning(self, tick: int) -> pa.Table:
        """What is shown of the facts that begin at the instant before `tick`."""
        point = evaluation_point(tick)
        now = self.state.filter(pc.equal(self.state["lo"], point))
        terms = [name for name in self.state.column_names if name not in _TYPES]
        now = now.group_by(terms, use_threads=False).aggregate([("hi", "max"), ("shown", "max")])
        before = self.state.filter(pc.and_(pc.less(self.state["lo"], point), pc.equal(self.state["shown"], 1)))
        if now.num_rows and before.num_rows:
            known = before.group_by(terms, use_threads=False).aggregate([("hi", "max")]).rename_columns([*terms, "known"])
            now = now.join(known, terms, join_type="left outer", use_threads=False)
            now = now.filter(pc.greater(now["hi_max"], pc.fill_null(now["known"], MIN)))
        atom = pc.starts_with(now["p"], "_:")
        is_rdf = pc.and_(pc.starts_with(now["p"], "<"), pc.invert(pc.starts_with(now["s"], '"')))
        now = now.filter(pc.and_(pc.equal(now["shown_max"], 1), pc.or_(atom, is_rdf)))
        columns = _terms(now) | {"from": pa.array([moment(tick - 1)] * now.num_rows, pa.string())}
        ends = pc.if_else(pc.equal(now["hi_max"], MAX), None, pc.divide(now["hi_max"], 2))
        columns |= {"until": _moments(ends), ENDS: ends}
        return pa.table({name: columns[name] for name in [*self._variables, ENDS]})


def closure_of(compiled: Compiled, executor: str = "local", typed: bool = True) -> ClosureText:
    """The text of a program's closure."""
    return next(text for text in compiled.text(executor, typed).closures if text.source.lasting)


def moment(ms: int) -> str:
    """The xsd:dateTime of an instant."""
    return literal(format_moment("dateTime", from_ms(ms)), f"{XSD}dateTime")


def _moments(times: pa.ChunkedArray) -> pa.ChunkedArray:
    coded = pc.unique(times)
    texts = pa.array([None if ms is None else moment(ms) for ms in coded.to_pylist()], pa.string())
    return pc.take(texts, pc.index_in(times, coded))


def _terms(rows: pa.Table) -> dict[str, pa.Array | pa.ChunkedArray]:
    """The columns of triples and of other atoms, from rows ``s p o x3 ...`` (engine/plan/derive.py, row_of)."""
    atom = pc.starts_with(rows["p"], "_:")
    head = pc.split_pattern(pc.if_else(atom, rows["p"], pa.scalar("_:0 ", pa.string())), " ", max_splits=1)
    count = pc.binary_slice(pc.list_element(head, 0).cast(pa.binary()), 2, 20).cast(pa.string()).cast(pa.int32())
    found: dict[str, pa.Array | pa.ChunkedArray] = {c: pc.if_else(atom, None, rows[c]) for c in "spo"}
    found["atom"] = pc.if_else(atom, pc.list_element(head, 1), None)
    places = ["s", "o", *(name for name in rows.column_names if name.startswith("x"))]
    for number, place in enumerate(places, 1):
        found[f"a{number}"] = pc.if_else(pc.greater_equal(count, number), rows[place], None)
    return found


def _schema(columns: Sequence[str]) -> pa.Schema:
    return pa.schema([(name, _TYPES.get(name, pa.string())) for name in columns])

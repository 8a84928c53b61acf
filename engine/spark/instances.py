"""What lasting closures answer: a query its solutions at T; a rule program the facts that begin to hold at an instant, and until when."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from engine.functions.datetimes import format_moment, from_ms
from engine.functions.terms import literal
from engine.ir.statement import Program
from engine.ir.terms import XSD
from engine.plan.nodes import Instances
from engine.spark.kept import KeptClosure
from engine.spark.projection import projected
from engine.timeline import MAX, MIN, evaluation_point

ENDS = "ends"


class KeptSolutions(KeptClosure):
    """The answer at T are the solutions that hold there: a set over the pattern's variables, projected to the query's own."""

    def at(self, tick: int) -> pa.Table:
        assert isinstance(self.compiled.plan, Instances) and self.shown is not None
        shown, point, variables = self.shown, evaluation_point(tick), self.compiled.plan.variables
        now = shown.filter(pc.and_(pc.less_equal(shown["lo"], point), pc.greater_equal(shown["hi"], point)))
        now = now.group_by(self.terms, use_threads=False).aggregate([])
        return projected(self.compiled, now, dict(zip(variables, _places(now))))


class KeptProgram(KeptClosure):
    """The answer at T are the facts that begin at the instant before it, unless they were reported to hold that long: columns as
    Program.variables has them, and `ENDS`: when each ceases, in ms (null: never)."""

    def at(self, tick: int) -> pa.Table:
        program, shown, point = self.compiled.statement.query, self.shown, evaluation_point(tick)
        assert isinstance(program, Program) and shown is not None
        terms = self.terms
        now = shown.filter(pc.equal(shown["lo"], point)).group_by(terms, use_threads=False).aggregate([("hi", "max")])
        before = shown.filter(pc.less(shown["lo"], point))
        if now.num_rows and before.num_rows:
            known = before.group_by(terms, use_threads=False).aggregate([("hi", "max")]).rename_columns([*terms, "known"])
            now = now.join(known, terms, join_type="left outer", use_threads=False)
            now = now.filter(pc.greater(now["hi_max"], pc.fill_null(now["known"], MIN)))
        is_rdf = pc.and_(pc.starts_with(now["p"], "<"), pc.invert(pc.starts_with(now["s"], '"')))
        now = now.filter(pc.or_(pc.starts_with(now["p"], "_:"), is_rdf))
        ends = pc.if_else(pc.equal(now["hi_max"], MAX), None, pc.divide(now["hi_max"], 2))
        begin = pa.array([moment(tick - 1)] * now.num_rows, pa.string())
        columns = _terms(now) | {"from": begin, "until": _moments(ends), ENDS: ends}
        return pa.table({name: columns[name] for name in [*(v.name for v in program.variables), ENDS]})


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
    for number, place in enumerate(_places(rows), 1):
        found[f"a{number}"] = pc.if_else(pc.greater_equal(count, number), rows[place], None)
    return found


def _places(rows: pa.Table) -> list[str]:
    """The columns of an atom's arguments."""
    return ["s", "o", *(name for name in rows.column_names if name.startswith("x"))]

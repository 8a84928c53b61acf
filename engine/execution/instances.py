"""What a rule program answers: the facts that begin to hold at an instant, and until when."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from engine.functions.datetimes import format_moment, from_ms
from engine.functions.terms import literal
from engine.ir.statement import Program
from engine.ir.terms import XSD
from engine.timeline import MAX, evaluation_point

ENDS = "ends"


def begun_facts(program: Program, rows: pa.Table, tick: int) -> pa.Table:
    """The facts that begin at T, from rows ``s p o x3 ... hi`` (engine/sql/instances.py): columns as Program.variables has them, and
    `ENDS`: when each ceases, in ms (null: never)."""
    is_rdf = pc.and_(pc.starts_with(rows["p"], "<"), pc.invert(pc.starts_with(rows["s"], '"')))
    begun = rows.filter(pc.or_(pc.starts_with(rows["p"], "_:"), is_rdf))
    begins = pa.chunked_array([pa.array([evaluation_point(tick) // 2] * begun.num_rows, pa.int64())])
    ends = pc.if_else(pc.equal(begun["hi"], MAX), None, pc.divide(begun["hi"], 2))
    columns = _terms(begun) | {"from": moments(begins), "until": moments(ends), ENDS: ends}
    return pa.table({name: columns[name] for name in [*(v.name for v in program.variables), ENDS]})


def moment(ms: int) -> str:
    """The xsd:dateTime of an instant."""
    return literal(format_moment("dateTime", from_ms(ms)), f"{XSD}dateTime")


def moments(times: pa.ChunkedArray) -> pa.ChunkedArray:
    """Times in ms as xsd:dateTimes."""
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

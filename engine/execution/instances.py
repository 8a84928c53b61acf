"""What lasting closures answer: a query its solutions at T; a rule program the facts that begin to hold at an instant, and until when."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from engine.execution.kept import POINTS, KeptClosure
from engine.execution.projection import projected
from engine.functions.datetimes import format_moment, from_ms
from engine.functions.terms import literal
from engine.ir.statement import Program
from engine.ir.terms import XSD
from engine.plan.nodes import Instances
from engine.timeline import MAX, evaluation_point

if TYPE_CHECKING:
    import numpy.typing as npt

ENDS = "ends"


class KeptSolutions(KeptClosure):
    """The answer at T are the solutions that hold there: a set over the pattern's variables, projected to the query's own."""

    def at(self, ticks: Sequence[int]) -> list[pa.Table]:
        return [self._at(tick) for tick in ticks]

    def _at(self, tick: int) -> pa.Table:
        assert isinstance(self.compiled.plan, Instances) and self.shown is not None
        shown, point, variables = self.shown, evaluation_point(tick), self.compiled.plan.variables
        now = shown.filter(pc.and_(pc.less_equal(shown["lo"], point), pc.greater_equal(shown["hi"], point)))
        now = now.group_by(self.terms, use_threads=False).aggregate([])
        return projected(self.compiled, now, dict(zip(variables, _places(now))))


class KeptProgram(KeptClosure):
    """The answer at T are the facts that begin at the instant before it, unless they were reported to hold that long: columns as
    Program.variables has them, and `ENDS`: when each ceases, in ms (null: never)."""

    def at(self, ticks: Sequence[int]) -> list[pa.Table]:
        program, shown = self.compiled.statement.query, self.shown
        assert isinstance(program, Program) and shown is not None
        points = np.array([evaluation_point(tick) for tick in ticks])
        begun = shown.take(self._prolonging(points))
        is_rdf = pc.and_(pc.starts_with(begun["p"], "<"), pc.invert(pc.starts_with(begun["s"], '"')))
        begun = begun.filter(pc.or_(pc.starts_with(begun["p"], "_:"), is_rdf))
        begins = begun["lo"].to_numpy()
        ends = pc.if_else(pc.equal(begun["hi"], MAX), None, pc.divide(begun["hi"], 2))
        columns = _terms(begun) | {"from": moments(pa.chunked_array([begins // 2])), "until": moments(ends), ENDS: ends}
        whole = pa.table({name: columns[name] for name in [*(v.name for v in program.variables), ENDS]})
        cuts = np.searchsorted(begins, points), np.searchsorted(begins, points, "right")
        return [whole.slice(first, last - first) for first, last in zip(*cuts)]

    def _prolonging(self, points: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The rows that begin at some of the points and end later than all of their fact that began before, by begin."""
        assert self.shown is not None
        begins, ends = (self.shown[name].to_numpy() for name in POINTS)
        facts, ranks = _numbers(self.shown, self.terms), np.unique(ends, return_inverse=True)[1]
        order = np.lexsort((-ranks, begins, facts))
        reached = np.maximum.accumulate(facts[order] * len(ranks) + ranks[order])   # until when, beyond all facts of lesser numbers
        longer = np.diff(reached, prepend=-1) > 0
        found = order[longer & np.isin(begins[order], points)]
        return found[np.argsort(begins[found], kind="stable")]


def _numbers(rows: pa.Table, columns: Sequence[str]) -> npt.NDArray[np.int64]:
    """A number for each row, the same where all columns are."""
    numbers = np.zeros(rows.num_rows, np.int64)
    for column in columns:
        coded = rows[column].combine_chunks().dictionary_encode()
        coded = coded.combine_chunks() if isinstance(coded, pa.ChunkedArray) else coded
        numbers = numbers * max(1, len(coded.dictionary)) + coded.indices.to_numpy()
        numbers = np.unique(numbers, return_inverse=True)[1]
    return numbers


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

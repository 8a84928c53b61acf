"""From the solutions of a pattern to the answer of a query: its columns, or the instances of its template."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from engine.execution.compiled import Compiled
from engine.ir.statement import Construct
from engine.ir.terms import Constant, Variable


def projected(compiled: Compiled, solutions: pa.Table, column: Mapping[Variable, str]) -> pa.Table:
    """The answer of a SELECT or CONSTRUCT; `column` names the columns of the pattern's variables in `solutions`."""
    query = compiled.rewritten.query
    if isinstance(query, Construct):
        return _instances(solutions, column, query)
    absent = pa.nulls(solutions.num_rows, pa.string())
    listed = [solutions[column[v]] if v in column else absent for v in compiled.variables]
    return pa.table(listed, names=list(compiled.column_names))


def _instances(now: pa.Table, column: Mapping[Variable, str], query: Construct) -> pa.Table:
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

"""Rows of interval relations as Arrow tables: tokens ``a1 a2 ...`` and the points ``lo hi``."""

from collections.abc import Iterable, Sequence

import pyarrow as pa

from engine.ir.rules import Fact
from engine.ir.terms import Constant


def tables(facts: Iterable[Fact]) -> dict[str, pa.Table]:
    """Facts as tables, by relation."""
    found: dict[str, list[tuple[str | int, ...]]] = {}
    for fact in facts:
        cells = [term.token for term in fact.atom.terms if isinstance(term, Constant)]
        found.setdefault(f"{fact.atom.predicate}/{len(cells)}", []).append((*cells, fact.interval.lo, fact.interval.hi))
    return {name: table_of(rows, int(name.rpartition("/")[2])) for name, rows in found.items()}


def table_of(rows: Sequence[Sequence[str | int]], arity: int) -> pa.Table:
    names = [*(f"a{place}" for place in range(1, arity + 1)), "lo", "hi"]
    columns = list(zip(*rows)) if rows else [()] * len(names)
    return pa.table({name: pa.array(column, pa.string() if place < arity else pa.int64())
                     for place, (name, column) in enumerate(zip(names, columns))})

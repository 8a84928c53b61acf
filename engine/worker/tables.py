"""Rows of interval relations as Arrow tables: tokens ``a1 a2 ...`` and the points ``lo hi``."""

from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa

from engine.grouping import by_key
from engine.ir.rules import Fact
from engine.ir.terms import Constant


def tables(facts: Iterable[Fact]) -> dict[str, pa.Table]:
    """Facts as tables, by relation."""
    return grouped((fact.atom.predicate, tuple(term.token for term in fact.atom.terms if isinstance(term, Constant)),
                    (fact.interval.lo, fact.interval.hi)) for fact in facts)


def grouped(atoms: Iterable[tuple[str, tuple[str, ...], tuple[int, ...]]]) -> dict[str, pa.Table]:
    """Atoms (predicate, tokens), each with as many points as the others, as tables by relation; one point is ``lo``."""
    found: dict[str, list[tuple[str | int, ...]]] = {}
    for predicate, tokens, points in atoms:
        found.setdefault(f"{predicate}/{len(tokens)}", []).append((*tokens, *points))
    return {name: table_of(rows, int(name.rpartition("/")[2])) for name, rows in found.items()}


def joined(parts: Iterable[Mapping[str, pa.Table]]) -> dict[str, pa.Table]:
    """Tables of several parts, by relation."""
    found = by_key((name, table) for part in parts for name, table in part.items())
    return {name: pa.concat_tables(listed) for name, listed in found.items()}


def table_of(rows: Sequence[Sequence[str | int]], arity: int) -> pa.Table:
    names = [*(f"a{place}" for place in range(1, arity + 1)), "lo", "hi"]
    columns = list(zip(*rows)) if rows else [()] * len(names)
    return pa.table({name: pa.array(column, pa.string() if place < arity else pa.int64())
                     for place, (name, column) in enumerate(zip(names, columns))})

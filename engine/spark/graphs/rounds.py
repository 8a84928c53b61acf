"""Closures in Spark SQL, a few jobs per round: the twin of what GraphFrames do.

Each round's rows are checkpointed: a plan that grew with the rounds would cost more than the rounds (docs/decisions.md).
"""

from __future__ import annotations

from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame, functions as f

MOST_PIECES = 8
Within = tuple[str, ...]


def reach(edges: DataFrame, base: DataFrame | None, within: Within) -> DataFrame:
    """The closure of `base` under `edges`, semi-naively; of all edges (None) by doubling. Pairs ``x y``."""
    new = edges if base is None else base.select(*edges.columns).localCheckpoint()
    pieces = [new]
    while True:
        known = reduce(DataFrame.union, pieces)
        longer = _longer(new, known if base is None else edges, within)
        if base is None:
            longer = longer.union(_longer(known, new, within))
        new = _joined(longer.distinct(), known, (*within, "x", "y"), "left_anti").localCheckpoint(eager=False)
        if not new.count():
            return known
        pieces = with_piece(pieces, new)


def with_piece(pieces: list[DataFrame], new: DataFrame) -> list[DataFrame]:
    """One piece more, or all in one where they are many."""
    return [*pieces, new] if len(pieces) < MOST_PIECES else [reduce(DataFrame.union, [*pieces, new]).localCheckpoint()]


def _longer(left: DataFrame, right: DataFrame, within: Within) -> DataFrame:
    """The pairs that one pair of each side makes."""
    joined = _joined(left, right, within, "inner", f.col("n.y") == f.col("k.x"))
    return joined.select(*(f.col(f"n.{c}") for c in within), f.col("n.x"), f.col("k.y"))


def _joined(left: DataFrame, right: DataFrame, columns: Within, how: str, *also: Column) -> DataFrame:
    """`left` as n and `right` as k, joined on equal columns (null is equal to null)."""
    same = [f.col(f"n.{c}").eqNullSafe(f.col(f"k.{c}")) for c in columns]
    return left.alias("n").join(right.alias("k"), reduce(and_, [*same, *also]), how)

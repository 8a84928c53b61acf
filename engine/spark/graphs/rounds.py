"""Graph problems in Spark SQL, a few jobs per round: the twins of what GraphFrames do.

Each round's rows are checkpointed: a plan that grew with the rounds would cost more than the rounds (docs/decisions.md).
"""

from __future__ import annotations

from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame, functions as f

from engine.sql.leaves import chain_columns

MOST_PIECES = 8
Within = tuple[str, ...]


def reach(edges: DataFrame, base: DataFrame | None, within: Within) -> DataFrame:
    """The closure of `base` under `edges`, semi-naively; of all edges (None) by doubling. Pairs ``x y``; where edges have an end ``hi``,
    with the latest end among the paths of a pair, a path's being its edges' least."""
    keys = (*within, "x", "y")
    new = edges if base is None else base.select(*edges.columns).localCheckpoint()
    pieces = [new]
    while True:
        known = reduce(DataFrame.union, pieces)
        longer = _longer(new, known if base is None else edges, within)
        if base is None:
            longer = longer.union(_longer(known, new, within))
        new = _later(longer, known, keys).localCheckpoint(eager=False)
        if not new.count():
            return _latest(known, keys)
        pieces = with_piece(pieces, new)


def with_piece(pieces: list[DataFrame], new: DataFrame) -> list[DataFrame]:
    """One piece more, or all in one where they are many."""
    return [*pieces, new] if len(pieces) < MOST_PIECES else [reduce(DataFrame.union, [*pieces, new]).localCheckpoint()]


def components(edges: DataFrame, within: Within) -> DataFrame:
    """Rows ``node component``, named by the least node: large and small stars by turns until each component is one star
    (Kiveris et al., Connected Components in MapReduce and Beyond, 2014, algorithm 4)."""
    both = edges.select(*within, "x", "y").union(_swapped(edges, within)).distinct().localCheckpoint()
    stars = both.where("x > y")
    while True:
        around = stars.union(_swapped(stars, within))
        large = _to_least(around, within, f.col("n.y") > f.col("n.x")).localCheckpoint(eager=False)
        least = large.groupBy(*within, "x").agg(f.min("y").alias("y"))
        small = _to_least(large, within, f.lit(True)).where("x <> y").union(least).distinct()
        stars = small.localCheckpoint(eager=False)
        if not _untidy(stars, within):
            nodes = both.select(*within, f.col("x").alias("node")).distinct()
            return _named(nodes, stars.select(*within, f.col("x").alias("node"), f.col("y").alias("component")), within)


def strong_components(edges: DataFrame, within: Within) -> DataFrame:
    """Rows ``node component``, named by the least node: those that reach each other."""
    pairs = reach(edges.select(*within, "x", "y").distinct().localCheckpoint(), None, within).localCheckpoint()
    mutual = _joined(pairs, _swapped(pairs, within), (*within, "x", "y"), "left_semi")
    nodes = edges.select(*within, f.col("x").alias("node")).union(edges.select(*within, "y")).distinct()
    return _named(nodes, mutual.groupBy(*within, f.col("x").alias("node")).agg(f.min("y").alias("component")), within)


def chains(edges: DataFrame, within: Within, length: int) -> DataFrame:
    """The paths of so many edges ``x p y``: rows ``x0 p1 x1 p2 x2 ...``; one that runs in a circle is a path too."""
    found = edges.select(*within, f.col("x").alias("x0"), f.col("p").alias("p1"), f.col("y").alias("x1"))
    for number in range(2, length + 1):
        before, place = chain_columns(number - 1), f"x{number - 1}"
        step = edges.select(*within, f.col("x").alias(place), f.col("p").alias(f"p{number}"), f.col("y").alias(f"x{number}"))
        found = _joined(found, step, (*within, place)).select(
            *(f.col(f"n.{c}") for c in (*within, *before)), f"k.p{number}", f"k.x{number}")
    return found


def _longer(left: DataFrame, right: DataFrame, within: Within) -> DataFrame:
    """The pairs that one pair of each side makes."""
    end = [f.least("n.hi", "k.hi").alias("hi")] if "hi" in left.columns else []
    joined = _joined(left, right, within, "inner", f.col("n.y") == f.col("k.x"))
    return joined.select(*(f.col(f"n.{c}") for c in within), f.col("n.x"), f.col("k.y"), *end)


def _later(pairs: DataFrame, known: DataFrame, keys: Within) -> DataFrame:
    """The pairs that are not known, or not with so late an end."""
    ended = "hi" in pairs.columns
    new, also = _latest(pairs, keys) if ended else pairs.distinct(), [f.col("k.hi") >= f.col("n.hi")] if ended else []
    return _joined(new, known, keys, "left_anti", *also)


def _latest(pairs: DataFrame, keys: Within) -> DataFrame:
    return pairs.groupBy(*keys).agg(f.max("hi").alias("hi")) if "hi" in pairs.columns else pairs


def _to_least(edges: DataFrame, within: Within, kept: Column) -> DataFrame:
    """Edges from the kept neighbours of each node to the least of the node and its neighbours."""
    least = edges.groupBy(*within, "x").agg(f.least(f.col("x"), f.min("y")).alias("least"))
    joined = _joined(edges, least, (*within, "x")).where(kept)
    return joined.select(*(f.col(f"n.{c}") for c in within), f.col("n.y").alias("x"), f.col("k.least").alias("y")).distinct()


def _untidy(stars: DataFrame, within: Within) -> int:
    """How many nodes are the middle of a star and a point of one, or a point of several."""
    points = stars.select(*within, "x", f.lit(1).alias("point"), f.lit(0).alias("middle"))
    middles = stars.select(*within, "y", f.lit(0), f.lit(1))
    sums = points.union(middles).groupBy(*within, "x").agg(f.sum("point").alias("points"), f.max("middle").alias("middles"))
    return sums.where("points > 1 OR points = 1 AND middles = 1").count()


def _swapped(edges: DataFrame, within: Within) -> DataFrame:
    return edges.select(*within, f.col("y").alias("x"), f.col("x").alias("y"))


def _named(nodes: DataFrame, labels: DataFrame, within: Within) -> DataFrame:
    """Every node with its label, or itself."""
    joined = _joined(nodes, labels, (*within, "node"), "left")
    return joined.select(*(f.col(f"n.{c}") for c in within), "n.node", f.coalesce("k.component", "n.node").alias("component"))


def _joined(left: DataFrame, right: DataFrame, columns: Within, how: str = "inner", *also: Column) -> DataFrame:
    """`left` as n and `right` as k, joined on equal columns (null is equal to null)."""
    same = [f.col(f"n.{c}").eqNullSafe(f.col(f"k.{c}")) for c in columns]
    return left.alias("n").join(right.alias("k"), reduce(and_, [*same, *also]), how)

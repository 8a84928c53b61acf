"""Fixpoints on Spark, a job per round: of rules; of paths, semi-naive from given starts or by doubling for all pairs.

Each round's new pairs are checkpointed: a plan that grew with the rounds would cost more than the rounds (docs/decisions.md).
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from engine.spark.sql.fixpoint import Closing, add_seen, seen_text

MOST_PIECES = 8


def close(spark: SparkSession, closing: Closing) -> None:
    """Compute a closure under rules; it is then the view `closing.all`."""
    def seen(table: str) -> list[tuple[str, str | None, int]]:
        return [(row["p"], row["c"], row["d"]) for row in spark.sql(seen_text(table)).toArrow().to_pylist()]

    pieces = [spark.sql(closing.first).localCheckpoint()]
    pieces[0].createOrReplaceTempView(closing.all)
    known = add_seen(add_seen({}, seen(closing.behind) if closing.behind else []), seen(closing.all))
    for stratum in range(len(closing.strata)):
        new = reduce(DataFrame.union, pieces)
        new.createOrReplaceTempView(closing.new)
        while (text := closing.due(stratum, add_seen({}, seen(closing.new)), known)) is not None:
            new = spark.sql(text).localCheckpoint(eager=False)
            if not new.count():
                break
            pieces = [*pieces, new] if len(pieces) < MOST_PIECES else [reduce(DataFrame.union, pieces).union(new).localCheckpoint()]
            reduce(DataFrame.union, pieces).createOrReplaceTempView(closing.all)
            new.createOrReplaceTempView(closing.new)
            add_seen(known, seen(closing.new))


def transitive_closure(edges: DataFrame, base: DataFrame, within: tuple[str, ...], seeded: bool) -> DataFrame:
    """All pairs ``x y`` that `edges` connect within the `within` columns, from the pairs of `base` on (all of `edges` unless `seeded`)."""
    edges = edges.localCheckpoint()
    new = base.localCheckpoint() if seeded else edges
    pieces = [new]
    while True:
        known = reduce(DataFrame.union, pieces)
        longer = _joined(new, edges if seeded else known, within)
        if not seeded:
            longer = longer.union(_joined(known, new, within))
        new = longer.distinct().join(known, [*within, "x", "y"], "left_anti").localCheckpoint(eager=False)
        if not new.count():
            return known
        pieces = [*pieces, new] if len(pieces) < MOST_PIECES else [known.union(new).localCheckpoint()]


def _joined(left: DataFrame, right: DataFrame, within: tuple[str, ...]) -> DataFrame:
    a, b = left.alias("a"), right.alias("b")
    same = reduce(lambda x, y: x & y, [f.col(f"a.{c}") == f.col(f"b.{c}") for c in within], f.col("a.y") == f.col("b.x"))
    return a.join(b, same).select(*(f.col(f"a.{c}") for c in within), f.col("a.x"), f.col("b.y"))

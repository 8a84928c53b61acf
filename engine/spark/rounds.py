"""Fixpoints on Spark, a job per round: of rules; of paths, semi-naive from given starts or by doubling for all pairs.

Each round's new pairs are checkpointed: a plan that grew with the rounds would cost more than the rounds (docs/decisions.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from engine.spark.sql.fixpoint import Closing, saturate, seen_text

MOST_PIECES = 8


@dataclass(slots=True)
class _InSpark:
    """A closure's tables as temporary views over checkpointed relations."""

    spark: SparkSession
    closing: Closing
    pieces: list[DataFrame]

    def seen(self, table: str) -> list[tuple[str, str | None, int]]:
        return [(row["p"], row["c"], row["d"]) for row in self.spark.sql(seen_text(table)).toArrow().to_pylist()]

    def begin(self) -> None:
        reduce(DataFrame.union, self.pieces).createOrReplaceTempView(self.closing.new)

    def advance(self, text: str) -> bool:
        new = self.spark.sql(text).localCheckpoint(eager=False)
        if not new.count():
            return False
        self.pieces = _with_piece(self.pieces, new)
        reduce(DataFrame.union, self.pieces).createOrReplaceTempView(self.closing.all)
        new.createOrReplaceTempView(self.closing.new)
        return True


def close(spark: SparkSession, closing: Closing) -> pa.Table | None:
    """Compute a closure under rules, which is then the view `closing.all`; what is inconsistent in it."""
    first = spark.sql(closing.first).localCheckpoint()
    first.createOrReplaceTempView(closing.all)
    if closing.kept is not None:
        segments = closing.kept.segments
        (spark.read.parquet(*segments) if segments else first.limit(0)).createOrReplaceTempView(closing.state)
    check = saturate(closing, _InSpark(spark, closing, [first]))
    if closing.kept is not None:
        found = spark.sql(closing.kept.all_text(closing)).toArrow()
        if found.num_rows or closing.kept.whole:
            pq.write_table(found, closing.kept.out)
    return spark.sql(check).toArrow() if check else None


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
        pieces = _with_piece(pieces, new)


def _with_piece(pieces: list[DataFrame], new: DataFrame) -> list[DataFrame]:
    """One piece more, or all in one where they are many."""
    return [*pieces, new] if len(pieces) < MOST_PIECES else [reduce(DataFrame.union, [*pieces, new]).localCheckpoint()]


def _joined(left: DataFrame, right: DataFrame, within: tuple[str, ...]) -> DataFrame:
    a, b = left.alias("a"), right.alias("b")
    same = reduce(lambda x, y: x & y, [f.col(f"a.{c}") == f.col(f"b.{c}") for c in within], f.col("a.y") == f.col("b.x"))
    return a.join(b, same).select(*(f.col(f"a.{c}") for c in within), f.col("a.x"), f.col("b.y"))

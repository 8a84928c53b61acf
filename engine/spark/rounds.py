"""Fixpoints of rules on Spark, a job per round.

What a round finds is checkpointed: a plan that grew with the rounds would cost more than the rounds (docs/decisions.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from engine.spark.graphs.rounds import with_piece
from engine.sql.closing import Closing, Round, SeenRow, all_seen, saturate, seen_text


@dataclass(slots=True)
class _InSpark:
    """A closure's tables as temporary views over checkpointed relations."""

    spark: SparkSession
    closing: Closing
    pieces: list[DataFrame]

    def seen(self, table: str) -> list[SeenRow]:
        return [(row["p"], row["c"], row["d"], row["l"]) for row in self.spark.sql(seen_text(table)).toArrow().to_pylist()]

    def begin(self) -> None:
        reduce(DataFrame.union, self.pieces).createOrReplaceTempView(self.closing.new)

    def advance(self, due: Round) -> bool:
        new = self.spark.sql(due.text).localCheckpoint(eager=False)
        if not new.count():
            return False
        self.pieces = with_piece(self.pieces, new)
        reduce(DataFrame.union, self.pieces).createOrReplaceTempView(self.closing.all)
        new.createOrReplaceTempView(self.closing.new)
        return True


def close(spark: SparkSession, closing: Closing) -> pa.Table | None:
    """Compute a closure under rules, which is then the view `closing.all`; what is inconsistent in it."""
    first = spark.sql(closing.first).localCheckpoint()
    first.createOrReplaceTempView(closing.all)
    tables = _InSpark(spark, closing, [first])
    check = saturate(closing, tables, all_seen(tables, closing.behind))
    return spark.sql(check).toArrow() if check else None

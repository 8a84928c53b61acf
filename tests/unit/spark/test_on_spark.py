"""What Spark SQL says of the sample expressions, groups and orders is what engine/functions says. A few jobs in all."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from engine.functions.aggregates import aggregate
from engine.functions.compare import order_key
from engine.functions.typed import ANY_KIND, typed_columns
from engine.ir.expressions import Aggregate, Expression
from engine.spark.session import Session
from engine.spark.udf_spark import register_spark
from engine.sql.dialect import SPARK, UNDECIDED, SparkDialect
from engine.sql.functions.aggregates import Gathered
from engine.sql.functions.comparisons import order_keys
from engine.sql.lower import Lowering
from tests.unit.spark.gathering import ALWAYS, POOLS, V, gathered
from tests.unit.spark.samples import TOKENS, expressions
from tests.unit.spark.test_sql_functions import PAIRS, by_functions, decided, pairs_table, spelled

AT_ONCE = 30
FUNCTIONS = ("COUNT", "SAMPLE", "GROUP_CONCAT", "SUM", "AVG", "MIN", "MAX")


class RowByRow(SparkDialect):
    """Asks Python for undecided rows as DuckDB does, so that one query can hold all kinds of rows."""

    def otherwise(self, call: Callable[[], str], kind: str) -> str:
        return call()


@pytest.fixture(scope="module")
def spark_with_functions(spark_session: Session) -> Iterator[SparkSession]:
    register_spark(spark_session.spark)
    yield spark_session.spark
    for view in ("pairs", "groups"):
        spark_session.spark.catalog.dropTempView(view)


@pytest.mark.parametrize("part", range(len(expressions()) // AT_ONCE + 1))
def test_expressions(spark_with_functions: SparkSession, part: int) -> None:
    chosen = expressions()[part * AT_ONCE:(part + 1) * AT_ONCE]
    lowering = Lowering(RowByRow(), "q", 0)
    values = [(lowering.value(e, spelled()), lowering.condition(e, spelled())) for e in chosen]
    ends = [UNDECIDED in value + truth for value, truth in values]
    for kept, pairs in ((False, PAIRS[part::31]), (True, decided(PAIRS[part::31]))):
        rows = [(n, e) for n, e in enumerate(chosen) if ends[n] is kept]
        listed = [f"{values[n][0]} AS v{n}, {values[n][1]} AS t{n}" for n, _ in rows]
        if rows:
            spark_with_functions.createDataFrame(pairs_table(pairs)).createOrReplaceTempView("pairs")
            _check(spark_with_functions.sql(f"SELECT a, b, {', '.join(listed)} FROM pairs").toArrow(), rows)


def _check(table: pa.Table, chosen: list[tuple[int, Expression]]) -> None:
    pairs = list(zip(table["a"].to_pylist(), table["b"].to_pylist()))
    assert len(pairs) > 200
    for number, expression in chosen:
        found = list(zip(table[f"v{number}"].to_pylist(), table[f"t{number}"].to_pylist()))
        wrong = [(pair, got, wanted) for pair, got, wanted in zip(pairs, found, by_functions(expression, pairs)) if got != wanted]
        assert not wrong[:5], expression


@pytest.mark.parametrize("pool", [name for name in POOLS if name in ALWAYS])
def test_aggregates(spark_with_functions: SparkSession, pool: str) -> None:
    """Groups that SQL decides: no answer may end the plan."""
    chance = random.Random(pool)
    groups = [chance.choices(POOLS[pool], k=chance.choice((1, 2, 3, 5, 12))) for _ in range(60)]
    rows = [(number, token) for number, group in enumerate(groups) for token in group]
    column = pa.array([token for _, token in rows], pa.string())
    kinds, numbers, micros = typed_columns(column)
    table = pa.table({"g": pa.array([n for n, _ in rows]), "c": column, "c_k": kinds, "c_n": numbers, "c_m": micros,
                      "here": pa.array([1] * len(rows))})
    spark_with_functions.createDataFrame(table).createOrReplaceTempView("groups")
    calls = [Aggregate(f, V, distinct, '; "') for f in FUNCTIONS for distinct in (False, True)
             if f in ALWAYS[pool] and not (distinct and f in ("SUM", "AVG"))]
    made: list[Gathered] = [gathered(SPARK, call, f"a{n}") for n, call in enumerate(calls)]
    inner = ", ".join(f"{sql} AS {name}" for g in made for name, sql in g.columns.items())
    outer = ", ".join(f"{g.token} AS r{n}" for n, g in enumerate(made))
    answers = spark_with_functions.sql(f"SELECT g, {outer} FROM (SELECT g, {inner} FROM groups GROUP BY g)").toArrow().to_pylist()
    assert len(answers) == len(groups)
    for answer in answers:
        group = groups[answer["g"]]
        found = [answer[f"r{n}"] for n in range(len(calls))]
        assert found == [aggregate(c.function, group, c.distinct, c.separator) for c in calls], group


def test_a_group_that_sql_does_not_decide_ends_the_plan(spark_with_functions: SparkSession) -> None:
    made = gathered(SPARK, Aggregate("SUM", V), "a0")
    inner = ", ".join(f"{sql} AS {name}" for name, sql in made.columns.items())
    row = "SELECT 'x' AS c, CAST(18 AS TINYINT) AS c_k, CAST(NULL AS DOUBLE) AS c_n, CAST(NULL AS BIGINT) AS c_m, 1 AS here"
    with pytest.raises(Exception, match=UNDECIDED):
        spark_with_functions.sql(f"SELECT {made.token} FROM (SELECT {inner} FROM ({row}))").collect()


def test_order(spark_with_functions: SparkSession) -> None:
    tokens = [t for t in TOKENS if t is None or typed_columns(pa.array([t]))[0][0].as_py() in (1, 2, 3, 4, 6, 7, 8, 9, 10, 11)]
    column = pa.array(tokens, pa.string())
    kinds, numbers, micros = typed_columns(column)
    table = pa.table({"c": column, "c_k": kinds, "c_n": numbers, "c_m": micros})
    spark_with_functions.createDataFrame(table).createOrReplaceTempView("groups")
    keys = [f"{sql} AS k{n}" for n, sql in enumerate(order_keys(SPARK, "c", ANY_KIND))]
    for direction in ("", " DESC"):
        rank = f"dense_rank() OVER (ORDER BY {', '.join(f'k{n}{direction}' for n in range(len(keys)))}) AS place"
        found = spark_with_functions.sql(f"SELECT c, {rank} FROM (SELECT c, {', '.join(keys)} FROM groups)").toArrow().to_pylist()
        ranks = {key: place for place, key in enumerate(sorted({order_key(t) for t in tokens}, reverse=bool(direction)), 1)}
        assert all(row["place"] == ranks[order_key(row["c"])] for row in found) and len(found) == len(tokens)

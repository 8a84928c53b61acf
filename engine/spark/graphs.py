"""Closures on Spark: each in one task, in rounds of Spark SQL, or by GraphFrames, whose algorithms run on GraphX (measured: a second or
two; those on data frames tens of seconds).

Edges are rows ``x y`` of a graph that the columns `within` name (an evaluation time, an item), so that all graphs of a batch are one
disjoint union. Each way gives the closure of `base` (None: of all edges) under `edges`, pairs ``x y``.
"""

from __future__ import annotations

import logging
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, functions as f

from engine.plan.graphs import Chosen, Way, choose
from engine.sql.leaves import recursion
from engine.worker.database import database, register

if TYPE_CHECKING:
    from engine.spark.session import Session

MOST_PIECES = 8
_FIRST = "first"
Within = tuple[str, ...]


class Graphs:
    """Closures on a session. `force` takes the choice away, for tests and benchmarks. Every answer comes with how it was found.
    Without GraphFrames their twin in SQL does what they would."""

    def __init__(self, session: Session, force: Way | None = None) -> None:
        self._session = session
        self._force = force
        self._told = False

    def reach(self, edges: DataFrame, base: DataFrame | None = None, within: Within = (),
              said: Way | None = None) -> tuple[DataFrame, Chosen]:
        """The pairs ``x y`` that begin as in `base` (None: with any edge) and go on along edges, each once. They are found in the way that
        is `said`, else as the number of edges says."""
        edges = edges.localCheckpoint(eager=False)
        count = edges.count()
        way = self._force or said or choose(count)
        if way == "graphframes" and not self._session.graphframes:
            if not self._told:
                logging.getLogger(__name__).warning("reachability by the twin in Spark SQL: GraphFrames not loaded (%s)",
                                                    self._session.graphframes_reason)
            self._told, way = True, "sql"
        return _SOLVERS[way](edges, base, within), Chosen("reachability", count, way)


def in_task(edges: DataFrame, base: DataFrame | None, within: Within) -> DataFrame:
    """By one task for each graph: its edges go to a Python worker, where DuckDB does all the rounds."""
    rows = edges.withColumn(_FIRST, f.lit(base is None))
    if base is not None:
        rows = rows.union(base.select(*edges.columns).withColumn(_FIRST, f.lit(True)))

    def close(table: pa.Table) -> pa.Table:
        return _beside(table, within, _closed(table))

    return rows.groupBy(*(within or (f.lit(0),))).applyInArrow(close, edges.schema.simpleString()[len("struct<"):-1])


def _beside(table: pa.Table, within: tuple[str, ...], found: pa.Table) -> pa.Table:
    """The found rows with the columns that name their graph."""
    for place, name in enumerate(within):
        column = pa.repeat(table[name][0], found.num_rows) if found.num_rows else pa.array([], table[name].type)
        found = found.add_column(place, name, column)
    return found


def _closed(table: pa.Table) -> pa.Table:
    connection = database()
    register(connection, "edges", table)
    try:
        found = recursion("found", "edges", "starts", ())
        text = f"WITH RECURSIVE starts AS (SELECT x, y FROM edges WHERE first), found AS ({found}) SELECT x, y FROM found"
        return connection.sql(text).to_arrow_table()
    finally:
        connection.unregister("edges")


def in_rounds(edges: DataFrame, base: DataFrame | None, within: Within) -> DataFrame:
    """By a few jobs for each round, semi-naively; of all edges by doubling: the twin of what GraphFrames do. Each round's rows are
    checkpointed: a plan that grew with the rounds would cost more than the rounds (docs/decisions.md)."""
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


def by_graphframes(edges: DataFrame, base: DataFrame | None, within: Within) -> DataFrame:
    """By shortest paths to landmarks along the turned edges. Nodes are numbered, so that GraphX need not: a graph of a batch has its own
    numbers."""
    nodes, numbered = _numbered(edges if base is None else edges.union(base.select(*edges.columns)), within)
    first = numbered if base is None else _with_numbers(base, nodes, within)
    found = _pairs(nodes, numbered, first)
    named = [*(f.col(f"a.{c}") for c in within), f.col("a.node").alias("x"), f.col("b.node").alias("y")]
    return (found.alias("p").join(nodes.alias("a"), f.col("p.src") == f.col("a.id"))
            .join(nodes.alias("b"), f.col("p.dst") == f.col("b.id")).select(*named))


def _numbered(edges: DataFrame, within: Within) -> tuple[DataFrame, DataFrame]:
    """Nodes ``id node`` and edges ``src dst``."""
    ends = edges.select(*within, f.col("x").alias("node")).union(edges.select(*within, "y")).distinct()
    nodes = ends.withColumn("id", f.monotonically_increasing_id()).localCheckpoint()
    return nodes, _with_numbers(edges, nodes, within).localCheckpoint()


def _with_numbers(edges: DataFrame, nodes: DataFrame, within: Within) -> DataFrame:
    for end, number in (("x", "src"), ("y", "dst")):
        same = f.col(f"e.{end}") == f.col("n.node")
        for column in within:
            same = same & f.col(f"e.{column}").eqNullSafe(f.col(f"n.{column}"))
        edges = edges.alias("e").join(nodes.alias("n"), same).select("e.*", f.col("n.id").alias(number))
    return edges.select("src", "dst")


def _pairs(nodes: DataFrame, edges: DataFrame, first: DataFrame) -> DataFrame:
    """Pairs ``src dst``: the edges that leave what a node reaches in no step or more, and is begun at."""
    from graphframes import GraphFrame      # only where the JVM half is loaded

    turned = GraphFrame(nodes.select("id"), edges.select(f.col("dst").alias("src"), f.col("src").alias("dst")))
    spark = nodes.sparkSession
    landmarks: Any = spark.sparkContext._jvm.java.util.ArrayList(   # type: ignore[union-attr]
        first.groupBy().agg(f.collect_set("dst").alias("all"))._jdf.head().getList(0))
    begun = first.select(f.col("src").alias("start"), f.col("dst").alias("begun")).distinct()
    reached = turned.shortestPaths(landmarks).select(f.explode(f.map_keys("distances")).alias("begun"), f.col("id").alias("dst"))
    return begun.join(reached, "begun").select(f.col("start").alias("src"), "dst").distinct()


_SOLVERS = {"task": in_task, "sql": in_rounds, "graphframes": by_graphframes}

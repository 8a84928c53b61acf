"""Closures by GraphFrames, whose algorithms run on GraphX (measured: a second or two; those on data frames tens of seconds).

Imported only where the JVM half is loaded. Nodes are numbered, so that GraphX need not: a graph of a batch has its own numbers.
"""

from __future__ import annotations

from typing import Any

from graphframes import GraphFrame
from pyspark.sql import DataFrame, functions as f

from engine.spark.graphs.rounds import Within


def reach(edges: DataFrame, base: DataFrame | None, within: Within) -> DataFrame:
    """The closure of `base` (None: of all edges) under `edges`: pairs ``x y``, by shortest paths to landmarks along the turned edges."""
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
    turned = GraphFrame(nodes.select("id"), edges.select(f.col("dst").alias("src"), f.col("src").alias("dst")))
    spark = nodes.sparkSession
    landmarks: Any = spark.sparkContext._jvm.java.util.ArrayList(   # type: ignore[union-attr]
        first.groupBy().agg(f.collect_set("dst").alias("all"))._jdf.head().getList(0))
    begun = first.select(f.col("src").alias("start"), f.col("dst").alias("begun")).distinct()
    reached = turned.shortestPaths(landmarks).select(f.explode(f.map_keys("distances")).alias("begun"), f.col("id").alias("dst"))
    return begun.join(reached, "begun").select(f.col("start").alias("src"), "dst").distinct()

"""Graph problems by GraphFrames, whose algorithms run on GraphX (measured: a second or two; those on data frames tens of seconds).

Imported only where the JVM half is loaded. Nodes are numbered, so that GraphX need not: a graph of a batch has its own numbers.
"""

from __future__ import annotations

from typing import Any

from graphframes import GraphFrame
from graphframes.lib import Pregel
from pyspark.sql import DataFrame, functions as f
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from engine.spark.graphs.rounds import Within
from engine.sql.leaves import chain_columns

_UNBOUNDED = 2**31 - 1
_ENDS = "map<bigint,bigint>"


def components(edges: DataFrame, within: Within) -> DataFrame:
    nodes, numbered = _numbered(edges, within)
    return _named(nodes, GraphFrame(nodes.select("id"), numbered).connectedComponents(algorithm="graphx"), within)


def strong_components(edges: DataFrame, within: Within) -> DataFrame:
    nodes, numbered = _numbered(edges, within)
    return _named(nodes, GraphFrame(nodes.select("id"), numbered).stronglyConnectedComponents(_UNBOUNDED), within)


def reach(edges: DataFrame, base: DataFrame | None, within: Within) -> DataFrame:
    """The closure of `base` (None: of all edges) under `edges`: pairs ``x y``, with the latest end where there are ends. Without ends by
    shortest paths to landmarks along the turned edges; with ends by Pregel, since the paths' ends matter."""
    nodes, numbered = _numbered(edges if base is None else edges.union(base.select(*edges.columns)), within)
    first = numbered if base is None else _with_numbers(base, nodes, within)
    found = _ended(nodes, numbered, first) if "hi" in edges.columns else _unended(nodes, numbered, first)
    named = [*(f.col(f"a.{c}") for c in within), f.col("a.node").alias("x"), f.col("b.node").alias("y")]
    end = [f.col("p.hi")] if "hi" in edges.columns else []
    return (found.alias("p").join(nodes.alias("a"), f.col("p.src") == f.col("a.id"))
            .join(nodes.alias("b"), f.col("p.dst") == f.col("b.id")).select(*named, *end))


def chains(edges: DataFrame, within: Within, length: int) -> DataFrame:
    """The paths of so many edges ``x p y``: rows ``x0 p1 x1 p2 x2 ...``, by motif finding."""
    def node(column: str) -> Any:
        return f.struct(*within, f.col(column).alias("node"))

    edges = edges.localCheckpoint()
    nodes = edges.select(node("x").alias("id")).union(edges.select(node("y").alias("id"))).distinct()
    graph: Any = GraphFrame(nodes, edges.select(node("x").alias("src"), node("y").alias("dst"), "p"))
    found: DataFrame = graph.find("; ".join(f"(x{n - 1})-[p{n}]->(x{n})" for n in range(1, length + 1)))
    columns = [f.col(f"{name}.{'id.node' if name[0] == 'x' else 'p'}").alias(name) for name in chain_columns(length)]
    return found.select(*(f.col(f"x0.id.{c}").alias(c) for c in within), *columns)


def _numbered(edges: DataFrame, within: Within) -> tuple[DataFrame, DataFrame]:
    """Nodes ``id node`` and edges ``src dst`` (and ``hi``)."""
    ends = edges.select(*within, f.col("x").alias("node")).union(edges.select(*within, "y")).distinct()
    nodes = ends.withColumn("id", f.monotonically_increasing_id()).localCheckpoint()
    return nodes, _with_numbers(edges, nodes, within).localCheckpoint()


def _with_numbers(edges: DataFrame, nodes: DataFrame, within: Within) -> DataFrame:
    for end, number in (("x", "src"), ("y", "dst")):
        same = f.col(f"e.{end}") == f.col("n.node")
        for column in within:
            same = same & f.col(f"e.{column}").eqNullSafe(f.col(f"n.{column}"))
        edges = edges.alias("e").join(nodes.alias("n"), same).select("e.*", f.col("n.id").alias(number))
    return edges.select("src", "dst", *(["hi"] if "hi" in edges.columns else []))


def _unended(nodes: DataFrame, edges: DataFrame, first: DataFrame) -> DataFrame:
    """Pairs ``src dst``: the edges that leave what a node reaches in no step or more, and is begun at."""
    turned = GraphFrame(nodes.select("id"), edges.select(f.col("dst").alias("src"), f.col("src").alias("dst")))
    spark = nodes.sparkSession
    landmarks: Any = spark.sparkContext._jvm.java.util.ArrayList(   # type: ignore[union-attr]
        first.groupBy().agg(f.collect_set("dst").alias("all"))._jdf.head().getList(0))
    begun = first.select(f.col("src").alias("start"), f.col("dst").alias("begun")).distinct()
    reached = turned.shortestPaths(landmarks).select(f.explode(f.map_keys("distances")).alias("begun"), f.col("id").alias("dst"))
    return begun.join(reached, "begun").select(f.col("start").alias("src"), "dst").distinct()


def _ended(nodes: DataFrame, edges: DataFrame, first: DataFrame) -> DataFrame:
    """Pairs ``src dst hi``: each node collects where paths to it begin, with their latest ends."""
    starts = first.groupBy(f.col("dst").alias("id"), "src").agg(f.max("hi").alias("hi")).groupBy("id").agg(
        f.map_from_entries(f.collect_list(f.struct("src", "hi"))).alias("begun"))
    graph = GraphFrame(nodes.select("id").join(starts, "id", "left").localCheckpoint(), edges)
    none = f.create_map().cast(_ENDS)
    passed = f.transform_values(Pregel.src("reached"), lambda _, hi: f.least(hi, Pregel.edge("hi")))
    gain = f.map_filter(passed, lambda start, hi: f.coalesce(f.element_at(Pregel.dst("reached"), start) < hi, f.lit(True)))
    found = (graph.pregel.setMaxIter(_UNBOUNDED).setEarlyStopping(True)
             .withVertexColumn("reached", f.coalesce("begun", none), f.when(Pregel.msg().isNull(), f.col("reached")).otherwise(
                 _merged(f.col("reached"), Pregel.msg())))
             .sendMsgToDst(f.when(f.size(gain) > 0, gain))
             .aggMsgs(f.aggregate(f.collect_list(Pregel.msg()), none, _merged)).run())
    found = ClassicDataFrame(found._jdf, nodes.sparkSession)    # Pregel's own is of the thread's active session, which may be none
    return found.select(f.explode("reached").alias("src", "hi"), f.col("id").alias("dst"))


def _merged(one: Any, other: Any) -> Any:
    """The starts of both with their later end."""
    return f.map_zip_with(one, other, lambda _, a, b: f.greatest(a, b))


def _named(nodes: DataFrame, labels: DataFrame, within: Within) -> DataFrame:
    found = nodes.join(labels.select("id", f.col("component").alias("number")), "id")
    least = found.groupBy("number").agg(f.min("node").alias("component"))
    return found.join(least, "number").select(*within, "node", "component")

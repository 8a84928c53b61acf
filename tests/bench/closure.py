"""Closures: one task, rounds of Spark SQL and GraphFrames side by side, for graphs of growing size.

Spark runs in this process. The graph has eight layers; each node but those of the last has an edge into the next. Times are medians.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from engine.plan.graphs import WORDS, Chosen, Way
from engine.spark import graphs
from engine.spark.graphs import Graphs
from engine.spark.session import Session, start_session
from engine.spark.settings import from_environment
from tests.bench.figures import Figure, holds, plain
from tests.bench.settings import Settings

SIZES = (1_000, 10_000, 100_000)
LAYERS, STARTS, REPEATS = 8, 10, 3
Operation = Callable[[Graphs, DataFrame], tuple[DataFrame, Chosen]]


def run(settings: Settings) -> tuple[list[Figure], dict[str, Any]]:
    """The figures of the benchmark, and details."""
    session = start_session(from_environment())
    figures: list[Figure] = []
    details: dict[str, Any] = {}
    try:
        session.warm_up()
        for way in WORDS:    # the first of each way loads classes
            for operation in OPERATIONS.values():
                _measured(session, way, operation, layered(session.spark, 100))
        for edges in SIZES[:1] if settings.quick else SIZES:
            graph = layered(session.spark, edges)
            for name, operation in OPERATIONS.items():
                times = range(REPEATS if edges < 100_000 else 1)
                found = {way: [_measured(session, way, operation, graph) for _ in times] for way in WORDS}
                details[f"{name}, {edges} edges"] = found
                rows = {run["rows"] for runs in found.values() for run in runs}
                figures += [plain(f"{name}, {edges:,} edges, {way}", statistics.median(run["seconds"] for run in runs), "s")
                            for way, runs in found.items()]
                figures += [plain(f"{name}, {edges:,} edges, rounds of SQL", found["sql"][0]["rounds"], "rounds"),
                            plain(f"{name}, {edges:,} edges, result", max(rows), "rows"),
                            holds(f"{name}, {edges:,} edges, all ways agree", len(rows) == 1, "yes")]
    finally:
        session.stop()
    return figures, details


def layered(spark: SparkSession, edges: int) -> DataFrame:
    """So many edges ``x y`` from layer to layer, each to a random node."""
    chance, wide = random.Random(edges), -(-edges // (LAYERS - 1))
    pairs = [(f"<http://example.org/n{n}>", f"<http://example.org/n{(n // wide + 1) * wide + chance.randrange(wide)}>")
             for n in range(edges)]
    return spark.createDataFrame(pa.table({"x": [x for x, _ in pairs], "y": [y for _, y in pairs]})).localCheckpoint()


def _measured(session: Session, way: Way, operation: Operation, edges: DataFrame) -> dict[str, Any]:
    """Seconds until the whole result is there, its rows, and the rounds that Spark SQL needed."""
    with patch.object(graphs, "with_piece", wraps=graphs.with_piece) as steps:
        began = time.perf_counter()
        rows = operation(Graphs(session, way), edges)[0].count()
        return {"seconds": round(time.perf_counter() - began, 3), "rows": rows, "rounds": steps.call_count + 1}


def _from_starts(graphs: Graphs, edges: DataFrame) -> tuple[DataFrame, Chosen]:
    starts = [row["x"] for row in edges.limit(STARTS).collect()]
    return graphs.reach(edges, edges.where(edges.x.isin(starts)))


OPERATIONS: dict[str, Operation] = {
    "all pairs": lambda graphs, edges: graphs.reach(edges),
    "from 10 nodes": _from_starts,
}

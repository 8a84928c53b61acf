"""Graph problems in one task for each graph: its edges go to a Python worker, DuckDB or plain Python does all the rounds."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from pyspark.sql import DataFrame, functions as f

from engine.spark.graphs.plain import components as weak, strong_components as strong, widest
from engine.sql.leaves import recursion
from engine.worker.database import database, register

Work = Callable[[pa.Table], pa.Table]
_FIRST = "first"


def components(edges: DataFrame, within: tuple[str, ...]) -> DataFrame:
    return _labelled(edges, within, weak)


def strong_components(edges: DataFrame, within: tuple[str, ...]) -> DataFrame:
    return _labelled(edges, within, strong)


def reach(edges: DataFrame, base: DataFrame | None, within: tuple[str, ...]) -> DataFrame:
    """The closure of `base` (None: of all edges) under `edges`: pairs ``x y``, with the latest end where there are ends."""
    rows = edges.withColumn(_FIRST, f.lit(base is None))
    if base is not None:
        rows = rows.union(base.select(*edges.columns).withColumn(_FIRST, f.lit(True)))
    work = _latest if "hi" in edges.columns else _closed

    def close(table: pa.Table) -> pa.Table:
        return _beside(table, within, work(table))

    return _each(rows, within, close, edges.schema.simpleString()[len("struct<"):-1])


def _labelled(edges: DataFrame, within: tuple[str, ...], label: Callable[[zip[tuple[str, str]]], dict[str, str]]) -> DataFrame:
    def work(table: pa.Table) -> pa.Table:
        found = label(zip(table["x"].to_pylist(), table["y"].to_pylist()))
        return _beside(table, within, pa.table({"node": list(found), "component": list(found.values())}))

    kept = edges.select(*within).schema.simpleString()[len("struct<"):-1]
    return _each(edges, within, work, ",".join(filter(None, (kept, "node:string,component:string"))))


def _each(rows: DataFrame, within: tuple[str, ...], work: Work, schema: str) -> DataFrame:
    """What `work` makes of the rows of each graph."""
    return rows.groupBy(*(within or (f.lit(0),))).applyInArrow(work, schema)


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


def _latest(table: pa.Table) -> pa.Table:
    rows = list(zip(table["x"].to_pylist(), table["y"].to_pylist(), table["hi"].to_pylist()))
    found = list(widest(rows, (row for row, first in zip(rows, table[_FIRST].to_pylist()) if first)))
    x, y, hi = zip(*found) if found else ((), (), ())
    return pa.table({"x": pa.array(x, pa.string()), "y": pa.array(y, pa.string()), "hi": pa.array(hi, pa.int64())})

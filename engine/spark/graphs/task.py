"""Closures in one task for each graph: its edges go to a Python worker, where DuckDB does all the rounds."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame, functions as f

from engine.sql.leaves import recursion
from engine.worker.database import database, register

_FIRST = "first"


def reach(edges: DataFrame, base: DataFrame | None, within: tuple[str, ...]) -> DataFrame:
    """The closure of `base` (None: of all edges) under `edges`: pairs ``x y``."""
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

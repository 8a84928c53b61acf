"""The process that Spark forks its Python workers from, with what a task needs already imported.

Spark starts it as ``python -m engine.spark.daemon pyspark.worker`` (setting ``spark.python.daemon.module``) and ends workers that
have been idle for a minute. A fork of this process answers at once, where a worker that has to import Arrow, DuckDB and the
functions first would take about a second of somebody's answer time.
"""

from __future__ import annotations

import importlib
import sys

PRELOADED = ("pyarrow", "pyarrow.compute", "pyarrow.acero", "duckdb", "engine.functions", "pyspark.sql.pandas.serializers")


def preload() -> None:
    """Import the modules that tasks use; what is missing on an executor is told by the task that needs it."""
    for name in PRELOADED:
        try:
            importlib.import_module(name)
        except ImportError as missing:
            print(f"engine.spark.daemon: {missing}", file=sys.stderr)


if __name__ == "__main__":
    preload()
    from pyspark import daemon

    daemon.manager()  # type: ignore[no-untyped-call]

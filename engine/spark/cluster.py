"""What a Spark cluster needs that one machine does not: our own code on the executors.

The executors' Python must be of the driver's minor version and have pyarrow and duckdb; the engine itself is sent to them as a zip
file, so that nothing of ours need be installed there. The data folder must be on a file system that all of them see
(README, "A Spark cluster").
"""

from __future__ import annotations

import zipfile
from pathlib import Path

from pyspark.sql import SparkSession

from .settings import PROJECT


def send_engine(spark: SparkSession, work: Path) -> None:
    """Give every executor the package `engine`, zipped into `work`."""
    spark.sparkContext.addPyFile(str(zip_engine(work / "engine.zip")))


def zip_engine(target: Path) -> Path:
    """Write the package's Python files into the zip file `target`, importable from it."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted((PROJECT / "engine").rglob("*.py")):
            archive.write(path, path.relative_to(PROJECT))
    return target

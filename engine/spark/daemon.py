"""The process that Spark forks its Python workers from, with what a task needs already imported.

Spark starts it as ``python -m engine.spark.daemon pyspark.worker`` (setting ``spark.python.daemon.module``) and ends workers that
have been idle for a minute. A fork of this process answers at once, where a worker that has to import Arrow, DuckDB and the
functions first would take about a second of somebody's answer time.
"""

import gc
import importlib
import io
import os
import socket
import sys
import zipimport
from collections.abc import Callable
from typing import Any, BinaryIO

PRELOADED = ("pyarrow", "pyarrow.compute", "pyarrow.acero", "duckdb", "engine.functions", "engine.worker.bundles",
             "pyspark.sql.pandas.serializers")
_BUFFER = 65_536


def preload() -> None:
    """Import the modules that tasks use; what is missing on an executor is told by the task that needs it."""
    for name in PRELOADED:
        try:
            importlib.import_module(name)
        except ImportError as missing:
            print(f"engine.spark.daemon: {missing}", file=sys.stderr)


def keep_archives() -> None:
    """Do not read the lists of files in pyspark.zip again for each task. Each task of PySpark calls importlib.invalidate_caches(), for
    which Python reads the whole directory of the archive once per package that was imported from it: 100 ms, most of what a small task
    takes. The archives do not change while this process lives."""
    zipimport.zipimporter.invalidate_caches = lambda self: None  # type: ignore[method-assign]


class Acknowledged(io.FileIO):
    """The reading end of a connection, which acknowledges what was received at once. Spark writes a task in several small pieces, and TCP
    holds the second back until the first is acknowledged (Nagle's algorithm), which Linux puts off by 40 ms in the hope of an answer to
    send it with: two thirds of what a small job took (docs/decisions.md). To ask for quick acknowledgements sends the one that is due, and
    holds for a few packets only: so that is done after each read."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor, "rb", closefd=False)
        self._connection = socket.socket(fileno=os.dup(descriptor))
        self._connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def readinto(self, buffer: Any) -> int | None:
        count = super().readinto(buffer)
        self._connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        return count

    def close(self) -> None:
        """The connection itself stays open."""
        self._connection.close()
        super().close()


def acknowledging(main: Callable[[BinaryIO, BinaryIO], None]) -> Callable[[BinaryIO, BinaryIO], None]:
    """What runs a task (`pyspark.worker.main`), reading it from an `Acknowledged` connection: only Linux needs that."""
    def run(infile: BinaryIO, outfile: BinaryIO) -> None:
        with socket.socket(fileno=os.dup(infile.fileno())) as connection:
            over_tcp = connection.family in (socket.AF_INET, socket.AF_INET6)
        if not over_tcp:
            return main(infile, outfile)
        with io.BufferedReader(Acknowledged(infile.fileno()), _BUFFER) as own:
            main(own, outfile)
    return run if sys.platform == "linux" else main


if __name__ == "__main__":
    from engine.worker.guard import bound_process

    keep_archives()
    preload()
    bound_process()
    from pyspark import daemon

    daemon.worker_main = acknowledging(daemon.worker_main)
    gc.freeze()     # a worker collects garbage after each task, and would walk all that is imported here (docs/decisions.md)
    daemon.manager()  # type: ignore[no-untyped-call]

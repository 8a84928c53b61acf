"""The DuckDB of a worker: one in-memory database per process, whose SQL reaches the tables that it is given and nothing else.

No file, folder, extension, secret or Python variable is within its reach, and nothing can be set once it is open: segments are read and
written beside it (states.py). So even a value that broke out of its literal would find nothing to take.
"""

from __future__ import annotations

import os
from functools import lru_cache
from typing import TYPE_CHECKING

from engine.worker.functions import register_duckdb

if TYPE_CHECKING:
    import duckdb

MEMORY_VARIABLE = "THALWEG_WORKER_MEMORY"
DEFAULT_MEMORY = "2GB"
CLOSED = ("temp_directory = ''", "allow_persistent_secrets = false", "autoinstall_known_extensions = false",
          "autoload_known_extensions = false", "allow_community_extensions = false", "python_enable_replacements = false",
          "enable_external_access = false")
"""What is switched off, in this order: where external access is off already, the folder for what does not fit cannot be taken away."""


def connect(memory: str = DEFAULT_MEMORY) -> duckdb.DuckDBPyConnection:
    """A database that may take so much `memory` (DuckDB's spelling: "2GB"); what needs more fails, as nothing goes to a disk."""
    import duckdb
    connection = duckdb.connect(":memory:", config={"threads": 1, "memory_limit": memory})   # a Spark task has one core
    for setting in CLOSED:
        connection.execute(f"SET {setting}")
    register_duckdb(connection)
    connection.execute("SET lock_configuration = true")
    return connection


@lru_cache(maxsize=1)
def database() -> duckdb.DuckDBPyConnection:
    """The database of this worker process; its memory is a setting of Spark's (settings.py)."""
    return connect(os.environ.get(MEMORY_VARIABLE, DEFAULT_MEMORY))

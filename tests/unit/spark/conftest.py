"""DuckDB as the tasks of executor `local` have it."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from engine.worker.database import connect


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = connect()
    yield connection
    connection.close()

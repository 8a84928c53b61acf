"""DuckDB as the tasks of executor `local` have it."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from engine.spark.udf import register_duckdb


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = duckdb.connect(":memory:", config={"threads": 1})
    register_duckdb(connection)
    yield connection
    connection.close()

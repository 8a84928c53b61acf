"""What differential tests share."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from engine.worker.database import connect


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with connect(threads=1) as made:
        yield made

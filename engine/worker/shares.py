"""Rows shared out among shards, by the hash of what they have in a column."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from engine.plan.nodes import Key
from engine.worker.database import Given, close, connect, parsed, registered

if TYPE_CHECKING:
    import duckdb

_TOKENS = "tokens"


class Shares:
    """Shares tables out among so many `shards`, by a database that hashes tokens (100,000 in 4 ms, by Python 26). To make the
    database takes some 30 ms: it is made for the first table."""

    def __init__(self, shards: int) -> None:
        self.shards = shards
        self._views: dict[str, Given] = {}

    @cached_property
    def _connection(self) -> duckdb.DuckDBPyConnection:
        return connect(in_order=True)

    def of(self, table: pa.Table, key: Key) -> list[pa.Table]:
        """The rows for each shard, by the hash of a column's tokens: the same for the same token, whatever the table."""
        with registered(self._connection, _TOKENS, table.select([key]), self._views):
            statement = parsed(self._connection, f"SELECT hash({key}) % {self.shards:d} AS shard FROM {_TOKENS}")
            shard = np.asarray(self._connection.execute(statement).fetchnumpy()["shard"], np.uint8)
        order = np.argsort(shard, kind="stable")    # linear for numbers of a byte
        ends = np.cumsum(np.bincount(shard, minlength=self.shards))
        sorted_ = table.take(pa.array(order))
        return [sorted_.slice(first, end - first) for first, end in zip([0, *ends[:-1]], ends)]

    def close(self) -> None:
        if "_connection" in self.__dict__:
            close(self._connection)

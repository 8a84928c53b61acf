"""Rows shared out among shards, by the hash of what they have in a column."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

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

    def of(self, table: pa.Table, key: Key, by_object: frozenset[str] = frozenset()) -> list[pa.Table]:
        """The rows for each shard, by the hash of a column's tokens: the same for the same token, whatever the table. With
        `by_object`, only rows with these properties, except those that the shard already has by subject."""
        shard = f"hash({key}) % {self.shards:d}"
        if by_object:   # what a shard has for its subject is sorted behind all shards, and left out
            table = table.filter(pc.is_in(table["p"], pa.array(sorted(by_object))))
            shard = f"CASE WHEN {shard} = hash(s) % {self.shards:d} THEN {self.shards:d} ELSE {shard} END"
        with registered(self._connection, _TOKENS, table.select(["s", key] if by_object else [key]), self._views):
            statement = parsed(self._connection, f"SELECT {shard} AS shard FROM {_TOKENS}")
            shards = np.asarray(self._connection.execute(statement).fetchnumpy()["shard"], np.uint8)
        order = np.argsort(shards, kind="stable")    # linear for numbers of a byte
        ends = np.cumsum(np.bincount(shards, minlength=self.shards)[:self.shards])
        sorted_ = table.take(pa.array(order))
        return [sorted_.slice(first, end - first) for first, end in zip([0, *ends[:-1]], ends)]

    def close(self) -> None:
        self._views.clear()
        if "_connection" in self.__dict__:
            close(self.__dict__.pop("_connection"))     # what of DuckDB is there when the process ends it tells on standard error

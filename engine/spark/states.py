"""What lasting closures have kept, in the worker that goes on with one: a table that follows the segments on disk.

Each evaluation adds one segment (Parquet), which holds what it found. Whichever worker goes on reads those that it has not seen, so that
workers may take turns; one that has seen something else begins anew. On a cluster the folder must be one that every executor sees.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import pyarrow as pa

from engine.spark.sql.fixpoint import Closing, Kept, saturate, state_table

if TYPE_CHECKING:
    import duckdb

    from engine.spark.sql.fixpoint import Tables

_DEAD = 2   # a table is written anew when it has so many times the rows that still hold


@lru_cache(maxsize=1)
def _seen() -> dict[str, set[str]]:
    """The segments that the state tables of this process hold."""
    return {}


def forget(connection: duckdb.DuckDBPyConnection, alive: frozenset[str]) -> None:
    """Drop the states of closures that are not `alive`."""
    for name in _seen().keys() - alive:
        connection.execute(f"DROP TABLE IF EXISTS {state_table(name)}")
        del _seen()[name]


def go_on(connection: duckdb.DuckDBPyConnection, closing: Closing, tables: Tables) -> pa.Table | None:
    """Derive from what is new, beside what is kept; keep what is found; what is inconsistent in all of it."""
    kept, state = closing.kept, closing.state
    assert kept is not None
    _bring(connection, closing, kept)
    connection.execute(f"CREATE OR REPLACE TEMP TABLE {closing.all} AS {closing.first}")
    check = saturate(closing, tables)
    findings = connection.sql(check).to_arrow_table() if check else None
    if kept.whole or connection.execute(f"SELECT 1 FROM {closing.all} LIMIT 1").fetchone():
        connection.execute(f"COPY ({kept.all_text(closing)}) TO '{kept.out}' (FORMAT PARQUET)")
        if kept.whole:
            connection.execute(f"CREATE OR REPLACE TEMP TABLE {state} AS SELECT * FROM read_parquet('{kept.out}')")
            _seen()[closing.name] = {kept.out}
        else:
            connection.execute(f"INSERT INTO {state} SELECT * FROM {closing.all}")
            _seen()[closing.name].add(kept.out)
    return findings


def _bring(connection: duckdb.DuckDBPyConnection, closing: Closing, kept: Kept) -> None:
    """Make the state table what the segments hold."""
    state, wanted = closing.state, set(kept.segments)
    if closing.name not in _seen() or not _seen()[closing.name] <= wanted:
        connection.execute(f"CREATE OR REPLACE TEMP TABLE {state} AS SELECT * FROM ({closing.first}) AS f LIMIT 0")
        _seen()[closing.name] = set()
    missing = sorted(wanted - _seen()[closing.name])
    if missing:
        listed = ", ".join(f"'{path}'" for path in missing)
        connection.execute(f"INSERT INTO {state} SELECT * FROM read_parquet([{listed}]) WHERE hi >= {kept.point}")
        _seen()[closing.name] |= set(missing)
    total, alive = connection.execute(f"SELECT count(*), count(*) FILTER (WHERE hi >= {kept.point}) FROM {state}").fetchone() or (0, 0)
    if total > _DEAD * alive + 1_000:
        connection.execute(f"CREATE OR REPLACE TEMP TABLE {state} AS SELECT * FROM {state} WHERE hi >= {kept.point}")

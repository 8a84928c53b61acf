"""What lasting closures have kept, in the worker that goes on with one: a table that follows the segments on disk.

Each evaluation adds one segment (Parquet), which holds what it found. Whichever worker goes on reads those that it has not seen, so that
workers may take turns. On a cluster the folder must be one that every executor sees.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

import pyarrow as pa

from engine.plan.derive import Seen
from engine.spark.ends import Ends
from engine.spark.sql.fixpoint import Closing, Kept, Segment, add_seen, saturate, state_table

if TYPE_CHECKING:
    import duckdb

    from engine.spark.sql.fixpoint import Tables

_DEAD = 2   # a table is written anew when it has so many times the rows that still hold
_FOUND = "found_near"
_MANY = 8   # new rows, each of which stands for so many kept ones, are joined with all of them


@dataclass(slots=True)
class _State:
    """What a state table of this process holds: what evaluations up to number `last` found, what its rows are like, and where they are by
    their ends."""

    ends: Ends
    last: int = 0
    like: Seen = field(default_factory=dict)


@lru_cache(maxsize=1)
def _states() -> dict[str, _State]:
    """The state tables of this process, by closure."""
    return {}


def forget(connection: duckdb.DuckDBPyConnection, alive: frozenset[str]) -> None:
    """Drop the states of closures that are not `alive`."""
    for name in _states().keys() - alive:
        connection.execute(f"DROP TABLE IF EXISTS {state_table(name)}")
        del _states()[name]


def go_on(connection: duckdb.DuckDBPyConnection, closing: Closing, tables: Tables) -> pa.Table | None:
    """Derive from what is new, beside what is kept; keep what is found; what is inconsistent in all of it."""
    kept = closing.kept
    assert kept is not None
    state = _brought(connection, closing, kept, tables)
    connection.execute(f"CREATE OR REPLACE TEMP TABLE {closing.all} AS {closing.first}")
    check = saturate(closing, tables, state.like)
    findings = connection.sql(check).to_arrow_table() if check else None
    drop_relation(connection, closing.near)
    if kept.replaces or connection.execute(f"SELECT 1 FROM {closing.all} LIMIT 1").fetchone():
        connection.execute(f"COPY ({kept.all_text(closing, _read)}) TO '{kept.out.path}' (FORMAT PARQUET)")
        if kept.whole:
            connection.execute(f"CREATE OR REPLACE TEMP TABLE {closing.state} AS SELECT * FROM {_read([kept.out])}")
            state.ends = Ends(_hashed(connection, closing.state))
        else:
            connection.execute(f"INSERT INTO {closing.state} SELECT * FROM {closing.all}")
            state.ends.add(_hashed(connection, closing.all))
        state.last = kept.out.last
    return findings


def _brought(connection: duckdb.DuckDBPyConnection, closing: Closing, kept: Kept, tables: Tables) -> _State:
    """Make the state table what the segments hold."""
    table, state = closing.state, _states().get(closing.name)
    if state is None:
        connection.execute(f"CREATE OR REPLACE TEMP TABLE {table} AS SELECT * FROM ({closing.first}) AS f LIMIT 0")
        state = _states()[closing.name] = _State(Ends(_hashed(connection, table)))
    if missing := [segment for segment in kept.segments if segment.last > state.last]:    # some of it may be there: twice does no harm
        read = f"(SELECT * FROM {_read(missing)} WHERE hi >= {kept.point}) AS f"
        connection.execute(f"INSERT INTO {table} SELECT * FROM {read}")
        state.ends.add(_hashed(connection, read))
        add_seen(state.like, tables.seen(read))
        state.last = missing[-1].last
    total, alive = connection.execute(f"SELECT count(*), count(*) FILTER (WHERE hi >= {kept.point}) FROM {table}").fetchone() or (0, 0)
    if total > _DEAD * alive + 1_000:
        connection.execute(f"CREATE OR REPLACE TEMP TABLE {table} AS SELECT * FROM {table} WHERE hi >= {kept.point}")
        state.ends = Ends(_hashed(connection, table))
    return state


def _read(segments: Sequence[Segment]) -> str:
    return f"read_parquet([{', '.join(repr(segment.path) for segment in segments)}])"


def _hashed(connection: duckdb.DuckDBPyConnection, source: str) -> pa.Table:
    """Rows with hashes of their ends."""
    return connection.sql(f"SELECT *, hash(s) AS hs, hash(o) AS ho FROM {source}").to_arrow_table()


def find_near(connection: duckdb.DuckDBPyConnection, closing: Closing, besides: Iterable[str]) -> None:
    """Make the relation of what is kept beside what is new: a superset will do, so all of it where that is not much more."""
    assert closing.kept is not None
    listed = ", ".join(closing.kept.columns)
    (new,), (kept,) = (connection.execute(f"SELECT count(*) FROM {table}").fetchone() or (0,) for table in (closing.new, closing.state))
    drop_relation(connection, closing.near)
    if new * _MANY > kept:
        connection.execute(f"CREATE TEMP VIEW {closing.near} AS SELECT {listed} FROM {closing.state}")
        return
    hashes = {end: connection.sql(f"SELECT hash({end}) AS h FROM {closing.new}").to_arrow_table()["h"].to_numpy()
              for end in {pair[0] for pair in besides}}
    found = _states()[closing.name].ends.near((pair[1], hashes[pair[0]]) for pair in besides)
    connection.register(_FOUND, found)
    connection.execute(f"CREATE TEMP TABLE {closing.near} AS SELECT {listed} FROM {_FOUND}")
    connection.unregister(_FOUND)


def drop_relation(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    """Remove a table or view, if it is there."""
    from duckdb import CatalogException
    try:
        connection.execute(f"DROP TABLE IF EXISTS {name}")
    except CatalogException:
        connection.execute(f"DROP VIEW {name}")

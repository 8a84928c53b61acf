"""What lasting closures have kept, in the worker that goes on with one: a table that follows the segments on disk.

Each evaluation adds one segment (Parquet), which holds what it found. Whichever worker goes on reads those that it has not seen, so that
workers may take turns; one that has seen something else begins anew. On a cluster the folder must be one that every executor sees.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

import pyarrow as pa

from engine.plan.derive import Seen
from engine.spark.sql.fixpoint import Closing, Kept, add_seen, saturate, state_table

if TYPE_CHECKING:
    import duckdb

    from engine.spark.sql.fixpoint import Tables

_DEAD = 2   # a table is written anew when it has so many times the rows that still hold
_MANY = 8   # new rows, each of which stands for so many kept ones, are joined with all of them


@dataclass(slots=True)
class _State:
    """What a state table of this process holds: which segments, and what their rows are like. Beside its columns it has hashes of the
    ends of each row, ``hs`` and ``ho``, by which those near to new ones are found; what is joined are the ends themselves."""

    segments: set[str] = field(default_factory=set)
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
    if kept.whole or connection.execute(f"SELECT 1 FROM {closing.all} LIMIT 1").fetchone():
        connection.execute(f"COPY ({kept.all_text(closing)}) TO '{kept.out}' (FORMAT PARQUET)")
        if kept.whole:
            connection.execute(f"CREATE OR REPLACE TEMP TABLE {closing.state} AS {_hashed(_segments([kept.out]))}")
            state.segments = {kept.out}
        else:
            connection.execute(f"INSERT INTO {closing.state} {_hashed(closing.all)}")
            state.segments.add(kept.out)
    return findings


def _brought(connection: duckdb.DuckDBPyConnection, closing: Closing, kept: Kept, tables: Tables) -> _State:
    """Make the state table what the segments hold."""
    table, wanted = closing.state, set(kept.segments)
    state = _states().get(closing.name)
    if state is None or not state.segments <= wanted:
        state = _states()[closing.name] = _State()
        connection.execute(f"CREATE OR REPLACE TEMP TABLE {table} AS {_hashed(f'({closing.first}) AS f')} LIMIT 0")
    if missing := sorted(wanted - state.segments):
        read = _segments(missing)
        connection.execute(f"INSERT INTO {table} {_hashed(read)} WHERE hi >= {kept.point}")
        add_seen(state.like, tables.seen(read))
        state.segments |= set(missing)
    total, alive = connection.execute(f"SELECT count(*), count(*) FILTER (WHERE hi >= {kept.point}) FROM {table}").fetchone() or (0, 0)
    if total > _DEAD * alive + 1_000:
        connection.execute(f"CREATE OR REPLACE TEMP TABLE {table} AS SELECT * FROM {table} WHERE hi >= {kept.point}")
    return state


def _segments(paths: Sequence[str]) -> str:
    return f"read_parquet([{', '.join(repr(path) for path in paths)}])"


def _hashed(source: str) -> str:
    return f"SELECT *, hash(s) AS hs, hash(o) AS ho FROM {source}"


def find_near(connection: duckdb.DuckDBPyConnection, closing: Closing, besides: Iterable[str]) -> None:
    """Make the relation of what is kept beside what is new: a superset will do, so all of it where that is not much more."""
    assert closing.kept is not None
    listed = ", ".join(closing.kept.columns)
    (new,), (kept,) = (connection.execute(f"SELECT count(*) FROM {table}").fetchone() or (0,) for table in (closing.new, closing.state))
    drop_relation(connection, closing.near)
    if new * _MANY > kept:
        connection.execute(f"CREATE TEMP VIEW {closing.near} AS SELECT {listed} FROM {closing.state}")
        return
    texts = [f"SELECT {listed} FROM {closing.state} WHERE h{theirs} IN (SELECT hash({ours}) FROM {closing.new})"
             for ours, theirs in map(tuple, besides)]
    texts = texts or [f"SELECT {listed} FROM {closing.state} LIMIT 0"]
    connection.execute(f"CREATE TEMP TABLE {closing.near} AS {' UNION ALL '.join(texts)}")


def drop_relation(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    """Remove a table or view, if it is there."""
    from duckdb import CatalogException
    try:
        connection.execute(f"DROP TABLE IF EXISTS {name}")
    except CatalogException:
        connection.execute(f"DROP VIEW {name}")

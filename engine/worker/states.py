"""What is kept of closures, in the worker that goes on with one: a table that follows the segments on disk.

Each evaluation adds one segment (Parquet), which holds what it found. Whichever worker goes on reads those that it has not seen, so that
workers may take turns. On a cluster the folder must be one that every executor sees. Segments are read and written here, not by SQL, which
reaches no file (database.py); one that cannot be read is an error that names it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow.parquet import ParquetFile, write_table

from engine.plan.derive import Seen
from engine.sql.closing import Closing, Kept, Segment, add_seen, all_seen, saturate, state_table
from engine.worker.database import changed_rows, count_rows, kept_beside, register
from engine.worker.ends import Ends
from engine.worker.rounds import NewRows, Rounds, replace_table, replace_view

if TYPE_CHECKING:
    import duckdb

_DEAD = 2   # a table is written anew when it has so many times the rows that it had then
_FOUND, _SEGMENTS = "found_beside", "segments_read"
_SCAN_BELOW = 8   # where fewer rows are kept for each new one, all of them are joined


class SegmentLost(RuntimeError):
    """A file with what was kept is not there or cannot be read; what it held is made again at the next evaluation."""

    def __init__(self, path: str, failure: BaseException) -> None:
        super().__init__(f"the segment {path} cannot be read: {failure}")


@dataclass(slots=True)
class _State:
    """What a state table of this worker holds: what evaluations up to number `last` found, what its rows are like, how many they are, and
    where they are by their ends, once that has been asked."""

    like: Seen
    last: int = 0
    rows: int = 0
    counted: int = 0    # how many rows it had when those that hold no more were last looked for
    ends: Ends | None = None

    def add(self, connection: duckdb.DuckDBPyConnection, source: str, count: int) -> None:
        """Note the rows of `source`, so many, which were added."""
        self.rows += count
        self.counted = self.counted or self.rows
        if self.ends is not None:
            self.ends.add(_hashed(connection, source))

    def begin(self, connection: duckdb.DuckDBPyConnection, table: str) -> None:
        """Note that the table was made anew."""
        self.rows = self.counted = count_rows(connection, table)
        self.ends = None


def _states(connection: duckdb.DuckDBPyConnection) -> dict[str, _State]:
    """The state tables of a database, by closure."""
    return kept_beside(connection, __name__)


def forget(connection: duckdb.DuckDBPyConnection, alive: frozenset[str]) -> None:
    """Drop the states of closures that are not `alive`."""
    for name in _states(connection).keys() - alive:
        connection.execute(f"DROP TABLE IF EXISTS {state_table(name)}")
        del _states(connection)[name]


def go_on(connection: duckdb.DuckDBPyConnection, closing: Closing) -> pa.Table | None:
    """Derive from what is new, beside what is kept; keep what is found; what is inconsistent in all of it. The closure's table then has
    all of it."""
    assert closing.kept is not None
    try:
        return _go_on(connection, closing, closing.kept)
    except BaseException:   # whatever it was, and wherever: what is kept is read again from its segments
        _states(connection).pop(closing.name, None)
        with suppress(Exception):
            connection.execute(f"DROP TABLE IF EXISTS {closing.state}")
        raise


def _go_on(connection: duckdb.DuckDBPyConnection, closing: Closing, kept: Kept) -> pa.Table | None:
    tables = Rounds(connection, closing, partial(_find_beside, connection, closing))
    state = _caught_up(connection, closing, kept, tables)
    tables.start()
    check = saturate(closing, tables, state.like)
    findings = connection.sql(check).to_arrow_table() if check else None
    if kept.replaces or tables.found:
        with _reading(connection, [] if kept.whole else kept.replaces):
            found = connection.sql(kept.all_text(closing, _SEGMENTS)).to_arrow_table()
        write_table(found, kept.out.path)
        if kept.whole:
            with _registered(connection, found):
                connection.execute(f"CREATE OR REPLACE TEMP TABLE {closing.state} AS SELECT * FROM {_SEGMENTS}")
            state.begin(connection, closing.state)
        else:
            state.add(connection, closing.all, changed_rows(connection, f"INSERT INTO {closing.state} SELECT * FROM {closing.all}"))
        state.last = kept.out.last
    connection.execute(f"DROP TABLE {closing.all}")
    connection.execute(f"CREATE TEMP VIEW {closing.all} AS SELECT * FROM {closing.state}")
    return findings


def _caught_up(connection: duckdb.DuckDBPyConnection, closing: Closing, kept: Kept, tables: Rounds) -> _State:
    """Make the state table what the segments hold."""
    table, state = closing.state, _states(connection).get(closing.name)
    missing = [segment for segment in kept.segments if state is None or segment.last > state.last]
    ahead = state is not None and state.last > max((segment.last for segment in kept.segments), default=0)     # a task that is run again
    if state is None or ahead or missing and missing[0].first <= state.last:    # what another worker merged cannot be told apart
        connection.execute(f"CREATE OR REPLACE TEMP TABLE {table} AS SELECT * FROM ({closing.first}) AS f LIMIT 0")
        state = _states(connection)[closing.name] = _State(all_seen(tables, closing.behind))
        missing = list(kept.segments)
    if missing:
        read = f"(SELECT * FROM {_SEGMENTS} WHERE hi >= {kept.point}) AS f"
        with _reading(connection, missing):
            state.add(connection, read, changed_rows(connection, f"INSERT INTO {table} SELECT * FROM {read}"))
            add_seen(state.like, tables.seen(read))
        state.last = missing[-1].last
    if state.rows > _DEAD * state.counted + 1_000:
        connection.execute(f"CREATE OR REPLACE TEMP TABLE {table} AS SELECT * FROM {table} WHERE hi >= {kept.point}")
        state.begin(connection, table)
    return state


def read_segment(path: str) -> pa.Table:
    """What a segment holds. Raises SegmentLost."""
    try:
        return ParquetFile(path).read()
    except (OSError, pa.ArrowException) as failure:
        raise SegmentLost(path, failure) from failure


@contextmanager
def _reading(connection: duckdb.DuckDBPyConnection, segments: Sequence[Segment]) -> Iterator[None]:
    """Within it, the relation `_SEGMENTS` has what some segments hold."""
    if not segments:
        yield
        return
    with _registered(connection, pa.concat_tables([read_segment(segment.path) for segment in segments])):
        yield


@contextmanager
def _registered(connection: duckdb.DuckDBPyConnection, rows: pa.Table) -> Iterator[None]:
    """Within it, the relation `_SEGMENTS` has these rows."""
    register(connection, _SEGMENTS, rows)
    try:
        yield
    finally:
        connection.unregister(_SEGMENTS)


def _hashed(connection: duckdb.DuckDBPyConnection, source: str) -> pa.Table:
    """Rows with hashes of their ends."""
    return connection.sql(f"SELECT *, hash(s) AS hs, hash(o) AS ho FROM {source}").to_arrow_table()


def _find_beside(connection: duckdb.DuckDBPyConnection, closing: Closing, ends: frozenset[str], new: NewRows) -> None:
    """Make the relation of what is kept beside what is new: a superset will do, so all of it where that is not much more."""
    assert closing.kept is not None
    listed = ", ".join(closing.kept.columns)
    state = _states(connection)[closing.name]
    if new.count * _SCAN_BELOW > state.rows:
        replace_view(connection, closing.beside, f"SELECT {listed} FROM {closing.state}")
        return
    if state.ends is None:
        state.ends = Ends(_hashed(connection, closing.state))
    hashes = new.hashes
    if hashes is None:
        read = connection.sql(f"SELECT hash(s) AS s, hash(o) AS o FROM {closing.new}").to_arrow_table()
        hashes = {end: read[end].to_numpy() for end in "so"}
    register(connection, _FOUND, state.ends.rows_at((pair[1], hashes[pair[0]]) for pair in ends))
    try:
        replace_table(connection, closing.beside, f"SELECT {listed} FROM {_FOUND}")
    finally:
        connection.unregister(_FOUND)

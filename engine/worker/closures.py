"""Closures in the DuckDB of a worker: their rounds, and what is kept of them, a table that follows the segments on disk.

Each evaluation of one that is kept adds a segment (a file in Arrow IPC), which holds what it found. Whichever worker goes on reads those
that it has not seen, so that workers may take turns. On a cluster the folder must be one that every executor sees. Segments are read and
written here, not by SQL, which reaches no file (database.py); one that cannot be read is an error that names it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa

from engine.arrays import each_once
from engine.ipc import read_file, write_file
from engine.ir.terms import RDF_TYPE
from engine.plan.derive import Seen
from engine.sql.closing import Closing, Kept, Round, SeenRow, Segment, add_seen, all_seen, part_table, saturate, seen_text
from engine.worker.database import ROW_GROUP, changed_rows, count_rows, few_threads, notes_of, parsed, registered
from engine.worker.guard import streamed

if TYPE_CHECKING:
    import duckdb
    import numpy.typing as npt

_FEW = 256     # so many new rows of a closure are read into Python
MOST_PARTS = 6
_SEGMENT_BATCH = 10_000     # rows that are written at a time: 260,000 take 39 ms, 50,000 at a time 60, as one table 73
_FOLLOWING = 4  # rows that are read for each that is new, or more
_DEAD = 2   # a table is written anew when it has so many times the rows that it had then
_FOUND, _SEGMENTS = "found_beside", "segments_read"
_SCAN_BELOW = 8   # where fewer rows are kept for each new one, all of them are joined


@dataclass(frozen=True, slots=True)
class NewRows:
    """How many rows are new, and the hashes of their subjects and objects, by column, where they have been read already."""

    count: int
    hashes: Mapping[str, npt.NDArray[np.uint64]] | None = None


class Rounds:
    """A closure's tables in DuckDB. A statement takes some 0.3 ms, and a closure that is kept goes on in a few rounds of 5 ms: so what is
    known is not asked for, and a few new rows are read once."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, closing: Closing,
                 find_beside: Callable[[frozenset[str], NewRows], None] | None = None, after_round: str = "") -> None:
        """`find_beside` makes the relation of what is kept beside new rows, by some ends, where the closure is one that goes on.
        `after_round`: a statement about its new rows that is run after each round."""
        self.connection, self.closing = connection, closing
        self._find_beside, self._after_round = find_beside, after_round
        self._new: Literal["", "VIEW", "TABLE"] = ""
        self._rows = NewRows(0)
        self.found = 0      # rows that were found so far

    def start(self) -> None:
        """The table of what is found gets what the closure starts with."""
        [(self.found,)] = replace(self.connection, "TABLE", self.closing.all, self.closing.first).fetchall()

    def seen(self, table: str) -> list[SeenRow]:
        if table != self.closing.new or self._rows.count > _FEW:
            return self.connection.execute(parsed(self.connection, seen_text(table))).fetchall()
        hashes = ", hash(s), hash(o)" if self._find_beside is not None else ""
        rows = self.connection.execute(parsed(self.connection, f"SELECT s, p, o{hashes} FROM {table}")).fetchall()
        if hashes:
            subjects, objects = (np.array([row[place] for row in rows], np.uint64) for place in (3, 4))
            self._rows = NewRows(len(rows), {"s": subjects, "o": objects})
        return list({(p, o if p == RDF_TYPE else None, int(s != o), int(o[:1] == '"')) for s, p, o, *_ in rows})

    def begin(self) -> None:
        self._drop_new()
        replace(self.connection, "VIEW", self.closing.new, f"SELECT * FROM {self.closing.all}")
        self._new, self._rows = "VIEW", NewRows(self.found)

    def advance(self, due: Round) -> bool:
        if self._find_beside is not None:
            self._find_beside(due.ends, self._rows)
        new, following = self.closing.new, part_table(self.closing.name, "next")
        text = f"CREATE OR REPLACE TEMP TABLE {following} AS {due.text}"
        count = changed_rows(self.connection, parsed(self.connection, text))
        if not count:
            return False
        self._drop_new()
        self.connection.execute(parsed(self.connection, f"ALTER TABLE {following} RENAME TO {new}"))
        self.connection.execute(parsed(self.connection, f"INSERT INTO {self.closing.all} SELECT * FROM {new}"))
        if self._after_round:
            self.connection.execute(parsed(self.connection, self._after_round))
        self._new, self._rows = "TABLE", NewRows(count)
        self.found += count
        return True

    def _drop_new(self) -> None:
        if self._new:
            self.connection.execute(f"DROP {self._new} {self.closing.new}")
        self._new = ""


def close(connection: duckdb.DuckDBPyConnection, closing: Closing) -> pa.Table | None:
    """Compute a closure under rules, which is then the table `closing.all`; what is inconsistent in it."""
    tables = Rounds(connection, closing)
    tables.start()
    check = saturate(closing, tables, all_seen(tables, closing.behind))
    return connection.sql(check).to_arrow_table() if check else None


def replace(connection: duckdb.DuckDBPyConnection, kind: Literal["TABLE", "VIEW"], name: str, text: str) -> duckdb.DuckDBPyConnection:
    """Make a table or view, in the place of one of this name that may have been left behind."""
    from duckdb import CatalogException
    statement = f"CREATE OR REPLACE TEMP {kind} {name} AS {text}"
    try:
        return connection.execute(statement)
    except CatalogException:
        drop_relation(connection, name, is_view=kind == "TABLE")
        return connection.execute(statement)


def drop_relation(connection: duckdb.DuckDBPyConnection, name: str, *, is_view: bool = False) -> None:
    """Remove a table or view, if it is there; `is_view` is a guess."""
    from duckdb import CatalogException
    first, second = ("VIEW", "TABLE") if is_view else ("TABLE", "VIEW")
    try:
        connection.execute(f"DROP {first} IF EXISTS {name}")
    except CatalogException:
        connection.execute(f"DROP {second} {name}")


class _Places:
    """Where the rows are that have a hash in a column. Hashes are spread evenly, so the first bits of one tell where it stands among the
    sorted ones (10,000 of 2,600,000: 1.0 ms, by binary search 2.7)."""

    def __init__(self, hashes: npt.NDArray[np.uint64]) -> None:
        self._order = np.argsort(hashes)
        self._hashes = hashes[self._order]
        bits = max(1, len(hashes).bit_length() - 1)
        self._shift = np.uint64(64 - bits)
        self._first = np.searchsorted((self._hashes >> self._shift).astype(np.uint32), np.arange(2 ** bits + 1, dtype=np.uint32))

    def of(self, hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        """The places of the rows that have one of these, which are distinct."""
        slot = hashes >> self._shift
        first = self._first[slot]
        counts = self._first[slot + np.uint64(1)] - first
        looked = np.arange(counts.sum()) + np.repeat(first - np.cumsum(counts) + counts, counts)
        found: npt.NDArray[np.int64] = self._order[looked[self._hashes[looked] == np.repeat(hashes, counts)]]
        return found


@dataclass(frozen=True, slots=True)
class _Part:
    """Some rows, and where they are by the hashes of an end (``s``, ``o``)."""

    rows: pa.Table
    places: dict[str, _Places]


class Ends:
    """An index of the rows that are kept of a closure, by subject and by object: those beside a few new ones are found without a scan. A
    table of rows has their columns, and the hashes ``hs`` and ``ho``. It is log-structured: what is added is sorted by its hashes, and
    small parts are merged as they become many. A hash tells rows that may be wanted; whoever joins them compares the terms themselves."""

    def __init__(self, rows: pa.Table) -> None:
        self._none = rows.slice(0, 0)
        self._parts: list[_Part] = []
        self.add(rows)

    def add(self, rows: pa.Table) -> None:
        if not rows.num_rows:
            return
        self._parts.append(_part(rows))
        if len(self._parts) > MOST_PARTS:
            greatest, *others = sorted(self._parts, key=lambda part: -part.rows.num_rows)
            small = sum(part.rows.num_rows for part in others) * 2 < greatest.rows.num_rows
            merged = _part(pa.concat_tables([part.rows for part in (others if small else self._parts)]))
            self._parts = [greatest, merged] if small else [merged]

    def rows_at(self, wanted: Iterable[tuple[str, npt.NDArray[np.uint64]]]) -> pa.Table:
        """The rows that have one of the hashes at an end, for some of the ends and hashes `wanted`."""
        pairs, found = [(end, each_once(hashes)) for end, hashes in wanted], [self._none]
        for part in self._parts if pairs else ():
            places = np.concatenate([part.places[end].of(hashes) for end, hashes in pairs])
            found.append(part.rows.take(pa.array(each_once(places))))
        return pa.concat_tables(found)


def _part(rows: pa.Table) -> _Part:
    rows = rows.combine_chunks()
    return _Part(rows, {end: _Places(rows[f"h{end}"].to_numpy()) for end in "so"})


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

    def insert(self, connection: duckdb.DuckDBPyConnection, table: str, source: str, count: int) -> None:
        """Add the rows of `source`, so many, to the table; many in order of property and time, so that a scan passes over row groups of
        other times. Where there is no memory to sort them they are added as they are."""
        from duckdb import OutOfMemoryException
        insert = f"INSERT INTO {table} SELECT * FROM {source}"
        try:
            connection.execute(f"{insert} ORDER BY p, hi" if count > ROW_GROUP else insert)
        except OutOfMemoryException:
            connection.execute(insert)
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
    return notes_of(connection, __name__)


def forget(connection: duckdb.DuckDBPyConnection, alive: frozenset[str]) -> None:
    """Drop the states of closures that are not `alive`."""
    for name in _states(connection).keys() - alive:
        state = part_table(name, "state")
        connection.execute(f"DROP TABLE IF EXISTS {state}")
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
    with few_threads(connection, _FOLLOWING * tables.found):
        check = saturate(closing, tables, state.like)
    findings = connection.sql(check).to_arrow_table() if check else None
    if kept.replaces or tables.found:
        with _reading(connection, [] if kept.whole else kept.replaces):
            text = kept.all_text(closing, _SEGMENTS)
            if kept.whole:
                connection.execute(f"CREATE OR REPLACE TEMP TABLE {closing.state} AS {text}")
                state.begin(connection, closing.state)
                text = f"SELECT * FROM {closing.state}"
            write_file(streamed(connection, text, rows=_SEGMENT_BATCH), kept.out.path)
        if not kept.whole:
            state.insert(connection, closing.state, closing.all, tables.found)
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
            state.insert(connection, table, read, count_rows(connection, read))
            add_seen(state.like, tables.seen(read))
        state.last = missing[-1].last
    if state.rows > _DEAD * state.counted + 1_000:
        connection.execute(f"CREATE OR REPLACE TEMP TABLE {table} AS SELECT * FROM {table} WHERE hi >= {kept.point}")
        state.begin(connection, table)
    return state


def read_segment(path: str) -> pa.Table:
    """What a segment holds. Raises SegmentLost."""
    try:
        return read_file(path)
    except (OSError, pa.ArrowException) as failure:
        raise SegmentLost(path, failure) from failure


def _reading(connection: duckdb.DuckDBPyConnection, segments: Sequence[Segment]) -> AbstractContextManager[None]:
    """Within it, the relation `_SEGMENTS` has what some segments hold."""
    if not segments:
        return nullcontext()
    return registered(connection, _SEGMENTS, pa.concat_tables([read_segment(segment.path) for segment in segments]), {})


def _hashed(connection: duckdb.DuckDBPyConnection, source: str) -> pa.Table:
    return connection.sql(f"SELECT *, hash(s) AS hs, hash(o) AS ho FROM {source}").to_arrow_table()


def _find_beside(connection: duckdb.DuckDBPyConnection, closing: Closing, ends: frozenset[str], new: NewRows) -> None:
    """Make the relation of what is kept beside what is new: a superset will do, so all of it where that is not much more."""
    assert closing.kept is not None
    listed = ", ".join(closing.kept.columns)
    state = _states(connection)[closing.name]
    if new.count * _SCAN_BELOW > state.rows:
        replace(connection, "VIEW", closing.beside, f"SELECT {listed} FROM {closing.state}")
        return
    if state.ends is None:
        state.ends = Ends(_hashed(connection, closing.state))
    hashes = new.hashes
    if hashes is None:
        read = connection.sql(f"SELECT hash(s) AS s, hash(o) AS o FROM {closing.new}").to_arrow_table()
        hashes = {end: read[end].to_numpy() for end in "so"}
    with registered(connection, _FOUND, state.ends.rows_at((pair[1], hashes[pair[0]]) for pair in ends), {}):
        replace(connection, "TABLE", closing.beside, f"SELECT {listed} FROM {_FOUND}")

"""The DuckDB of a worker: an in-memory database, in Spark's workers one per process, whose SQL reaches the tables that it is given and
nothing else.

No file, folder, extension, secret or Python variable is within its reach, and nothing but the number of threads can be set once it is open:
segments are read and written beside it (closures.py). So even a value that broke out of its literal would find nothing to take.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from engine.processors import processors
from engine.worker.functions import register_duckdb
from engine.worker.guard import DEFAULT_MEMORY, given_memory

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

THREADS_VARIABLE = "THALWEG_WORKER_THREADS"
ROW_GROUP = 122_880     # rows of a table that one thread reads, and of which DuckDB knows the least and greatest values
MOST_PARSED = 4_000_000     # characters of statements that a database keeps parsed: they take some 15 bytes each
CLOSED = ("temp_directory = ''", "allow_persistent_secrets = false", "autoinstall_known_extensions = false",
          "autoload_known_extensions = false", "allow_community_extensions = false", "python_enable_replacements = false",
          "enable_external_access = false")
"""What is switched off, in this order: where external access is off already, the folder for what does not fit cannot be taken away."""


def connect(memory: str = DEFAULT_MEMORY, threads: int = 1, *, in_order: bool = False) -> duckdb.DuckDBPyConnection:
    """A database that may take so much `memory` (DuckDB's spelling: "2GB"); what needs more fails, as nothing goes to a disk. A Spark task
    has one core, and so one thread. Where it is `in_order` a statement keeps the order of the rows that it reads."""
    import duckdb
    connection = duckdb.connect(":memory:", config={"threads": threads, "memory_limit": memory})
    # A bar would stand between the lines of `thalweg run`. No answer depends on the order of a table's rows: to keep it costs where there
    # are several threads.
    for setting in ("enable_progress_bar = false", f"preserve_insertion_order = {str(in_order).lower()}", *CLOSED):
        connection.execute(f"SET {setting}")
    register_duckdb(connection)
    connection.execute("SET allowed_configs = ['threads']")
    connection.execute("SET lock_configuration = true")
    return connection


def own_threads() -> int:
    """The threads of this worker process: as many as Spark has cores where it has the pump's tasks, one where others share them; no more
    than it has processors."""
    return min(int(os.environ.get(THREADS_VARIABLE, "1")), processors())


@lru_cache(maxsize=1)
def database() -> duckdb.DuckDBPyConnection:
    """The database of this worker process."""
    return connect(given_memory(), own_threads())


@dataclass(slots=True)
class _Threads:
    """How many threads a database was given, and how many it uses now (0: it is not known)."""

    most: int
    now: int


def use_threads(connection: duckdb.DuckDBPyConnection, rows: int | None) -> None:
    """Let statements use one thread where what they read has so few `rows` that one thread reads them at a time, else all that the database
    was given (None: nobody knows how many). A second thread that finds nothing to do costs a tenth to a fifth of the processor time of a
    small statement (docs/decisions.md)."""
    threads = _threads(connection)
    _set_threads(connection, threads, threads.most if rows is None or rows > ROW_GROUP else 1)


@contextmanager
def few_threads(connection: duckdb.DuckDBPyConnection, rows: int) -> Iterator[None]:
    """The same within a block; behind it statements use as many threads as before."""
    before = (threads := _threads(connection)).now
    use_threads(connection, rows)
    try:
        yield
    finally:
        _set_threads(connection, threads, before)


def _threads(connection: duckdb.DuckDBPyConnection) -> _Threads:
    known = notes_of(connection, __name__)
    if "threads" not in known:
        [(count,)] = connection.execute("SELECT current_setting('threads')").fetchall()
        known["threads"] = _Threads(count, count)
    found: _Threads = known["threads"]
    return found


def _set_threads(connection: duckdb.DuckDBPyConnection, threads: _Threads, wanted: int) -> None:
    if wanted != threads.now:
        threads.now = 0     # an interrupt may end the statement or come behind it
        connection.execute(f"SET threads = {wanted or threads.most}")
        threads.now = wanted or threads.most


_ROOTS: dict[duckdb.DuckDBPyConnection, duckdb.DuckDBPyConnection] = {}    # of each cursor the connection that it is of
_KEPT: dict[duckdb.DuckDBPyConnection, dict[str, dict[str, Any]]] = {}


def register(connection: duckdb.DuckDBPyConnection, name: str, rows: pa.Table | Given) -> None:
    """Let statements read rows by a name. Where an interrupt ended the removal of others of that name, DuckDB 1.5 keeps their view, and
    makes none in its place."""
    from duckdb import CatalogException
    try:
        connection.register(name, rows)
    except CatalogException:
        connection.execute(f"DROP VIEW IF EXISTS {name}")
        connection.register(name, rows)


@dataclass(slots=True)
class Given:
    """The rows that a view reads; they are replaced by others of the same schema."""

    rows: pa.Table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.rows.__arrow_c_stream__(requested_schema)

    def clear(self) -> None:
        self.rows = self.rows.schema.empty_table()


def put_view(connection: duckdb.DuckDBPyConnection, name: str, rows: pa.Table, views: dict[str, Given]) -> Given:
    """Let statements read rows by a name, in the place of others. To make and drop a view takes as long as a small statement: `views` are
    those of this connection that are used again (an empty mapping: it is made anew)."""
    view = views.pop(name, None)
    if view is None or view.rows.schema != rows.schema:
        register(connection, name, view := Given(rows.schema.empty_table()))    # an interrupt may leave one
    view.rows, views[name] = rows, view
    return view


@contextmanager
def registered(connection: duckdb.DuckDBPyConnection, name: str, rows: pa.Table, views: dict[str, Given]) -> Iterator[None]:
    """Within it, statements read rows by a name (`put_view`); then the view has none."""
    view = put_view(connection, name, rows, views)
    try:
        yield
    finally:
        view.clear()


def parsed(connection: duckdb.DuckDBPyConnection, text: str) -> duckdb.Statement:
    """A statement that comes again, as those of what is kept do: to parse one takes up to a third of its time (docs/decisions.md)."""
    known: _Parsed = notes_of(connection, __name__).setdefault("parsed", _Parsed())
    return known.of(connection, text)


class _Parsed:
    """Statements of a database, the last used at the end."""

    def __init__(self) -> None:
        self._statements: dict[tuple[duckdb.DuckDBPyConnection, str], duckdb.Statement] = {}
        self._characters = 0
        self._lock = threading.Lock()   # several threads run tasks side by side

    def of(self, connection: duckdb.DuckDBPyConnection, text: str) -> duckdb.Statement:
        with self._lock:
            statement = self._statements.pop((connection, text), None)
            if statement is None:
                [statement] = connection.extract_statements(text)
                self._characters += len(text)
            self._statements[connection, text] = statement
            while self._characters > MOST_PARSED and len(self._statements) > 1:
                _, oldest = first = next(iter(self._statements))
                del self._statements[first]
                self._characters -= len(oldest)
            return statement


def prepared(connection: duckdb.DuckDBPyConnection, text: str, given: Mapping[str, int]) -> tuple[duckdb.Statement, dict[str, int]]:
    """Such a statement, and its parameters among those `given`."""
    statement = parsed(connection, text)
    return statement, {name: given[name] for name in statement.named_parameters}


def changed_rows(connection: duckdb.DuckDBPyConnection, statement: str | duckdb.Statement, given: Mapping[str, int] | None = None) -> int:
    """Run a statement that makes a table, or adds rows to one, with the parameters `given`; how many rows."""
    [(count,)] = connection.execute(statement, given).fetchall()
    return int(count)


def count_rows(connection: duckdb.DuckDBPyConnection, source: str) -> int:
    [(count,)] = connection.execute(f"SELECT count(*) FROM {source}").fetchall()
    return int(count)


def notes_of(connection: duckdb.DuckDBPyConnection, kind: str) -> dict[str, Any]:
    """What of a kind (the name of the module that keeps it) is known of tables that stay in a database from task to task, by name."""
    return _KEPT.setdefault(_ROOTS.get(connection, connection), {}).setdefault(kind, {})


def cursors(connection: duckdb.DuckDBPyConnection, count: int) -> list[duckdb.DuckDBPyConnection]:
    """Further connections to a database, for other threads: made once."""
    found: list[duckdb.DuckDBPyConnection] = notes_of(connection, __name__).setdefault("cursors", [])
    while len(found) < count:
        cursor = connection.cursor()
        _ROOTS[cursor] = connection
        found.append(cursor)
    return found[:count]


def interrupt(connection: duckdb.DuckDBPyConnection) -> None:
    """End the statements that run in a database, on all its connections. From any thread."""
    for each in (connection, *list(notes_of(connection, __name__).get("cursors", ()))):
        each.interrupt()


def close(connection: duckdb.DuckDBPyConnection) -> None:
    """Drop a database and all that is known of it."""
    for cursor in _KEPT.pop(connection, {}).get(__name__, {}).get("cursors", ()):
        del _ROOTS[cursor]
    connection.close()

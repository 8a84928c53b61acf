"""The SQLite file (WAL) of the result log: its tables and its connections."""

import json
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from engine.runtime.errors import EngineError, disk_full, is_full

_SCHEMA = """
create table if not exists meta (name text primary key, value text not null) without rowid;
create table if not exists streams (name text primary key, iri text not null unique, descriptor text not null) without rowid;
create table if not exists stream_states (iri text primary key, state text not null) without rowid;
create table if not exists receipts (stream text not null, key text not null, until integer not null, receipt text not null,
                                     primary key (stream, key)) without rowid;
create table if not exists letters (stream text not null, position integer not null, number integer not null, reason text not null,
                                    t integer, content text not null, more integer not null default 0,
                                    primary key (stream, position, number)) without rowid;
create table if not exists queries (name text primary key, definition text not null, state text not null, relation blob) without rowid;
create table if not exists removed (name text primary key, position integer not null) without rowid;
create table if not exists graphs (iri text primary key, definition text not null) without rowid;
create table if not exists rules (name text primary key, definition text not null) without rowid;
create table if not exists results (id integer primary key, query text not null, epoch text not null, seq integer not null,
                                    tick integer not null, at integer not null, kind text not null, output text not null,
                                    payload blob not null, relation blob, meta text not null,
                                    bytes integer not null, logged integer not null, position integer);
create table if not exists made (stream text not null, position integer not null, newest integer not null, facts blob not null,
                                 primary key (stream, position)) without rowid;
create index if not exists receipts_by_age on receipts (stream, until);
create unique index if not exists results_by_seq on results (query, epoch, seq);
create index if not exists results_by_age on results (query, id, bytes);
"""


class Database:
    """Written by one thread at a time; read by any."""

    def __init__(self, path: Path | None) -> None:
        """`path` None keeps everything in memory."""
        self._path = path
        self._local = threading.local()
        self._lock = threading.RLock()
        self._open: list[sqlite3.Connection] = []
        try:
            self._writer = self._connect()
            self._make_tables()
        except sqlite3.DatabaseError as error:
            self.close()
            if isinstance(error, sqlite3.OperationalError):     # locked, no room, no permission: the file is not to blame
                raise
            raise EngineError("engine-failed", 503, f"The database {path} is damaged ({error}). It has the results and all definitions, "
                              "so the engine does not start without it: restore it from a backup, or begin with another folder.") from error

    def _make_tables(self) -> None:
        with self._lock:
            self._writer.executescript(_SCHEMA)
            if "position" not in {row[1] for row in self._writer.execute("pragma table_info(results)")}:
                self._writer.execute("alter table results add column position integer")  # a file of an earlier version
            if "more" not in {row[1] for row in self._writer.execute("pragma table_info(letters)")}:
                self._writer.execute("alter table letters add column more integer not null default 0")

    def close(self) -> None:
        with self._lock:
            for connection in self._open:
                connection.close()
            self._open.clear()

    @property
    def position(self) -> int:
        """The position in the input log that the results stand for; 0 at the beginning."""
        return int(self.meta("position", 0))

    def meta(self, name: str, default: Any = None) -> Any:
        rows = list(self._read("select value from meta where name = ?", (name,)))
        return json.loads(rows[0][0]) if rows else default

    def _connect(self) -> sqlite3.Connection:
        target = ":memory:" if self._path is None else str(self._path)
        connection = sqlite3.connect(target, timeout=30, isolation_level=None, check_same_thread=False)
        with self._lock:
            self._open.append(connection)
        connection.execute("pragma journal_mode = wal")
        connection.execute("pragma synchronous = normal")
        return connection

    def _read(self, text: str, values: Sequence[Any] = ()) -> Iterator[Any]:
        if self._path is None:
            with self._lock:
                return iter(self._writer.execute(text, values).fetchall())
        if not hasattr(self._local, "connection"):
            self._local.connection = self._connect()
        return iter(self._local.connection.execute(text, values).fetchall())

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction. EngineError ``disk-full`` where there is no room; the same may be tried again."""
        with self._lock:
            try:
                self._writer.execute("begin immediate")
                yield self._writer
                self._writer.execute("commit")
            except BaseException as failure:  # whatever it was, nothing is written
                if self._writer.in_transaction:     # SQLite has ended it itself where there was no room
                    self._writer.execute("rollback")
                if is_full(failure):
                    raise disk_full(f"The database cannot grow: {failure}.") from failure
                raise

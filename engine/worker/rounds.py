"""The rounds of a closure in DuckDB: the table of what is found, and that of what is new, round by round."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa

from engine.ir.terms import RDF_TYPE
from engine.sql.closing import Closing, Round, SeenRow, all_seen, following_table, saturate, seen_text
from engine.worker.database import changed_rows, parsed

if TYPE_CHECKING:
    import duckdb
    import numpy.typing as npt

_FEW = 256     # so many new rows of a kept closure are read into Python


@dataclass(frozen=True, slots=True)
class NewRows:
    """How many rows are new, and the hashes of their subjects and objects, by column, where they have been read already."""

    count: int
    hashes: Mapping[str, npt.NDArray[np.uint64]] | None = None


class Rounds:
    """A closure's tables in DuckDB. A statement takes some 0.3 ms, and a closure that is kept goes on in a few rounds of 5 ms: so what is
    known is not asked for, and a few new rows are read once."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, closing: Closing,
                 find_beside: Callable[[frozenset[str], NewRows], None] | None = None) -> None:
        """`find_beside` makes the relation of what is kept beside new rows, by some ends, where the closure is one that is kept."""
        self.connection, self.closing = connection, closing
        self._find_beside = find_beside
        self._new: Literal["", "VIEW", "TABLE"] = ""
        self._rows = NewRows(0)
        self.found = 0      # rows that were found so far

    def start(self) -> None:
        """The table of what is found gets what the closure starts with."""
        self.found = replace_table(self.connection, self.closing.all, self.closing.first)

    def seen(self, table: str) -> list[SeenRow]:
        if table != self.closing.new or self._find_beside is None or self._rows.count > _FEW:
            return self.connection.execute(seen_text(table)).fetchall()
        rows = self.connection.execute(f"SELECT s, p, o, hash(s), hash(o) FROM {table}").fetchall()
        subjects, objects = (np.array([row[place] for row in rows], np.uint64) for place in (3, 4))
        self._rows = NewRows(len(rows), {"s": subjects, "o": objects})
        return list({(p, o if p == RDF_TYPE else None, int(s != o), int(o[:1] == '"')) for s, p, o, _, _ in rows})

    def begin(self) -> None:
        self._drop_new()
        replace_view(self.connection, self.closing.new, f"SELECT * FROM {self.closing.all}")
        self._new, self._rows = "VIEW", NewRows(self.found)

    def advance(self, due: Round) -> bool:
        if self._find_beside is not None:
            self._find_beside(due.ends, self._rows)
        new, following = self.closing.new, following_table(self.closing.name)
        text = f"CREATE OR REPLACE TEMP TABLE {following} AS {due.text}"
        count = changed_rows(self.connection, text if self._find_beside is None else parsed(self.connection, text))
        if not count:
            return False
        self._drop_new()
        self.connection.execute(f"ALTER TABLE {following} RENAME TO {new}")
        self.connection.execute(f"INSERT INTO {self.closing.all} SELECT * FROM {new}")
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


def replace_table(connection: duckdb.DuckDBPyConnection, name: str, text: str) -> int:
    """Make a table, in the place of a table or view of this name that may have been left behind; how many rows it has."""
    from duckdb import CatalogException
    try:
        return changed_rows(connection, f"CREATE OR REPLACE TEMP TABLE {name} AS {text}")
    except CatalogException:
        drop_relation(connection, name, is_view=True)
        return changed_rows(connection, f"CREATE TEMP TABLE {name} AS {text}")


def replace_view(connection: duckdb.DuckDBPyConnection, name: str, text: str) -> None:
    """Make a view, in the place of a table or view of this name that may have been left behind."""
    from duckdb import CatalogException
    try:
        connection.execute(f"CREATE OR REPLACE TEMP VIEW {name} AS {text}")
    except CatalogException:
        drop_relation(connection, name)
        connection.execute(f"CREATE TEMP VIEW {name} AS {text}")


def drop_relation(connection: duckdb.DuckDBPyConnection, name: str, *, is_view: bool = False) -> None:
    """Remove a table or view, if it is there; `is_view` is a guess."""
    from duckdb import CatalogException
    first, second = ("VIEW", "TABLE") if is_view else ("TABLE", "VIEW")
    try:
        connection.execute(f"DROP {first} IF EXISTS {name}")
    except CatalogException:
        connection.execute(f"DROP {second} {name}")

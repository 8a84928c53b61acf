"""The tables of panes in a worker (engine/sql/panes.py): filled as time goes on, cut where solutions come whose newest facts are older.

Where a relation may keep one solution twice no pane serves, for an aggregate counts it once. So it is where there are nearly as many groups
as solutions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.sql.panes import IN_WINDOW, PaneText, parameters
from engine.worker.database import changed_rows, parsed

if TYPE_CHECKING:
    import duckdb

MOST_PANES = 8 * IN_WINDOW      # so many are filled in one go, and remembered beside those of a window
UNUSED = 256    # a table that no query has asked for goes when so many batches have come
FEWER = 4       # panes serve where they have so many times fewer rows than the solutions that they stand for
Windows = Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class PaneStep:
    """A table of panes and what is asked of it: of each T the times ``low <= t < high`` that each window shows, of facts after log
    position `since`."""

    text: PaneText
    ticks: tuple[Windows, ...]
    since: int


@dataclass(slots=True)
class PaneTable:
    """What is known of a table of panes that are filled up to number `until`: of each the least ``first0 ... born``, None where no solution
    is in it. It was `used` last after so many batches."""

    text: PaneText
    until: int = 0
    least: dict[int, tuple[int, ...] | None] = field(default_factory=dict)
    rows: int = 0
    serves: bool = True
    used: int = 0


def fill(connection: duckdb.DuckDBPyConnection, tables: dict[str, PaneTable], asked: PaneStep, solutions: int | None,
         batches: int) -> dict[str, int]:
    """Fill the panes of a table that its windows show; the values of the parameters that say which are read. `tables` are those of the
    relation, by name, which has so many `solutions` (None: some perhaps twice) after so many batches. What other tasks of this batch read
    stays: they run side by side."""
    name = asked.text.name
    drop(connection, tables, [other for other, table in tables.items() if batches - table.used > UNUSED])
    if name not in tables:
        connection.execute(asked.text.empty)
        tables[name] = PaneTable(asked.text)
    table = tables[name]
    if not table.serves and table.rows and table.used < batches:
        _clear(connection, table)
    table.used = batches
    if solutions is None:
        return dict.fromkeys((part for number in range(len(asked.ticks)) for part in parameters(name, number)), 0)
    if table.serves:
        _fill(connection, table, asked, solutions)
    given = dict[str, int]()
    for number, windows in enumerate(asked.ticks):
        first = until = min(table.until, _whole(windows, table.text)) if table.serves else 0
        while first > _oldest(windows, table.text) and first - 1 in table.least and _is_shown(table.least[first - 1], windows, asked.since):
            first -= 1
        given |= zip(parameters(name, number), (first, until))
    return given


def _whole(windows: Windows, text: PaneText) -> int:
    """The first pane that is not over when all windows end."""
    return min(high for _, high in windows) // text.width_ms


def _oldest(windows: Windows, text: PaneText) -> int:
    """The first pane that is not over when all windows begin."""
    return min(low for low, _ in windows) // text.width_ms


def _is_shown(least: tuple[int, ...] | None, windows: Windows, since: int) -> bool:
    return least is None or least[-1] > since and all(first >= low for first, (low, _) in zip(least, windows))


def _fill(connection: duckdb.DuckDBPyConnection, table: PaneTable, asked: PaneStep, solutions: int) -> None:
    until = max(_whole(windows, table.text) for windows in asked.ticks)
    oldest = min(_oldest(windows, table.text) for windows in asked.ticks)
    first = max(table.until, oldest, until - MOST_PANES, 0)
    if first >= until:
        return
    table.rows += changed_rows(connection, parsed(connection, table.text.added), {"from": first, "until": until})
    found = connection.execute(parsed(connection, table.text.least), {"from": first}).fetchall()
    least = {pane: tuple(columns) for pane, *columns in found}
    table.least = {pane: columns for pane, columns in table.least.items() if pane >= oldest - MOST_PANES}
    table.least |= {pane: least.get(pane) for pane in range(first, until)}
    table.until = until
    table.serves = table.rows * FEWER <= solutions


def _clear(connection: duckdb.DuckDBPyConnection, table: PaneTable) -> None:
    connection.execute(table.text.empty)
    table.least.clear()
    table.until = table.rows = 0


def cut(connection: duckdb.DuckDBPyConnection, tables: Mapping[str, PaneTable], from_ms: int | None = None) -> None:
    """Solutions have come whose newest facts are of this time and later (None: of any): the panes from there on are not complete."""
    for table in tables.values():
        pane = 0 if from_ms is None else from_ms // table.text.width_ms
        if pane >= table.until:
            continue
        if pane <= min(table.least, default=pane):
            _clear(connection, table)
        else:
            table.rows -= changed_rows(connection, f"DELETE FROM {table.text.name} WHERE pane >= {pane}")
            table.least = {number: least for number, least in table.least.items() if number < pane}
            table.until = pane


def trim(connection: duckdb.DuckDBPyConnection, tables: Mapping[str, PaneTable], from_ms: int) -> None:
    """The relation was written anew, without what is older than this time: no window shows that. Panes that did not serve may do so now."""
    for name, table in tables.items():
        if not table.serves:
            _clear(connection, table)
            table.serves = True
        pane = from_ms // table.text.width_ms
        table.rows = changed_rows(connection, f"CREATE OR REPLACE TABLE {name} AS SELECT * FROM {name} WHERE pane >= {pane}")
        table.least = {number: least for number, least in table.least.items() if number >= pane}


def drop(connection: duckdb.DuckDBPyConnection, tables: dict[str, PaneTable], names: Sequence[str]) -> None:
    """Drop some tables of panes."""
    for name in names:
        connection.execute(f"DROP TABLE IF EXISTS {name}")
        tables.pop(name, None)

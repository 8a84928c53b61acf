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

MOST_PANES = 8 * IN_WINDOW      # are filled at once; what is older is read from the relation
UNUSED = 256    # steps of a relation: panes that nobody asked for meanwhile go
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
class Filled:
    """The panes of one table up to number `until`: of each the least ``first0 ... born``, None where no solution is in it."""

    text: PaneText
    until: int = 0
    least: dict[int, tuple[int, ...] | None] = field(default_factory=dict)
    rows: int = 0
    serves: bool = True
    used: int = 0


def fill(connection: duckdb.DuckDBPyConnection, tables: dict[str, Filled], step: PaneStep, solutions: int | None,
         now: int) -> dict[str, int]:
    """Fill the panes of a table that its windows show; the values of the parameters that say which are read. `tables` are those of the
    relation, by name, which has so many `solutions` (None: some perhaps twice) at its step number `now`."""
    name = step.text.name
    known = tables.get(name)
    if known is None:
        connection.execute(step.text.empty)
        known = tables[name] = Filled(step.text)
    known.used = now
    for other in [other for other, filled in tables.items() if now - filled.used > UNUSED]:
        drop(connection, {other: tables.pop(other)})
    if solutions is not None and known.serves:
        _fill(connection, known, step, solutions)
    given = dict[str, int]()
    for number, windows in enumerate(step.ticks):
        until = min(known.until, _whole(windows, known.text))
        first = until
        while first - 1 in known.least and _is_shown(known.least[first - 1], windows, step.since):
            first -= 1
        given |= zip(parameters(name, number), (first, until))
    return given


def _whole(windows: Windows, text: PaneText) -> int:
    """The pane that is the first not to be over when all windows end."""
    return min(high for _, high in windows) // text.width_ms


def _is_shown(least: tuple[int, ...] | None, windows: Windows, since: int) -> bool:
    return least is None or least[-1] > since and all(first >= low for first, (low, _) in zip(least, windows))


def _fill(connection: duckdb.DuckDBPyConnection, known: Filled, step: PaneStep, solutions: int) -> None:
    until = max(_whole(windows, known.text) for windows in step.ticks)
    oldest = min(low for windows in step.ticks for low, _ in windows) // known.text.width_ms
    first = max(known.until, oldest, until - MOST_PANES, 0)
    if first >= until:
        return
    known.rows += changed_rows(connection, parsed(connection, known.text.added), {"from": first, "until": until})
    found = connection.execute(parsed(connection, known.text.least), {"from": first}).fetchall()
    least = {pane: tuple(columns) for pane, *columns in found}
    known.least |= {pane: least.get(pane) for pane in range(first, until)}
    known.until = until
    if known.rows * FEWER > solutions:
        known.serves = False
        _clear(connection, known)


def _clear(connection: duckdb.DuckDBPyConnection, known: Filled) -> None:
    connection.execute(known.text.empty)
    known.least.clear()
    known.until = known.rows = 0


def cut(connection: duckdb.DuckDBPyConnection, tables: Mapping[str, Filled], from_ms: int | None) -> None:
    """Solutions have come whose newest facts are of this time and later (None: of any): the panes from there on are not complete."""
    for known in tables.values():
        pane = 0 if from_ms is None else from_ms // known.text.width_ms
        if pane < known.until:
            if pane <= min(known.least, default=pane):
                _clear(connection, known)
                continue
            connection.execute(f"DELETE FROM {known.text.name} WHERE pane >= {pane}")
            known.least = {number: least for number, least in known.least.items() if number < pane}
            known.until = pane


def trim(connection: duckdb.DuckDBPyConnection, tables: Mapping[str, Filled], from_ms: int) -> None:
    """No window shows what is older than this time."""
    for known in tables.values():
        pane = from_ms // known.text.width_ms
        if known.least and min(known.least) < pane:
            known.rows = changed_rows(connection, f"CREATE OR REPLACE TABLE {known.text.name} AS SELECT * FROM {known.text.name} "
                                                  f"WHERE pane >= {pane}")
            known.least = {number: least for number, least in known.least.items() if number >= pane}


def drop(connection: duckdb.DuckDBPyConnection, tables: Mapping[str, Filled]) -> None:
    """Drop tables of panes."""
    for name in tables:
        connection.execute(f"DROP TABLE IF EXISTS {name}")

"""Kept relations in a worker: what patterns find in the tables that it follows, brought up to date by what these were brought since."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.sql.kept import Delta, KeptText, KeptView
from engine.worker.database import changed_rows, count_rows, kept_beside, parsed
from engine.worker.resident import Held, held_of

if TYPE_CHECKING:
    import duckdb

_MOST_NEW = 3       # a relation is made anew where one in so many facts is new
_DEAD = 2           # and written anew without what has ended, once it has so many times the rows that it had then
_FEW = 1_000
_MANY = 10_000      # of so many rows it is worth to know whether some are the same solution

_BRINGING = threading.Lock()
_LOCKS: dict[str, threading.Lock] = {}      # by relation


@dataclass(frozen=True, slots=True)
class KeptStep:
    """A kept relation and the times (ms) before which nothing is needed of each of its tables."""

    text: KeptText
    from_ms: tuple[int, ...]


@dataclass(slots=True)
class _Kept:
    """What a relation holds: of each table the making that it is of and the last batch that was seen."""

    seen: list[tuple[int, int]]
    rows: int = 0
    settled: int = 0
    steps: int = 0
    once: bool | None = None    # whether it is known that no solution is kept twice


def bring_up_to_date(connection: duckdb.DuckDBPyConnection, steps: Sequence[KeptStep]) -> None:
    """Add to the relations what is new; one that failed is made anew next time."""
    kept = _kept(connection)
    for step in steps:
        with _lock_of(step.text.name):      # another task may be at it
            try:
                _advance(connection, kept, step)
            except BaseException:
                _drop(connection, kept, step.text.name)
                raise


def _lock_of(relation: str) -> threading.Lock:
    with _BRINGING:
        return _LOCKS.setdefault(relation, threading.Lock())


def show(connection: duckdb.DuckDBPyConnection, views: Sequence[KeptView]) -> None:
    """Make views that are not there."""
    made = _views(connection)
    for view in views:
        with _lock_of(view.relation):
            if view.name not in made:
                connection.execute(f"CREATE OR REPLACE TABLE {view.name} AS {view.text}")
                made.add(view.name)


def drop_views(connection: duckdb.DuckDBPyConnection) -> None:
    """Drop the views of a bundle: the relations change with the next one."""
    made = _views(connection)
    while made:
        connection.execute(f"DROP TABLE IF EXISTS {(name := next(iter(made)))}")
        made.remove(name)


def _views(connection: duckdb.DuckDBPyConnection) -> set[str]:
    found: set[str] = kept_beside(connection, f"{__name__}.views").setdefault("made", set())
    return found


def _kept(connection: duckdb.DuckDBPyConnection) -> dict[str, _Kept]:
    return kept_beside(connection, __name__)


def forget(connection: duckdb.DuckDBPyConnection, alive: frozenset[str]) -> None:
    """Drop the relations that are not `alive`."""
    kept = _kept(connection)
    for name in kept.keys() - alive:
        _drop(connection, kept, name)
    with _BRINGING:
        for name in _LOCKS.keys() - alive:      # those of relations that failed, too
            del _LOCKS[name]


def _advance(connection: duckdb.DuckDBPyConnection, kept: dict[str, _Kept], step: KeptStep) -> None:
    text, tables = step.text, [held_of(connection, table) for table in (*step.text.tables, *step.text.graphs)]
    now = [(table.making, table.upto) for table in tables]
    known = kept.get(text.name)
    if known is not None and known.seen == now:
        return
    if known is None or [making for making, _ in known.seen] != [making for making, _ in now] or _mostly_new(known, tables):
        connection.execute(f"CREATE OR REPLACE TABLE {text.name} AS SELECT *, {text.key} AS key, CAST(0 AS BIGINT) AS step "
                           f"FROM ({text.whole}) AS w")
        known = kept[text.name] = _Kept(now)
        _settle(connection, text, known)
        return
    given = {f"seen{n}": batch for n, (_, batch) in enumerate(known.seen[:len(text.tables)])}
    given |= {f"from{n}": time for n, time in enumerate(step.from_ms)}
    known.steps += 1
    added = sum(_added(connection, text, delta, given | {"step": known.steps}) for delta in text.deltas)
    known.seen, known.rows = now, known.rows + added
    if known.once and added and not _only_new(connection, text.name, known.steps):
        _show_once(connection, text, known, False)
    if known.rows > _DEAD * known.settled + _FEW:
        alive = " AND ".join(f"first{n} >= {time}" for n, time in enumerate(step.from_ms))
        connection.execute(f"CREATE OR REPLACE TABLE {text.name} AS SELECT * FROM {text.name} WHERE {alive}")
        _settle(connection, text, known)


def _settle(connection: duckdb.DuckDBPyConnection, text: KeptText, known: _Kept) -> None:
    """A relation was written anew."""
    known.rows = known.settled = count_rows(connection, text.name)
    distinct = f"(SELECT DISTINCT key FROM {text.name})"
    _show_once(connection, text, known, known.rows > _MANY and count_rows(connection, distinct) == known.rows)


def _show_once(connection: duckdb.DuckDBPyConnection, text: KeptText, known: _Kept, once: bool) -> None:
    if known.once is not once:
        connection.execute(text.once if once else text.again)
        known.once = once


def _only_new(connection: duckdb.DuckDBPyConnection, relation: str, step: int) -> bool:
    """Whether what a step has added was not there before, and is not there twice; a hash that two have in common counts as one."""
    text = (f"SELECT count(*) - count(DISTINCT key) + (SELECT count(*) FROM {relation} WHERE step < $step AND "
            f"key IN (SELECT key FROM {relation} WHERE step = $step)) FROM {relation} WHERE step = $step")
    return changed_rows(connection, parsed(connection, text), {"step": step}) == 0


def _added(connection: duckdb.DuckDBPyConnection, text: KeptText, delta: Delta, given: Mapping[str, int]) -> int:
    """Add what some new facts find; how many rows. Each part is a statement of its own, so that DuckDB knows how few rows it has."""
    made = list[str]()

    def changed(written: str) -> int:
        statement = parsed(connection, written)
        return changed_rows(connection, statement, {name: given[name] for name in statement.named_parameters})

    try:
        for part in delta.parts:
            made.append(part.name)
            if not changed(f"CREATE OR REPLACE TEMP TABLE {part.name} AS {part.text}"):
                return 0
        return changed(f"INSERT INTO {text.name} BY NAME SELECT *, {text.key} AS key, $step AS step FROM ({delta.joined}) AS d")
    finally:
        for name in made:
            connection.execute(f"DROP TABLE IF EXISTS {name}")


def _mostly_new(known: _Kept, tables: Sequence[Held]) -> bool:
    return any(table.since(batch) * _MOST_NEW > table.rows for table, (_, batch) in zip(tables, known.seen))


def _drop(connection: duckdb.DuckDBPyConnection, kept: dict[str, _Kept], name: str) -> None:
    kept.pop(name, None)
    connection.execute(f"DROP MACRO TABLE IF EXISTS {name}")
    connection.execute(f"DROP TABLE IF EXISTS {name}")

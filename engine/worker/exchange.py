"""Closures that shards make together (engine/plan/exchange.py): what the worker of one does between two exchanges. It goes on from the
facts that it was sent, and finds those that others are to have.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

from engine.plan.derive import Seen
from engine.sql.closing import Closing, add_seen, all_seen, part_table, saturate
from engine.sql.sources import closure_table
from engine.worker.closures import NewRows, Rounds, drop_relation, replace
from engine.worker.database import changed_rows, notes_of, parsed, use_threads

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

_BETWEEN: tuple[Literal["new", "next", "kept_beside", "sent"], ...] = ("new", "next", "kept_beside", "sent")


class ShareLost(RuntimeError):
    """A worker has not what its shard found before: another has taken its place, or there is none, and what needs it is to be made anew."""

    def __init__(self, name: str) -> None:
        """`name` is that of the closure, or of the query."""
        super().__init__(f"a shard's share of {name} is not there")
        self.name = name

    def __reduce__(self) -> tuple[type[ShareLost], tuple[str]]:
        return ShareLost, (self.name,)


@dataclass(slots=True)
class _Found:
    """What the rows are like that a shard has found up to an exchange."""

    like: Seen
    number: int = -1


def advance(connection: duckdb.DuckDBPyConnection, closing: Closing, number: int, received: str) -> pa.Table:
    """What this shard has to send after exchange `number` (0: it begins), in which it got what the table `received` has of its share.
    Raises ShareLost."""
    try:
        return _advance(connection, closing, number, received)
    except BaseException:   # whatever it was, and wherever: nothing half-made stays
        with suppress(Exception):
            drop(connection, closing.name)
        raise


def _advance(connection: duckdb.DuckDBPyConnection, closing: Closing, number: int, received: str) -> pa.Table:
    exchange, sent = closing.exchange, part_table(closing.name, "sent")
    assert exchange is not None
    use_threads(connection, None)   # it may be far larger than its tables
    note = f"INSERT INTO {sent} SELECT * FROM {closing.new} WHERE {exchange.sent}" if exchange.sent else ""
    tables = Rounds(connection, closing, partial(_find_beside, connection, closing) if number else None, note)
    if not number:
        drop(connection, closing.name)
        tables.start()
        for part in (closing.state, closing.beside):    # nothing was found before
            replace(connection, "TABLE", part, f"SELECT * FROM {closing.all} LIMIT 0")
        found = _Found(all_seen(tables, closing.behind))
    else:
        found = _found(connection, closing.name, number - 1)
        replace(connection, "TABLE", closing.all, f"SELECT * FROM {closing.state} LIMIT 0")
        given = f"SELECT {', '.join(exchange.columns)} FROM {received} WHERE {exchange.own}"
        tables.found = changed_rows(connection, parsed(connection, f"INSERT INTO {closing.all} {closing.before}{given}{closing.after}"))
    replace(connection, "TABLE", sent, f"SELECT * FROM {closing.state} LIMIT 0")
    if tables.found:
        if not closing.strata:      # what checks are to look for is then seen by no round
            add_seen(found.like, tables.seen(closing.all))
        saturate(closing, tables, found.like)
    answer = connection.sql(f"SELECT * FROM {sent}").to_arrow_table()
    for part in _BETWEEN:
        drop_relation(connection, part_table(closing.name, part))
    if not number:
        connection.execute(f"DROP TABLE {closing.state}")
        connection.execute(f"ALTER TABLE {closing.all} RENAME TO {closing.state}")
    else:
        connection.execute(f"INSERT INTO {closing.state} SELECT * FROM {closing.all}")
        connection.execute(f"DROP TABLE {closing.all}")
    connection.execute(f"CREATE TEMP VIEW {closing.all} AS SELECT * FROM {closing.state}")
    found.number = number
    _notes(connection)[closing.name] = found
    return answer


def _find_beside(connection: duckdb.DuckDBPyConnection, closing: Closing, ends: frozenset[str], new: NewRows) -> None:
    """Make the relation of what was found before the last exchange beside what is new: there are few rounds behind each, so that an index
    does not pay."""
    assert closing.exchange is not None
    beside = " OR ".join(f"{pair[1]} IN (SELECT {pair[0]} FROM {closing.new})" for pair in sorted(ends))
    replace(connection, "TABLE", closing.beside,
            f"SELECT {', '.join(closing.exchange.columns)} FROM {closing.state} WHERE {beside or 'FALSE'}")


def findings(connection: duckdb.DuckDBPyConnection, closing: Closing, number: int) -> pa.Table | None:
    """What is inconsistent in this shard's share, once `number` exchanges have made the closure. Raises ShareLost."""
    check = closing.check(_found(connection, closing.name, number).like)
    return connection.sql(check).to_arrow_table() if check else None


def drop(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    """Remove the tables of a closure."""
    _notes(connection).pop(name, None)  # first: an interrupt may come between two statements
    drop_relation(connection, closure_table(name), is_view=True)
    for part in _BETWEEN:
        drop_relation(connection, part_table(name, part))
    drop_relation(connection, part_table(name, "state"))


def forget(connection: duckdb.DuckDBPyConnection, alive: frozenset[str]) -> None:
    """Remove the tables of closures that are not `alive`."""
    for name in _notes(connection).keys() - alive:
        drop(connection, name)


def _notes(connection: duckdb.DuckDBPyConnection) -> dict[str, _Found]:
    """What was found, by closure."""
    return notes_of(connection, __name__)


def _found(connection: duckdb.DuckDBPyConnection, name: str, number: int) -> _Found:
    """What was found of a closure up to an exchange. Raises ShareLost."""
    notes = _notes(connection)
    if name not in notes or notes[name].number != number:
        raise ShareLost(name)
    return notes[name]

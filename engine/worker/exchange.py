"""Closures that shards make together (engine/plan/exchange.py): what the worker of one does between two exchanges. It goes on from the
facts that it was sent, and finds those that others are to have.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal

from engine.sql.closing import Closing, all_seen, part_table, saturate
from engine.worker.closures import NewRows, Rounds, State, drop_relation, replace, states
from engine.worker.database import changed_rows, parsed, use_threads

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

_PARTS: tuple[Literal["new", "next", "kept_beside", "sent"], ...] = ("new", "next", "kept_beside", "sent")


class ShareLost(RuntimeError):
    """A worker has not what its shard found before: another has taken its place, and the closure is to be made anew."""

    def __init__(self, closure: str) -> None:
        super().__init__(f"a shard's share of the closure {closure} is not there")
        self.closure = closure

    def __reduce__(self) -> tuple[type[ShareLost], tuple[str]]:
        return ShareLost, (self.closure,)


def advance(connection: duckdb.DuckDBPyConnection, closing: Closing, number: int, received: str) -> pa.Table:
    """What this shard has to send after exchange `number` (0: it begins), in which it got what the table `received` has of its share.
    Raises ShareLost."""
    try:
        return _advance(connection, closing, number, received)
    except BaseException:   # whatever it was, and wherever: nothing half-made stays
        drop(connection, closing)
        raise


def _advance(connection: duckdb.DuckDBPyConnection, closing: Closing, number: int, received: str) -> pa.Table:
    shared, sent = closing.shared, part_table(closing.name, "sent")
    assert shared is not None
    use_threads(connection, None)   # it may be far larger than its tables
    each = f"INSERT INTO {sent} SELECT * FROM {closing.new} WHERE {shared.sent}" if shared.sent else ""
    tables = Rounds(connection, closing, partial(_find_beside, connection, closing), each)
    if not number:
        drop(connection, closing)
        tables.start()
        replace(connection, "TABLE", closing.state, f"SELECT * FROM {closing.all} LIMIT 0")
        state = states(connection)[closing.name] = State(all_seen(tables, closing.behind))
    else:
        state = _state(connection, closing, number - 1)
        replace(connection, "TABLE", closing.all, f"SELECT * FROM {closing.state} LIMIT 0")
        given = f"SELECT {', '.join(shared.columns)} FROM {received} WHERE {shared.own}"
        tables.found = changed_rows(connection, parsed(connection, f"INSERT INTO {closing.all} {closing.before}{given}{closing.after}"))
    replace(connection, "TABLE", sent, f"SELECT * FROM {closing.state} LIMIT 0")
    if tables.found:
        saturate(closing, tables, state.like)
    if not number:
        connection.execute(f"DROP TABLE {closing.state}")
        connection.execute(f"ALTER TABLE {closing.all} RENAME TO {closing.state}")
        state.begin(connection, closing.state)
    else:
        if tables.found:
            state.insert(connection, closing.state, closing.all, tables.found)
        connection.execute(f"DROP TABLE {closing.all}")
    connection.execute(f"CREATE TEMP VIEW {closing.all} AS SELECT * FROM {closing.state}")
    state.last = number
    return connection.sql(f"SELECT * FROM {sent}").to_arrow_table()


def _find_beside(connection: duckdb.DuckDBPyConnection, closing: Closing, ends: frozenset[str], new: NewRows) -> None:
    """Make the relation of what was found before the last exchange beside what is new: there are few rounds behind each, so that an index
    does not pay."""
    assert closing.shared is not None
    beside = " OR ".join(f"{pair[1]} IN (SELECT {pair[0]} FROM {closing.new})" for pair in sorted(ends))
    replace(connection, "TABLE", closing.beside,
            f"SELECT {', '.join(closing.shared.columns)} FROM {closing.state} WHERE {beside or 'FALSE'}")


def findings(connection: duckdb.DuckDBPyConnection, closing: Closing, number: int) -> pa.Table | None:
    """What is inconsistent in this shard's share, once `number` exchanges have made the closure. Raises ShareLost."""
    check = closing.check(_state(connection, closing, number).like)
    return connection.sql(check).to_arrow_table() if check else None


def drop(connection: duckdb.DuckDBPyConnection, closing: Closing) -> None:
    """Remove the tables of a closure."""
    drop_relation(connection, closing.all, is_view=True)
    for part in _PARTS:
        drop_relation(connection, part_table(closing.name, part))
    drop_relation(connection, closing.state)
    states(connection).pop(closing.name, None)


def _state(connection: duckdb.DuckDBPyConnection, closing: Closing, number: int) -> State:
    state = states(connection).get(closing.name)
    if state is None or state.last != number:
        raise ShareLost(closing.name)
    return state

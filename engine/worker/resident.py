"""Tables that stay in a worker process between its tasks: the facts of streams, to which each batch adds some, and static graphs.

What a worker holds is a cache. A bundle says what a table is to hold and brings only what is new; a worker that has not what came before
says so (`Behind`), and is given all of it. So any worker can take the place of another.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from engine.ipc import pack, unpack
from engine.worker.database import count_rows, kept_beside, register

if TYPE_CHECKING:
    import duckdb

_DEAD = 2           # a table is written anew when it has so many times the rows that are needed
_FEW = 1_000        # and so many more
_BATCHES = 64       # of so many it is remembered how many rows they brought
_NEW = "rows_brought"


class Behind(RuntimeError):
    """A worker lacks what came before what it was brought of some tables."""

    def __init__(self, tables: frozenset[str]) -> None:
        super().__init__(f"a worker lacks earlier parts of {', '.join(sorted(tables))}")
        self.tables = tables

    def __reduce__(self) -> tuple[type[Behind], tuple[frozenset[str]]]:
        return Behind, (self.tables,)


@dataclass(frozen=True, slots=True)
class Followed:
    """A table that workers follow, as the driver knows it: the parts of a content (`token` tells it from all others) up to number `upto`,
    of which workers had been brought those up to `brought` (0: none). Rows older than `from_ms` are not needed (None: all are), `rows` are.
    `after(n)` gives the rows of the parts after number n."""

    token: str
    brought: int
    upto: int
    rows: int
    after: Callable[[int], pa.Table]
    from_ms: int | None = None

    def step(self, whole: bool) -> Step:
        """What a bundle brings of it: what is new, or all of it."""
        after = 0 if whole else self.brought
        return Step(self.token, after, self.upto, self.rows, self.from_ms, b"" if 0 < after == self.upto else pack(self.after(after)))


@dataclass(frozen=True, slots=True)
class Step:
    """The rows of a content's parts after number `after` up to `upto`, packed; the others are as in Followed."""

    token: str
    after: int
    upto: int
    rows: int
    from_ms: int | None
    data: bytes


@dataclass(slots=True)
class Held:
    """What a table of this process holds; `making` tells it from what was there before it was made anew. `brought` has the rows of the last
    batches by number."""

    token: str
    upto: int
    rows: int
    making: int
    brought: dict[int, int]

    def since(self, batch: int) -> int:
        """How many rows came after a batch, if that is known: else all may have."""
        later = [number for number in self.brought if number > batch]
        return sum(self.brought[number] for number in later) if batch in self.brought or batch == self.upto else self.rows


_MAKINGS = itertools.count(1)


def follow(connection: duckdb.DuckDBPyConnection, steps: Mapping[str, Step], alive: frozenset[str] | None) -> dict[str, Exception]:
    """Bring the tables, by name, up to date; why that failed, where it did. Those that are not `alive` go (None: all stay). Raises
    Behind."""
    held = _held(connection)
    for name in held.keys() - (held.keys() if alive is None else alive | steps.keys()):
        _drop(connection, held, name)
    behind = frozenset(name for name, step in steps.items() if step.after and not _continues(held.get(name), step))
    failed: dict[str, Exception] = {}
    for name, step in steps.items():
        if name not in behind:
            try:
                _take(connection, held, name, step)
            except Exception as failure:    # whatever DuckDB raises; the table is made anew next time
                _drop(connection, held, name)
                failed[name] = failure
    if behind:
        raise Behind(behind)
    return failed


def token_of(connection: duckdb.DuckDBPyConnection, name: str) -> object:
    """What tells the content of a table from what it held before, None where there is no such table."""
    held = _held(connection).get(name)
    return None if held is None else (held.token, held.upto)


def _held(connection: duckdb.DuckDBPyConnection) -> dict[str, Held]:
    return kept_beside(connection, __name__)


def held_of(connection: duckdb.DuckDBPyConnection, name: str) -> Held:
    """What a table holds that is followed."""
    return _held(connection)[name]


def _continues(held: Held | None, step: Step) -> bool:
    return held is not None and held.token == step.token and held.upto in (step.after, step.upto)


def _take(connection: duckdb.DuckDBPyConnection, held: dict[str, Held], name: str, step: Step) -> None:
    known = held.get(name)
    if known is not None and known.token == step.token and known.upto == step.upto:
        return      # a task that is run again
    given = unpack(step.data) if step.data else None
    hashes = ", hash(s) AS hs, hash(o) AS ho" if given is not None and "s" in given.schema.names else ""   # of facts, not of constants
    rows = f"SELECT *, CAST({step.upto} AS BIGINT) AS part{hashes} FROM {_NEW}"
    if not step.after:
        _write(connection, f"CREATE OR REPLACE TABLE {name} AS {rows}", given)
        known = held[name] = Held(step.token, step.upto, 0, next(_MAKINGS), {})
    else:
        assert known is not None
        _write(connection, f"INSERT INTO {name} {rows}", given)
    before, known.upto, known.rows = known.rows, step.upto, count_rows(connection, name)
    known.brought[step.upto] = known.rows - before
    while len(known.brought) > _BATCHES:
        del known.brought[min(known.brought)]
    if step.from_ms is not None and known.rows > _DEAD * step.rows + _FEW:
        connection.execute(f"CREATE OR REPLACE TABLE {name} AS SELECT * FROM {name} WHERE t >= {step.from_ms}")
        known.rows = count_rows(connection, name)


def _write(connection: duckdb.DuckDBPyConnection, statement: str, given: pa.Table | None) -> None:
    if given is not None:
        register(connection, _NEW, given)
        try:
            connection.execute(statement)
        finally:
            connection.unregister(_NEW)


def _drop(connection: duckdb.DuckDBPyConnection, held: dict[str, Held], name: str) -> None:
    held.pop(name, None)
    connection.execute(f"DROP TABLE IF EXISTS {name}")

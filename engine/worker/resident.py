"""Tables that stay in a worker process between its tasks: the facts of streams, to which each batch adds some, static graphs, and kept
relations, what patterns find in those, brought up to date by what they were brought since.

What a worker holds is a cache. A bundle says what a table is to hold and brings only what is new; a worker that has not what came before
says so (`Behind`), and is given all of it. So any worker can take the place of another.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from engine.arrays import each_once
from engine.ipc import pack, unpack
from engine.sql.kept import HASHED, Delta, KeptText, KeptView, Meeting, rest_macro
from engine.worker.database import ROW_GROUP, changed_rows, count_rows, notes_of, parsed, prepared, registered
from engine.worker.hash_runs import NO_HASHES, Hashes, HashRuns
from engine.worker.panes import PaneStep, PaneTable, cut, drop, fill, trim

if TYPE_CHECKING:
    import duckdb

_DEAD = 2           # written anew from so many times the rows on that are needed (a table) or were there then (a relation)
_FEW = 1_000        # and so many more
_BATCHES = 1_024    # of so many it is remembered what they brought
_NEW_FACTS, _NEW_CONSTANTS = "facts_brought", "constants_brought"
_FEW_FOUND = 5_000    # rows that new facts find: what they join with is found in one statement (docs/decisions.md)
_MOST_NEW = 3       # a relation is made anew where one in so many facts is new
_MANY = 10_000      # of so many rows it is worth knowing whether some are the same solution, and which hashes they have
_ASKED = 10_000     # of so many new facts the hashes are remembered, to ask whether one has a partner
_MAKINGS = itertools.count(1)
_BRINGING = threading.Lock()
_LOCKS: dict[str, threading.Lock] = {}      # by relation


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
    of which the worker of each shard had been brought those up to `brought` (0: none). Rows older than `from_ms` are not needed (None: all
    are), `rows` are. `after(n)` gives the rows of the parts after number n; of a table that is shared out `share(n, shard)` gives what a
    shard has."""

    token: str
    brought: tuple[int, ...]
    upto: int
    rows: int
    after: Callable[[int], pa.Table]
    from_ms: int | None = None
    share: Callable[[int, int], pa.Table] | None = None

    def step(self, whole: bool, shard: int = 0) -> Step:
        """What a bundle brings a shard of it: what is new, or all of it."""
        after = 0 if whole else self.brought[shard]
        new = b"" if 0 < after == self.upto else pack(self.after(after) if self.share is None else self.share(after, shard))
        return Step(self.token, after, self.upto, self.rows, self.from_ms, new)


@dataclass(frozen=True, slots=True)
class Step:
    """The rows of a content's parts after number `after` up to `upto`, packed; the others are as in Followed."""

    token: str
    after: int
    upto: int
    rows: int
    from_ms: int | None
    data: bytes


@dataclass(frozen=True, slots=True)
class Batch:
    """How many rows a batch brought, and the least batch that may have facts about one of their subjects."""

    rows: int
    nearest: int


@dataclass(slots=True)
class Held:
    """What a table of this process holds; `making` tells it from what was there before it was made anew. `brought` has the last batches
    by number. The hashes in its columns are known from when a relation asked for them: `runs` of all, the `new` ones of the last batches by
    number."""

    token: str
    upto: int
    rows: int
    making: int
    brought: dict[int, Batch]
    runs: dict[str, HashRuns] = field(default_factory=dict)
    new: dict[int, Mapping[str, Hashes]] = field(default_factory=dict)

    def since(self, batch: int) -> int:
        """How many rows came after a batch, if that is known: else all may have."""
        later = self._later(batch)
        return self.rows if later is None else sum(one.rows for one in later.values())

    def nearest(self, batch: int) -> int:
        """The least batch that may have facts about the subjects of what came after a batch (0: any)."""
        later = self._later(batch)
        return 0 if later is None else min((one.nearest for one in later.values()), default=batch + 1)

    def new_hashes(self, batch: int, column: str) -> Hashes | None:
        """The hashes in a column of what came after a batch; None where they are not known."""
        later = self._later(batch)
        if later is None or not all(column in self.new.get(number, ()) for number in later):
            return None
        found = [self.new[number][column] for number in later]
        return found[0] if len(found) == 1 else each_once(np.concatenate([NO_HASHES, *found]))

    def take(self, batch: int, rows: int, hashes: Mapping[str, Hashes]) -> None:
        """Note what a batch has brought; `hashes` by column where any are known, sorted, each once."""
        self.brought[batch] = Batch(rows, self.runs["hs"].nearest(batch, hashes["hs"]) if "hs" in self.runs else 0)
        self.upto, self.rows = batch, self.rows + rows
        for column, runs in self.runs.items():
            runs.add(batch, hashes[column])
        while len(self.brought) > _BATCHES:
            self.new.pop(first := min(self.brought), None)
            del self.brought[first]
        if hashes:
            self.new[batch] = hashes
        while self.new and sum(self.brought[number].rows for number in self.new) > _ASKED:
            del self.new[min(self.new)]

    def _later(self, batch: int) -> dict[int, Batch] | None:
        """The batches after one, by number; None where that is not known."""
        if batch not in self.brought and batch != self.upto:
            return None
        return {number: one for number, one in self.brought.items() if number > batch}


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
    return notes_of(connection, __name__)


def held_of(connection: duckdb.DuckDBPyConnection, name: str) -> Held:
    """What a table holds that is followed."""
    return _held(connection)[name]


def _continues(held: Held | None, step: Step) -> bool:
    return held is not None and held.token == step.token and held.upto in (step.after, step.upto)


def _take(connection: duckdb.DuckDBPyConnection, held: dict[str, Held], name: str, step: Step) -> None:
    known = held.get(name)
    if known is not None and known.token == step.token and known.upto == step.upto:
        return      # a task that is run again
    given = unpack(step.data)
    of_facts = "s" in given.schema.names    # else it has constants
    hashed, new = (f", {HASHED}", _NEW_FACTS) if of_facts else ("", _NEW_CONSTANTS)
    order = " ORDER BY hp" if of_facts and step.rows > ROW_GROUP else ""    # so that a scan passes over those of other properties
    # The number is a parameter, so that the text is the same for each batch, and parsed once.
    rows, part = f"SELECT *, CAST($part AS BIGINT) AS part{hashed} FROM {new}", {"part": step.upto}
    hashes = dict[str, Hashes]()
    with registered(connection, new, given, notes_of(connection, f"{__name__}.given")):
        if not step.after:
            changed_rows(connection, f"CREATE OR REPLACE TABLE {name} AS {rows}{order}", part)
            known = held[name] = Held(step.token, step.upto, 0, next(_MAKINGS), {})
        else:
            assert known is not None
            insert = f"INSERT INTO {name} {rows}"
            if known.runs:
                hashes = _hashes(connection, parsed(connection, f"{insert} RETURNING {', '.join(known.runs)}"), part)
            else:
                changed_rows(connection, parsed(connection, insert), part)
    known.take(step.upto, given.num_rows, hashes)
    if step.from_ms is not None and _is_mostly_dead(known.rows, step.rows, given.num_rows):
        known.rows = changed_rows(connection, f"CREATE OR REPLACE TABLE {name} AS SELECT * FROM {name} WHERE t >= {step.from_ms}{order}")
        if any(runs.count > known.rows for runs in known.runs.values()):
            known.runs.clear()      # made anew from what is left, if they are asked for
            known.new.clear()


def _is_mostly_dead(rows: int, needed: int, new: int) -> bool:
    """Whether so many rows, of which so many are `new`, are to be written anew. At steady rates they come to the limit after a whole number
    of evaluations, some shards just above it and some below: half of what is new more or less decides alike for all of them, so that those
    waiting for each other do not wait twice."""
    return rows + new // 2 > _DEAD * needed + _FEW


def _hashes(connection: duckdb.DuckDBPyConnection, statement: str | duckdb.Statement, given: Mapping[str, int] | None = None
            ) -> dict[str, Hashes]:
    """The columns of hashes that a statement gives, sorted, each hash once."""
    return {column: each_once(np.asarray(found, np.uint64)) for column, found in connection.execute(statement, given).fetchnumpy().items()}


def _drop(connection: duckdb.DuckDBPyConnection, held: dict[str, Held], name: str) -> None:
    held.pop(name, None)
    connection.execute(f"DROP TABLE IF EXISTS {name}")


@dataclass(frozen=True, slots=True)
class KeptStep:
    """A kept relation and the times (ms) before which nothing is needed of each of its tables."""

    text: KeptText
    from_ms: tuple[int, ...]


@dataclass(slots=True)
class _Kept:
    """What a relation holds: of each table the making that it is of and the last batch that was seen; its rows, how many they were when it
    was last written anew, and the steps since it was made; its panes by name."""

    seen: list[tuple[int, int]]
    rows: int = 0
    settled: int = 0
    steps: int = 0
    once: bool | None = None    # whether it is known that no solution is kept twice
    panes: dict[str, PaneTable] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Added:
    """The hashes of the solutions that a step has added, and the times of their newest facts."""

    key: Hashes
    newest: np.typing.NDArray[np.int64]


_NOTHING = _Added(NO_HASHES, np.empty(0, np.int64))


def bring_up_to_date(connection: duckdb.DuckDBPyConnection, steps: Sequence[KeptStep]) -> None:
    """Add to the relations what is new; one that failed is made anew next time."""
    kept = _kept(connection)
    for step in steps:
        with _lock_of(step.text.name):      # another task may be at it
            try:
                _advance(connection, kept, step)
            except BaseException:
                _drop_kept(connection, kept, step.text.name)
                raise


def fill_panes(connection: duckdb.DuckDBPyConnection, steps: Sequence[PaneStep]) -> dict[str, int]:
    """Fill the panes of relations that are up to date; the parameters of the text that reads them."""
    given: dict[str, int] = {}
    for step in steps:
        with _lock_of(step.text.relation):
            known = _kept(connection)[step.text.relation]
            try:
                given |= fill(connection, known.panes, step, known.rows if known.once else None, known.steps)
            except BaseException:
                drop(connection, known.panes, [step.text.name])   # it may be half filled
                raise
    return given


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
    found: set[str] = notes_of(connection, f"{__name__}.views").setdefault("made", set())
    return found


def _kept(connection: duckdb.DuckDBPyConnection) -> dict[str, _Kept]:
    return notes_of(connection, f"{__name__}.relations")


def kept_rows(connection: duckdb.DuckDBPyConnection, name: str) -> int:
    """How many rows a kept relation has, 0 where it is not there yet."""
    known = _kept(connection).get(name)
    return known.rows if known is not None else 0


def forget_kept(connection: duckdb.DuckDBPyConnection, alive: frozenset[str]) -> None:
    """Drop the relations that are not `alive`."""
    kept = _kept(connection)
    for name in kept.keys() - alive:
        _drop_kept(connection, kept, name)
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
        if known is not None:
            drop(connection, known.panes, [*known.panes])
        connection.execute(f"CREATE OR REPLACE TABLE {text.name} AS SELECT *, {text.key} AS key, CAST(0 AS BIGINT) AS step "
                           f"FROM ({text.whole}) AS w")
        known = kept[text.name] = _Kept(now)
        _settle(connection, text, known)
        return
    given = {f"seen{n}": batch for n, (_, batch) in enumerate(known.seen[:len(text.tables)])}
    given |= {f"from{n}": time for n, time in enumerate(step.from_ms)}
    for name, table, columns in zip(text.tables, tables, text.hashed):
        _know_hashes(connection, name, table, columns)
    given |= {f"near{n}": tables[n].nearest(batch) for n, (_, batch) in enumerate(known.seen[:len(text.tables)])}
    known.steps += 1
    added = [_add(connection, text, delta, given | {"step": known.steps}) for delta in (_fitting(each, given) for each in text.deltas)
             if all(_may_meet(tables, known.seen, meeting) for meeting in delta.meetings)]
    keys = np.concatenate([NO_HASHES, *(one.key for one in added)])
    known.seen, known.rows = now, known.rows + len(keys)
    if known.once and len(keys):
        cut(connection, known.panes, min(int(one.newest.min()) for one in added if len(one.key)))
        # Facts about the same subjects; those of another table may say the same.
        earlier = not text.apart or any(given[f"near{n}"] <= given[f"seen{n}"] for n in range(len(text.tables)))
        if len(each_once(keys)) < len(keys) or earlier and _was_there(connection, text, known.steps):
            _show_once(connection, text, known, False)
    if _is_mostly_dead(known.rows, known.settled, len(keys)):
        alive = " AND ".join(f"first{n} >= {time}" for n, time in enumerate(step.from_ms))
        connection.execute(f"CREATE OR REPLACE TABLE {text.name} AS SELECT * FROM {text.name} WHERE {alive}")
        _settle(connection, text, known)
        trim(connection, known.panes, min(step.from_ms))


def _know_hashes(connection: duckdb.DuckDBPyConnection, name: str, table: Held, columns: Collection[str]) -> None:
    """Have the hashes in some columns of a table that is not small."""
    if table.rows > _MANY and (missing := [column for column in columns if column not in table.runs]):
        found = _hashes(connection, f"SELECT {', '.join(missing)} FROM {name}")
        table.runs |= {column: HashRuns(hashes) for column, hashes in found.items()}


def _may_meet(tables: Sequence[Held], seen: Sequence[tuple[int, int]], meeting: Meeting) -> bool:
    """Whether new facts of one table and facts of another may have a hash in common."""
    new = tables[meeting.new].new_hashes(seen[meeting.new][1], meeting.new_column)
    runs = tables[meeting.old].runs.get(meeting.old_column)
    return new is None or runs is None or runs.have(new, seen[meeting.old][1] if meeting.before else None)


def _fitting(delta: Delta, given: Mapping[str, int]) -> Delta:
    """The delta, or the cheaper one where no batch that was seen has facts about the subjects of new ones."""
    window, cheaper = delta.alone or (0, delta)
    return cheaper if given[f"near{window}"] > given[f"seen{window}"] else delta


def _settle(connection: duckdb.DuckDBPyConnection, text: KeptText, known: _Kept) -> None:
    """A relation was written anew."""
    known.rows = known.settled = count_rows(connection, text.name)
    distinct = f"(SELECT DISTINCT key FROM {text.name})"
    _show_once(connection, text, known, known.rows > _MANY and count_rows(connection, distinct) == known.rows)


def _show_once(connection: duckdb.DuckDBPyConnection, text: KeptText, known: _Kept, once: bool) -> None:
    if not once:
        cut(connection, known.panes)
    if known.once is not once:
        for statement in text.once if once else text.again:
            connection.execute(statement)
        known.once = once


def _was_there(connection: duckdb.DuckDBPyConnection, text: KeptText, step: int) -> bool:
    """Whether a solution that a step has added was there before. A hash that two have in common counts as one."""
    found = f"SELECT EXISTS (SELECT 1 FROM {text.name} WHERE step < $step AND key IN (SELECT key FROM {text.name} WHERE step = $step))"
    [(same,)] = connection.execute(parsed(connection, found), {"step": step}).fetchall()
    return bool(same)


def _add(connection: duckdb.DuckDBPyConnection, text: KeptText, delta: Delta, given: Mapping[str, int]) -> _Added:
    """Add what some new facts find. Each part is a statement of its own, so that DuckDB knows how few rows it has; if the first has at most
    _FEW_FOUND, the others and the join are one statement. A table stays until a later delta replaces it; a large one is dropped at once."""
    large, joined, parts = list[str](), delta.joined, [*delta.parts.items()]
    try:
        for number, (part, found) in enumerate(parts):
            rows = changed_rows(connection, *prepared(connection, f"CREATE OR REPLACE TEMP TABLE {part} AS {found}", given))
            if not rows:
                return _NOTHING
            if rows > _MANY:
                large.append(part)
            if number == 0 and rows <= _FEW_FOUND and (others := [f"{name} AS MATERIALIZED ({rest})" for name, rest in parts[1:]]):
                joined = f"WITH {', '.join(others)} {joined}"
                break
        new: dict[str, Any] = connection.execute(*prepared(
            connection, f"INSERT INTO {text.name} BY NAME SELECT *, {text.key} AS key, $step AS step FROM ({joined}) AS d "
            f"RETURNING key, {text.newest} AS newest", given)).fetchnumpy()
        return _Added(new["key"], new["newest"])
    finally:
        for name in large:
            connection.execute(f"DROP TABLE IF EXISTS {name}")


def _mostly_new(known: _Kept, tables: Sequence[Held]) -> bool:
    return any(table.since(batch) * _MOST_NEW > table.rows for table, (_, batch) in zip(tables, known.seen))


def _drop_kept(connection: duckdb.DuckDBPyConnection, kept: dict[str, _Kept], name: str) -> None:
    if (known := kept.pop(name, None)) is not None:
        drop(connection, known.panes, [*known.panes])
    for macro in (name, rest_macro(name)):
        connection.execute(f"DROP MACRO TABLE IF EXISTS {macro}")
    connection.execute(f"DROP TABLE IF EXISTS {name}")

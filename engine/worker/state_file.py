"""The state of a program between two steps as a file: one Arrow IPC table, whose metadata says which rows are whose.

A file is there whole or not at all. It holds what cannot be had again: the events that it came from may be gone.
"""

import json
import os
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa

from engine.files import whole_file
from engine.worker.events import Event, Ground, Lasting
from engine.worker.program import Snapshot

VERSION = 1
_MARK = b"state"
_POINTS = {"relation": 4, "waiting": 2, "beside": 2, "event": 1, "lasting": 2, "always": 1}
_MOST_POINTS = 4
_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")


class StateLost(RuntimeError):
    """The file of a state is not there or cannot be read: nothing else has what it held."""

    def __init__(self, path: str, failure: BaseException) -> None:
        super().__init__(f"what the program held is lost: the file {path} cannot be read ({failure}); restart begins anew")


def write_state(path: str, snapshot: Snapshot) -> int:
    """Write a state; the bytes of the file. It has its name once it is on the disk."""
    parts = [("relation", name, table) for name, table in snapshot.relations.items()]
    parts += [("waiting", name, table) for name, table in snapshot.waiting]
    parts += [("beside", name, table) for name, table in snapshot.beside]
    kept, lasting, always = snapshot.events
    parts += [("event", name, table) for name, table in _grouped((atom, (k,)) for k, atom in kept)]
    parts += [("lasting", name, table) for name, table in _grouped((atom, (first, last)) for first, last, atom in lasting)]
    parts += [("always", name, table) for name, table in _grouped((atom, (0,)) for atom in always)]
    widest = max((_arity(kind, table) for kind, _, table in parts), default=0)
    listed = [(kind, name, table.num_rows, _arity(kind, table)) for kind, name, table in parts]
    about = {"version": VERSION, "past": snapshot.past, "start": snapshot.start, "parts": listed}
    schema = pa.schema([*((f"c{n}", pa.string()) for n in range(widest)), *((f"p{n}", pa.int64()) for n in range(_MOST_POINTS))],
                       metadata={_MARK: json.dumps(about).encode()})
    temporary = Path(f"{path}.{os.getpid()}.tmp")
    temporary.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(Path(path), temporary) as file:
        with pa.ipc.new_file(file, schema, options=_OPTIONS) as writer:
            for kind, _, table in parts:
                writer.write_table(_widened(table, _arity(kind, table), widest, schema))
    return Path(path).stat().st_size


def read_state(path: str) -> Snapshot:
    """The state that `write_state` was given. Raises StateLost."""
    try:
        with pa.memory_map(path) as source:
            table = pa.ipc.open_file(source).read_all()
        about = json.loads(table.schema.metadata[_MARK])
        if about["version"] != VERSION:
            raise ValueError(f"it is of version {about['version']}, not {VERSION}")
        return _snapshot(table, about)
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as failure:
        raise StateLost(path, failure) from failure


def _snapshot(table: pa.Table, about: dict[str, object]) -> Snapshot:
    relations: dict[str, pa.Table] = {}
    waiting: dict[str, list[tuple[str, pa.Table]]] = {"waiting": [], "beside": []}
    kept: list[Event] = []
    lasting: list[Lasting] = []
    always: list[Ground] = []
    begin, widest = 0, table.num_columns - _MOST_POINTS
    for kind, name, rows, arity in about["parts"]:     # type: ignore[attr-defined]
        part, points = table.slice(begin, rows), _POINTS[kind]
        begin += rows
        names = [*(f"a{place}" for place in range(1, arity + 1)), *("lo", "hi", "seen", "taken")[:points]]
        made = part.select([*range(arity), *range(widest, widest + points)]).rename_columns(names)
        if kind == "relation":
            relations[name] = made
        elif kind in waiting:
            waiting[kind].append((name, made))
        else:
            predicate = name.rpartition("/")[0]
            columns = [column.to_pylist() for column in made.columns]
            for row in zip(*columns):
                atom = predicate, tuple(row[:arity])
                if kind == "event":
                    kept.append((row[arity], atom))
                elif kind == "lasting":
                    lasting.append((row[arity], row[arity + 1], atom))
                else:
                    always.append(atom)
    assert begin == table.num_rows, "all rows are some part's"
    start = about["start"]
    return Snapshot(relations, int(about["past"]), None if start is None else int(start),  # type: ignore[call-overload]
                    tuple(waiting["waiting"]), (tuple(sorted(kept)), tuple(sorted(lasting)), tuple(sorted(always))),
                    tuple(waiting["beside"]))


def _arity(kind: str, table: pa.Table) -> int:
    return int(table.num_columns) - _POINTS[kind]


def _grouped(found: Iterable[tuple[tuple[str, tuple[str, ...]], tuple[int, ...]]]) -> Iterable[tuple[str, pa.Table]]:
    by_name: dict[str, list[tuple[str | int, ...]]] = {}
    for (predicate, terms), points in found:
        by_name.setdefault(f"{predicate}/{len(terms)}", []).append((*terms, *points))
    for name, rows in by_name.items():
        arity = int(name.rpartition("/")[2])
        columns = [pa.array(column, pa.string() if place < arity else pa.int64()) for place, column in enumerate(zip(*rows))]
        yield name, pa.table(columns, names=[f"n{place}" for place in range(len(columns))])


def _widened(table: pa.Table, arity: int, widest: int, schema: pa.Schema) -> pa.Table:
    """The rows with as many columns as all have."""
    none, zero = pa.nulls(table.num_rows, pa.string()), pa.nulls(table.num_rows, pa.int64())
    points = table.num_columns - arity
    columns = [*(table.column(n).cast(pa.string()) for n in range(arity)), *[none] * (widest - arity),
               *(table.column(n) for n in range(arity, table.num_columns)), *[zero] * (_MOST_POINTS - points)]
    return pa.table(columns, schema=schema)

"""The state of a program between two steps as a file: one Arrow IPC table, whose metadata says which rows are whose.

A file is there whole or not at all. It holds what cannot be had again: the events that it came from may be gone.
"""

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa

from engine.files import whole_file
from engine.worker.program import Snapshot
from engine.worker.tables import grouped

VERSION = 1
_MARK = b"state"
_POINTS = {"relation": 4, "waiting": 2, "beside": 2, "event": 1, "lasting": 2, "always": 1}
_MOST_POINTS = 4
_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")


class StateLost(RuntimeError):
    """The file of a state is not there or cannot be read: nothing else has what it held."""

    def __init__(self, path: str, failure: BaseException) -> None:
        super().__init__(f"what the program held is lost: the file {path} cannot be read ({failure}); restart begins anew")


def write_state(path: str, snapshot: Snapshot) -> None:
    """Write a state. The file has its name once it is on the disk."""
    parts = [("relation", name, table) for name, table in snapshot.relations.items()]
    parts += [("waiting", name, table) for name, table in snapshot.waiting]
    parts += [("beside", name, table) for name, table in snapshot.beside]
    kept, lasting, always = snapshot.events
    parts += [("event", name, table) for name, table in grouped((*atom, (k,)) for k, atom in kept).items()]
    parts += [("lasting", name, table) for name, table in grouped((*atom, (first, last)) for first, last, atom in lasting).items()]
    parts += [("always", name, table) for name, table in grouped((*atom, (0,)) for atom in always).items()]
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
    events: dict[str, list[Any]] = {"event": [], "lasting": [], "always": []}
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
            for row in zip(*(column.to_pylist() for column in made.columns)):
                atom = predicate, tuple(row[:arity])
                events[kind].append(atom if kind == "always" else (*row[arity:], atom))
    assert begin == table.num_rows, "all rows are some part's"
    start = about["start"]
    kept, lasting, always = (tuple(sorted(found)) for found in events.values())
    return Snapshot(relations, int(about["past"]), None if start is None else int(start),  # type: ignore[call-overload]
                    tuple(waiting["waiting"]), (kept, lasting, always), tuple(waiting["beside"]))


def _arity(kind: str, table: pa.Table) -> int:
    return int(table.num_columns) - _POINTS[kind]


def _widened(table: pa.Table, arity: int, widest: int, schema: pa.Schema) -> pa.Table:
    """The rows with as many columns as all have."""
    none, zero = pa.nulls(table.num_rows, pa.string()), pa.nulls(table.num_rows, pa.int64())
    points = table.num_columns - arity
    columns = [*(table.column(n).cast(pa.string()) for n in range(arity)), *[none] * (widest - arity),
               *(table.column(n) for n in range(arity, table.num_columns)), *[zero] * (_MOST_POINTS - points)]
    return pa.table(columns, schema=schema)

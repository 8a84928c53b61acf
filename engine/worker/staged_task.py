"""A step of the chain of programs that a query needs, in the worker that happens to be given it: as timed_task.py has it for one program,
with a file for each program of the chain."""

from __future__ import annotations

import hashlib
import json
import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import pyarrow as pa

from engine.functions.typed import typed_columns
from engine.limits import LimitExceeded
from engine.plan.timed import Look, StagedPlan
from engine.worker.database import kept_beside
from engine.worker.program import Snapshot
from engine.worker.staged import TRIPLES, StagedSnapshot, StagedState
from engine.worker.state_file import read_state, write_state
from engine.worker.timed_task import ABOUT

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True, slots=True)
class StagedStep:
    """Take the chain `plan` (a pickled StagedPlan) on from the state `number`, which was made for the evaluation time `tick` and is in the
    files of `file` (file_of), to the last of `ticks`; the next state goes to those of `out`. Number 0 is none: the chain begins. The facts
    stand in the task's tables: of `streams` rows FACTS, which are new, of `graphs` such that always hold, where the chain begins. `mark`
    tells the chain from all others of this worker; a state of more than `state_rows` rows is too large. `look`: which evaluation times
    count, where that follows from what the rules derive."""

    mark: str
    plan: bytes
    number: int
    tick: int
    file: str
    ticks: tuple[int, ...]
    on_change: bool
    out: str
    streams: tuple[str, ...]
    graphs: tuple[str, ...]
    state_rows: int
    look: Look | None = None


@dataclass(slots=True)
class _Resident:
    number: int
    state: StagedState


def _residents(connection: duckdb.DuckDBPyConnection) -> dict[str, _Resident]:
    """The states that are in a database, by mark."""
    return kept_beside(connection, __name__)


def file_of(base: str, place: int) -> str:
    """The file with the state of one program of a chain, or, behind the last, with what it saw that has ended."""
    stem, _, end = base.rpartition(".")
    return f"{stem}.{place}.{end}"


def forget(connection: duckdb.DuckDBPyConnection, alive: frozenset[str]) -> None:
    """Drop the states whose marks are not `alive`."""
    for mark in _residents(connection).keys() - alive:
        _drop(connection, mark)


def advance(connection: duckdb.DuckDBPyConnection, step: StagedStep, given: Mapping[str, pa.Table]) -> pa.Table:
    """Make a step: rows SEEN with their typed columns, and as JSON under `ABOUT` in their metadata how many rows each stage holds, the
    evaluation times that count, and the point of the next that may. Raises StateLost, growth.Unending, LimitExceeded."""
    try:
        return _advance(connection, step, given)
    except BaseException:   # whatever it was, and wherever: the state is read again from its files
        _drop(connection, step.mark)
        raise


@lru_cache(maxsize=64)
def _plan(packed: bytes) -> StagedPlan:
    plan: StagedPlan = pickle.loads(packed)     # of the driver's own making, as all that a task is given
    return plan


def _advance(connection: duckdb.DuckDBPyConnection, step: StagedStep, given: Mapping[str, pa.Table]) -> pa.Table:
    state = _caught_up(connection, step, _plan(step.plan))
    events, static = (_triples([given[name] for name in names]) for names in (step.streams, step.graphs))
    rows = state.advance(events, static, step.ticks, step.on_change, step.look)
    if (held := sum(state.held)) > step.state_rows:
        raise LimitExceeded.of("state_rows", step.state_rows, f"the rules with a time of their own hold {held} rows")
    snapshot = state.snapshot()
    passing = Snapshot({}, 2 * state.tick - 1, None, ((TRIPLES, snapshot.passing),))
    for place, one in enumerate((*snapshot.stages, passing)):
        write_state(file_of(step.out, place), one)
    _residents(connection)[step.mark] = _Resident(step.number + 1, state)
    for name, column in zip(("kind", "number", "micros"), typed_columns(rows["o"])):
        rows = rows.append_column(name, column)
    about = {"held": state.held, "ticks": state.ticks, "next": state.upcoming()}
    return rows.replace_schema_metadata({ABOUT: json.dumps(about).encode()})


def _caught_up(connection: duckdb.DuckDBPyConnection, step: StagedStep, plan: StagedPlan) -> StagedState:
    """The state to go on from. One that is held here and not that, by its number and its time, is of a step that came to nothing."""
    held = _residents(connection).get(step.mark)
    if held is not None and step.number and (held.number, held.state.tick) == (step.number, step.tick):
        return held.state
    _drop(connection, step.mark)
    state = StagedState(connection, plan, f"h_{hashlib.sha256(step.mark.encode()).hexdigest()[:12]}_")
    _residents(connection)[step.mark] = _Resident(-1, state)      # so that it is dropped whatever happens
    if step.number:
        *stages, passing = [read_state(file_of(step.file, place)) for place in range(len(plan.stages) + 1)]
        [(_, table)] = passing.waiting
        state.restore(StagedSnapshot(tuple(stages), step.tick, table))
    return state


def _drop(connection: duckdb.DuckDBPyConnection, mark: str) -> None:
    if (held := _residents(connection).pop(mark, None)) is not None:
        held.state.drop()


def _triples(tables: list[pa.Table]) -> pa.Table:
    """Rows FACTS of several tables as triples with their times."""
    names = ("s", "p", "o", "t")
    schema = pa.schema([*((name, pa.string()) for name in "spo"), ("t", pa.int64())])
    return pa.concat_tables([schema.empty_table(), *(pa.table([table[name].cast(schema.field(name).type) for name in names], schema=schema)
                                                     for table in tables)])

"""A step of a program with a time of its own, or of the chain of programs that a query needs, in the worker that happens to be given it.

The state is a value: a number, and the file that has it; of a chain a file for each of its programs. A worker that made it still holds it
in tables; any other reads the file. The step after it writes the next file, and says what began and what ceased, or what is seen. Nothing
is told twice or lost where a step is made again.
"""

from __future__ import annotations

import hashlib
import json
import pickle
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from engine.functions.typed import typed_columns
from engine.limits import LimitExceeded
from engine.plan.timed import Look, StagedPlan, TimedPlan, Told
from engine.sql.steps import statements_of
from engine.timeline import MIN
from engine.worker.database import kept_beside
from engine.worker.guard import check_time
from engine.worker.program import ProgramState, Snapshot
from engine.worker.recording import step_size, steps
from engine.worker.staged import TRIPLES, StagedSnapshot, StagedState, rows_with, triples_of
from engine.worker.state_file import read_state, write_state
from engine.worker.tables import table_of, tables

if TYPE_CHECKING:
    import duckdb

CEASED = "ceased"
ABOUT = b"program"


@dataclass(frozen=True, slots=True)
class TimedStep:
    """Take the program `plan` (a pickled TimedPlan) on from the state `number`, whose last point is `past` and which `file` has, to the
    point `until`; the next state goes to the file `out`. Number 0 is none: the program begins. The facts stand in the task's tables:
    of `streams` rows FACTS, which are new, of `graphs` such that always hold, where the program begins. `mark` tells the program from
    all others of this worker; a state of more than `state_rows` rows is too large."""

    mark: str
    plan: bytes
    number: int
    past: int
    file: str
    until: int
    out: str
    streams: tuple[str, ...]
    graphs: tuple[str, ...]
    state_rows: int


@dataclass(frozen=True, slots=True)
class TimedOutcome:
    """What a step gives: `rows` with the program's columns, ``ceased`` (else the fact begins), and the points ``lo hi``; how many rows are
    held; the first point at which something may begin or cease though nothing comes, None where nothing will."""

    rows: pa.Table
    held: int
    next: int | None


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


@dataclass(frozen=True, slots=True)
class _Resident:
    """A state that is in a database, by its number and how far it was taken on."""

    number: int
    at: int
    state: ProgramState | StagedState


def _residents(connection: duckdb.DuckDBPyConnection) -> dict[str, _Resident]:
    """The states that are in a database, by mark."""
    return kept_beside(connection, __name__)


def forget(connection: duckdb.DuckDBPyConnection, alive: frozenset[str]) -> None:
    """Drop the states whose marks are not `alive`."""
    for mark in _residents(connection).keys() - alive:
        _drop(connection, mark)


def _drop(connection: duckdb.DuckDBPyConnection, mark: str) -> None:
    if (held := _residents(connection).pop(mark, None)) is not None:
        held.state.drop()


def packed_plan(plan: TimedPlan | StagedPlan) -> bytes:
    return pickle.dumps(plan)


@lru_cache(maxsize=128)
def _plan(packed: bytes) -> Any:
    return pickle.loads(packed)     # of the driver's own making, as all that a task is given


@contextmanager
def _read_again_if_it_fails(connection: duckdb.DuckDBPyConnection, mark: str) -> Iterator[None]:
    try:
        yield
    except BaseException:   # whatever it was, and wherever: the state is read again from its file
        _drop(connection, mark)
        raise


def _held(connection: duckdb.DuckDBPyConnection, step: TimedStep | StagedStep, at: int) -> ProgramState | StagedState | None:
    """The state to go on from, if it is here. One that is held and not that, by its number and time, is of a step that came to nothing."""
    held = _residents(connection).get(step.mark)
    if held is not None and step.number and (held.number, held.at) == (step.number, at):
        return held.state
    _drop(connection, step.mark)
    return None


def advance(connection: duckdb.DuckDBPyConnection, step: TimedStep, given: Mapping[str, pa.Table]) -> TimedOutcome:
    """Make a step. Raises StateLost, growth.Unending, LimitExceeded."""
    with _read_again_if_it_fails(connection, step.mark):
        return _advance(connection, step, given)


def labelled(outcome: TimedOutcome) -> pa.Table:
    """The rows of a step with what else it gives, as a task hands them back: JSON under `ABOUT` in their metadata."""
    return outcome.rows.replace_schema_metadata({ABOUT: json.dumps({"held": outcome.held, "next": outcome.next}).encode()})


def _advance(connection: duckdb.DuckDBPyConnection, step: TimedStep, given: Mapping[str, pa.Table]) -> TimedOutcome:
    plan: TimedPlan = _plan(step.plan)
    state = _caught_up(connection, step, plan)
    facts, next_own = _facts(plan, step, given)
    begun: dict[str, list[pa.Table]] = {}
    ended: dict[str, list[pa.Table]] = {}
    past = step.past
    for until in steps(facts, step_size(facts, plan.program), step.until, plan.program.granule):
        check_time()
        told = state.advance(_between(facts, past, until), until)
        for found, of in ((begun, told.begun), (ended, told.ended)):
            for name, table in of.items():
                found.setdefault(name, []).append(table)
        if state.held > step.state_rows:
            raise LimitExceeded.of("state_rows", step.state_rows, f"the program holds {state.held} rows")
        past = until
    rows = pa.concat_tables([_rows(plan, one, found, ceased) for one in plan.told for found, ceased in ((begun, False), (ended, True))])
    upcoming = [point for point in (state.upcoming(), next_own) if point is not None]
    write_state(step.out, state.snapshot())
    _residents(connection)[step.mark] = _Resident(step.number + 1, state.mark.past, state)
    return TimedOutcome(rows, state.held, min(upcoming, default=None))


def _caught_up(connection: duckdb.DuckDBPyConnection, step: TimedStep, plan: TimedPlan) -> ProgramState:
    if isinstance(held := _held(connection, step, step.past), ProgramState):
        return held
    prefix = f"t_{hashlib.sha256(step.mark.encode()).hexdigest()[:12]}_"
    state = ProgramState(connection, statements_of(plan.program), list(dict.fromkeys(told.relation for told in plan.told)), prefix)
    _residents(connection)[step.mark] = _Resident(-1, MIN, state)    # so that it is dropped whatever happens
    if step.number:
        state.restore(read_state(step.file))
    return state


def _facts(plan: TimedPlan, step: TimedStep, given: Mapping[str, pa.Table]) -> tuple[dict[str, pa.Table], int | None]:
    """What comes in, by relation and in order; and the first point of the program's own facts that are still to come."""
    due, coming = [], []
    for fact in plan.facts:
        if fact.interval.lo > step.until:
            coming.append(fact.interval.lo)
        elif fact.interval.lo > step.past:
            due.append(fact)
    found = {name: [table] for name, table in tables(due).items()}
    triples = [triples_of(given[name]) for name in step.streams] + [triples_of(given[name], always=True) for name in step.graphs]
    found.setdefault(TRIPLES, []).extend(triples)
    joined = {name: pa.concat_tables(listed) for name, listed in found.items()}
    return ({name: table.take(pc.sort_indices(table["lo"])) for name, table in joined.items() if table.num_rows}, min(coming, default=None))


def _between(facts: Mapping[str, pa.Table], past: int, until: int) -> dict[str, pa.Table]:
    found = {}
    for name, table in facts.items():
        lo = table["lo"].to_numpy()
        first, last = lo.searchsorted(past, "right"), lo.searchsorted(until, "right")
        if last > first:
            found[name] = table.slice(first, last - first)
    return found


def _rows(plan: TimedPlan, told: Told, found: Mapping[str, Sequence[pa.Table]], ceased: bool) -> pa.Table:
    """What is told of a relation: what began some time, is asked for, and is RDF where it is a triple."""
    arity = int(told.relation.rpartition("/")[2])
    table = pa.concat_tables(found[told.relation]) if told.relation in found else table_of([], arity)
    table = table.filter(pc.greater(table["lo"], MIN))
    table = rows_with(table, told.asked) if told.asked else table
    cells = dict(told.cells)
    columns = {name: _column(table, cells.get(name)) for name in plan.columns}
    whole = pa.table({**columns, CEASED: pa.array([ceased] * table.num_rows, pa.bool_()), "lo": table["lo"], "hi": table["hi"]})
    if told.is_triple:
        whole = whole.filter(pc.and_(pc.starts_with(whole["p"], "<"), pc.invert(pc.starts_with(whole["s"], '"'))))
    return whole


def _column(table: pa.Table, cell: str | int | None) -> pa.Array | pa.ChunkedArray:
    if cell is None:
        return pa.nulls(table.num_rows, pa.string())
    return table[f"a{cell}"] if isinstance(cell, int) else pa.array([cell] * table.num_rows, pa.string())


def file_of(base: str, place: int) -> str:
    """The file with the state of one program of a chain, or, behind the last, with what it saw that has ended."""
    stem, _, end = base.rpartition(".")
    return f"{stem}.{place}.{end}"


def advance_chain(connection: duckdb.DuckDBPyConnection, step: StagedStep, given: Mapping[str, pa.Table]) -> pa.Table:
    """Make a step: rows SEEN with their typed columns, and as JSON under `ABOUT` in their metadata how many rows each stage holds, the
    evaluation times that count, and the point of the next that may. Raises StateLost, growth.Unending, LimitExceeded."""
    with _read_again_if_it_fails(connection, step.mark):
        return _advance_chain(connection, step, given)


def _advance_chain(connection: duckdb.DuckDBPyConnection, step: StagedStep, given: Mapping[str, pa.Table]) -> pa.Table:
    state = _chain(connection, step, _plan(step.plan))
    events, static = (_together([given[name] for name in names]) for names in (step.streams, step.graphs))
    rows = state.advance(events, static, step.ticks, step.on_change, step.look)
    if (held := sum(state.held)) > step.state_rows:
        raise LimitExceeded.of("state_rows", step.state_rows, f"the rules with a time of their own hold {held} rows")
    snapshot = state.snapshot()
    passing = Snapshot({}, 2 * state.tick - 1, None, ((TRIPLES, snapshot.passing),))
    for place, one in enumerate((*snapshot.stages, passing)):
        write_state(file_of(step.out, place), one)
    _residents(connection)[step.mark] = _Resident(step.number + 1, state.tick, state)
    for name, column in zip(("kind", "number", "micros"), typed_columns(rows["o"])):
        rows = rows.append_column(name, column)
    about = {"held": state.held, "ticks": state.ticks, "next": state.upcoming()}
    return rows.replace_schema_metadata({ABOUT: json.dumps(about).encode()})


def _chain(connection: duckdb.DuckDBPyConnection, step: StagedStep, plan: StagedPlan) -> StagedState:
    if isinstance(held := _held(connection, step, step.tick), StagedState):
        return held
    state = StagedState(connection, plan, f"h_{hashlib.sha256(step.mark.encode()).hexdigest()[:12]}_")
    _residents(connection)[step.mark] = _Resident(-1, MIN, state)    # so that it is dropped whatever happens
    if step.number:
        *stages, passing = [read_state(file_of(step.file, place)) for place in range(len(plan.stages) + 1)]
        [(_, table)] = passing.waiting
        state.restore(StagedSnapshot(tuple(stages), step.tick, table))
    return state


def _together(tables: list[pa.Table]) -> pa.Table:
    """Rows FACTS of several tables as triples with their times."""
    names = ("s", "p", "o", "t")
    schema = pa.schema([*((name, pa.string()) for name in "spo"), ("t", pa.int64())])
    return pa.concat_tables([schema.empty_table(), *(pa.table([table[name].cast(schema.field(name).type) for name in names], schema=schema)
                                                     for table in tables)])

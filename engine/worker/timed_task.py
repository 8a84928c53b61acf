"""A step of a program with a time of its own, or of the chain of programs that a query needs, in the worker that happens to be given it.

The state is a value: a number, and the file that has it; of a chain a file for each of its programs. A worker that made it still holds it
in tables; any other reads the file. The step after it writes the next file, and says what began and what ceased, or what is seen. Nothing
is told twice or lost where a step is made again.
"""

from __future__ import annotations

import hashlib
import json
import pickle
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from engine.functions.typed import typed_columns
from engine.limits import LimitExceeded
from engine.plan import intervals
from engine.plan.analyses import longest
from engine.plan.timed import Look, StagedPlan, TimedPlan, Told
from engine.sql.steps import statements_of
from engine.timeline import MIN
from engine.worker.database import notes_of
from engine.worker.guard import check_time
from engine.worker.program import ProgramState, Snapshot, Tables
from engine.worker.staged import TRIPLES, StagedSnapshot, StagedState, rows_with, triples_of
from engine.worker.state_file import read_state, write_state
from engine.worker.tables import joined, table_of, tables

if TYPE_CHECKING:
    import duckdb

State = TypeVar("State", ProgramState, StagedState)
STEP_COST = 10_000_000      # pairs of rows
MOST_FACTS = 50_000
CEASED = "ceased"
ABOUT = b"program"


@dataclass(frozen=True, slots=True)
class _Step:
    """Take the program, or the chain, `plan` (pickled) on from the state `number`, which `file` has (of a chain those of file_of) and which
    stands `at` a point, or an evaluation time; the next state goes to `out`. Number 0 is none: the program begins. The facts stand in the
    task's tables: of `streams` rows FACTS, which are new, of `graphs` such that always hold, where the program begins. `mark` tells it from
    all others of this worker; a state of more than `state_rows` rows is too large."""

    mark: str
    plan: bytes
    number: int
    at: int
    file: str
    out: str
    streams: tuple[str, ...]
    graphs: tuple[str, ...]
    state_rows: int


@dataclass(frozen=True, slots=True)
class TimedStep(_Step):
    """Of a program (TimedPlan), whose last point is `at`, to the point `until`."""

    until: int


@dataclass(frozen=True, slots=True)
class StagedStep(_Step):
    """Of a chain (StagedPlan), which was taken on to the T `at`, to the last of `ticks`. `look`: which evaluation times count, where that
    follows from what the rules derive."""

    ticks: tuple[int, ...]
    on_change: bool
    look: Look | None = None


@dataclass(frozen=True, slots=True)
class _Resident:
    """A state that is in a database, by its number and how far it was taken on."""

    number: int
    at: int
    state: Any


def _residents(connection: duckdb.DuckDBPyConnection) -> dict[str, _Resident]:
    """The states that are in a database, by mark."""
    return notes_of(connection, __name__)


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


def advance(connection: duckdb.DuckDBPyConnection, step: TimedStep | StagedStep, given: Mapping[str, pa.Table]) -> pa.Table:
    """Make a step. Of a program it gives rows with the program's columns, ``ceased`` (else the fact begins), and the points ``lo hi``; of a
    chain rows SEEN with their typed columns. In their metadata is JSON under `ABOUT`: how many rows are held (of a chain, by each stage),
    the first point at which something may begin or cease though nothing comes, null where nothing will, and of a chain the evaluation
    times that count. Raises StateLost, growth.Unending, LimitExceeded."""
    try:
        rows, about = _advance_chain(connection, step, given) if isinstance(step, StagedStep) else _advance(connection, step, given)
        return rows.replace_schema_metadata({ABOUT: json.dumps(about).encode()})
    except BaseException:   # whatever it was, and wherever: the state is read again from its file
        _drop(connection, step.mark)
        raise


def _state(connection: duckdb.DuckDBPyConnection, step: _Step, begin: Callable[[str], State], restore: Callable[[State], None]) -> State:
    """The state to go on from, as this worker holds it or its file has it; or one that begins, in tables with some prefix. One that is held
    with another number or time is of a step that came to nothing."""
    held = _residents(connection).get(step.mark)
    if held is not None and step.number and (held.number, held.at) == (step.number, step.at):
        found: State = held.state
        return found
    _drop(connection, step.mark)
    state = begin(f"t_{hashlib.sha256(step.mark.encode()).hexdigest()[:12]}_")
    _residents(connection)[step.mark] = _Resident(-1, MIN, state)    # so that it is dropped whatever happens
    if step.number:
        restore(state)
    return state


def _advance(connection: duckdb.DuckDBPyConnection, step: TimedStep, given: Mapping[str, pa.Table]) -> tuple[pa.Table, dict[str, Any]]:
    plan: TimedPlan = _plan(step.plan)
    shown = list(dict.fromkeys(told.relation for told in plan.told))
    state = _state(connection, step, lambda prefix: ProgramState(connection, statements_of(plan.program), shown, prefix),
                   lambda state: state.restore(read_state(step.file)))
    facts, next_own = _facts(plan, step, given)
    begun, ended = list[Tables](), list[Tables]()
    past = step.at
    for until in steps(facts, step_size(facts, plan.program), step.until, plan.program.granule):
        check_time()
        told = state.advance(between(facts, past, until), until)
        begun.append(told.begun)
        ended.append(told.ended)
        if state.held > step.state_rows:
            raise LimitExceeded.of("state_rows", step.state_rows, f"the program holds {state.held} rows")
        past = until
    found = (joined(begun), False), (joined(ended), True)
    rows = pa.concat_tables([_rows(plan, one, of, ceased) for one in plan.told for of, ceased in found])
    upcoming = [point for point in (state.upcoming(), next_own) if point is not None]
    write_state(step.out, state.snapshot())
    _residents(connection)[step.mark] = _Resident(step.number + 1, state.mark.past, state)
    return rows, {"held": state.held, "next": min(upcoming, default=None)}


def _facts(plan: TimedPlan, step: TimedStep, given: Mapping[str, pa.Table]) -> tuple[dict[str, pa.Table], int | None]:
    """What comes in, by relation and in order; and the first point of the program's own facts that are still to come."""
    due, coming = [], []
    for fact in plan.facts:
        if fact.interval.lo > step.until:
            coming.append(fact.interval.lo)
        elif fact.interval.lo > step.at:
            due.append(fact)
    triples = [triples_of(given[name]) for name in step.streams] + [triples_of(given[name], always=True) for name in step.graphs]
    found = joined([tables(due), *({TRIPLES: table} for table in triples)])
    return ({name: table.take(pc.sort_indices(table["lo"])) for name, table in found.items() if table.num_rows}, min(coming, default=None))


def steps(facts: Tables, size: int, end: int, length: int) -> Iterator[int]:
    """The last points of steps: whole points, or granules, of about `size` facts."""
    points, before = _begins(facts), MIN
    for point in points[size - 1::size].tolist():
        if before < (edge := end_of_granule(point, length)) < end:
            yield edge
            before = edge
    yield end


def step_size(facts: Tables, program: intervals.Program) -> int:
    """How many facts a step takes. A step costs about as much as joining STEP_COST pairs of rows, whatever it takes in; of d atoms that
    hold again and again, n facts make n * n / d pairs at each join, so that n = sqrt(STEP_COST * d) costs least. Fewer than the program
    looks back at would be read again in many steps."""
    # Seconds of CPU by facts a step. ShortStop, 80,000 facts of 1,200 atoms: 500: 31, 2,000: 9.7, 5,000: 3.8, 20,000: 1.7, 50,000: 1.1.
    # A join of two diamonds, 20,000 facts of two atoms: 1,000: 1.2, 5,000: 0.6, 10,000: 0.6, 20,000: 0.9.
    count = sum(table.num_rows for table in facts.values())
    atoms = sum(_distinct(table) for table in facts.values())
    points = _begins(facts)
    span = int(points[-1] - points[0]) + 1 if len(points) else 1
    back = int(count * min(1.0, longest(program) / span))
    return max(1, min(MOST_FACTS, max(int((STEP_COST * atoms) ** 0.5), back)))


def _begins(facts: Tables) -> np.typing.NDArray[np.int64]:
    """The points at which facts begin, but for those that always held, in order."""
    points = np.sort(np.concatenate([np.empty(0, np.int64), *(table["lo"].to_numpy() for table in facts.values())]))
    return points[points > MIN]


def _distinct(table: pa.Table) -> int:
    names = [name for name in table.column_names if name not in ("lo", "hi")]
    return int(table.select(names).group_by(names).aggregate([]).num_rows) if names else 1


def end_of_granule(point: int, length: int) -> int:
    """The last point of the granule that has `point`; the point itself where `length` is 0."""
    return point // length * length + length - 1 if length else point


def between(facts: Mapping[str, pa.Table], past: int, until: int) -> dict[str, pa.Table]:
    """Of facts in order of ``lo``, those that begin after `past`, and at `until` at the latest."""
    found = {}
    for name, table in facts.items():
        lo = table["lo"].to_numpy()
        first, last = lo.searchsorted(past, "right"), lo.searchsorted(until, "right")
        if last > first:
            found[name] = table.slice(first, last - first)
    return found


def _rows(plan: TimedPlan, told: Told, found: Tables, ceased: bool) -> pa.Table:
    """What is told of a relation: what began some time, is asked for, and is RDF where it is a triple."""
    table = found.get(told.relation, table_of([], int(told.relation.rpartition("/")[2])))
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


def _advance_chain(connection: duckdb.DuckDBPyConnection, step: StagedStep,
                   given: Mapping[str, pa.Table]) -> tuple[pa.Table, dict[str, Any]]:
    plan: StagedPlan = _plan(step.plan)

    def restore(state: StagedState) -> None:
        *stages, passing = [read_state(file_of(step.file, place)) for place in range(len(plan.stages) + 1)]
        [(_, table)] = passing.waiting
        state.restore(StagedSnapshot(tuple(stages), step.at, table))

    state = _state(connection, step, lambda prefix: StagedState(connection, plan, prefix), restore)
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
    return rows, {"held": state.held, "ticks": state.ticks, "next": state.upcoming()}


def _together(tables: list[pa.Table]) -> pa.Table:
    """Rows FACTS of several tables as triples with their times."""
    names = ("s", "p", "o", "t")
    schema = pa.schema([*((name, pa.string()) for name in "spo"), ("t", pa.int64())])
    return pa.concat_tables([schema.empty_table(), *(pa.table([table[name].cast(schema.field(name).type) for name in names], schema=schema)
                                                     for table in tables)])

"""One step of a program with a time of its own, in the worker that happens to be given it.

The state is a value: a number, and the file that has it. A worker that made it still holds it in tables; any other reads the file. The
step after it writes the next file, and says what began and what ceased. Nothing is told twice or lost where a step is made again.
"""

from __future__ import annotations

import hashlib
import json
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from engine.ir.rules import TRIPLE
from engine.limits import LimitExceeded
from engine.plan.timed import StagedPlan, TimedPlan, Told
from engine.sql.steps import statements_of
from engine.timeline import MAX, MIN
from engine.worker.database import kept_beside
from engine.worker.program import ProgramState
from engine.worker.recording import step_size, steps
from engine.worker.state_file import read_state, write_state
from engine.worker.tables import table_of, tables
from engine.worker.time_limit import check_time

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


@dataclass(slots=True)
class _Resident:
    number: int
    state: ProgramState


def _residents(connection: duckdb.DuckDBPyConnection) -> dict[str, _Resident]:
    """The states that are in a database, by mark."""
    return kept_beside(connection, __name__)


def forget(connection: duckdb.DuckDBPyConnection, alive: frozenset[str]) -> None:
    """Drop the states whose marks are not `alive`."""
    for mark in _residents(connection).keys() - alive:
        _drop(connection, mark)


def advance(connection: duckdb.DuckDBPyConnection, step: TimedStep, given: Mapping[str, pa.Table]) -> TimedOutcome:
    """Make a step. Raises StateLost, growth.Unending, LimitExceeded."""
    try:
        return _advance(connection, step, given)
    except BaseException:   # whatever it was, and wherever: the state is read again from its file
        _drop(connection, step.mark)
        raise


def labelled(outcome: TimedOutcome) -> pa.Table:
    """The rows of a step with what else it gives, as a task hands them back: JSON under `ABOUT` in their metadata."""
    return outcome.rows.replace_schema_metadata({ABOUT: json.dumps({"held": outcome.held, "next": outcome.next}).encode()})


def packed_plan(plan: TimedPlan | StagedPlan) -> bytes:
    """A plan as `TimedStep` has it."""
    return pickle.dumps(plan)


@lru_cache(maxsize=64)
def _plan(packed: bytes) -> TimedPlan:
    plan: TimedPlan = pickle.loads(packed)  # of the driver's own making, as all that a task is given
    return plan


def _advance(connection: duckdb.DuckDBPyConnection, step: TimedStep, given: Mapping[str, pa.Table]) -> TimedOutcome:
    plan = _plan(step.plan)
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
    _residents(connection)[step.mark] = _Resident(step.number + 1, state)
    return TimedOutcome(rows, state.held, min(upcoming, default=None))


def _caught_up(connection: duckdb.DuckDBPyConnection, step: TimedStep, plan: TimedPlan) -> ProgramState:
    """The state to go on from. One that is held here and not that, by its number and its last point, is of a step that came to nothing."""
    held = _residents(connection).get(step.mark)
    if held is not None and step.number and (held.number, held.state.mark.past) == (step.number, step.past):
        return held.state
    _drop(connection, step.mark)
    prefix = f"t_{hashlib.sha256(step.mark.encode()).hexdigest()[:12]}_"
    state = ProgramState(connection, statements_of(plan.program), list(dict.fromkeys(told.relation for told in plan.told)), prefix)
    _residents(connection)[step.mark] = _Resident(-1, state)      # so that it is dropped whatever happens
    if step.number:
        state.restore(read_state(step.file))
    return state


def _drop(connection: duckdb.DuckDBPyConnection, mark: str) -> None:
    if (held := _residents(connection).pop(mark, None)) is not None:
        held.state.drop()


def _facts(plan: TimedPlan, step: TimedStep, given: Mapping[str, pa.Table]) -> tuple[dict[str, pa.Table], int | None]:
    """What comes in, by relation and in order; and the first point of the program's own facts that are still to come."""
    due, coming = [], []
    for fact in plan.facts:
        if fact.interval.lo > step.until:
            coming.append(fact.interval.lo)
        elif fact.interval.lo > step.past:
            due.append(fact)
    found = {name: [table] for name, table in tables(due).items()}
    triples = [_triples(given[name], True) for name in step.streams] + [_triples(given[name], False) for name in step.graphs]
    found.setdefault(f"{TRIPLE}/3", []).extend(triples)
    joined = {name: pa.concat_tables(listed) for name, listed in found.items()}
    return ({name: table.take(pc.sort_indices(table["lo"])) for name, table in joined.items() if table.num_rows},
            min(coming, default=None))


def _triples(facts: pa.Table, streamed: bool) -> pa.Table:
    """Rows FACTS as triples at their instants, or always."""
    count = facts.num_rows
    points = pc.multiply(facts["t"], 2) if streamed else pa.array([MIN] * count, pa.int64())
    ends = points if streamed else pa.array([MAX] * count, pa.int64())
    return pa.table({"a1": facts["s"].cast(pa.string()), "a2": facts["p"].cast(pa.string()), "a3": facts["o"].cast(pa.string()),
                     "lo": points, "hi": ends})


def _between(facts: Mapping[str, pa.Table], past: int, until: int) -> dict[str, pa.Table]:
    """The facts that begin in a step."""
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
    if told.asked:
        fitting = pa.array([False] * table.num_rows, pa.bool_())
        for asked in told.asked:
            one = pa.array([True] * table.num_rows, pa.bool_())
            for place, token in asked:
                one = pc.and_(one, pc.equal(table[f"a{place}"], token))
            fitting = pc.or_(fitting, one)
        table = table.filter(fitting)
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

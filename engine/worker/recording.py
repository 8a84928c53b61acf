"""A program over all facts of a recording: it is taken on in steps, and what ended and what is held at the end is gathered."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from engine.plan import intervals as plan
from engine.plan.analyses import goes_on, longest
from engine.sql.steps import statements_of
from engine.timeline import MAX, MIN, Interval, granule, instant
from engine.worker.database import connect
from engine.worker.guard import given_memory
from engine.worker.program import ALWAYS_RELATION, ProgramState, Tables, by_relation
from engine.worker.tables import table_of

STEP_COST = 10_000_000
MOST_FACTS = 50_000


@dataclass(frozen=True, slots=True)
class Recorded:
    """Rows by relation, not coalesced, all within the points `of`. `cut`: rules would go on deriving behind its end."""

    rows: dict[str, pa.Table]
    of: Interval
    cut: bool


def run(program: plan.Program, facts: Tables, shown: Sequence[str], until_ms: int | None = None, size: int | None = None) -> Recorded:
    """What the relations `shown` hold. Raises growth.Unending, ValueError. Up to the instant `until_ms`, or its granule; without it on a
    timeline of granules up to the last granule of a fact, on dense time all that follows, or where that goes on for ever what holds up to
    the last end of a fact. A step takes about `size` facts."""
    last = _last(facts)
    cut = until_ms is None and not program.granule and goes_on(program, _lasting(program, facts))
    end = instant(until_ms) if until_ms is not None else last if program.granule or cut else MAX
    end = _end_of_granule(end, program.granule)
    sorted_facts = [(name, table.take(pc.sort_indices(table["lo"]))) for name, table in facts.items() if table.num_rows]
    late = {late: name for name, late in program.late}
    with connect(given_memory()) as connection:
        asked = [*shown, *(made for made, name in late.items() if name in shown)]
        state = ProgramState(connection, statements_of(program), asked)
        found: dict[str, list[pa.Table]] = {name: [] for name in shown}
        done = MIN - 1
        for until in steps(facts, size or step_size(facts, program), end, program.granule):
            step = {name: table.slice(begin, stop - begin) for name, table in sorted_facts
                    if (stop := _count(table, until)) > (begin := _count(table, done))}
            told = state.advance(step, until)
            for name, table in told.ended.items():
                found[late.get(name, name)].append(_placed(table, program.granule) if name in late else table)
            done = until
        for name in asked:
            table = state.rows(name)
            found[late.get(name, name)].append(_placed(table, program.granule) if name in late else table)
        start = state.mark.start
    of = Interval(min(MIN if start is None else start, end), end)
    return Recorded({name: _clipped(pa.concat_tables(tables), of) for name, tables in found.items() if tables}, of, cut)


def steps(facts: Tables, size: int, end: int, length: int) -> Iterator[int]:
    """The last points of steps: whole points, or granules, of about `size` facts."""
    points = np.sort(np.concatenate([np.empty(0, np.int64), *(_points(table["lo"]) for table in facts.values())]))
    before = MIN
    for point in points[points > MIN][size - 1::size].tolist():
        if before < (edge := _end_of_granule(point, length)) < end:
            yield edge
            before = edge
    yield end


def step_size(facts: Tables, program: plan.Program) -> int:
    """How many facts a step takes. A step costs about as much as joining STEP_COST pairs of rows, whatever it takes in; of d atoms that
    hold again and again, n facts make n * n / d pairs at each join, so that n = sqrt(STEP_COST * d) costs least. Fewer than the program
    looks back at would be read again in many steps."""
    # Seconds of CPU by facts a step. ShortStop, 80,000 facts of 1,200 atoms: 500: 31, 2,000: 9.7, 5,000: 3.8, 20,000: 1.7, 50,000: 1.1.
    # A join of two diamonds, 20,000 facts of two atoms: 1,000: 1.2, 5,000: 0.6, 10,000: 0.6, 20,000: 0.9.
    count = sum(table.num_rows for table in facts.values())
    atoms = sum(_distinct(table) for table in facts.values())
    points = np.concatenate([np.empty(0, np.int64), *(_points(table["lo"]) for table in facts.values())])
    points = points[points > MIN]
    span = int(points.max() - points.min()) + 1 if len(points) else 1
    back = int(count * min(1.0, longest(program) / span))
    return max(1, min(MOST_FACTS, max(int((STEP_COST * atoms) ** 0.5), back)))


def _distinct(table: pa.Table) -> int:
    names = [name for name in table.column_names if name not in ("lo", "hi")]
    return int(table.select(names).group_by(names).aggregate([]).num_rows) if names else 1


def _last(facts: Tables) -> int:
    """The last point at which a fact begins or ends."""
    found = [int(ends.max()) for table in facts.values() for name in ("lo", "hi")
             if len(ends := _points(table[name])) and len(ends := ends[(ends > MIN) & (ends < MAX)])]
    return max(found, default=0)


def _lasting(program: plan.Program, facts: Tables) -> set[str]:
    """The relations with facts that hold for ever."""
    given = [(name, table.filter(pc.equal(table["hi"], MAX))) for name, table in facts.items()]
    names = {relation.name: relation for relation in program.relations}
    return {ALWAYS_RELATION, *by_relation(names, [(name, table) for name, table in given if table.num_rows])}


def _points(column: pa.ChunkedArray) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.asarray(column.to_numpy())


def _count(table: pa.Table, until: int) -> int:
    """How many rows of a sorted table begin by a point."""
    return int(np.searchsorted(_points(table["lo"]), until, "right"))


def _end_of_granule(point: int, length: int) -> int:
    return point // length * length + length - 1 if length else point


def _placed(table: pa.Table, length: int) -> pa.Table:
    """Rows of atoms that became known late, with their instants, as rows of the granules that they are about."""
    *cells, instants = [table[name].to_pylist() for name in table.column_names[:-2]]
    held = [granule(int(token.split('"')[1]), length // 2) for token in instants]
    return table_of([(*row, when.lo, when.hi) for *row, when in zip(*cells, held)], len(cells))


def _clipped(table: pa.Table, to: Interval) -> pa.Table:
    """What of the rows lies inside an interval."""
    lo, hi = pc.max_element_wise(table["lo"], to.lo), pc.min_element_wise(table["hi"], to.hi)
    names = table.column_names[:-2]
    made = pa.table({**{name: table[name] for name in names}, "lo": lo, "hi": hi})
    return made.filter(pc.less_equal(made["lo"], made["hi"]))

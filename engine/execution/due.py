"""What the executor is asked, the evaluations that are due, and what it answers: a relation per evaluation, or why there is none;
and a plan's table as that: of rule programs what begins to hold at each T, and when it ceases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from engine.execution.compiled import Compiled
from engine.execution.content import StreamContent
from engine.functions import dates
from engine.ir.statement import Ask, Program
from engine.limits import UNLIMITED, EvaluationLimits
from engine.plan.graphs import Way
from engine.plan.nodes import Begun
from engine.plan.timed import Look
from engine.sql.sources import Evaluation
from engine.timeline import MAX, MIN, evaluation_point
from engine.worker.bundles import Written


@dataclass(frozen=True, slots=True)
class ProgramPosition:
    """How far a program with a time of its own is: its state by number (0: it has not begun), the last point that is final, the first
    later one at which something may begin or cease though nothing comes (None: nothing will; of rules that a query uses the point of the
    evaluation time at which that would be seen), how many rows are held, the name of the file that has
    them, and of rules in stages how many each of these holds."""

    number: int = 0
    until: int = MIN - 1
    next: int | None = None
    held: int = 0
    file: str = ""
    stages: tuple[int, ...] = ()

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> ProgramPosition:
        """Of what `asdict` gave."""
        return cls(**{**value, "stages": tuple(value.get("stages", ()))})


@dataclass(frozen=True, slots=True)
class Due:
    """The evaluations of one query that a batch made due; `streams` and `graphs` are what it may read, by IRI. `ticks` ascend; an
    evaluation at T sees events with t < T and position > `since`. With `patience_ms`, which is how long others wait, what is not answered
    by then is an error `Postponed`. A program with a time of its own goes on from `state`; it is evaluated at the last of the `ticks` only,
    which tells of all before. So do the timed rules that other queries use: `look` says which Ts count for what those derive, `derived` is
    what the query sees of them, once the executor has found it, and `reached` where the rules are then. If `shown` is given and only one T
    is due, a large answer comes as JSON of at most so many rows. `paths` is how closures of paths are to be found, where that was said."""

    query: str
    compiled: Compiled
    ticks: tuple[int, ...]
    since: int
    streams: Mapping[str, StreamContent]
    graphs: Mapping[str, pa.Table]
    limits: EvaluationLimits = UNLIMITED
    patience_ms: int | None = None
    state: ProgramPosition | None = None
    look: Look | None = None
    derived: pa.Table | None = None
    reached: ProgramPosition | None = None
    shown: int | None = None
    paths: Way | None = None

    def until(self, tick: int) -> Due:
        """The evaluations before a T."""
        ticks = tuple(one for one in self.ticks if one < tick)
        if self.look is not None and self.look.grids and tick <= self.ticks[-1]:
            last = max(start + (tick - 1 - start) // step * step for step, start in self.look.grids)
            if (self.look.before is None or last > self.look.before) and last not in ticks:
                return replace(self, ticks=(*ticks, last), look=replace(self.look, unsure=self.look.unsure | {last}))
        return replace(self, ticks=ticks)

    @property
    def new_from_ms(self) -> int:
        """Events from then on are new to a program, or rules, with a time of their own."""
        return MIN if self.state is None else (self.state.until + 1) // 2

    @property
    def evaluation(self) -> Evaluation:
        """What the text of an evaluation needs; `since` is 0 once all that is there came later, so that queries can share."""
        statement = self.compiled.statement
        before = any(content.first <= self.since for content in self.streams.values())
        return Evaluation(self.ticks, self.since if before else 0, statement.on_change, statement.start_at_ms,
                          isinstance(self.compiled.plan, Begun))


@dataclass(frozen=True, slots=True)
class Answer:
    """The relation at one tick: a string column of tokens per variable (null: unbound), rows in order where the query orders them; where it
    is `written`, the table is empty. ASK has one column ``_`` and a row where true; CONSTRUCT has s, p, o, distinct. A program with a time
    of its own tells what began and ceased since the evaluation before, with the points ``lo hi``, and its `state` after that. One that is
    not `reported` says only how far the rules are that the query uses."""

    query: str
    tick: int
    table: pa.Table | None
    error: BaseException | None = None
    inconsistencies: tuple[str, ...] = ()
    state: ProgramPosition | None = None
    reported: bool = True
    written: Written | None = None


def after(due: Due, answers: Sequence[Answer]) -> Due:
    """The evaluations, to go on from where answers to earlier ones have come."""
    states = [answer.state for answer in answers if answer.query == due.query and answer.state is not None]
    return replace(due, state=states[-1]) if states else due


def failures(due: Due, failure: BaseException) -> list[Answer]:
    """The same failure at each tick."""
    return [Answer(due.query, tick, None, failure) for tick in due.ticks]


def inconsistencies_at(tick: int, findings: pa.Table | None) -> tuple[str, ...]:
    """What was found inconsistent at a tick, in the order of its texts."""
    if findings is None:
        return ()
    point = evaluation_point(tick)
    here = findings.filter(pc.and_(pc.less_equal(findings["lo"], point), pc.greater_equal(findings["hi"], point)))
    return tuple(sorted(set(here["finding"].to_pylist())))


def in_order(table: pa.Table) -> pa.Table:
    """The rows of a plan by tick, and at each tick in the order of the plan."""
    return table.sort_by([(key, "ascending") for key in ("tick", "ord") if key in table.column_names])


def split(due: Due, table: pa.Table, *, is_in_order: bool = False) -> list[Answer]:
    """One table per tick, columns named by variable, rows in order where the plan orders them."""
    names, query = due.compiled.statement.columns, due.compiled.statement.query
    if not is_in_order and (len(due.ticks) > 1 or "ord" in table.column_names):
        table = in_order(table)
    if isinstance(query, Program):
        found = begun_facts(query, table)
        made = _parts(found, found.drop_columns("tick"), due.ticks)
    elif names or not isinstance(query, Ask):
        first = len(table.column_names) - len(names)
        made = _parts(table, table.select(range(first, first + len(names))).rename_columns(list(names)), due.ticks)
    else:
        made = [pa.table({"_": pa.nulls(min(1, part.num_rows), pa.string())}) for part in _parts(table, table, due.ticks)]
    return [Answer(due.query, tick, part) for tick, part in zip(due.ticks, made, strict=True)]


def _parts(table: pa.Table, cells: pa.Table, ticks: Sequence[int]) -> list[pa.Table]:
    """What of `cells` stands at each tick, those of one beside rows of the table by tick."""
    if len(ticks) == 1:
        return [cells]
    found = table["tick"].to_numpy()
    first, behind = np.searchsorted(found, ticks), np.searchsorted(found, ticks, "right")
    return [cells.slice(begin, end - begin) for begin, end in zip(first, behind)]


ENDS = "ends"


def begun_facts(program: Program, rows: pa.Table) -> pa.Table:
    """The facts that begin at each T, from rows ``tick s p o x3 ... hi`` (engine/sql/fixpoint.py): columns as Program.variables has them,
    beside ``tick``, and `ENDS`: when each ceases, in ms (null: never)."""
    is_rdf = pc.and_(pc.starts_with(rows["p"], "<"), pc.invert(pc.starts_with(rows["s"], '"')))
    begun = rows.filter(pc.or_(pc.starts_with(rows["p"], "_:"), is_rdf))
    begins = pc.subtract(begun["tick"], 1)      # the point of the evaluation, in ms
    ends = pc.if_else(pc.equal(begun["hi"], MAX), None, pc.divide(begun["hi"], 2))
    columns = _terms(begun) | {"tick": begun["tick"], "from": moments(begins), "until": moments(ends), ENDS: ends}
    return pa.table({name: columns[name] for name in ["tick", *(v.name for v in program.variables), ENDS]})


def moments(times: pa.ChunkedArray) -> pa.ChunkedArray:
    """Times in ms as xsd:dateTimes."""
    coded = pc.unique(times)
    texts = pa.array([None if ms is None else dates.at(ms) for ms in coded.to_pylist()], pa.string())
    return pc.take(texts, pc.index_in(times, coded))


def _terms(rows: pa.Table) -> dict[str, pa.Array | pa.ChunkedArray]:
    """The columns of triples and of other atoms, from rows ``s p o x3 ...`` (engine/plan/derive.py, row_of)."""
    atom = pc.starts_with(rows["p"], "_:")
    head = pc.split_pattern(pc.if_else(atom, rows["p"], pa.scalar("_:0 ", pa.string())), " ", max_splits=1)
    count = pc.binary_slice(pc.list_element(head, 0).cast(pa.binary()), 2, 20).cast(pa.string()).cast(pa.int32())
    found: dict[str, pa.Array | pa.ChunkedArray] = {c: pc.if_else(atom, None, rows[c]) for c in "spo"}
    found["atom"] = pc.if_else(atom, pc.list_element(head, 1), None)
    for number, place in enumerate(["s", "o", *(name for name in rows.column_names if name.startswith("x"))], 1):
        found[f"a{number}"] = pc.if_else(pc.greater_equal(count, number), rows[place], None)
    return found

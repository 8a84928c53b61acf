"""A chain of programs in the DuckDB of a worker (engine/plan/timed.py): each is taken on as far as it is final, with the facts that came
in and with what is new of those before that it reads; and at which evaluation times a query sees something else of it than before.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from engine.ir.rules import EVENT, TRIPLE
from engine.ir.terms import Constant, Term
from engine.plan.derivations import relation_name
from engine.plan.timed import Look, PlannedStage, StagedPlan
from engine.sql.steps import statements_of
from engine.timeline import MAX, MIN, Range, merge
from engine.worker.program import ProgramState, Snapshot, Tables
from engine.worker.tables import joined, table_of, tables

if TYPE_CHECKING:
    import duckdb

TRIPLES = relation_name(TRIPLE, 3)
EVENTS = relation_name(EVENT, 3)
SEEN = pa.schema([("s", pa.string()), ("p", pa.string()), ("o", pa.string()), ("first", pa.int64()), ("last", pa.int64())])
"""Triples that a query sees from the first to the last of its evaluation times."""


@dataclass(frozen=True, slots=True)
class StagedSnapshot:
    """The states of the programs, in order, the last evaluation time that they were taken on to, and what was seen then and is not held
    any more."""

    stages: tuple[Snapshot, ...]
    tick: int
    passing: pa.Table


class StagedState:
    """The programs of a chain; `prefix` begins the names of their tables. `tick` is the last T that they were taken on to, `ticks` are the
    evaluation times of the last step."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, plan: StagedPlan, prefix: str = "h") -> None:
        self.plan = plan
        self.tick = MIN
        self.ticks: tuple[int, ...] = ()
        self.passing = table_of([], 3)
        self.stages = [_Stage(connection, stage, f"{prefix}{number}_") for number, stage in enumerate(plan.stages, 1)]

    @property
    def held(self) -> tuple[int, ...]:
        return tuple(stage.state.held for stage in self.stages)

    def advance(self, events: pa.Table, static: pa.Table, ticks: Sequence[int], on_change: bool, look: Look | None = None) -> pa.Table:
        """Rows SEEN of what holds at evaluation times that ascend, given the triples ``s p o t`` that streams brought since the T before
        and before the last of these, and, the first time, those of the static graphs. With `look` some of the times count, and others
        do too, where something else is seen than before; `ticks` has them then. Raises as ProgramState.advance."""
        last = ticks[-1]
        given = self._given(events, static, last)
        streamed = {EVENTS: triples_of(events)} if events.num_rows else {}
        news: list[dict[str, pa.Table]] = []
        for stage, end in zip(self.stages, self.plan.ends(last)):
            derived = joined(news[place] for place in stage.plan.reads)
            news.append(stage.advance({**given, **streamed}, derived, 2 * end - 1))
        dated = tables(fact for fact in self.plan.facts if fact.atom.predicate == TRIPLE).get(TRIPLES, table_of([], 3))
        shown: list[tuple[int | None, pa.Table]] = [(place, self._visible(stage.shown())) for place, stage in enumerate(self.stages)]
        shown.append((None, self._visible(dated)))
        if look is not None:
            more = changed(self.plan, [*shown, (None, self.passing)], look, self.tick, ticks)
            ticks = sorted({*more, *(tick for tick in ticks if tick not in look.unsure)})
        self.tick, self.ticks = last, tuple(ticks)
        self.passing = self._passing() if on_change else table_of([], 3)
        points = [self.plan.points(tick, on_change) for tick in ticks]
        now = [2 * tick - (2 if on_change else 1) for tick in ticks]
        return pa.concat_tables(_seen(table, ticks, now if place is None else [at[place] for at in points]) for place, table in shown)

    def upcoming(self) -> int | None:
        """The point of the first evaluation time behind the last at which something else may be seen though nothing comes."""
        until = 2 * self.tick - 1
        own = [point for fact in self.plan.facts for point in (fact.interval.lo, fact.interval.hi + 1) if until < point < MAX]
        return upcoming(self.plan, ((place, stage.upcoming()) for place, stage in enumerate(self.stages)), own, self.tick)

    def snapshot(self) -> StagedSnapshot:
        """The state between two steps, as a value."""
        return StagedSnapshot(tuple(stage.state.snapshot() for stage in self.stages), self.tick, self.passing)

    def restore(self, snapshot: StagedSnapshot) -> None:
        """Go on from a snapshot of the same chain, in tables that have nothing yet."""
        self.tick, self.passing = snapshot.tick, snapshot.passing
        for stage, one in zip(self.stages, snapshot.stages, strict=True):
            stage.state.restore(one)

    def drop(self) -> None:
        for stage in self.stages:
            stage.state.drop()

    def _given(self, events: pa.Table, static: pa.Table, tick: int) -> dict[str, pa.Table]:
        """What comes in, by relation: events, facts of the rule sets that begin since the last T, and what always holds."""
        past, until = 2 * self.tick - 1 if self.tick > MIN else MIN, 2 * tick - 1
        found = [tables(fact for fact in self.plan.facts if (past < fact.interval.lo or self.tick == MIN) and fact.interval.lo <= until)]
        if self.tick == MIN:
            found += [tables(self.plan.always), {TRIPLES: triples_of(static, always=True)}]
        found.append({TRIPLES: triples_of(events)})
        return {name: table for name, table in joined(found).items() if table.num_rows}

    def _visible(self, rows: pa.Table) -> pa.Table:
        """What a query may see: RDF, and not what its static graphs say."""
        rows = rows.filter(pc.and_(pc.starts_with(rows["a2"], "<"), pc.invert(pc.starts_with(rows["a1"], '"'))))
        if self.plan.hidden:
            cells = zip(*(rows[f"a{place}"].to_pylist() for place in (1, 2, 3)))
            rows = rows.filter(pa.array([triple not in self.plan.hidden for triple in cells], pa.bool_()))
        return rows

    def _passing(self) -> pa.Table:
        """What is seen at the last T, an instant, and has ended with it: the step goes a little further."""
        points = self.plan.points(self.tick, True)
        found = [table_of([], 3)]
        for stage, point in zip(self.stages, points):
            for table in stage.whole(stage.ended):
                found.append(table.filter(pc.and_(pc.less_equal(table["lo"], point), pc.greater_equal(table["hi"], point))))
        rows = self._visible(pa.concat_tables(found))
        now = pa.array([2 * self.tick - 2] * rows.num_rows, pa.int64())
        return pa.table([*(rows[f"a{place}"] for place in (1, 2, 3)), now, now], names=rows.column_names)


class _Stage:
    """One program of a chain. What ended in the last step is kept for those evaluation times that come before its end."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, plan: PlannedStage, prefix: str) -> None:
        self.plan = plan
        self.state = ProgramState(connection, statements_of(plan.program), [name for name, _ in plan.heads], prefix)
        self.ended: dict[str, pa.Table] = {}

    def advance(self, given: Tables, derived: Tables, until: int) -> dict[str, pa.Table]:
        """Take the program on; what is new of what its rules derive, by the predicates that others know."""
        if until <= self.state.mark.past:
            self.state.hold(given, derived)
            self.ended = {}
            return {}
        told = self.state.advance(given, until, derived)
        self.ended = told.ended
        return joined(_whole(name, _instances(told.new[name], terms)) for name, terms in self.plan.heads if name in told.new)

    def shown(self) -> pa.Table:
        """The triples that are shown, with the points at which they hold, so far as these are not behind the last step."""
        held = {name: self.state.rows(name) for name, _ in self.plan.shown}
        return pa.concat_tables([table_of([], 3), *self.whole(held), *self.whole(self.ended)])

    def whole(self, rows: Tables) -> list[pa.Table]:
        """Those of some rows, by relation, that are shown, as triples."""
        return [table for name, terms in self.plan.shown if name in rows for table in _whole(name, _instances(rows[name], terms)).values()]

    def upcoming(self) -> int | None:
        """The first point at which something may begin or cease though nothing comes; or what waits for the stage to go on is taken in."""
        mark = self.state.mark
        waits = bool(mark.waiting or mark.beside and mark.start is not None)
        found = [point for point in (self.state.upcoming(), mark.past + 1 if waits else None) if point is not None]
        return min(found, default=None)


def _instances(table: pa.Table, heads: Sequence[tuple[Term, ...]]) -> pa.Table:
    """The rows for which some head stands."""
    if any(len(set(terms)) == len(terms) and not any(isinstance(term, Constant) for term in terms) for terms in heads):
        return table
    return rows_with(table, [[(place, term.token if isinstance(term, Constant) else table[f"a{terms.index(term) + 1}"])
                              for place, term in enumerate(terms, 1)] for terms in heads])


def rows_with(table: pa.Table, choices: Iterable[Iterable[tuple[int, str | pa.ChunkedArray]]]) -> pa.Table:
    """The rows that have at the places of one of some choices what it has there."""
    fitting = pa.array([False] * table.num_rows, pa.bool_())
    for choice in choices:
        one = pa.array([True] * table.num_rows, pa.bool_())
        for place, value in choice:
            one = pc.and_(one, pc.equal(table[f"a{place}"], value))
        fitting = pc.or_(fitting, one)
    return table.filter(fitting)


def _whole(name: str, table: pa.Table) -> dict[str, pa.Table]:
    """The rows of a relation as those of its predicate: triples have their property, and class, again."""
    predicate = name.rpartition("/")[0]
    if not predicate.startswith(f"{TRIPLE} "):
        return {name: table}
    fixed = predicate.split(" ")[1:]
    cells = [table["a1"], *(pa.array([token] * table.num_rows, pa.string()) for token in fixed)]
    cells += [table["a2"]] if len(fixed) == 1 else []
    return {TRIPLES: pa.table([*cells, table["lo"], table["hi"]], names=["a1", "a2", "a3", "lo", "hi"])}


def triples_of(facts: pa.Table, *, always: bool = False) -> pa.Table:
    """Triples ``s p o`` as rows that hold at their times ``t``, or always."""
    lo = pa.array([MIN] * facts.num_rows, pa.int64()) if always else pc.multiply(facts["t"], 2)
    hi = pa.array([MAX] * facts.num_rows, pa.int64()) if always else lo
    return pa.table([*(facts[name].cast(pa.string()) for name in "spo"), lo, hi], names=["a1", "a2", "a3", "lo", "hi"])


def _seen(rows: pa.Table, ticks: Sequence[int], points: Sequence[int]) -> pa.Table:
    """The rows that hold at some of the points, which ascend, with the first and the last of their evaluation times."""
    at, times = np.asarray(points, np.int64), np.asarray(ticks, np.int64)
    first = at.searchsorted(rows["lo"].to_numpy(), "left")
    last = at.searchsorted(rows["hi"].to_numpy(), "right") - 1
    there = first <= last
    kept = rows.filter(pa.array(there))
    cells = [kept[f"a{place}"] for place in (1, 2, 3)]
    return pa.table([*cells, pa.array(times[first[there]], pa.int64()), pa.array(times[last[there]], pa.int64())], schema=SEEN)


Times = npt.NDArray[np.int64]
Rows = Sequence[tuple[int | None, pa.Table]]
"""Triples ``a1 a2 a3`` with the points ``lo hi`` between which they hold, by the stage that derives them; None: as their facts say."""
_CELLS = ["a1", "a2", "a3"]


def _reached(plan: StagedPlan, grids: Sequence[tuple[int, int]], listed: Sequence[int], place: int | None, points: Times) -> Times:
    """The first evaluation time at which each point of a stage has come, MAX where none has: on the grids (step and start, ms) of a
    query's windows, or, on change, of the `listed` times only."""
    if not grids:
        seen = [2 * tick - 2 if place is None else plan.points(tick, True)[place] for tick in listed]
        return np.array([*listed, MAX], np.int64)[np.array(seen, np.int64).searchsorted(points, "left")]
    times = (points + 2) // 2       # an evaluation at T sees the point 2T - 1
    times = times if place is None else reaching(plan, place, times)
    found: Times = np.minimum.reduce([start - (start - times) // step * step for step, start in grids])
    return found


def reaching(plan: StagedPlan, place: int, times: Times) -> Times:
    """The first times (ms) at which a stage is final up to some times."""
    stage = plan.stages[place]
    length = stage.timeline.granularity_ms
    whole = -(-times // length) * length if length else times
    found: Times = np.maximum.reduce([reaching(plan, below, whole) for below in stage.reads]) if stage.reads else whole
    return found


def changed(plan: StagedPlan, rows: Rows, look: Look, past: int, ticks: Sequence[int]) -> list[int]:
    """The evaluation times beyond those of `ticks` that are sure at which something else is seen than at the one before, none of them
    behind the last of these; `rows` are those that hold after the time `past`, up to which the rules were taken on."""
    begin, last = max(past, MIN if look.before is None else look.before), ticks[-1]
    sure = [tick for tick in ticks if tick > begin and tick not in look.unsure]
    if not look.grids and not look.unsure or len(look.grids) == 1 and len(sure) == _count(*look.grids[0], begin, last):
        return []
    listed = [*([begin] if begin > MIN else []), *(tick for tick in ticks if tick > begin)]
    reached = partial(_reached, plan, look.grids, listed)
    found = set[int]()
    for spans in _touched([_spans(reached, place, table) for place, table in rows], begin, last):
        found.update(time for span in merge(spans) for time in span if begin < time <= last)
    return sorted(found.difference(sure))


def _count(step: int, start: int, begin: int, last: int) -> int:
    """How many evaluation times of a grid there are in ``(begin, last]``."""
    return (last - start) // step - (begin - start) // step


def _spans(reached: Callable[[int | None, Times], Times], place: int | None, table: pa.Table) -> pa.Table:
    """The triples that are seen at some time, with the first time, and the first at which they are not."""
    on, off = reached(place, table["lo"].to_numpy()), reached(place, table["hi"].to_numpy() + 1)
    names = [*_CELLS, "on", "off"]
    return pa.table([*(table[name] for name in _CELLS), pa.array(on), pa.array(off)], names=names).filter(pa.array(on < off))


def _touched(parts: Iterable[pa.Table], begin: int, last: int) -> Iterator[list[Range]]:
    """For each triple that comes or goes in ``(begin, last]`` all times for which it is seen."""
    rows = pa.concat_tables(parts)
    comes_or_goes = [pc.and_(pc.greater(rows[name], begin), pc.less_equal(rows[name], last)) for name in ("on", "off")]
    touched = rows.filter(pc.or_(*comes_or_goes)).select(_CELLS)
    if not touched.num_rows:
        return
    found = defaultdict[tuple[str, str, str], list[tuple[int, int]]](list)
    for *triple, on, off in zip(*(column.to_pylist() for column in rows.join(touched.group_by(_CELLS).aggregate([]), _CELLS,
                                                                             join_type="left semi").columns)):
        found[triple[0], triple[1], triple[2]].append((on, off))
    yield from found.values()


def upcoming(plan: StagedPlan, stages: Iterable[tuple[int, int | None]], own: Iterable[int], tick: int) -> int | None:
    """The first point behind T at which something may change though nothing comes, where `stages` have such points and the facts of the
    rule sets have their `own`; as that of an evaluation time."""
    times = [int(reaching(plan, place, np.array([(point + 2) // 2]))[0]) for place, point in stages if point is not None]
    times += [(point + 2) // 2 for point in own]
    return 2 * max(min(times), tick + 1) - 1 if times else None

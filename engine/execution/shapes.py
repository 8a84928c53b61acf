"""Queries of one shape, which one statement evaluates: to plan a statement costs more than to run it over few rows; and queries that can
share what their patterns find.

What a group of one shape gives is divided among its queries. Where it fails each is evaluated by itself, then and for a while.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from engine.execution.compiled import Compiled
from engine.execution.due import in_order
from engine.execution.plan_job import PlanJob
from engine.functions.typed import Kinds, typed
from engine.limits import LimitExceeded
from engine.plan.nodes import Given, KeptSource, Plan, inputs, sources
from engine.plan.shape import Row, Shape, with_given
from engine.sql.emit import PlanText
from engine.sql.kept import KeptView, view_of
from engine.sql.lots import Lot, Shown, lot_texts, shown_to
from engine.worker.bundles import Found, Task
from engine.worker.guard import check_size
from engine.worker.resident import KeptStep

MOST_LOTS = 256     # evaluations in one statement
MOST_ROWS = 4_000_000   # of the windows of all of them
ALONE = 100         # so often queries whose group has failed are evaluated by themselves
MOST_TEXTS = 256


@dataclass(frozen=True, slots=True)
class Group:
    """Jobs of one shape, and the task that evaluates them all: the evaluations of each job follow one another, and are numbered so."""

    jobs: list[PlanJob]
    task: Task

    def divide(self, found: Found) -> None:
        """Give each job its part of what the task gave."""
        table = in_order(found.table)
        numbers = table["tick"].to_numpy()
        ticks = np.fromiter((tick for job in self.jobs for tick in job.due.ticks), np.int64)
        edges = np.searchsorted(numbers, np.arange(len(ticks) + 1))
        table = table.set_column(0, "tick", pa.array(ticks[numbers]))
        first = self.jobs[0].due.limits     # those of all of them
        is_small = table.num_rows <= first.evaluation_rows and table.nbytes <= first.evaluation_bytes
        lot = 0
        for job in self.jobs:
            begin, lot = edges[lot], lot + len(job.due.ticks)
            part = table.slice(begin, edges[lot] - begin)
            try:
                if not is_small:
                    check_size(part.num_rows, part.nbytes, job.due.limits)
                job.answer = Found(part, None, found.ms / len(self.jobs), is_in_order=True)
            except LimitExceeded as over:
                job.answer = over


@dataclass(frozen=True, slots=True)
class _Draft:
    """Jobs of one shape, and what their statement is made of."""

    jobs: list[PlanJob]
    text: PlanText
    given: tuple[Given, ...]
    lots: list[Lot]
    shown: Shown

    @property
    def reads(self) -> dict[tuple[str, str], KeptSource]:
        """The kept relations that the statement reads, by name and condition."""
        return {(source.name, where): source for source, conditions in self.shown.items() for where in conditions}


class Shapes:
    """Finds the groups among jobs."""

    def __init__(self) -> None:
        self._texts: dict[Hashable, tuple[PlanText, tuple[Given, ...]]] = {}
        self._alone: dict[str, int] = {}    # how often queries are still to be evaluated by themselves

    def divided(self, jobs: Sequence[PlanJob]) -> tuple[list[Group], list[PlanJob]]:
        """The groups of at least two, and the jobs that are in none."""
        alike: dict[Hashable, list[PlanJob]] = defaultdict(list)
        alone = []
        for job in jobs:
            if job.shape is None or self._is_alone(job.due.query):
                alone.append(job)
            else:
                alike[job.shape.key, job.typed, job.due.limits, job.due.patience_ms].append(job)
        drafts = []
        for listed in alike.values():
            while listed:
                some = _first(listed)
                listed = listed[len(some):]
                if len(some) > 1:
                    drafts.append(self._draft(some))
                else:
                    alone += some
        views = _read_by_several(drafts)
        return [_group(draft, views) for draft in drafts], alone

    def separate(self, group: Group) -> None:
        """The queries of a group are evaluated by themselves for a while."""
        self._alone |= {job.due.query: ALONE for job in group.jobs}

    def _is_alone(self, query: str) -> bool:
        left = self._alone.pop(query, 0)
        if left > 1:
            self._alone[query] = left - 1
        return left > 0

    def forget(self, query: str) -> None:
        self._alone.pop(query, None)

    def _draft(self, jobs: list[PlanJob]) -> _Draft:
        first = jobs[0]
        shapes = [_shape(job) for job in jobs]
        constants = _differing([shape.constants for shape in shapes])
        tables = _differing([shape.tables for shape in shapes])
        kinds: Kinds = frozenset().union(*(job.kinds for job in jobs))
        text, given = self._text(first.due.compiled, first.typed, kinds, shapes, constants, tables)
        lots = [Lot(tick, job.evaluation, job.due.compiled.statement.streams, _shape(job)) for job in jobs for tick in job.due.ticks]
        return _Draft(jobs, text, given, lots, shown_to(text.sources, lots))

    def _text(self, compiled: Compiled, typed: bool, kinds: Kinds, shapes: Sequence[Shape], constants: frozenset[int],
              tables: frozenset[int]) -> tuple[PlanText, tuple[Given, ...]]:
        shape = shapes[0]
        of_constants = {number: _kinds_of_columns((shape.constants[number],) for shape in shapes)[0] for number in constants}
        of_tables = {number: _kinds_of_columns(row for shape in shapes for row in shape.tables[number]) for number in tables}
        fixed = (tuple(None if number in constants else constant for number, constant in enumerate(shape.constants)),
                 tuple(None if number in tables else rows for number, rows in enumerate(shape.tables)))
        key = shape.key, typed, kinds, tuple(of_constants.items()), tuple(of_tables.items()), fixed
        if key not in self._texts:
            while len(self._texts) >= MOST_TEXTS:
                del self._texts[next(iter(self._texts))]
            assert compiled.shared is not None
            plan = with_given(compiled.shared, of_constants, of_tables)
            self._texts[key] = compiled.emit("local", typed, plan, kinds), tuple(_given(plan))
        return self._texts[key]


def _read_by_several(drafts: Sequence[_Draft]) -> dict[tuple[str, str], KeptView]:
    """What the statements of several groups read of kept relations, and would find each for itself."""
    found: dict[tuple[str, str], KeptView] = {}
    known: set[tuple[str, str]] = set()
    rows = 0
    for draft in drafts:
        reads = draft.reads
        for name, where in reads.keys() & known - found.keys():
            rows += max(job.cost // len(job.due.ticks) for job in draft.jobs)
            if rows <= MOST_ROWS:
                found[name, where] = view_of(reads[name, where], where)
        known |= reads.keys()
    return found


def _group(draft: _Draft, views: Mapping[tuple[str, str], KeptView]) -> Group:
    first, jobs = draft.jobs[0], draft.jobs
    kept: dict[str, KeptStep] = {step.text.name: step for job in jobs for step in job.kept}
    task = Task(draft.text.statement(lot_texts(draft.given, draft.lots, draft.shown, views)),
                frozenset().union(*(job.tables for job in jobs)), sum(job.cost for job in jobs), (),
                first.due.query, first.due.limits, first.due.patience_ms, kept=tuple(kept.values()),
                beside=frozenset(job.due.query for job in jobs), views=tuple(views[key] for key in draft.reads if key in views))
    return Group(jobs, task)


def _kinds_of_columns(rows: Iterable[Row]) -> tuple[Kinds, ...]:
    """The kinds of the values in each column."""
    return tuple(frozenset(typed(cell.token)[0] for cell in column if cell is not None) for column in zip(*rows))


def _shape(job: PlanJob) -> Shape:
    assert job.shape is not None
    return job.shape


def _first(jobs: list[PlanJob]) -> list[PlanJob]:
    """The first of some jobs, as many as one statement serves."""
    count = lots = rows = 0
    for job in jobs:
        lots, rows = lots + len(job.due.ticks), rows + job.cost
        if count and (lots > MOST_LOTS or rows > MOST_ROWS):
            break
        count += 1
    return jobs[:count]


def _differing(listed: Sequence[tuple[object, ...]]) -> frozenset[int]:
    """The places at which not all are equal."""
    return frozenset(place for place, values in enumerate(zip(*listed, strict=True)) if any(value != values[0] for value in values))


def _given(plan: Plan) -> list[Given]:
    return [plan] if isinstance(plan, Given) else [one for below in inputs(plan) for one in _given(below)]


class Sharing:
    """Counts the queries that would read each general relation (engine/plan/kept.py), as they are evaluated."""

    def __init__(self) -> None:
        self._read: dict[str, tuple[Plan, frozenset[str]]] = {}     # by query: its plan, and the names of the relations
        self._users = Counter[str]()

    def users(self, query: str, compiled: Compiled) -> int:
        """How many queries would read each of the general relations of this one, itself included."""
        known = self._read.get(query)
        if known is None or known[0] is not compiled.plan:
            self.forget(query)
            names = frozenset(source.name for source in sources(compiled.shared) if isinstance(source, KeptSource)
                              ) if compiled.shared is not None else frozenset()
            self._users.update(names)
            known = self._read[query] = compiled.plan, names
        return min((self._users[name] for name in known[1]), default=0)

    def forget(self, query: str) -> None:
        known = self._read.pop(query, None)
        if known is not None:
            self._users.subtract(known[1])
            self._users = +self._users

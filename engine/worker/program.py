"""A program of rules in the DuckDB of a worker: its relations as tables, taken on step by step.

A step takes in facts that begin after the last point of the step before, and makes all points up to its own last final. What ended then
is told, and forgotten: nothing that is derived later looks at it. So what is held follows from the program's distances, not from the length
of the stream; the state can be taken as Arrow tables and gone on with in another worker.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from engine.grouping import by_key
from engine.ir.rules import ALWAYS_HELD, TRIPLE
from engine.ir.strata import rounds
from engine.ir.terms import RDF_TYPE
from engine.plan import intervals as plan
from engine.plan.analyses import late_boxed, watched
from engine.sql.steps import POINTS, PREFIX, Statements
from engine.timeline import MAX, MIN
from engine.worker.database import Given, put_view, registered
from engine.worker.events import Events, State
from engine.worker.guard import check_time, memory_bytes

if TYPE_CHECKING:
    import duckdb

    from engine.sql.tree import Tree

_ROW_BYTES = 256    # DuckDB's limit of memory does not count the rows that it hands over: so many that each has this much room
_READ_WHOLE = 256   # of so few rows of a relation all are read: to look for those of some terms takes longer
ALWAYS_RELATION = f"{ALWAYS_HELD}/0"
Tables = Mapping[str, pa.Table]
"""Rows ``a1 a2 ... lo hi`` by relation: the predicate and its number of terms (``triple/3``, ``alarm/0``)."""


@dataclass(frozen=True, slots=True)
class Advanced:
    """What a step gives, by relation: points that are `new` (they may lie beyond the step), rows that have `begun` in it, whose ends may
    not be known yet, and rows that have `ended`: complete, and not told again."""

    new: dict[str, pa.Table]
    begun: dict[str, pa.Table]
    ended: dict[str, pa.Table]


@dataclass(slots=True)
class _Size:
    """Rows of a relation, where the first of those that wait for a later step begins, and where the first that ends does."""

    rows: int = 0
    waiting: int = MAX
    ending: int = MAX


@dataclass(slots=True)
class Mark:
    """How far a program is: the last point of its last step, and the first point of the timeline (None: not known yet). Facts that are
    `waiting` for the next step, and what others derived that does (`beside`)."""

    past: int = MIN - 1
    start: int | None = None
    waiting: list[tuple[str, pa.Table]] = field(default_factory=list)
    beside: list[tuple[str, pa.Table]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of a program between two steps: its relations' rows with how far each is read, and its mark."""

    relations: dict[str, pa.Table]
    past: int
    start: int | None
    waiting: tuple[tuple[str, pa.Table], ...]
    events: State = ((), (), ())
    beside: tuple[tuple[str, pa.Table], ...] = ()


class ProgramState:
    """The relations of one program, in tables ``{prefix}1``, ``{prefix}2``, ...; `shown` are the relations whose rows a step gives (by
    default those of the program's predicates)."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, statements: Statements, shown: Iterable[str] | None = None,
                 prefix: str = "r") -> None:
        self.connection, self.prefix = connection, prefix
        self.whole = statements     # with a table for each relation
        program = statements.program
        self.shown = [r.name for r in program.relations if r.shown] if shown is None else list(shown)
        self.mark = Mark(start=None if program.start_ms is None else _granule(2 * program.start_ms, program.granule))
        self.events = Events(program) if program.windows else None
        self.views: dict[str, Given] = {}
        self.use(*statements.shared)

    def use(self, statements: Statements, same: Mapping[str, str]) -> None:
        """Make the tables for a program; the relations of `same` have none, each is read by the name that it stands for there."""
        self.statements, self.same = statements, same
        self.program = program = statements.program
        self.tables = {name: table.replace(PREFIX, self.prefix) for name, table in statements.tables.items()}
        self.relations = {relation.name: relation for relation in program.relations}
        self.recursive = {relation.name for stratum in program.strata if stratum.recursive for relation in stratum.relations}
        self.told = by_key((same.get(name, name), name) for name in self.shown)
        self.watched = watched(program)
        self.sizes = {name: _Size() for name in self.relations}
        self.boxed = late_boxed(program)
        self._prepared: dict[object, tuple[duckdb.Statement, frozenset[str]]] = {}
        for relation in program.relations:
            self.run(("create", relation.name), partial(statements.create, relation), {})

    def separate(self) -> None:
        """Give each relation a table of its own: facts come in for one of those that were the same."""
        snapshot, same = self.snapshot(), self.same
        held = {name: self.table(("kept", of), partial(self.statements.kept, self.relations[of]), {}) for name, of in same.items()}
        self.drop()
        self.use(self.whole, {})
        self.restore(replace(snapshot, relations={**snapshot.relations, **held}))

    @property
    def held(self) -> int:
        return sum(size.rows for size in self.sizes.values()) + (self.events.held if self.events else 0)

    def advance(self, facts: Tables, until: int, derived: Tables | None = None) -> Advanced:
        """Take in facts that begin after the last step, and make all up to the point `until` final. What others `derived` begins no
        timeline, and is in no window of tuples. Raises ValueError where a fact begins before that; growth.Unending where rounds find
        something new for ever, after which the state is of no use."""
        if until <= self.mark.past:
            raise ValueError("a step goes on from the one before")
        given, beside = self._taken(facts), self._waiting_with(derived or {})
        if self.program.granule and self.mark.start is None:
            self.mark.past = until
            return Advanced({}, {}, {})
        start = self.mark.start if self.mark.start is not None else MIN
        point = {"past": self.mark.past, "until": until, "start": start, "most": memory_bytes() // _ROW_BYTES}
        if self.events is not None:
            given += self.events.advance(given, self.mark.past, until, point["start"])
        facts = by_relation(self.relations.keys() | self.same.keys(), [*given, *beside])
        if not facts.keys().isdisjoint({*self.same, *self.same.values()}):
            self.separate()
        step = _Step(self, facts, point)
        try:
            for stratum in self.program.strata:
                step.take(stratum)
            return step.end()
        finally:
            for view in self.views.values():
                view.clear()
            self.mark.past = until

    def hold(self, facts: Tables, derived: Tables) -> None:
        """Keep facts, and what others derived, for the next step."""
        self.mark.waiting += [(name, table) for name, table in facts.items() if table.num_rows]
        self.mark.beside += [(name, table) for name, table in derived.items() if table.num_rows]

    def upcoming(self) -> int | None:
        """The first point behind the last step at which something may begin or cease, if nothing comes; None where nothing will."""
        point = {"until": self.mark.past}
        found = [first for name, relation in self.relations.items() if self.sizes[name].rows
                 for [firsts] in [self.run(("upcoming", name), partial(self.statements.upcoming, relation, self.watched[name]), point)]
                 for first in firsts if first is not None]
        if self.events is not None:
            found += [first * self.program.granule for first, _, _ in self.events.waiting]
        if self.events is not None and self.events.always or any(self.sizes[name].rows for name in self.boxed):
            found.append(self.mark.past + 1)        # each granule may be another answer
        return min(found, default=None)

    def rows(self, name: str) -> pa.Table:
        """The rows of a relation that are held."""
        relation = self.relations[self.same.get(name, name)]
        return self.table(("rows", relation.name), lambda: self.statements.rows(relation), {})

    def snapshot(self) -> Snapshot:
        """The state between two steps, as a value."""
        apart = self.whole.shared[1].keys() - self.same     # told by being there, with or without rows
        kept = {name: self.table(("kept", name), partial(self.statements.kept, relation), {}) for name, relation in self.relations.items()
                if self.sizes[name].rows or name in apart}
        events = self.events.state if self.events is not None else ((), (), ())
        return Snapshot(kept, self.mark.past, self.mark.start, tuple(self.mark.waiting), events, tuple(self.mark.beside))

    def restore(self, snapshot: Snapshot) -> None:
        """Go on from a snapshot of the same program, in tables that have nothing yet."""
        if not self.same.keys().isdisjoint(snapshot.relations):
            self.drop()
            self.use(self.whole, {})
        for name, table in snapshot.relations.items():
            with registered(self.connection, f"{self.tables[name]}_given", table, self.views):
                self.run(("load", name), partial(self.statements.load, self.relations[name]), {})
            self.measure(name)
        self.mark = Mark(snapshot.past, snapshot.start, list(snapshot.waiting), list(snapshot.beside))
        if self.events is not None:
            self.events.state = snapshot.events

    def measure(self, name: str) -> None:
        [(rows, waiting, ending)] = self.run(("size", name), partial(self.statements.size, self.relations[name]), {})
        self.sizes[name] = _Size(rows, *(MAX if point is None else point for point in (waiting, ending)))

    def drop(self) -> None:
        if self.tables:
            self.connection.execute(";\n".join(f"DROP TABLE IF EXISTS {name}" for name in self.tables.values()))
        while self.views:
            self.connection.unregister(self.views.popitem()[0])

    def run(self, key: object, make: Callable[[], Tree], point: Mapping[str, int]) -> list[tuple[int, ...]]:
        """The rows of a statement, which is written and parsed once."""
        prepared, names = self._statement(key, make)
        return self.connection.execute(prepared, {name: point[name] for name in names}).fetchall()

    def table(self, key: object, make: Callable[[], Tree], point: Mapping[str, int]) -> pa.Table:
        """The same as an Arrow table."""
        prepared, names = self._statement(key, make)
        return self.connection.execute(prepared, {name: point[name] for name in names}).to_arrow_table()

    def _statement(self, key: object, make: Callable[[], Tree]) -> tuple[duckdb.Statement, frozenset[str]]:
        if key not in self._prepared:
            text, names = self.statements.text(key, make)
            [statement] = self.connection.extract_statements(text.replace(PREFIX, self.prefix))
            self._prepared[key] = statement, names
        return self._prepared[key]

    def _taken(self, facts: Tables) -> list[tuple[str, pa.Table]]:
        """The facts of a step; on a timeline of granules none before its first point is known."""
        listed = [(name, table) for name, table in facts.items() if table.num_rows]
        for name, table in listed:
            first = pc.min(table["lo"]).as_py()
            if first <= self.mark.past and not (first == MIN and self.mark.past < MIN):
                raise ValueError(f"a fact of {name} begins before the step")
        if self.mark.past < MIN:
            listed.append((ALWAYS_RELATION, pa.table({"lo": [MIN], "hi": [MAX]})))
        listed = self.mark.waiting + listed
        if self.program.granule and self.mark.start is None:
            firsts = [pc.min(table["lo"].filter(pc.greater(table["lo"], MIN))).as_py() for _, table in listed]
            known = [first for first in firsts if first is not None]
            self.mark.start = _granule(min(known), self.program.granule) if known else None
        self.mark.waiting = listed if self._has_not_begun else []
        return listed

    def _waiting_with(self, derived: Tables) -> list[tuple[str, pa.Table]]:
        """What others derived, with what of that has waited; on a timeline that has not begun all of it waits on."""
        listed = self.mark.beside + [(name, table) for name, table in derived.items() if table.num_rows]
        self.mark.beside = listed if self._has_not_begun else []
        return listed

    @property
    def _has_not_begun(self) -> bool:
        return bool(self.program.granule) and self.mark.start is None


class _Step:
    """One step of a program."""

    def __init__(self, state: ProgramState, given: dict[str, pa.Table], point: dict[str, int]) -> None:
        self.state = state
        self.given = given
        self.point = point
        self.touched: dict[str, int] = {}
        for name, table in given.items():
            put_view(state.connection, f"{state.tables[name]}_given", table, state.views)

    def take(self, stratum: plan.Stratum) -> None:
        """Take the relations of a stratum on to the end of the step."""
        for relation in stratum.relations if stratum.recursive else ():
            if self._waits(relation.name):
                self._run(("begin", relation.name), partial(self.state.statements.begin, relation))
        fresh = {relation.name: self._merge(relation, self._active(relation), relation.name in self.given)
                 for relation in stratum.relations}
        if not stratum.recursive:
            return
        for _ in rounds(stratum.endless):
            if not any(fresh.values()):
                return
            for relation in stratum.relations:
                active = tuple(n for n, d in enumerate(relation.derivations) if d.part == "round" and fresh[d.delta])
                fresh[relation.name] = self._merge(relation, active, False)

    def end(self) -> Advanced:
        """What is new and what ended; then forget what ended."""
        state, statements = self.state, self.state.statements
        found = Advanced({}, {}, {})
        for name, relation in state.relations.items():
            size = state.sizes[name]
            if not size.rows and name not in self.touched:
                continue
            changed, gone = self._waits(name), 0
            if changed or size.ending < self.point["until"]:
                if told := state.told.get(name):
                    for part, rows in zip((found.new, found.begun, found.ended), self._changes(relation)):
                        part.update(dict.fromkeys(told, rows))
                [(gone,)] = self._run(("evict", name), lambda: statements.evict(relation))
            if changed:
                self._run(("settle", name), lambda: statements.settle(relation, name in state.recursive))
            if gone or changed:
                state.measure(name)
        return found

    def _changes(self, relation: plan.Relation) -> tuple[pa.Table, pa.Table, pa.Table]:
        """The new points of a relation, its rows that begin in the step, and those that end with it: nothing can extend these any more."""
        rows = self.state.table(("changes", relation.name), lambda: self.state.statements.changes(relation), self.point)
        lo, hi, seen = (rows[name].to_numpy() for name in ("lo", "hi", "seen"))
        past, until = self.point["past"], self.point["until"]
        ended = (hi < until) & (hi >= past) if relation.keep else hi < until
        points = rows.drop_columns(["seen"])
        new = points.set_column(relation.arity, "lo", pa.array(seen + 1)).filter(pa.array((seen < hi) & (seen < until)))
        return new, points.filter(pa.array((lo > past) & (lo <= until))), points.filter(pa.array(ended))

    def _active(self, relation: plan.Relation) -> tuple[int, ...]:
        """The derivations of a relation in the first round; of a conjunction one for all its atoms, where most rows are new."""
        active = [n for n, d in enumerate(relation.derivations) if d.part == "new" and self._is_new(d)]
        for n, derivation in enumerate(relation.derivations):
            same = [m for m in active if relation.derivations[m].rule == derivation.rule]
            if derivation.part == "later" and len(same) > 1:
                read = [scan.relation for scan in plan.scans(derivation.input)]
                if sum(self.state.sizes[name].rows for name in read) <= len(same) * sum(self.touched.get(name, 0) for name in read):
                    active = [m for m in active if m not in same] + [n]
        return tuple(sorted(active))

    def _is_new(self, derivation: plan.Derivation) -> bool:
        if _clipped(derivation.input):
            return bool(derivation.delta in self.touched or self.state.sizes[derivation.delta].rows)
        return self._waits(derivation.delta)

    def _waits(self, name: str) -> bool:
        """Whether a relation has something new in this step."""
        return name in self.touched or self.state.sizes[name].waiting < self.point["until"]

    def _merge(self, relation: plan.Relation, active: tuple[int, ...], given: bool) -> bool:
        """Merge what derivations give; whether there is something that the next round takes in."""
        name, state, statements = relation.name, self.state, self.state.statements
        if not active and not given:
            return False
        check_time()    # no interrupt ends what is not DuckDB's
        derivations = [relation.derivations[n] for n in active]
        many = state.sizes[name].rows + self.touched.get(name, 0) > _READ_WHOLE
        pieces = state.table((name, active, given, many), lambda: statements.pieces(relation, derivations, given, many), self.point)
        if pieces.num_rows == self.point["most"]:
            raise MemoryError(f"more than {pieces.num_rows} rows of {name}")
        if pieces["held"].to_numpy().all():
            return False
        rows, replaces = merged(pieces)
        put_view(state.connection, f"{state.tables[name]}_round", rows, state.views)
        for number in (0, 1) if replaces else (1,):
            self._run(("replace", name, number), lambda: statements.replace(relation)[number])
        self.touched[name] = self.touched.get(name, 0) + rows.num_rows
        taken = rows["taken"].to_numpy()
        return bool(((taken < rows["hi"].to_numpy()) & (taken < self.point["until"])).any())    # `pending` of engine/sql/intervals.py

    def _run(self, key: object, make: Callable[[], Tree]) -> list[tuple[int, ...]]:
        return self.state.run(key, make, self.point)


def by_relation(relations: Collection[str], given: Sequence[tuple[str, pa.Table]]) -> dict[str, pa.Table]:
    """The given tables of the program's relations; triples by their property, or class, where the program has them so."""
    found: dict[str, list[pa.Table]] = {}
    for name, table in given:
        if name == f"{TRIPLE}/3" and name not in relations:
            for property_ in table["a2"].unique().to_pylist():
                of = table.filter(pc.equal(table["a2"], property_)).drop_columns(["a2"]).rename_columns(["a1", "a2", "lo", "hi"])
                found.setdefault(f"{TRIPLE} {property_}/2", []).append(of)
                for class_ in of["a2"].unique().to_pylist() if property_ == RDF_TYPE else ():
                    members = of.filter(pc.equal(of["a2"], class_)).drop_columns(["a2"])
                    found.setdefault(f"{TRIPLE} {RDF_TYPE} {class_}/1", []).append(members)
        else:
            found.setdefault(name, []).append(table)
    return {name: pa.concat_tables(listed) for name, listed in found.items() if name in relations}


def merged(pieces: pa.Table) -> tuple[pa.Table, bool]:
    """Of the terms that have a piece which is not `held`: all their rows ``a1 a2 ... lo hi``, coalesced, with ``seen`` and ``taken`` of the
    first piece of each; and whether any of these pieces was held. There is one that is not; no term or point is NULL."""
    terms = pieces.column_names[:-len(POINTS) - 1]
    group, new = np.zeros(pieces.num_rows, np.int64), np.zeros(pieces.num_rows, bool)
    for number, name in enumerate(terms):
        codes = pieces[name].dictionary_encode().combine_chunks().indices.to_numpy().astype(np.int64)
        group = np.unique(group * (codes.max() + 1) + codes, return_inverse=True)[1] if number else codes
    lo, hi, seen, taken, held = (pieces[name].to_numpy() for name in (*POINTS, "held"))
    new[group[~held]] = True
    order = np.lexsort((-taken, -seen, lo, group))
    order = order[new[group[order]]]
    group, lo, hi, seen, taken = (column[order] for column in (group, lo, hi, seen, taken))
    # The greatest end up to a row, of its group: ranks of ends, so that one running maximum serves all groups.
    ends, rank = np.unique(hi, return_inverse=True)
    reach = ends[np.maximum.accumulate(group * len(ends) + rank) % len(ends)]
    first = np.flatnonzero(np.append(True, (group[1:] > group[:-1]) | (lo[1:] > reach[:-1] + 1)))
    last = np.append(first[1:], len(lo)) - 1
    rows = {name: pieces[name].take(pa.array(order[first])) for name in terms}
    return pa.table(rows | dict(zip(POINTS, (lo[first], reach[last], seen[first], taken[first])))), bool(held[order].any())


def _clipped(node: plan.Node) -> bool:
    """Whether a derivation reads all rows in each step: what it gives is known up to the end of the step only."""
    match node:
        case plan.Clip():
            return True
        case plan.AntiJoin(input=inner) | plan.At(input=inner):
            return _clipped(inner)
    return False


def _granule(point: int, length: int) -> int:
    """The first point of the granule of a point."""
    return point // length * length if length else point

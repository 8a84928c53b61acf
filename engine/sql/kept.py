"""Kept relations as SQL for DuckDB: all that a pattern finds, what new facts add to it, and what is seen at T.

A relation has the columns ``first0 last0 ...`` (the times of the oldest and newest fact of each window), ``born`` (the least log position
of its facts) and for each variable its token, with ``_k _n _m`` where it stands for an object. A worker's tables of facts have the number
``part`` of the batch that brought each row, and hashes ``hs ho`` of subject and object: what is new is joined with the rows that have one
of its hashes, which are found without comparing terms. A table that is written as a whole is sorted by ``hp``, a short hash
of the property, so that a scan for one property skips the blocks without it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import starmap

from engine.functions.typed import ANY_KIND
from engine.ir.expressions import Expression, variables_of
from engine.ir.terms import Constant, OneOf, PatternTerm, Variable
from engine.plan.kept import leaves
from engine.plan.nodes import KeptSource, Scan, Source, StaticSource, WindowSource, scan_variables
from engine.sql.calls import Columns
from engine.sql.dialect import DUCKDB
from engine.sql.leaves import place
from engine.sql.lower import Lowering
from engine.sql.relation import COMPANIONS
from engine.sql.sources import graph_table, stream_table
from engine.timeline import MAX, MIN

HASHES = {"s": "hs", "o": "ho"}
_SHORT_HASH = "CAST(hash({}) & 65535 AS USMALLINT)"
HASHED = f"hash(s) AS hs, hash(o) AS ho, {_SHORT_HASH.format('p')} AS hp"
"""The columns of hashes of a table of facts."""
_SAID = ("s", "p", "o", "g", "kind", "number", "micros", "hs", "ho")


@dataclass(frozen=True, slots=True)
class Meeting:
    """That a hash in a column of one window's new facts is in a column of another window's facts (windows by number), or of those that were
    there `before`."""

    new: int
    new_column: str
    old: int
    old_column: str
    before: bool


@dataclass(frozen=True, slots=True)
class Delta:
    """What some new facts add: the rows that `joined` gives over its `parts`, temporary tables (name -> text) that are made before, in this
    order; none where one of them is empty, or where one of the `meetings` does not hold. `alone`: the number of a
    window, and the delta that serves in place of this one where its new facts are about subjects that had no facts before."""

    parts: Mapping[str, str]
    joined: str
    meetings: tuple[Meeting, ...]
    alone: tuple[int, Delta] | None


@dataclass(frozen=True, slots=True)
class KeptText:
    """The statements of a kept relation over the `tables` of its windows and those of its `graphs`. The `deltas` have the parameters
    ``seen0 ...`` (the batch of each window's table that was seen last), ``near0 ...`` (the least batch that may have facts about the
    subjects of those after it) and ``from0 ...`` (the time before which nothing of it is needed). `key` is the hash of a solution, `newest`
    the time of its newest fact. Where tables are `apart` each pattern finds facts of one window alone. The statements make the macros that
    show what windows see: those of `once` serve where no solution is kept twice, `again` ones give each solution once where its facts may
    have come more than once."""

    name: str
    tables: tuple[str, ...]
    graphs: tuple[str, ...]
    whole: str
    deltas: tuple[Delta, ...]
    key: str
    once: tuple[str, ...]
    again: tuple[str, ...]
    newest: str
    apart: bool

    @property
    def hashed(self) -> tuple[frozenset[str], ...]:
        """Of each window's table the columns whose hashes are to be known: those of subjects always, which tell how far back to look."""
        asked = {end for delta in self.deltas for one in delta.meetings for end in ((one.new, one.new_column), (one.old, one.old_column))}
        return tuple(frozenset(("hs", *(column for number, column in asked if number == window))) for window in range(len(self.tables)))


@dataclass(frozen=True, slots=True)
class KeptView:
    """What of a kept relation the windows of some evaluations show, as a table of this `name` that several statements read."""

    name: str
    relation: str
    text: str


def view_of(source: KeptSource, shown: str) -> KeptView:
    """What of a relation is `shown` (sources.py), with the columns of all its variables."""
    mark = hashlib.sha256(shown.encode()).hexdigest()[:12]
    return KeptView(f"{source.name}_seen_{mark}", source.name, f"SELECT * FROM {shown}")


@dataclass(frozen=True, slots=True)
class _Look:
    """How the facts of a group are found: by the hashes of a variable that group `bound_by` has; it is their subject (None), or the object
    of a scan."""

    variable: Variable
    bound_by: int
    object_of: int | None


class KeptWriter:
    """Writes the statements of one relation. Its scans are in groups, each about one subject of one source: one look finds the facts of
    all of a group."""

    def __init__(self, source: KeptSource, lowering: Lowering) -> None:
        self._source, self._lowering = source, lowering
        self._variables = source.variables
        self._objects = source.objects
        groups: dict[object, list[int]] = {}
        for number, scan in enumerate(source.scans):
            groups.setdefault((scan.source, scan.subject) if isinstance(scan.subject, Variable) else number, []).append(number)
        self._groups = [*groups.values()]

    def text(self) -> KeptText:
        scans = range(len(self._source.scans))
        read = [leaf for scan in self._source.scans for leaf in leaves(scan.source) or ()]
        graphs = dict.fromkeys(self._table(leaf) for leaf in read if isinstance(leaf, StaticSource))
        every = [self._rows(scan.source, whole=True) for scan in self._source.scans]
        whole = self._kept([(f"({self._facts(number, f'({every[number]}) AS r')})", [number]) for number in scans], self._source.filters)
        deltas = tuple(self._delta(number) for number, group in enumerate(self._groups)
                       if any(isinstance(leaf, WindowSource) for leaf in leaves(self._source.scans[group[0]].source) or ()))
        names = ", ".join(variable.name for variable in self._variables)
        return KeptText(self._source.name, tuple(starmap(stream_table, self._source.streams)), tuple(graphs), whole, deltas,
                        f"hash({names})" if names else "0", self._shown(False), self._shown(True), newest(len(self._source.streams)),
                        all(isinstance(scan.source, WindowSource) for scan in self._source.scans))

    # --- facts

    def _rows(self, source: Source, condition: Callable[[str], str] | None = None, *, whole: bool = False, new: bool = False) -> str:
        """The facts of a source: what they say, the least log position, whether they are new, and their time as the oldest and newest of
        their window; a fact of another window, or of a graph, bounds nothing. All of them (`whole`), or those that are needed: of these
        the `new` ones, or those for which a condition on their table holds."""
        texts = []
        for leaf in leaves(source) or ():
            where, table = [], self._table(leaf)
            if isinstance(leaf, WindowSource):
                born = "position"
                fresh = "TRUE" if whole else f"part > $seen{leaf.index}"
                where += [] if whole else [f"t >= $from{leaf.index}"]
                where += [fresh] if new else []
            elif new:
                continue
            else:
                born, fresh = f"CAST({MAX} AS BIGINT)", "FALSE"
            if condition is not None:
                where.append(condition(table))
            times = []
            for window in range(len(self._source.streams)):
                own = isinstance(leaf, WindowSource) and leaf.index == window
                times += [f"{'t' if own else f'CAST({end} AS BIGINT)'} AS {name}{window}" for name, end in (("first", MAX), ("last", MIN))]
            listed = ", ".join((*_SAID, f"{born} AS born", f"{fresh} AS fresh", *times))
            texts.append(f"SELECT {listed} FROM {table}{_where(where)}")
        return " UNION ALL ".join(texts)

    def _facts(self, number: int, rows: str) -> str:
        """What one scan finds in a relation of facts: with what it binds, and hashes of that."""
        where, places = list[str](), dict[Variable, str]()
        for column, term in _terms(self._source.scans[number]):
            place(DUCKDB, column, term, places, where)
        select = ["born", "fresh", *self._times]
        for variable, column in places.items():
            select.append(f"{column} AS {variable.name}")
            if column in HASHES:
                select.append(f"{HASHES[column]} AS {variable.name}_h")
            if column == "o":
                select += [f"{fact} AS {variable.name}{suffix}" for suffix, (fact, _) in COMPANIONS.items()]
        return f"SELECT {', '.join(select)} FROM {rows}{_where(where)}"

    @property
    def _times(self) -> list[str]:
        return [f"{name}{window}" for window in range(len(self._source.streams)) for name in ("first", "last")]

    def _joined(self, relations: Sequence[tuple[str, Sequence[int]]], within: bool = False) -> str:
        """The join of relations, each with the numbers of its scans: what they bind, with the typed columns, and times; `within` a group
        also hashes, and whether something is new."""
        first, hashed, typed = (dict[Variable, str]() for _ in range(3))
        parts: list[str] = []
        for number, (relation, scans) in enumerate(relations):
            on = []
            for variable in scan_variables(*(self._source.scans[scan] for scan in scans)):
                column = f"f{number}.{variable.name}"
                if variable in first:
                    on.append(f"{first[variable]} = {column}")
                first.setdefault(variable, column)
                if self._objects.get(variable) in scans:
                    typed[variable] = column
            for variable in (v for scan in scans for v in _hashed(self._source.scans[scan])):
                hashed.setdefault(variable, f"f{number}.{variable.name}_h")
            parts.append(f"{relation} AS f{number}" if not number else f"JOIN {relation} AS f{number} ON {' AND '.join(on) or 'TRUE'}")
        select = [f"{column} AS {variable.name}" for variable, column in first.items()]
        select += [f"{typed[v]}{suffix} AS {v.name}{suffix}" for v in self._objects if v in typed for suffix in COMPANIONS]
        numbers = range(len(relations))
        for name in ("born", *self._times):
            columns = [f"f{number}.{name}" for number in numbers]
            select.append(f"{_extreme('greatest' if name.startswith('last') else 'least', columns)} AS {name}")
        if within:
            select += [f"{column} AS {variable.name}_h" for variable, column in hashed.items()]
            select.append(f"{' OR '.join(f'f{number}.fresh' for number in numbers)} AS fresh")
        return f"SELECT {', '.join(select)} FROM {' '.join(parts)}"

    def _kept(self, relations: Sequence[tuple[str, Sequence[int]]], filters: Sequence[Expression]) -> str:
        """The join in the form that is kept."""
        text = self._joined(relations)
        return f"SELECT * FROM ({text}) AS j{_where(self._tests(filters, self._variables, self._objects))}" if filters else text

    def _tests(self, filters: Sequence[Expression], variables: tuple[Variable, ...], objects: Iterable[Variable]) -> list[str]:
        columns = Columns(lambda v: v.name if v in variables else None, dict.fromkeys(objects, ANY_KIND), frozenset(), None, variables)
        return [self._lowering.condition(condition, columns) for condition in filters]

    def _shown(self, again: bool) -> tuple[str, ...]:
        """The macros that give what is shown: all of it, and what is left without the solutions whose newest facts lie between two times;
        where solutions are kept `again` one row of each."""
        tokens = [variable.name for variable in self._variables]
        typed = [f"{variable.name}{suffix}" for variable in self._objects for suffix in COMPANIONS]
        windows = range(len(self._source.streams))
        given = [f"{name}{window}" for window in windows for name in ("low", "high")]
        where = [f"first{window} >= low{window} AND last{window} < high{window}" for window in windows]

        def rows(relation: str) -> str:
            found = f"FROM {relation} WHERE {' AND '.join([*where, 'born > since'])}"
            if not tokens:
                return f"SELECT DISTINCT 1 AS u {found}"
            if again:
                return f"SELECT {', '.join([*tokens, *(f'any_value({c}) AS {c}' for c in typed)])} {found} GROUP BY {', '.join(tokens)}"
            return f"SELECT {', '.join([*tokens, *typed])} {found}"

        name, last = self._source.name, newest(len(windows))
        # Two scans, since each skips blocks by its bound, which one with OR does not. No row comes twice: `from_ms` <= `until_ms`.
        rest = " UNION ALL ".join(f"SELECT * FROM {name} WHERE {end}" for end in (f"{last} < from_ms", f"{last} >= until_ms"))
        return (_macro(name, [*given, "since"], rows(name)),
                _macro(rest_macro(name), [*given, "since", "from_ms", "until_ms"], rows(f"({rest}) AS r")))

    # --- what is new

    def _delta(self, first: int, alone: bool = False) -> Delta:
        """Group number `first` with a new fact, those before it without one, those after it with or without: no solution comes twice.
        `alone`: nothing older is about the subjects of new facts of the group."""
        parts, filters = dict[str, str](), list(self._source.filters)
        relations: dict[int, str] = {}
        order = self._order(first)
        looks = self._looks(order)
        for group in order:
            scans, name = self._groups[group], _part(group)
            source = self._source.scans[scans[0]].source
            seen = ["NOT fresh"] if group < first else []
            if group != first:
                if (near := self._near(group, looks)) is None:
                    rows = self._rows(source)
                else:
                    numbers = f"SELECT number FROM {name}_rows WHERE of_table ="
                    parts[f"{name}_rows"] = self._row_numbers(scans, near)
                    rows = self._rows(source, lambda table: f"rowid IN ({numbers} {DUCKDB.quote(table)})")
            elif len(scans) == 1 or alone:
                rows = self._rows(source, new=True)
            else:
                seen = ["fresh"]
                news = self._looked_up(scans, "hs", lambda leaf: f"part > $seen{leaf.index}" if isinstance(leaf, WindowSource) else None)
                # Another table, too, may have facts about these subjects, and says nothing of which batches.
                since = f"part >= $near{source.index} AND " if isinstance(source, WindowSource) else ""
                # More than the hashes is read of few rows alone.
                rows = self._rows(source, lambda table: f"rowid IN (SELECT rowid FROM {table} WHERE {since}hs IN ({news}))")
            if len(scans) == 1 and group == first:
                found = self._facts(scans[0], f"({rows}) AS r")
            else:   # materialised, so that what the scans ask is not asked of the whole table
                facts = [self._facts(number, f"{name}_facts") for number in scans]
                joined = facts[0] if len(scans) == 1 else self._joined([(f"({f})", [n]) for f, n in zip(facts, scans)], within=True)
                found = f"WITH {name}_facts AS MATERIALIZED ({rows}) {joined}"
            variables = scan_variables(*(self._source.scans[number] for number in scans))
            objects = [v for v, number in self._objects.items() if number in scans]
            own = [f for f in filters if (read := variables_of(f)) <= {*variables} and (read & self._objects.keys()) <= set(objects)]
            filters = [condition for condition in filters if condition not in own]
            listed = [*(v.name for v in variables), *(f"{v.name}{suffix}" for v in objects for suffix in COMPANIONS), "born", *self._times,
                      *dict.fromkeys(f"{look.variable.name}_h" for look in looks.values() if look.bound_by == group)]
            parts[name] = f"SELECT {', '.join(listed)} FROM ({found}) AS a{_where(seen + self._tests(own, variables, objects))}"
            relations[group] = name
        if len(scans) > 1:      # one statement less; of a scan alone DuckDB would not know how few rows it has
            relations[group] = f"({parts.pop(name)})"
        window, cheaper = self._source.scans[self._groups[first][0]].source, None
        if isinstance(window, WindowSource) and len(self._groups[first]) > 1 and not alone:
            cheaper = window.index, self._delta(first, alone=True)
        whole = self._kept([(relations[group], self._groups[group]) for group in sorted(relations)], filters)
        return Delta(parts, whole, tuple(self._meetings(first)), cheaper)

    def _meetings(self, first: int) -> Iterator[Meeting]:
        """What new facts of a group have in common with those of others. Where a group has several scans, the new fact may be one of any:
        only its subject is sure."""
        scans = [self._source.scans[number] for number in self._groups[first]]
        shared = {v for scan in scans for v in _hashed(scan) if len(scans) == 1 or v == scan.subject}
        others = [(self._source.scans[number], place < first) for place, group in enumerate(self._groups) if place != first
                  for number in group]
        for old, before in others:
            if isinstance(scans[0].source, WindowSource) and isinstance(old.source, WindowSource):
                for variable in shared.intersection(_hashed(old)):
                    yield Meeting(scans[0].source.index, _column(scans[0], variable), old.source.index, _column(old, variable), before)

    def _looked_up(self, scans: Sequence[int], column: str, condition: Callable[[WindowSource | StaticSource], str | None]) -> str:
        """A column of the facts that some scans of a group may find, where a condition on their leaf says so."""
        tests = " OR ".join(f"({' AND '.join(_conditions(self._source.scans[number])) or 'TRUE'})" for number in scans)
        texts = []
        for leaf in leaves(self._source.scans[scans[0]].source) or ():
            if (where := condition(leaf)) is not None:
                texts.append(f"SELECT {column} FROM {self._table(leaf)} WHERE {where} AND ({tests})")
        return " UNION ALL ".join(texts)

    def _row_numbers(self, group: Sequence[int], near: Callable[[str], str]) -> str:
        """The row numbers of the facts of a group's source for which a condition on their table holds: made a table, so that DuckDB knows
        how few rows it is to read more of."""
        scans = [self._source.scans[number] for number in group]
        asked = [_SHORT_HASH.format(DUCKDB.quote(scan.predicate.token)) for scan in scans if isinstance(scan.predicate, Constant)]
        of_these = f"hp IN ({', '.join(dict.fromkeys(asked))}) AND " if len(asked) == len(scans) else ""
        tables = dict.fromkeys(map(self._table, leaves(scans[0].source) or ()))
        return " UNION ALL ".join(f"SELECT {DUCKDB.quote(table)} AS of_table, rowid AS number FROM {table} WHERE {of_these}{near(table)}"
                                  for table in tables)

    def _table(self, leaf: WindowSource | StaticSource) -> str:
        return stream_table(*self._source.streams[leaf.index]) if isinstance(leaf, WindowSource) else graph_table(leaf.iri, leaf.key)

    def _looks(self, order: Sequence[int]) -> dict[int, _Look]:
        """How the facts of groups are found, by group, in an order; those of a group that is absent are all read."""
        bound_by, looks = dict[Variable, int](), dict[int, _Look]()
        for group in order:
            scans = [self._source.scans[number] for number in self._groups[group]]
            terms = [(scans[0].subject, None), *((scan.object, number) for scan, number in zip(scans, self._groups[group]))]
            for term, number in terms if group != order[0] else ():
                if isinstance(term, Variable) and term in bound_by:
                    looks.setdefault(group, _Look(term, bound_by[term], number))
            for scan in scans:
                bound_by |= {variable: group for variable in _hashed(scan) if variable not in bound_by}
        return looks

    def _near(self, group: int, looks: Mapping[int, _Look]) -> Callable[[str], str] | None:
        """The condition on the facts that may join with what is found, by a hash; None where no variable has one."""
        look = looks.get(group)
        if look is None:
            return None
        wanted = f"IN (SELECT {look.variable.name}_h FROM {_part(look.bound_by)})"
        if look.object_of is None:
            return lambda table: f"hs {wanted}"
        if len(self._groups[group]) == 1:
            return lambda table: f"ho {wanted}"
        subjects = self._looked_up([look.object_of], "hs", lambda leaf: f"ho {wanted}")
        return lambda table: f"hs IN ({subjects})"

    def _order(self, first: int) -> list[int]:
        """The groups, each after one that it shares a variable with."""
        bound = [set(scan_variables(*(self._source.scans[number] for number in group))) for group in self._groups]
        order, waiting = [first], [number for number in range(len(self._groups)) if number != first]
        while waiting:
            reached = set().union(*(bound[number] for number in order))
            near = next((number for number in waiting if reached & bound[number]), waiting[0])
            order.append(near)
            waiting.remove(near)
        return order


def _part(group: int) -> str:
    """The temporary table of what a group finds. All relations use these names: each delta replaces the tables of the one before."""
    return f"part_{group}"


def _where(conditions: Sequence[str]) -> str:
    return f" WHERE {' AND '.join(conditions)}" if conditions else ""


def _terms(scan: Scan) -> list[tuple[str, PatternTerm | None]]:
    return [*zip("spo", scan.terms), ("g", scan.graph)]


def _conditions(scan: Scan) -> list[str]:
    """What the constants of a scan ask."""
    where: list[str] = []
    for column, term in _terms(scan):
        if isinstance(term, (Constant, OneOf)):
            place(DUCKDB, column, term, {}, where)
    return where


def _hashed(scan: Scan) -> list[Variable]:
    """The variables whose hashes the rows of a scan have."""
    return [t for t in (scan.subject, scan.object) if isinstance(t, Variable) and t != scan.predicate]


def _column(scan: Scan, variable: Variable) -> str:
    """The column of hashes that a variable has."""
    return HASHES["s" if scan.subject == variable else "o"]


def newest(windows: int) -> str:
    """The time of the newest fact of a solution that so many windows find, in the columns of a relation."""
    return _extreme("greatest", [f"last{window}" for window in range(windows)])


def rest_macro(relation: str) -> str:
    """Name of the macro that gives what windows see of a relation but for the solutions whose newest facts lie between two times."""
    return f"{relation}_rest"


def _macro(name: str, given: Sequence[str], rows: str) -> str:
    return f"CREATE OR REPLACE MACRO {name}({', '.join(given)}) AS TABLE {rows}"


def _extreme(function: str, columns: Sequence[str]) -> str:
    return columns[0] if len(columns) == 1 else f"{function}({', '.join(columns)})"

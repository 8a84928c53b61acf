"""Kept relations as SQL for DuckDB: all that a pattern finds, what new facts add to it, and what is seen at T.

A relation has the columns ``first0 last0 ...`` (the times of the oldest and newest fact of each window), ``born`` (the least log position
of its facts) and for each variable its token, with ``_k _n _m`` where it stands for an object. A worker's tables of facts have the number
``part`` of the batch that brought each row, and hashes ``hs ho`` of subject and object: what is new is joined with the rows that have one
of its hashes, which are found without comparing terms.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from engine.functions.typed import ANY_KIND
from engine.ir.terms import Constant, OneOf, PatternTerm, Variable
from engine.plan.kept import leaves
from engine.plan.nodes import KeptSource, Scan, Source, StaticSource, WindowSource
from engine.sql.calls import Columns
from engine.sql.dialect import DUCKDB
from engine.sql.leaves import place
from engine.sql.lower import Lowering
from engine.sql.relation import COMPANIONS
from engine.sql.sources import graph_table, stream_table
from engine.timeline import MAX, MIN

HASHES = {"s": "hs", "o": "ho"}
_SAID = ("s", "p", "o", "g", "kind", "number", "micros", "hs", "ho")


@dataclass(frozen=True, slots=True)
class KeptText:
    """The statements of a kept relation over the `tables` of its windows and those of its `graphs`. `delta` has the parameters
    ``seen0 ...`` (the batch of each window's table that was seen last) and ``from0 ...`` (the time before which nothing of it is
    needed)."""

    name: str
    tables: tuple[str, ...]
    graphs: tuple[str, ...]
    whole: str
    delta: str


@dataclass(frozen=True, slots=True)
class KeptView:
    """What of a kept relation the windows of some evaluations show, as a table of this `name` that several statements read."""

    name: str
    relation: str
    text: str


def view_of(source: KeptSource, where: str) -> KeptView:
    """The rows of a relation for which a condition holds (sources.is_shown), each once, with the columns of all its variables."""
    columns = [name for variable in source.variables
               for name in (variable.name, *(f"{variable.name}{suffix}" for suffix in COMPANIONS if variable in source.objects))]
    mark = hashlib.sha256(where.encode()).hexdigest()[:12]
    return KeptView(f"{source.name}_seen_{mark}", source.name,
                    f"SELECT DISTINCT {', '.join(columns) or '1 AS u'} FROM {source.name} WHERE {where}")


class KeptWriter:
    """Writes the statements of one relation."""

    def __init__(self, source: KeptSource, lowering: Lowering) -> None:
        self._source, self._lowering = source, lowering
        self._variables = source.variables
        self._objects = source.objects
        self._count = len(source.scans)

    def text(self) -> KeptText:
        """Both statements."""
        read = [leaf for scan in self._source.scans for leaf in leaves(scan.source) or ()]
        graphs = dict.fromkeys(leaf.iri for leaf in read if isinstance(leaf, StaticSource))
        whole = self._joined([self._facts(number, whole=True) for number in range(self._count)])
        delta = self._star() if self._is_star else " UNION ALL ".join(
            f"({self._term(number)})" for number in range(self._count) if _windows(self._source.scans[number]))
        return KeptText(self._source.name, tuple(map(stream_table, self._source.streams)), tuple(map(graph_table, graphs)), whole, delta)

    @property
    def _is_star(self) -> bool:
        """Whether all scans share source and subject: then one look at the facts of the subjects that new facts are about will do."""
        first = self._source.scans[0]
        return self._count > 1 and isinstance(first.subject, Variable) and all(
            scan.subject == first.subject and scan.source == first.source for scan in self._source.scans)

    # --- facts

    def _rows(self, source: Source, conditions: Sequence[str], whole: bool = False) -> str:
        """The facts of a source: what they say, the least log position, whether they are new, and their time as the oldest and newest of
        their window; a fact of another window, or of a graph, bounds nothing."""
        texts = []
        for leaf in leaves(source) or ():
            where = list(conditions)
            if isinstance(leaf, WindowSource):
                table, born = stream_table(self._source.streams[leaf.index]), "position"
                fresh = "TRUE" if whole else f"part > $seen{leaf.index}"
                where += [] if whole else [f"t >= $from{leaf.index}"]
            else:
                table, born, fresh = graph_table(leaf.iri), f"CAST({MAX} AS BIGINT)", "FALSE"
            times = []
            for window in range(len(self._source.streams)):
                own = isinstance(leaf, WindowSource) and leaf.index == window
                times += [f"{'t' if own else f'CAST({end} AS BIGINT)'} AS {name}{window}" for name, end in (("first", MAX), ("last", MIN))]
            listed = ", ".join((*_SAID, f"{born} AS born", f"{fresh} AS fresh", *times))
            texts.append(f"SELECT {listed} FROM {table}" + (f" WHERE {' AND '.join(where)}" if where else ""))
        return " UNION ALL ".join(texts)

    def _facts(self, number: int, *conditions: str, whole: bool = False, rows: str = "") -> str:
        """The rows of one scan, of all facts of its source or of `rows`: with what it binds, and hashes of that."""
        scan = self._source.scans[number]
        where, places = list(conditions), dict[Variable, str]()
        for column, term in _terms(scan):
            place(DUCKDB, column, term, places, where)
        select = ["born", "fresh", *(f"{name}{window}" for window in range(len(self._source.streams)) for name in ("first", "last"))]
        for variable, column in places.items():
            select.append(f"{column} AS {variable.name}")
            if column in HASHES:
                select.append(f"{HASHES[column]} AS {variable.name}_h")
            if column == "o":
                select += [f"{fact} AS {variable.name}{suffix}" for suffix, (fact, _) in COMPANIONS.items()]
        if rows:
            return f"SELECT {', '.join(select)} FROM {rows}" + (f" WHERE {' AND '.join(where)}" if where else "")
        return f"SELECT {', '.join(select)} FROM ({self._rows(scan.source, where, whole)}) AS r"

    def _joined(self, facts: Sequence[str], condition: str = "") -> str:
        """The join of the scans' rows, in the form that is kept."""
        first: dict[Variable, str] = {}
        parts: list[str] = []
        for number, text in enumerate(facts):
            on = []
            for variable in _variables(self._source.scans[number]):
                column = f"f{number}.{variable.name}"
                if variable in first:
                    on.append(f"{first[variable]} = {column}")
                else:
                    first[variable] = column
            parts.append(f"({text}) AS f{number}" if not number else f"JOIN ({text}) AS f{number} ON {' AND '.join(on) or 'TRUE'}")
        select = [f"{first[variable]} AS {variable.name}" for variable in self._variables]
        for variable, number in self._objects.items():
            select += [f"f{number}.{variable.name}{suffix} AS {variable.name}{suffix}" for suffix in COMPANIONS]
        extremes = [("least", "born")]
        for window in range(len(self._source.streams)):
            extremes += [("least", f"first{window}"), ("greatest", f"last{window}")]
        select += [f"{_extreme(function, [f'f{number}.{name}' for number in range(len(facts))])} AS {name}" for function, name in extremes]
        text = f"SELECT {', '.join(select)} FROM {' '.join(parts)}"
        return self._filtered(f"{text} WHERE {condition}" if condition else text)

    def _filtered(self, text: str) -> str:
        if not self._source.filters:
            return text
        columns = Columns(lambda v: v.name if v in self._variables else None, dict.fromkeys(self._objects, ANY_KIND), frozenset(), None,
                          self._variables)
        tests = [self._lowering.condition(condition, columns) for condition in self._source.filters]
        return f"SELECT * FROM ({text}) AS j WHERE {' AND '.join(tests)}"

    # --- what is new

    def _star(self) -> str:
        """The facts about every subject that a new fact is about, and of what they make that in which a new one is."""
        tests = " OR ".join(f"({' AND '.join(_conditions(scan)) or 'TRUE'})" for scan in self._source.scans)
        source = self._source.scans[0].source
        news = " UNION ALL ".join(f"SELECT hs FROM {stream_table(self._source.streams[window])} WHERE part > $seen{window} AND ({tests})"
                                  for window in _windows(self._source.scans[0]))
        touched = self._rows(source, [f"({tests})", "hs IN (SELECT hs FROM news)"])
        facts = [self._facts(number, rows="touched") for number in range(self._count)]
        fresh = " OR ".join(f"f{number}.fresh" for number in range(self._count))
        return f"WITH news AS MATERIALIZED ({news}), touched AS MATERIALIZED ({touched}) {self._joined(facts, f'({fresh})')}"

    def _term(self, delta: int) -> str:
        """Scan number `delta` over new facts, those before it over old ones, those after it over all: no solution comes twice."""
        bound: dict[Variable, str] = {}
        relations = []
        for number in self._order(delta):
            scan, conditions = self._source.scans[number], list[str]()
            for column, term in zip("so", (scan.subject, scan.object)):
                if isinstance(term, Variable) and term in bound:
                    conditions.append(f"{HASHES[column]} IN (SELECT {term.name}_h FROM {bound[term]})")
                    break
            seen = "fresh" if number == delta else "NOT fresh" if number < delta else "TRUE"
            relations.append(f"d{number} AS MATERIALIZED (SELECT * FROM ({self._facts(number, *conditions)}) AS a WHERE {seen})")
            bound |= {v: f"d{number}" for v in _hashed(scan) if v not in bound}
        facts = [f"SELECT * FROM d{number}" for number in range(self._count)]
        return f"WITH {', '.join(relations)} {self._joined(facts)}"

    def _order(self, first: int) -> list[int]:
        """The scans, each after one that it shares a variable with."""
        order, waiting = [first], [number for number in range(self._count) if number != first]
        while waiting:
            reached = {v for number in order for v in _variables(self._source.scans[number])}
            near = next(n for n in (*[n for n in waiting if reached & set(_variables(self._source.scans[n]))], *waiting))
            order.append(near)
            waiting.remove(near)
        return order


def _terms(scan: Scan) -> list[tuple[str, PatternTerm | None]]:
    return [*zip("spo", scan.terms), ("g", scan.graph)]


def _conditions(scan: Scan) -> list[str]:
    """What the constants of a scan ask."""
    where: list[str] = []
    for column, term in _terms(scan):
        if isinstance(term, (Constant, OneOf)):
            place(DUCKDB, column, term, {}, where)
    return where


def _variables(scan: Scan) -> tuple[Variable, ...]:
    return tuple(dict.fromkeys(t for t in (*scan.terms, scan.graph) if isinstance(t, Variable)))


def _hashed(scan: Scan) -> list[Variable]:
    """The variables whose hashes the rows of a scan have."""
    return [t for t in (scan.subject, scan.object) if isinstance(t, Variable) and t != scan.predicate]


def _windows(scan: Scan) -> list[int]:
    return [leaf.index for leaf in leaves(scan.source) or () if isinstance(leaf, WindowSource)]


def _extreme(function: str, columns: Sequence[str]) -> str:
    return columns[0] if len(columns) == 1 else f"{function}({', '.join(columns)})"

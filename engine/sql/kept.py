"""Kept relations as SQL for DuckDB: all that a pattern finds, what new facts add to it, and what is seen at T.

A relation has the columns ``first0 last0 ...`` (the times of the oldest and newest fact of each window), ``born`` (the least log position
of its facts) and for each variable its token, with ``_k _n _m`` where it stands for an object. A worker's tables of facts have the number
``part`` of the batch that brought each row, and hashes ``hs ho`` of subject and object: what is new is joined with the rows that have one
of its hashes, which are found without comparing terms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.ir.terms import Constant, OneOf, PatternTerm, Variable
from engine.plan.nodes import KeptSource, Scan, WindowSource
from engine.sql.calls import Columns
from engine.sql.dialect import DUCKDB
from engine.sql.leaves import place
from engine.sql.lower import Lowering
from engine.sql.relation import COMPANIONS
from engine.sql.sources import stream_table

HASHES = {"s": "hs", "o": "ho"}


@dataclass(frozen=True, slots=True)
class KeptText:
    """The statements of a kept relation over the `tables` of its windows. `delta` has the parameters ``seen0 ...`` (the batch of each table
    that was seen last) and ``from0 ...`` (the time before which nothing of it is needed)."""

    name: str
    tables: tuple[str, ...]
    whole: str
    delta: str


class KeptWriter:
    """Writes the statements of one relation."""

    def __init__(self, source: KeptSource, lowering: Lowering) -> None:
        self._source, self._lowering = source, lowering
        self._tables = tuple(map(stream_table, source.streams))
        self._variables = source.variables
        self._objects = source.objects

    def text(self) -> KeptText:
        """Both statements."""
        scans = range(len(self._source.scans))
        delta = self._star() if self._is_star else " UNION ALL ".join(f"({self._term(number)})" for number in scans)
        return KeptText(self._source.name, self._tables, self._joined([self._facts(number) for number in scans]), delta)

    @property
    def _is_star(self) -> bool:
        """Whether all scans share window and subject: then one look at the facts of the subjects that new facts are about will do."""
        first = self._source.scans[0]
        return len(self._source.scans) > 1 and isinstance(first.subject, Variable) and all(
            scan.subject == first.subject and scan.source == first.source for scan in self._source.scans)

    # --- facts

    def _facts(self, number: int, *conditions: str, table: str = "") -> str:
        """The rows of one scan: times, position, part, and what it binds, with hashes."""
        scan = self._source.scans[number]
        where, places = list(conditions), dict[Variable, str]()
        for column, term in _terms(scan):
            place(DUCKDB, column, term, places, where)
        select = ["t", "position", "part"]
        for variable, column in places.items():
            select.append(f"{column} AS {variable.name}")
            if column in HASHES:
                select.append(f"{HASHES[column]} AS {variable.name}_h")
            if column == "o":
                select += [f"{fact} AS {variable.name}{suffix}" for suffix, (fact, _) in COMPANIONS.items()]
        text = f"SELECT {', '.join(select)} FROM {table or self._tables[_window(scan)]}"
        return f"{text} WHERE {' AND '.join(where)}" if where else text

    def _joined(self, facts: Sequence[str], *conditions: str) -> str:
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
        for window in range(len(self._tables)):
            times = [f"f{number}.t" for number, scan in enumerate(self._source.scans) if _window(scan) == window]
            select += [f"{_extreme('least', times)} AS first{window}", f"{_extreme('greatest', times)} AS last{window}"]
        select.append(f"{_extreme('least', [f'f{number}.position' for number in range(len(facts))])} AS born")
        text = f"SELECT {', '.join(select)} FROM {' '.join(parts)}"
        return self._filtered(f"{text} WHERE {' AND '.join(conditions)}" if conditions else text)

    def _filtered(self, text: str) -> str:
        if not self._source.filters:
            return text
        columns = Columns(lambda v: v.name if v in self._variables else None, frozenset(self._objects), frozenset(), None, self._variables)
        tests = [self._lowering.condition(condition, columns) for condition in self._source.filters]
        return f"SELECT * FROM ({text}) AS j WHERE {' AND '.join(tests)}"

    # --- what is new

    def _star(self) -> str:
        """The facts about every subject that a new fact is about, and of what they make that in which a new one is."""
        tests = " OR ".join(f"({' AND '.join(_conditions(scan)) or 'TRUE'})" for scan in self._source.scans)
        [table] = self._tables
        new = f"SELECT hs FROM {table} WHERE part > $seen0 AND ({tests})"
        touched = f"SELECT * FROM {table} WHERE ({tests}) AND t >= $from0 AND hs IN ({new})"
        newest = _extreme("greatest", [f"f{number}.part" for number in range(len(self._source.scans))])
        facts = [self._facts(number, table="touched") for number in range(len(self._source.scans))]
        return f"WITH touched AS MATERIALIZED ({touched}) {self._joined(facts, f'{newest} > $seen0')}"

    def _term(self, delta: int) -> str:
        """Scan number `delta` over new facts, those before it over old ones, those after it over all: no solution comes twice."""
        order = self._order(delta)
        bound: dict[Variable, str] = {}
        relations = []
        for number in order:
            window = _window(self._source.scans[number])
            seen = f"part > $seen{window}" if number == delta else f"part <= $seen{window}" if number < delta else ""
            conditions = [seen, f"t >= $from{window}"]
            for column, term in zip("so", (self._source.scans[number].subject, self._source.scans[number].object)):
                if isinstance(term, Variable) and term in bound:
                    conditions.append(f"{HASHES[column]} IN (SELECT {term.name}_h FROM {bound[term]})")
                    break
            relations.append(f"d{number} AS MATERIALIZED ({self._facts(number, *filter(None, conditions))})")
            bound |= {v: f"d{number}" for v in _hashed(self._source.scans[number]) if v not in bound}
        facts = [f"SELECT * FROM d{number}" for number in range(len(order))]
        return f"WITH {', '.join(relations)} {self._joined(facts)}"

    def _order(self, first: int) -> list[int]:
        """The scans, each after one that it shares a variable with."""
        order, waiting = [first], [number for number in range(len(self._source.scans)) if number != first]
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


def _window(scan: Scan) -> int:
    assert isinstance(scan.source, WindowSource)
    return scan.source.index


def _extreme(function: str, columns: Sequence[str]) -> str:
    return columns[0] if len(columns) == 1 else f"{function}({', '.join(columns)})"

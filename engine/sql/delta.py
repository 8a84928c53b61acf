"""A delta plan -> SQL text: the new answers of a batch, each with its interval ``lo hi`` in points.

Delta terms: for each scan in turn, that scan over the new facts, the ones before it over the old facts, the ones after it over all
(so no answer is made twice). A star is cheaper: its new answers are those of the subjects that the new facts touch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.ir.statement import StreamSource, TimeWindow
from engine.ir.terms import Constant, Variable
from engine.plan.incremental import DeltaPlan
from engine.plan.nodes import Scan, WindowSource
from engine.sql.calls import Columns
from engine.sql.dialect import Dialect
from engine.sql.leaves import place
from engine.sql.lower import Lowering
from engine.sql.relation import COMPANIONS, Namer, typed_columns
from engine.sql.sources import closes, stream_table
from engine.timeline import ON_CHANGE_STEP


class DeltaEmitter:
    """Emits one delta plan for one dialect; `variables` is the order of the answer's columns c0, c1, ..."""

    def __init__(self, plan: DeltaPlan, streams: Sequence[StreamSource], dialect: Dialect, lowering: Lowering,
                 typed: frozenset[Variable], start_at_ms: int) -> None:
        self.plan, self.streams, self.dialect, self.lowering = plan, streams, dialect, lowering
        self.typed, self.start = typed, start_at_ms
        self.name = Namer()
        self.variables = plan.variables
        for variable in self.variables:
            self.name(variable)

    def text(self, since: int, seen: int, tables: Mapping[str, str]) -> str:
        """New answers after position `seen` (facts at or before `since` are invisible): lo, hi, one column per variable.

        It reads `tables` (stream IRI -> name), or the stream's own table.
        """
        self._tables = [tables.get(source.stream, stream_table(source.stream)) for source in self.streams]
        if self.plan.star is not None and self.dialect.stars:
            return self._touched(since, seen)
        terms = [self._term(number, since, seen) for number in range(len(self.plan.scans))]
        return " UNION ALL ".join(terms)

    def _interval(self, index: int) -> tuple[str, str]:
        """timeline.event_validity as SQL over `t`."""
        window = self.streams[index].window
        assert isinstance(window, TimeWindow)
        step = self.plan.steps[index]
        first, last = closes(window, step, 0 if step == ON_CHANGE_STEP else self.start)
        return f"2 * {first} - 1", f"2 * ({last} + {step}) - 2"

    def _facts(self, scan: Scan, part: str, since: int, seen: int) -> str:
        """One scan with its interval; `part` is delta, old or all."""
        assert isinstance(scan.source, WindowSource)
        low, high = self._interval(scan.source.index)
        where = [{"delta": f"position > {seen}", "old": f"position <= {seen} AND position > {since}", "all": f"position > {since}"}[part]]
        select = [f"{low} AS lo", f"{high} AS hi"]
        places: dict[Variable, str] = {}
        for column, term in (*zip("spo", scan.terms), ("g", scan.graph)):
            place(self.dialect, column, term, places, where)
        for variable, column in places.items():
            select.append(f"{column} AS {self.name(variable)}")
            if column == "o" and variable in self.typed:
                select += typed_columns(self.name(variable))
        table = self._tables[scan.source.index]
        return f"SELECT {', '.join(select)} FROM {table} WHERE {' AND '.join(where)}"

    def _term(self, delta: int, since: int, seen: int) -> str:
        first: dict[Variable, str] = {}
        typed: dict[Variable, str] = {}
        parts, last = [], len(self.plan.scans) - 1
        for number, scan in enumerate(self.plan.scans):
            part = "delta" if number == delta else "old" if number < delta else "all"
            alias = f"f{number}"
            conditions = []
            for variable in dict.fromkeys(t for t in (*scan.terms, scan.graph) if isinstance(t, Variable)):
                column = f"{alias}.{self.name(variable)}"
                if variable in first:
                    conditions.append(f"{first[variable]} = {column}")
                else:
                    first[variable] = column
                if variable == scan.object and variable in self.typed:
                    typed.setdefault(variable, column)
            facts = f"({self._facts(scan, part, since, seen)}) AS {alias}"
            parts.append(facts if not number else f"JOIN {facts} ON {' AND '.join(conditions) or 'TRUE'}")
        low = self._extreme("greatest", [f"f{i}.lo" for i in range(last + 1)])
        high = self._extreme("least", [f"f{i}.hi" for i in range(last + 1)])
        columns = [f"{first[v]} AS {self.name(v)}" for v in self.variables]
        columns += [f"{typed[v]}{s} AS {self.name(v)}{s}" for v in typed for s in COMPANIONS]
        return self._answers(f"SELECT {low} AS lo, {high} AS hi, {', '.join(columns)} FROM {' '.join(parts)}", frozenset(typed))

    @staticmethod
    def _extreme(function: str, columns: list[str]) -> str:
        return columns[0] if len(columns) == 1 else f"{function}({', '.join(columns)})"

    def _answers(self, joined: str, typed: frozenset[Variable]) -> str:
        columns = Columns(lambda v: self.name(v) if v in self.variables else None, typed, frozenset(), None, self.variables)
        where = ["lo <= hi"] + [self.lowering.condition(f, columns) for f in self.plan.filters]
        listed = ", ".join(["lo", "hi", *(self.name(v) for v in self.variables)])
        return f"SELECT {listed} FROM ({joined}) AS j WHERE {' AND '.join(where)}"

    def _touched(self, since: int, seen: int) -> str:
        """A star: the facts of every subject with a new fact, grouped by subject, each object list exploded."""
        scan = self.plan.scans[0]
        subject = self.plan.star
        assert isinstance(scan.source, WindowSource) and subject is not None
        table, quote = self._tables[scan.source.index], self.dialect.quote
        low, high = self._interval(scan.source.index)
        lists, tests, explode, select, bounds = [], [], [], [f"s AS {self.name(subject)}"], []
        for number, arm in enumerate(self.plan.scans):
            assert isinstance(arm.predicate, Constant)
            test = f"p = {quote(arm.predicate.token)}" + (f" AND o = {quote(arm.object.token)}" if isinstance(arm.object, Constant) else "")
            value = (f"named_struct('o', o, 'kind', kind, 'number', number, 'micros', micros, 'lo', {low}, 'hi', {high}, "
                     f"'position', position)")
            lists.append(f"collect_list(CASE WHEN {test} THEN {value} END) AS l{number}")
            tests.append(f"({test})")
            explode.append(f"LATERAL VIEW explode(l{number}) AS e{number}")
            bounds.append(number)
            if isinstance(arm.object, Variable):
                select.append(f"e{number}.o AS {self.name(arm.object)}")
                if arm.object in self.typed:
                    select += typed_columns(self.name(arm.object), f"e{number}.")
        touched = f"SELECT DISTINCT s FROM {table} WHERE position > {seen} AND ({' OR '.join(tests)})"
        grouped = (f"SELECT s, {', '.join(lists)} FROM {table} WHERE position > {since} AND ({' OR '.join(tests)}) "
                   f"AND s IN ({touched}) GROUP BY s")
        extremes = (("greatest", "lo", "lo"), ("least", "hi", "hi"), ("greatest", "position", "newest"))
        valid = [f"{self._extreme(f, [f'e{n}.{c}' for n in bounds])} AS {name}" for f, c, name in extremes]
        joined = (f"SELECT {', '.join([*valid, *select])} "
                  f"FROM ({grouped}) AS g {' '.join(explode)}")
        typed = frozenset(a.object for a in self.plan.scans if isinstance(a.object, Variable) and a.object in self.typed)
        return self._answers(f"SELECT * FROM ({joined}) AS n WHERE newest > {seen}", typed)

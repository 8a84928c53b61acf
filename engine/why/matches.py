"""How a pattern gives a solution: algebra.py again, lazily and with what each solution rests on.

`Tracer.traces(pattern, place, bound)` gives the solutions of a pattern that are compatible with `bound`, as often as the algebra does, each
with its supports: triples needed, conditions that hold, what is absent. `bound` only selects, so it is handed down where that is so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from engine.functions.context import row_key
from engine.functions.expressions import Context
from engine.grouping import by_key
from engine.ir.expressions import Exists, Expression, conjuncts
from engine.ir.patterns import (BGP, Distinct, Extend, Filter, GraphPattern, Group, Join, LeftJoin, Minus, OrderBy, PathPattern, Pattern,
                                Project, Slice, TriplePattern, Union, Values, WindowPattern)
from engine.ir.printer import show, show_group
from engine.ir.terms import Constant, Variable
from engine.records import Triple
from engine.reference.algebra import Algebra, Scope, bind, chain_of, matches, openness, routes
from engine.reference.dataset import Dataset
from engine.reference.solutions import Row, compatible, expression, substitute
from engine.why.trees import Absent, Budget, Holds

Name = tuple[str, ...]
"""Of a graph: ``()`` the default graph, ``("graph", name)``, ``("window", name)``, ``("item", window, name)``; names are tokens."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a pattern is matched: the scope, and the name of its active graph."""

    scope: Scope
    name: Name = ()


@dataclass(frozen=True, slots=True)
class Needs:
    """A triple of a graph."""

    triple: Triple
    place: Name


@dataclass(frozen=True, slots=True)
class Chosen:
    """Any one of several solutions, of a sub-pattern that counts once however often it matches."""

    traces: Callable[[], Iterator[Trace]]


@dataclass(frozen=True, slots=True)
class Gathered:
    """All solutions of a group, of which an aggregate was made."""

    text: str
    traces: Sequence[Trace]


Support = Needs | Holds | Absent | Chosen | Gathered


@dataclass(frozen=True, slots=True)
class Trace:
    """A solution with what it rests on."""

    row: Row
    supports: tuple[Support, ...]


class Tracer(Algebra):
    """See the module. The search spends of `budget`."""

    def __init__(self, dataset: Dataset, context: Context, budget: Budget) -> None:
        super().__init__(dataset, context)
        self._budget = budget

    def traces(self, pattern: Pattern, place: Place | None = None, bound: Row | None = None) -> Iterator[Trace]:
        """The solutions of `pattern` that agree with `bound`."""
        place, bound = place or Place(self.top), bound or {}
        for trace in self._traces(pattern, place, bound):
            self._budget.spend()
            if compatible(trace.row, bound):
                yield trace

    def _traces(self, pattern: Pattern, place: Place, bound: Row) -> Iterator[Trace]:
        match pattern:
            case BGP(triples=triples):
                names = {t.name for triple in triples for t in triple.terms if isinstance(t, Variable)}
                rows = self._basic(triples, place, {name: token for name, token in bound.items() if name in names})
                return (Trace(row, tuple(Needs(t, place.name) for t in dict.fromkeys(_instance(t, row) for t in triples))) for row in rows)
            case PathPattern():
                return self._paths(pattern, place, bound)
            case Join(left=left, right=right):
                return (Trace({**a.row, **b.row}, a.supports + b.supports) for a in self.traces(left, place, bound)
                        for b in self.traces(right, place, {**bound, **a.row}))
            case LeftJoin():
                return self._optional(pattern, place, bound)
            case Union(left=left, right=right):
                return (trace for side in (left, right) for trace in self.traces(side, place, bound))
            case Minus():
                return self._without(pattern, place, bound)
            case Filter(condition=condition, pattern=inner):
                return self._where(self.traces(inner, place, bound), condition, place)
            case Extend():
                return self._extended(pattern, place, bound)
            case Values(variables=variables, rows=rows):
                found = ({v.name: cell.token for v, cell in zip(variables, row) if cell is not None} for row in rows)
                return (Trace(row, (Holds(show(Values(variables, (cells,)))),)) for row, cells in zip(found, rows))
            case GraphPattern() | WindowPattern():
                return self._within(pattern, place, bound)
            case Group():
                return self._groups(pattern, place, bound)
            case Project(pattern=inner, variables=variables):
                names = {v.name for v in variables}
                wanted = {name: token for name, token in bound.items() if name in names}
                return (Trace({name: token for name, token in trace.row.items() if name in names}, trace.supports)
                        for trace in self.traces(inner, place, wanted))
            case Distinct(pattern=inner):
                return self._once(inner, place, bound)
            case OrderBy(pattern=inner):
                return self.traces(inner, place, bound)
            case Slice():
                return self._sliced(pattern, place, bound)

    def _basic(self, waiting: Sequence[TriplePattern], place: Place, row: Row) -> Iterator[Row]:
        """As algebra.basic_graph_pattern, one solution after the other."""
        if not waiting:
            yield row
            return
        triple = min(waiting, key=lambda t: openness(t, row))
        rest = [t for t in waiting if t is not triple]
        for extended in matches(place.scope.graph, triple, row):
            self._budget.spend()
            yield from self._basic(rest, place, extended)

    def _paths(self, pattern: PathPattern, place: Place, bound: Row) -> Iterator[Trace]:
        ends = (pattern.subject, pattern.object)
        start, end = (t.token if isinstance(t, Constant) else bound.get(t.name) for t in ends)
        for x, y, steps in routes(place.scope.graph, start, pattern.path, end):
            row = bind(ends, (x, y), {})
            # A variable is bound to nodes of the graph only, also where `bound` names it.
            there = bool(steps) or x in place.scope.graph.nodes or any(isinstance(t, Constant) for t in ends)
            if row is not None and there:
                through = tuple(Needs(step, place.name) for step in steps)
                yield Trace(row, through or (Holds(f"{show_group(pattern)}: a path of length zero"),))

    def _optional(self, pattern: LeftJoin, place: Place, bound: Row) -> Iterator[Trace]:
        for left in self.traces(pattern.left, place, bound):
            joined = (Trace({**left.row, **right.row}, left.supports + right.supports)
                      for right in self.traces(pattern.right, place, left.row))
            found = list(joined if pattern.condition is None else self._where(joined, pattern.condition, place))
            yield from found
            if not found:
                yield Trace(left.row, (*left.supports, Absent(f"OPTIONAL {show_group(substitute(pattern.right, left.row))}")))

    def _without(self, pattern: Minus, place: Place, bound: Row) -> Iterator[Trace]:
        for left in self.traces(pattern.left, place, bound):
            if all(left.row.keys().isdisjoint(right.row) for right in self.traces(pattern.right, place, left.row)):
                yield Trace(left.row, (*left.supports, Absent(f"MINUS {show_group(substitute(pattern.right, left.row))}")))

    def _where(self, traces: Iterable[Trace], condition: Expression, place: Place) -> Iterator[Trace]:
        for trace in traces:
            if self._test(condition, trace.row, place.scope):
                yield Trace(trace.row, (*trace.supports, *(self._true(part, trace.row, place) for part in conjuncts(condition))))

    def _true(self, condition: Expression, row: Row, place: Place) -> Support:
        """A condition that holds as a support."""
        if not isinstance(condition, Exists):
            return Holds(show(expression(condition, row)))
        inside = substitute(condition.pattern, row)
        if condition.negated:
            return Absent(f"NOT EXISTS {show_group(inside)}")
        return Chosen(lambda: self.traces(inside, place))

    def _extended(self, pattern: Extend, place: Place, bound: Row) -> Iterator[Trace]:
        chain, inner = chain_of(pattern)
        made = {link.variable.name for link in chain}
        for trace in self.traces(inner, place, {name: token for name, token in bound.items() if name not in made}):
            row, solution, supports = trace.row, row_key(trace.row), trace.supports
            for link in chain:
                value = self.value(link.expression, row, place.scope, solution)
                if value is not None:
                    supports += _computed(link, value, row)
                    row = {**row, link.variable.name: value}
            yield Trace(row, supports)

    def _within(self, pattern: GraphPattern | WindowPattern, place: Place, bound: Row) -> Iterator[Trace]:
        if isinstance(pattern.name, Constant):
            inside = self._place_in(pattern, pattern.name.token, place)
            yield from self.traces(pattern.pattern, inside, bound) if inside is not None else ()
            return
        name, known = pattern.name.name, self._names(pattern, place.scope)
        for token in [bound[name]] if name in bound else sorted(known):
            inside = self._place_in(pattern, token, place) if token in known else None
            for trace in self.traces(pattern.pattern, inside, {**bound, name: token}) if inside is not None else ():
                yield Trace({**trace.row, name: token}, trace.supports)

    def _place_in(self, pattern: GraphPattern | WindowPattern, token: str, place: Place) -> Place | None:
        """The place that GRAPH or WINDOW with this name leads to."""
        inside = self._inside(pattern, token, place.scope)
        if inside is None:
            return None
        if isinstance(pattern, GraphPattern) and place.scope.in_window:
            return Place(inside, ("item", place.name[1], token))
        kind = "graph" if isinstance(pattern, GraphPattern) and token in self.dataset.named else "window"
        return Place(inside, (kind, token))

    def _groups(self, pattern: Group, place: Place, bound: Row) -> Iterator[Trace]:
        names = [key.name for key in pattern.keys]
        groups: dict[tuple[str | None, ...], list[Trace]] = {(): []} if pattern.implicit else {}
        for trace in self.traces(pattern.pattern, place, {name: bound[name] for name in names if name in bound}):
            groups.setdefault(tuple(trace.row.get(name) for name in names), []).append(trace)
        for key, traces in groups.items():
            row = {name: token for name, token in zip(names, key) if token is not None}
            texts = []
            for variable, call in pattern.aggregates:
                value = self._aggregate(call, [trace.row for trace in traces], place.scope)
                texts.append(f"{show(call)} = {show(Constant(value)) if value is not None else 'an error'}")
                row |= {} if value is None else {variable.name: value}
            yield Trace(row, (Gathered(", ".join(texts) or "GROUP BY", traces),))

    def _once(self, pattern: Pattern, place: Place, bound: Row) -> Iterator[Trace]:
        """Each solution once, with all the ways to it."""
        for traces in by_key((row_key(trace.row), trace) for trace in self.traces(pattern, place, bound)).values():
            yield Trace(traces[0].row, (Chosen(lambda traces=traces: iter(traces)),))  # type: ignore[misc]

    def _sliced(self, pattern: Slice, place: Place, bound: Row) -> Iterator[Trace]:
        limits = [f"LIMIT {pattern.limit}"] if pattern.limit is not None else []
        text = Holds(" ".join(["among the rows of", *limits, *([f"OFFSET {pattern.offset}"] if pattern.offset else [])]))
        for rows in by_key((row_key(row), row) for row in self.solutions(pattern, place.scope) if compatible(row, bound)).values():
            same = (trace for trace in self.traces(pattern.pattern, place, rows[0]) if trace.row == rows[0])
            yield from (Trace(trace.row, (*trace.supports, text)) for trace in islice(same, len(rows)))


def _instance(triple: TriplePattern, row: Row) -> Triple:
    """What a triple pattern is in a solution."""
    s, p, o = (t.token if isinstance(t, Constant) else row[t.name] if isinstance(t, Variable) else "" for t in triple.terms)
    return s, p, o


def _computed(link: Extend, value: str, row: Row) -> tuple[Support, ...]:
    """What an expression gave, if there is anything to it: renaming a variable is not told."""
    if isinstance(link.expression, Variable):
        return ()
    return (Holds(f"?{link.variable.name} = {show(expression(link.expression, row))} = {show(Constant(value))}"),)

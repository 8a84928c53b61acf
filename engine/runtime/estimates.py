"""What a statement would need by what its streams and graphs have now. A registration over a limit is refused with the numbers.

An estimate, so it decides no result: what is registered is held to the limits of its evaluations (engine/limits.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from engine.execution.content import merge_estimates, table_estimate
from engine.ir import patterns as ir
from engine.ir.expressions import variables_of
from engine.ir.statement import Program, Statement, StreamSource, TimeWindow, TupleWindow
from engine.ir.terms import Variable
from engine.plan.nodes import Scan, StaticSource
from engine.plan.order import Estimate
from engine.plan.variables import variables_among
from engine.runtime.errors import EngineError
from engine.runtime.settings import Settings
from engine.runtime.view import View


@dataclass(frozen=True, slots=True)
class Needs:
    """`rows` that the windows hold together, and the rows of the largest Cartesian `product`, 0 where there is none."""

    rows: int
    product: int

    def to_json(self) -> dict[str, int]:
        """As ``/explain`` shows them."""
        return {"windowRows": self.rows, "productRows": self.product}

    def check(self, settings: Settings) -> None:
        """422 ``over-limit`` where one of them is more than it may be."""
        for limit, most, actual, what in (
                ("state_rows", settings.evaluation.state_rows, self.rows, "Its windows would hold {0} triples, as its streams come now"),
                ("product_rows", settings.product_rows, self.product, "Patterns that share no variable would give {0} rows to look at")):
            if actual > most:
                raise EngineError("over-limit", 422, f"{what.format(actual)}; the limit {limit} is {most}.",
                                  {"limit": limit, "most": most, "actual": actual})


def needs_of(statement: Statement, view: View, now_ms: int) -> Needs:
    """What a statement would need if all goes on as in the last ten seconds."""
    rows = {source: _rows(source, view, now_ms) for source in statement.windows}
    if isinstance(statement.query, Program):
        return Needs(sum(rows.values()), 0)
    products = [parts for parts in _products(statement.query.pattern) if len(parts) > 1]
    if not products:
        return Needs(sum(rows.values()), 0)
    graphs = view.graphs
    estimate = merge_estimates([*(_scaled(view.snapshot.content(source.stream).estimate(), count) for source, count in rows.items()),
                                *(table_estimate(graphs[graph.iri]) for graph in statement.graphs if graph.iri in graphs)])
    return Needs(sum(rows.values()), max(math.prod(int(_least(part, estimate)) for part in parts) for parts in products))


def _rows(source: StreamSource, view: View, now_ms: int) -> int:
    """The triples that a window will hold: rate by RANGE. Of a stream that is silent what is kept of it."""
    match source.window:
        case TimeWindow(range_ms=length):
            rate = view.snapshot.measured.rows(source.stream, now_ms)
            return int(rate * length / 1000) or view.snapshot.content(source.stream).rows
        case TupleWindow(count=count):
            return min(count, view.snapshot.content(source.stream).rows)
    return view.snapshot.content(source.stream).rows


def _scaled(estimate: Estimate, rows: int) -> Estimate:
    """Counts of so many rows of the same kinds."""
    share = rows / estimate.total if estimate.total else 0.0
    return Estimate(rows, {p: int(count * share) for p, count in estimate.predicates.items()},
                    {c: int(count * share) for c, count in estimate.classes.items()})


@dataclass(slots=True)
class _Conjunction:
    """What is joined with what: for each of its parts the variables and, where there are, triple patterns. `inside` are patterns that are
    a relation of their own before they are joined."""

    parts: list[tuple[frozenset[Variable], tuple[ir.TriplePattern, ...]]] = field(default_factory=list)
    inside: list[ir.Pattern] = field(default_factory=list)

    def add(self, pattern: ir.Pattern, graph: frozenset[Variable] = frozenset()) -> None:
        """Take in a pattern, within the graph or window of a name."""
        match pattern:
            case ir.BGP(triples=triples):
                self.parts += [(ir.scope(ir.BGP((triple,))) | graph, (triple,)) for triple in triples]
            case ir.Join(left=left, right=right) | ir.LeftJoin(left=left, right=right):
                self.add(left, graph)
                self.add(right, graph)
            case ir.Filter(pattern=inner):
                self.add(inner, graph)
            case ir.Extend(pattern=inner, variable=variable, expression=expression):
                self.add(inner, graph)
                self.parts.append((frozenset(variables_of(expression)) | {variable}, ()))
            case ir.GraphPattern(name=name, pattern=inner) | ir.WindowPattern(name=name, pattern=inner):
                self.add(inner, graph | frozenset(variables_among(name)))
            case _:
                self.parts.append((ir.scope(pattern) | graph, ()))
                self.inside += ir.children(pattern)

    def unconnected(self) -> list[tuple[ir.TriplePattern, ...]]:
        """The triple patterns in groups that share no variable."""
        groups: list[tuple[frozenset[Variable], tuple[ir.TriplePattern, ...]]] = []
        for variables, triples in self.parts:
            for group in [group for group in groups if not group[0].isdisjoint(variables)]:
                groups.remove(group)
                variables, triples = variables | group[0], triples + group[1]
            groups.append((variables, triples))
        return [triples for _, triples in groups if triples]


def _products(pattern: ir.Pattern) -> Iterator[list[tuple[ir.TriplePattern, ...]]]:
    """The groups of triple patterns of each conjunction in a pattern."""
    conjunction = _Conjunction()
    conjunction.add(pattern)
    yield conjunction.unconnected()
    for inner in conjunction.inside:
        yield from _products(inner)


def _least(triples: Sequence[ir.TriplePattern], estimate: Estimate) -> float:
    """The rows of the smallest of some connected triple patterns."""
    return min(estimate.rows(Scan(StaticSource(""), t.subject, t.predicate, t.object)) for t in triples)

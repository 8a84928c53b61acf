"""IR patterns -> logical plan: where each pattern looks, in which order scans are joined, how EXISTS is seeded.

Source: SPARQL 1.1 section 18 (algebra, datasets), with windows as graphs of the dataset (RSP-QL, section "RSP-QL dataset").
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from engine.ir import expressions as ex
from engine.ir import patterns as ir
from engine.ir.spans import Diagnostic, DiagnosticError, Span
from engine.ir.statement import BACKGROUND, Statement
from engine.ir.terms import Constant, Term, Variable
from engine.plan import nodes
from engine.plan.order import Estimate, join_order
from engine.plan.nodes import MergedSource, Plan, Source, StaticSource, WindowSource


@dataclass(frozen=True, slots=True)
class Dataset:
    """The sources of a statement: its default graph, its named windows and its named graphs (by IRI)."""

    default: Source
    windows: dict[str, WindowSource]
    graphs: dict[str, StaticSource | MergedSource]


@dataclass(frozen=True, slots=True)
class Place:
    """Where the pattern at hand looks: a source, its graph term, and the EXISTS seed around it."""

    source: Source
    in_window: bool = False
    graph: Term | None = None
    seed: nodes.Seed | None = None


def dataset(statement: Statement) -> Dataset:
    """The dataset of a statement. Without any FROM, a plain query sees the graphs given to it as unnamed sources."""
    default: list[WindowSource | StaticSource] = []
    windows: dict[str, WindowSource] = {}
    for index, stream in enumerate(statement.streams):
        if stream.name is None:
            default.append(WindowSource(index))
        else:
            windows[stream.name] = WindowSource(index)
    default += [StaticSource(g.iri) for g in statement.graphs if not g.named]
    graphs: dict[str, StaticSource | MergedSource] = {g.iri: StaticSource(g.iri) for g in statement.graphs if g.named}
    return Dataset(default[0] if len(default) == 1 else MergedSource(tuple(default)), windows, graphs)


class Builder:
    """Builds the plan of one query; `estimate` gives live counts for the join order."""

    def __init__(self, data: Dataset, estimate: Estimate) -> None:
        self.data = data
        self.estimate = estimate
        self._fresh = 0

    def build(self, pattern: ir.Pattern) -> Plan:
        return self._build(pattern, Place(self.data.default))

    def _variable(self, stem: str) -> Variable:
        self._fresh += 1
        return Variable(f".{stem}{self._fresh}")

    def _build(self, pattern: ir.Pattern, place: Place) -> Plan:
        match pattern:
            case ir.BGP(triples=triples):
                return self._seeded(self._bgp(triples, place), place)
            case ir.PathPattern():
                return self._seeded(self._path(pattern.subject, pattern.path, pattern.object, place, pattern.span), place)
            case ir.Values(variables=variables, rows=rows):
                return self._seeded(nodes.Values(variables, rows), place)
            case ir.Join(left=left, right=right):
                return _join(self._build(left, place), self._build(right, place))
            case ir.LeftJoin():
                return self._left_join(pattern, place)
            case ir.Union(left=left, right=right):
                return nodes.Union(self._build(left, place), self._build(right, place))
            case ir.Minus(left=left, right=right):
                ignored = frozenset(place.seed.variables) if place.seed else frozenset()
                return nodes.Minus(self._build(left, place), self._build(right, place), ignored)
            case ir.Filter(condition=condition, pattern=inner):
                return self._filter(self._build(inner, place), condition, place)
            case ir.Extend(pattern=inner, variable=variable, expression=expression):
                plan, expression = self._marked(self._build(inner, place), expression, place)
                return nodes.Extend(plan, variable, expression)
            case ir.GraphPattern():
                return self._graph(pattern, place)
            case ir.WindowPattern():
                return self._window(pattern, place)
        return self._modifier(pattern, place)

    def _modifier(self, pattern: ir.Pattern, place: Place) -> Plan:
        match pattern:
            case ir.Group(pattern=inner, keys=keys, aggregates=aggregates, implicit=implicit):
                return self._group(self._build(inner, place), keys, aggregates, implicit, place)
            case ir.Project(pattern=inner, variables=variables):
                return self._project(inner, variables, place)
            case ir.Distinct(pattern=inner):
                return nodes.Distinct(self._build(inner, place))
            case ir.OrderBy(pattern=inner, conditions=conditions):
                plan = self._build(inner, place)
                plain = []
                for condition, descending in conditions:
                    plan, condition = self._as_variable(plan, condition, place)
                    plain.append((condition, descending))
                return nodes.Order(plan, tuple(plain))
            case ir.Slice(pattern=inner, offset=offset, limit=limit):
                return nodes.Slice(self._build(inner, place), offset, limit)
        raise TypeError(f"no plan for {type(pattern).__name__}")

    def _project(self, inner: ir.Pattern, variables: tuple[Variable, ...], place: Place) -> Plan:
        """Inside EXISTS, a sub-SELECT sees those values of the outer row only that it projects; inside GRAPH ?g it keeps its graph."""
        seed, variables = place.seed, _with_graph(variables, place)
        if seed is None or set(seed.variables) <= set(variables):
            return nodes.Project(self._build(inner, place), variables)
        seen = nodes.Seed(seed.outer, tuple(v for v in seed.variables if v in variables))
        return nodes.Join(seed, nodes.Project(self._build(inner, replace(place, seed=seen)), variables))

    # -- basic graph patterns and paths

    def _bgp(self, triples: tuple[ir.TriplePattern, ...], place: Place) -> Plan:
        if not triples:
            return nodes.Unit()
        scans = [nodes.Scan(place.source, t.subject, t.predicate, t.object, place.graph, t.origin) for t in triples]
        plan: Plan | None = None
        for group in join_order(scans, self.estimate):
            step: Plan = group[0] if len(group) == 1 else nodes.Star(group)
            plan = step if plan is None else nodes.Join(plan, step)
        assert plan is not None
        return plan

    def _path(self, start: Term, path: ir.Path, end: Term, place: Place, span: Span | None) -> Plan:
        """A path as joins and unions of scans (section 18.4); repetition without bound has no join plan."""
        match path:
            case ir.Link(predicate=predicate):
                return nodes.Scan(place.source, start, predicate, end, place.graph)
            case ir.Inverse(path=inner):
                return self._path(end, inner, start, place, span)
            case ir.Sequence(first=first, second=second):
                middle = self._variable("path")
                joined = _join(self._path(start, first, middle, place, span), self._path(middle, second, end, place, span))
                return nodes.Project(joined, _variables(start, end, place.graph))
            case ir.Alternative(first=first, second=second):
                return nodes.Union(self._path(start, first, end, place, span), self._path(start, second, end, place, span))
            case ir.NegatedSet():
                return self._negated(start, path, end, place)
            case ir.Repeat(path=inner, least=0, most=1):
                once = nodes.Project(self._path(start, inner, end, place, span), _variables(start, end, place.graph))
                return nodes.Distinct(nodes.Union(once, self._zero_length(start, end, place)))
        raise DiagnosticError(Diagnostic("unsupported-in-streaming", "Property paths with '*' or '+' are not supported yet.", span,
                                         hint="Write out the path to the depth that the data has, with '|' and '?'."))

    def _negated(self, start: Term, path: ir.NegatedSet, end: Term, place: Place) -> Plan:
        sides: list[Plan] = []
        for excluded, (subject, object_) in ((path.forward, (start, end)), (path.backward, (end, start))):
            if excluded:
                predicate = self._variable("path")
                scan = nodes.Scan(place.source, subject, predicate, object_, place.graph)
                test = ex.Call("NOT IN", (predicate, *excluded))
                sides.append(nodes.Project(nodes.Filter(scan, test), _variables(start, end, place.graph)))
        return sides[0] if len(sides) == 1 else nodes.Union(sides[0], sides[1])

    def _zero_length(self, start: Term, end: Term, place: Place) -> Plan:
        match start, end:
            case Constant(), Constant():
                return nodes.Unit() if start == end else nodes.Values((), ())
            case Variable(), Constant():
                return nodes.Values((start,), ((end,),))
            case Constant(), Variable():
                return nodes.Values((end,), ((start,),))
        assert isinstance(start, Variable) and isinstance(end, Variable)
        ends = nodes.Nodes(place.source, start, place.graph)
        return ends if start == end else nodes.Extend(ends, end, start)

    # -- graphs and windows

    def _graph(self, pattern: ir.GraphPattern, place: Place) -> Plan:
        name = pattern.name
        if place.in_window and name != Constant(f"<{BACKGROUND}>"):
            if not _reads(pattern.pattern):
                raise DiagnosticError(Diagnostic("unsupported-in-streaming", "GRAPH in a window needs a triple pattern inside.",
                                                 pattern.span))
            return self._build(pattern.pattern, replace(place, graph=name))
        if isinstance(name, Constant):
            source = self.data.graphs.get(name.token[1:-1])
            return self._build(pattern.pattern, replace(place, source=source or MergedSource(()), in_window=False, graph=None))
        plan: Plan = nodes.Values((name,), ())
        for iri, source in self._named_graphs():
            inner = self._build(pattern.pattern, replace(place, source=source, graph=None))
            named = _join(inner, nodes.Values((name,), ((Constant(f"<{iri}>"),),)))
            plan = named if isinstance(plan, nodes.Values) else nodes.Union(plan, named)
        return self._seeded(plan, place) if isinstance(plan, nodes.Values) else plan

    def _named_graphs(self) -> list[tuple[str, StaticSource | MergedSource]]:
        return [(iri, source) for iri, source in self.data.graphs.items() if iri != BACKGROUND]

    def _window(self, pattern: ir.WindowPattern, place: Place) -> Plan:
        name = pattern.name
        if isinstance(name, Constant):
            source = self.data.windows.get(name.token[1:-1])
            if source is None:
                raise DiagnosticError(Diagnostic("query-syntax", f"No window is named {name.token}.", pattern.span,
                                                 hint=f"FROM NAMED WINDOW {name.token} ON <stream> [RANGE 10s STEP 2s]"))
            return self._build(pattern.pattern, replace(place, source=source, in_window=True, graph=None))
        plan: Plan | None = None
        for iri, source in self.data.windows.items():
            inner = self._build(pattern.pattern, replace(place, source=source, in_window=True, graph=None))
            named = _join(inner, nodes.Values((name,), ((Constant(f"<{iri}>"),),)))
            plan = named if plan is None else nodes.Union(plan, named)
        if plan is None:
            raise DiagnosticError(Diagnostic("query-syntax", "WINDOW with a variable needs a FROM NAMED WINDOW.", pattern.span))
        return plan

    # -- filters, groups, EXISTS

    def _seeded(self, plan: Plan, place: Place) -> Plan:
        return plan if place.seed is None else _join(place.seed, plan)

    def _filter(self, plan: Plan, condition: ex.Expression, place: Place) -> Plan:
        plan, condition = self._marked(plan, condition, place)
        return nodes.Filter(plan, condition)

    def _left_join(self, pattern: ir.LeftJoin, place: Place) -> Plan:
        left, right = self._build(pattern.left, place), self._build(pattern.right, place)
        if pattern.condition is not None and any(ex.exists_in(pattern.condition)):
            raise DiagnosticError(Diagnostic("unsupported-in-streaming", "EXISTS directly in an OPTIONAL's filter is not supported yet.",
                                             pattern.span, hint="Put the FILTER with EXISTS in a group of its own inside the OPTIONAL."))
        return nodes.LeftJoin(left, right, pattern.condition)

    def _marked(self, plan: Plan, expression: ex.Expression, place: Place) -> tuple[Plan, ex.Expression]:
        """Replace each EXISTS by a truth value that a Mark computes."""
        for test in list(ex.exists_in(expression)):
            marker = self._variable("exists")
            mentioned = mentioned_variables(test.pattern)
            shared = tuple(sorted(v for v in plan_variables(plan) if v in mentioned))
            seed = nodes.Seed(plan, shared)
            inner = self._build(test.pattern, replace(place, seed=seed))
            plan = nodes.Mark(plan, inner, marker, seed)
            truth: ex.Expression = ex.Call("!", (marker,)) if test.negated else marker
            expression = _substitute(expression, test, truth)
        return plan, expression

    def _as_variable(self, plan: Plan, expression: ex.Expression, place: Place) -> tuple[Plan, Variable]:
        if isinstance(expression, Variable):
            return plan, expression
        plan, expression = self._marked(plan, expression, place)
        variable = self._variable("value")
        return nodes.Extend(plan, variable, expression), variable

    def _group(self, plan: Plan, keys: tuple[Variable, ...], aggregates: tuple[tuple[Variable, ex.Aggregate], ...],
               implicit: bool, place: Place) -> Plan:
        """Arguments of aggregates become variables, so that an aggregate reads one column."""
        plain = []
        for variable, aggregate in aggregates:
            if aggregate.expression is not None:
                plan, argument = self._as_variable(plan, aggregate.expression, place)
                aggregate = replace(aggregate, expression=argument)
            plain.append((variable, aggregate))
        return nodes.Aggregate(plan, _with_graph(keys, place), tuple(plain), implicit and _with_graph((), place) == ())


def _join(left: Plan, right: Plan) -> Plan:
    if isinstance(left, nodes.Unit):
        return right
    return left if isinstance(right, nodes.Unit) else nodes.Join(left, right)


def _with_graph(variables: tuple[Variable, ...], place: Place) -> tuple[Variable, ...]:
    return variables if not isinstance(place.graph, Variable) or place.graph in variables else (*variables, place.graph)


def _variables(*terms: Term | None) -> tuple[Variable, ...]:
    return tuple(dict.fromkeys(t for t in terms if isinstance(t, Variable)))


def _reads(pattern: ir.Pattern) -> bool:
    return isinstance(pattern, (ir.BGP, ir.PathPattern)) and pattern != ir.BGP(()) or any(map(_reads, ir.children(pattern)))


def _substitute(expression: ex.Expression, old: ex.Exists, new: ex.Expression) -> ex.Expression:
    if expression is old:
        return new
    if isinstance(expression, ex.Call):
        return replace(expression, args=tuple(_substitute(a, old, new) for a in expression.args))
    return expression


def mentioned_variables(pattern: ir.Pattern) -> frozenset[Variable]:
    """Variables anywhere in a pattern, its filters and nested EXISTS included."""
    found = set(ir.scope(pattern))
    match pattern:
        case ir.Filter(condition=condition):
            found |= _expression_variables(condition)
        case ir.LeftJoin(condition=condition) if condition is not None:
            found |= _expression_variables(condition)
        case ir.Extend(expression=expression):
            found |= _expression_variables(expression)
    return frozenset(found).union(*(mentioned_variables(child) for child in ir.children(pattern)))


def _expression_variables(expression: ex.Expression) -> frozenset[Variable]:
    return ex.variables_of(expression).union(*(mentioned_variables(e.pattern) for e in ex.exists_in(expression)))


def plan_variables(plan: Plan) -> frozenset[Variable]:
    """Variables that a plan's relation has as columns."""
    match plan:
        case nodes.Scan(terms=terms, graph=graph):
            return frozenset(t for t in (*terms, graph) if isinstance(t, Variable))
        case nodes.Nodes():
            return frozenset(_variables(plan.variable, plan.graph))
        case nodes.Extend():
            return plan_variables(plan.input) | {plan.variable}
        case nodes.Values(variables=variables) | nodes.Project(variables=variables) | nodes.Seed(variables=variables):
            return frozenset(variables)
        case nodes.Aggregate(keys=keys, aggregates=aggregates):
            return frozenset(keys) | {variable for variable, _ in aggregates}
        case nodes.Minus():
            return plan_variables(plan.left)
        case nodes.Mark():
            return plan_variables(plan.input) | {plan.variable}
    return frozenset().union(*(plan_variables(below) for below in nodes.inputs(plan)))

"""IR patterns -> logical plan: where each pattern looks, in which order scans are joined, how EXISTS is seeded.

Source: SPARQL 1.1 section 18 (algebra, datasets), with windows as graphs of the dataset (RSP-QL, section "RSP-QL dataset"); for DESCRIBE
the concise bounded description of each resource (W3C member submission "CBD", 2005).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce

from engine.ir import expressions as ex, patterns as ir
from engine.ir.spans import Diagnostic, DiagnosticError
from engine.ir.statement import BEHIND, Describe, Query
from engine.ir.terms import RDF, Constant, Term, Variable
from engine.ir.windows import TIME_FUNCTIONS, WINDOW_FUNCTIONS, window_argument, window_names
from engine.plan import nodes
from engine.plan.dataset import Dataset, of_items
from engine.plan.nodes import MergedSource, Plan, Source
from engine.plan.order import Estimate, join_order
from engine.plan.paths import Paths
from engine.plan.variables import bound_variables, mentioned_variables, plan_variables, variables_among

MAX_NODES = 5_000     # WINDOW ?w and GRAPH ?g make a plan for each window and graph, and those within them for each pair


@dataclass(frozen=True, slots=True)
class Place:
    """Where the pattern at hand looks: a source, its graph term, and the EXISTS seed around it."""

    source: Source
    in_window: bool = False
    graph: Term | None = None
    seed: nodes.Seed | None = None


class Builder:
    """Builds the plan of one query; `estimate` gives live counts for the join order."""

    def __init__(self, data: Dataset, estimate: Estimate) -> None:
        self.data = data
        self.estimate = estimate
        self._fresh = 0
        self._built = 0

    def build(self, query: Query) -> Plan:
        """The plan of a query: its solutions, or for DESCRIBE the triples of the description."""
        place = Place(self.data.default)
        if isinstance(query, Describe):
            return description(query.terms, self._build(query.pattern, place), self.data.everything(), self._variable)
        return self._build(query.pattern, place)

    def _variable(self, stem: str) -> Variable:
        self._fresh += 1
        return Variable(f".{stem}{self._fresh}")

    def _build(self, pattern: ir.Pattern, place: Place) -> Plan:
        self._built += 1
        if self._built > MAX_NODES:
            raise DiagnosticError(Diagnostic("query-too-large", f"The plan of the query has more than {MAX_NODES} steps: each pattern is "
                                             "planned for each window or graph that it ranges over.", pattern.span))
        match pattern:
            case ir.BGP(triples=triples):
                return self._seeded(self._bgp(triples, place) if triples else self._nothing(place), place)
            case ir.PathPattern():
                return self._path(pattern, place)
            case ir.Values(variables=variables, rows=rows):
                return self._seeded(nodes.joined(self._nothing(place), nodes.Values(variables, rows)), place)
            case ir.Join(left=left, right=right):
                return self._join(left, right, place)
            case ir.LeftJoin():
                return self._left_join(pattern, place)
            case ir.Union(left=left, right=right):
                return nodes.Union(self._build(left, place), self._build(right, place))
            case ir.Minus(left=left, right=right):
                ignored = frozenset((*(place.seed.variables if place.seed else ()), *variables_among(place.graph)))
                return nodes.Minus(self._build(left, place), self._build(right, place), ignored)
            case ir.Filter(condition=condition, pattern=inner):
                return self._filter(self._build(inner, place), condition, place)
            case ir.Extend(pattern=inner, variable=variable, expression=expression):
                plan, expression = self._prepared(self._build(inner, place), expression, place)
                return nodes.Extend(plan, variable, expression)
            case ir.GraphPattern():
                return self._graph(pattern, place)
            case ir.WindowPattern():
                return self._window(pattern, place)
        return self._modifier(pattern, place)

    def _join(self, left: ir.Pattern, right: ir.Pattern, place: Place) -> Plan:
        """A path is joined last: it starts from what the other side binds."""
        if isinstance(left, ir.PathPattern) and not isinstance(right, ir.PathPattern):
            left, right = right, left
        before = self._build(left, place)
        after = self._path(right, place, before) if isinstance(right, ir.PathPattern) else self._build(right, place)
        return nodes.joined(before, after)

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

    def _nothing(self, place: Place) -> Plan:
        """What a group without patterns starts from: the empty solution, in each item of a window where GRAPH ranges over them."""
        if place.graph is None:
            return nodes.Unit()
        return nodes.Project(nodes.Stamps(place.source, self._variable("time"), (), place.graph), variables_among(place.graph))

    def _bgp(self, triples: tuple[ir.TriplePattern, ...], place: Place) -> Plan:
        scans = [nodes.Scan(place.source, t.subject, t.predicate, t.object, place.graph, t.origin) for t in triples]
        steps: list[Plan] = [group[0] if len(group) == 1 else nodes.Star(group) for group in join_order(scans, self.estimate)]
        return reduce(nodes.Join, steps)

    def _path(self, pattern: ir.PathPattern, place: Place, outer: Plan | None = None) -> Plan:
        paths = Paths(place.source, place.graph, place.seed, self._nothing(place), self._variable)
        return self._seeded(paths.plan(pattern.subject, pattern.path, pattern.object, outer), place)

    # -- graphs and windows

    def _graph(self, pattern: ir.GraphPattern, place: Place) -> Plan:
        name = pattern.name
        if place.in_window and not (isinstance(name, Constant) and name.token[1:-1] in BEHIND):
            return self._item(name, pattern.pattern, replace(place, source=of_items(place.source)))
        if isinstance(name, Constant):
            source = self.data.graph(name.token[1:-1])
            if source is None:
                return self._seeded(nodes.Values(tuple(ir.scope(pattern.pattern)), ()), place)
            return self._build(pattern.pattern, replace(place, source=source, in_window=False, graph=None))
        return self._each(name, self.data.named(), pattern.pattern, replace(place, graph=None))

    def _item(self, name: Term, pattern: ir.Pattern, place: Place) -> Plan:
        """GRAPH in a window: its items. Inside the group the name is not bound yet (section 18.6, Graph), so it is another variable
        where the group mentions it otherwise than in a triple of its own."""
        if isinstance(name, Constant) or isinstance(pattern, ir.BGP) or name not in mentioned_variables(pattern):
            return self._build(pattern, replace(place, graph=name))
        hidden = self._variable("graph")
        inner = self._build(pattern, replace(place, graph=hidden))
        named = nodes.Extend(self._nothing(replace(place, graph=hidden)), name, hidden)
        return nodes.Project(nodes.Join(inner, named), tuple(sorted((plan_variables(inner) | {name}) - {hidden})))

    def _each(self, name: Variable, sources: list[tuple[str, Source]], pattern: ir.Pattern, place: Place) -> Plan:
        """The union over several sources, each with its name bound."""
        if not sources:
            return self._seeded(nodes.Values((name, *sorted(ir.scope(pattern) - {name})), ()), place)
        return reduce(nodes.Union, (nodes.joined(self._build(pattern, replace(place, source=source)),
                                                 nodes.Values((name,), ((Constant(f"<{iri}>"),),))) for iri, source in sources))

    def _window(self, pattern: ir.WindowPattern, place: Place) -> Plan:
        name = pattern.name
        if isinstance(name, Constant):
            source = self.data.windows.get(name.token[1:-1])
            if source is None:
                raise DiagnosticError(Diagnostic("query-syntax", f"No window is named {name.token}.", pattern.span,
                                                 hint=f"FROM NAMED WINDOW {name.token} ON <stream> [RANGE 10s STEP 2s]"))
            return self._build(pattern.pattern, replace(place, source=source, in_window=True, graph=None))
        windows = self.data.named_windows()
        if not windows:
            raise DiagnosticError(Diagnostic("query-syntax", "WINDOW with a variable needs a FROM NAMED WINDOW.", pattern.span))
        return self._each(name, windows, pattern.pattern, replace(place, in_window=True, graph=None))

    # -- filters, groups, EXISTS

    def _seeded(self, plan: Plan, place: Place) -> Plan:
        return plan if place.seed is None else nodes.joined(place.seed, plan)

    def _filter(self, plan: Plan, condition: ex.Expression, place: Place) -> Plan:
        """EXISTS is asked of what passes the other conditions."""
        parts = [*ex.conjuncts(condition)]
        asking = [part for part in parts if any(ex.exists_in(part))]
        if asking and len(asking) < len(parts):
            plan = self._filter(plan, ex.conj(*(part for part in parts if part not in asking)), place)
            condition = ex.conj(*asking)
        plan, condition = self._prepared(plan, condition, place)
        return nodes.Filter(plan, condition)

    def _left_join(self, pattern: ir.LeftJoin, place: Place) -> Plan:
        left, right = self._build(pattern.left, place), self._build(pattern.right, place)
        if pattern.condition is None:
            return nodes.LeftJoin(left, right)
        rebound = plan_variables(left) & plan_variables(right) - bound_variables(pattern.left)
        for variable in sorted(rebound):
            left = nodes.Extend(left, self._variable("before"), variable)
        return nodes.Otherwise(left, self._filter(nodes.Join(left, right), pattern.condition, place), rebound)

    def _prepared(self, plan: Plan, expression: ex.Expression, place: Place) -> tuple[Plan, ex.Expression]:
        """Replace each EXISTS by a truth value that a Mark computes, each time function by what a Lookup finds."""
        match expression:
            case ex.Exists(negated=negated):
                plan, marker = self._marked(plan, expression, place)
                return plan, ex.Call("!", (marker,)) if negated else marker
            case ex.Call(function=function) if function in TIME_FUNCTIONS:
                return self._looked_up(plan, expression, place)
            case ex.Call(args=args):
                prepared = []
                for argument in args:
                    plan, argument = self._prepared(plan, argument, place)
                    prepared.append(argument)
                return plan, expression if tuple(prepared) == args else replace(expression, args=tuple(prepared))
        return plan, expression

    def _marked(self, plan: Plan, test: ex.Exists, place: Place) -> tuple[Plan, Variable]:
        marker = self._variable("exists")
        mentioned = mentioned_variables(test.pattern)
        shared = tuple(sorted(v for v in plan_variables(plan) if v in mentioned))
        seed = nodes.Seed(plan, shared)
        inner = self._build(test.pattern, replace(place, seed=seed))
        return nodes.Mark(plan, inner, marker, seed), marker

    def _looked_up(self, plan: Plan, call: ex.Call, place: Place) -> tuple[Plan, Variable]:
        arguments: tuple[ex.Expression, ...] = call.args
        if call.function in WINDOW_FUNCTIONS:
            arguments = (window_argument(call, self.data.streams),)
        keys = []
        for argument in arguments:
            plan, key = self._as_variable(plan, argument, place)
            keys.append(key)
        found = self._variable("time")
        table: nodes.Stamps | nodes.WindowTimes
        if call.function in WINDOW_FUNCTIONS:
            table = nodes.WindowTimes(window_names(self.data.streams), call.function == "WINDOW_OPEN", keys[0], found)
        elif len(keys) == 1:
            table = nodes.Stamps(place.source if place.in_window else MergedSource(()), found, (), keys[0])
        else:
            table = nodes.Stamps(place.source, found, tuple(keys), place.graph)
            keys += [v for v in variables_among(place.graph) if v not in keys]
        return nodes.Lookup(plan, table, tuple(keys)), found

    def _as_variable(self, plan: Plan, expression: ex.Expression, place: Place) -> tuple[Plan, Variable]:
        if isinstance(expression, Variable):
            return plan, expression
        plan, expression = self._prepared(plan, expression, place)
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


def _with_graph(variables: tuple[Variable, ...], place: Place) -> tuple[Variable, ...]:
    return variables if not isinstance(place.graph, Variable) or place.graph in variables else (*variables, place.graph)


TRIPLE = (Variable(".s"), Variable(".p"), Variable(".o"))


def description(terms: tuple[Term, ...], solutions: Plan, source: Source, fresh: Callable[[str], Variable]) -> Plan:
    """The triples (`TRIPLE`) about the resources that `terms` name: theirs, and those of what a description goes on to."""
    subject = TRIPLE[0]
    bound = [t for t in terms if isinstance(t, Variable) and t in plan_variables(solutions)]
    named = [nodes.Values((subject,), tuple((t,) for t in terms if isinstance(t, Constant)))]
    asked: Plan = reduce(nodes.Union, [*named, *(_renamed(solutions, v, subject) for v in bound)])
    near, far = fresh("described"), fresh("described")
    step = _onward(source, near, far, fresh)
    reached = nodes.Reach(step, (near, far), subject, fresh("described"), None, asked)
    further = _renamed(reached, reached.last, subject)
    resources = nodes.Distinct(nodes.Union(nodes.Project(asked, (subject,)), further))
    return nodes.Project(nodes.Join(resources, nodes.Scan(source, *TRIPLE)), TRIPLE)


def _renamed(plan: Plan, variable: Variable, to: Variable) -> Plan:
    known = nodes.Filter(nodes.Project(plan, (variable,)), ex.Call("BOUND", (variable,)))
    return nodes.Project(nodes.Extend(known, to, variable), (to,)) if variable != to else known


def _onward(source: Source, near: Variable, far: Variable, fresh: Callable[[str], Variable]) -> Plan:
    """What the description of a resource goes on to: its blank objects, and the reifications of its triples."""
    predicate, object_ = fresh("described"), fresh("described")
    blank = nodes.Filter(nodes.Scan(source, near, predicate, far), ex.Call("ISBLANK", (far,)))
    reified: Plan = nodes.Scan(source, near, predicate, object_)
    for place, term in (("subject", near), ("predicate", predicate), ("object", object_)):
        reified = nodes.Join(reified, nodes.Scan(source, far, Constant(f"<{RDF}{place}>"), term))
    return nodes.Union(nodes.Project(blank, (near, far)), nodes.Project(reified, (near, far)))

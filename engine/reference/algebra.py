"""SPARQL algebra on a dataset, node by node as SPARQL 1.1 sections 18.5 and 18.6 define it, without clever shortcuts. Property paths (18.4)
are a bag of pairs each, with the triples that lead from one to the other; sets where the specification says so."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from engine.functions.aggregates import aggregate
from engine.functions.compare import order_key
from engine.functions.context import row_key
from engine.functions.expressions import Context, ExpressionError, evaluate, test
from engine.ir.expressions import Aggregate, Exists, Expression
from engine.ir.patterns import (BGP, Alternative, Distinct, Extend, Filter, GraphPattern, Group, Inverse, Join, LeftJoin, Link, Minus,
                                NegatedSet, OrderBy, Path, PathPattern, Pattern, Project, Repeat, Sequence, Slice, TriplePattern, Union,
                                Values, WindowPattern)
from engine.ir.statement import OWN_WINDOW
from engine.ir.terms import Constant, OneOf, PatternTerm, Variable
from engine.records import Triple
from engine.reference import solutions
from engine.reference.dataset import Dataset, Graph
from engine.reference.solutions import Bag, Row, substitute


@dataclass(frozen=True, slots=True)
class Scope:
    """The active graph, and the graphs that GRAPH can reach from here: in a window its items."""

    graph: Graph
    named: Mapping[str, Graph]
    in_window: bool = False


class Algebra:
    """Evaluates patterns over one dataset at one evaluation time."""

    def __init__(self, dataset: Dataset, context: Context) -> None:
        self.dataset = dataset
        self.context = context
        self.windows = {name: content for name, content in dataset.windows.items() if not name.startswith(f"<{OWN_WINDOW}")}
        self.top = Scope(dataset.default, {name: content.graph for name, content in self.windows.items()} | dict(dataset.named))

    def solutions(self, pattern: Pattern, scope: Scope | None = None) -> Bag:
        """The bag of solutions of `pattern`; in order where the pattern is an ordered one."""
        scope = scope or self.top
        match pattern:
            case BGP(triples=triples):
                return basic_graph_pattern(scope.graph, triples)
            case PathPattern():
                return self._path(pattern, scope)
            case Join(left=left, right=right):
                return solutions.join(self.solutions(left, scope), self.solutions(right, scope))
            case LeftJoin(left=left, right=right, condition=condition):
                return solutions.left_join(self.solutions(left, scope), self.solutions(right, scope),
                                           lambda row: condition is None or self._test(condition, row, scope))
            case Union(left=left, right=right):
                return self.solutions(left, scope) + self.solutions(right, scope)
            case Minus(left=left, right=right):
                return solutions.minus(self.solutions(left, scope), self.solutions(right, scope))
            case Filter(condition=condition, pattern=inner):
                return [row for row in self.solutions(inner, scope) if self._test(condition, row, scope)]
            case Extend():
                return self._extend(pattern, scope)
            case Values(variables=variables, rows=rows):
                return [{v.name: cell.token for v, cell in zip(variables, row) if cell is not None} for row in rows]
            case GraphPattern() | WindowPattern():
                return self._named(pattern, scope)
            case Group():
                return self._group(pattern, scope)
            case Project():
                return self._project(pattern, scope)
            case Distinct(pattern=inner):
                return solutions.distinct(self.solutions(inner, scope))
            case OrderBy(pattern=inner):
                found = self.solutions(inner, scope)
                return self._ordered(pattern, found, sorted({name for row in found for name in row}), scope)
            case Slice(offset=offset, limit=limit):
                return self._in_order(pattern.pattern, scope)[offset:None if limit is None else offset + limit]

    def value(self, expression: Expression, row: Row, scope: Scope, solution: str = "") -> str | None:
        """The token of `expression` in `row`, None where it is an error. `solution`: see Context.row."""
        try:
            return evaluate(expression, row, self._context(scope, solution))
        except ExpressionError:
            return None

    def _path(self, pattern: PathPattern, scope: Scope) -> Bag:
        start, end = (t.token if isinstance(t, Constant) else None for t in (pattern.subject, pattern.object))
        found = (bind((pattern.subject, pattern.object), (x, y), {}) for x, y, _ in routes(scope.graph, start, pattern.path, end))
        return [row for row in found if row is not None]

    def _named(self, pattern: GraphPattern | WindowPattern, scope: Scope) -> Bag:
        if isinstance(pattern.name, Constant):
            inside = self._inside(pattern, pattern.name.token, scope)
            return [] if inside is None else self.solutions(pattern.pattern, inside)
        name = pattern.name.name
        scopes = ((token, self._inside(pattern, token, scope)) for token in sorted(self._names(pattern, scope)))
        return [row for token, inside in scopes if inside is not None
                for row in solutions.join(self.solutions(pattern.pattern, inside), [{name: token}])]

    def _names(self, pattern: GraphPattern | WindowPattern, scope: Scope) -> Collection[str]:
        """What the variable of a GRAPH or WINDOW may be."""
        return scope.named.keys() if isinstance(pattern, GraphPattern) else self.windows.keys()

    def _inside(self, pattern: GraphPattern | WindowPattern, token: str, scope: Scope) -> Scope | None:
        """Where GRAPH or WINDOW with this name leads to."""
        if isinstance(pattern, GraphPattern):
            return replace(scope, graph=scope.named[token]) if token in scope.named else None
        content = self.dataset.windows.get(token)
        return None if content is None else Scope(content.graph, content.items, True)

    def _extend(self, pattern: Extend, scope: Scope) -> Bag:
        chain, inner = chain_of(pattern)
        rows = []
        for row in self.solutions(inner, scope):
            solution = row_key(row)
            for link in chain:
                value = self.value(link.expression, row, scope, solution)
                row = row if value is None else {**row, link.variable.name: value}
            rows.append(row)
        return rows

    def _group(self, pattern: Group, scope: Scope) -> Bag:
        groups: dict[tuple[str | None, ...], Bag] = {(): []} if pattern.implicit else {}
        names = [key.name for key in pattern.keys]
        for row in self.solutions(pattern.pattern, scope):
            groups.setdefault(tuple(row.get(name) for name in names), []).append(row)
        result: Bag = []
        for key, rows in groups.items():
            bound = {name: token for name, token in zip(names, key) if token is not None}
            for variable, call in pattern.aggregates:
                value = self._aggregate(call, rows, scope)
                if value is not None:
                    bound[variable.name] = value
            result.append(bound)
        return result

    def _aggregate(self, call: Aggregate, rows: Bag, scope: Scope) -> str | None:
        if call.expression is None:
            visible = [{name: token for name, token in row.items() if Variable(name).visible} for row in rows]
            counted = solutions.distinct(visible) if call.distinct else visible
            return aggregate("COUNT", ['"row"'] * len(counted), False, call.separator)
        values = [self.value(call.expression, row, scope) for row in rows]
        return aggregate(call.function, values, call.distinct, call.separator)

    def _project(self, pattern: Project, scope: Scope) -> Bag:
        names = [v.name for v in pattern.variables]
        rows = self.solutions(pattern.pattern.pattern if isinstance(pattern.pattern, OrderBy) else pattern.pattern, scope)
        if isinstance(pattern.pattern, OrderBy):
            rows = self._ordered(pattern.pattern, rows, names, scope)
        return [{name: row[name] for name in names if name in row} for row in rows]

    def _in_order(self, pattern: Pattern, scope: Scope) -> Bag:
        """Rows as LIMIT and OFFSET count them: as ORDER BY says, else in the canonical order."""
        inner = pattern.pattern if isinstance(pattern, Distinct) else pattern
        rows = self.solutions(pattern, scope)
        if isinstance(inner, OrderBy) or isinstance(inner, Project) and isinstance(inner.pattern, OrderBy):
            return rows
        every = sorted({name for row in rows for name in row})
        return sorted(rows, key=lambda row: canonical(row, every))

    def _ordered(self, pattern: OrderBy, rows: Bag, names: Iterable[str], scope: Scope) -> Bag:
        """Rows by the conditions; ties in the canonical order of the variables that are kept."""
        result = sorted(rows, key=lambda row: canonical(row, names))
        for expression, descending in reversed(pattern.conditions):
            result.sort(key=lambda row: order_key(self.value(expression, row, scope)), reverse=descending)
        return result

    def _test(self, condition: Expression, row: Row, scope: Scope) -> bool:
        return test(condition, row, self._context(scope))

    def _context(self, scope: Scope, solution: str = "") -> Context:
        def exists(node: Exists, bound: Mapping[str, str]) -> bool:
            return bool(self.solutions(substitute(node.pattern, bound), scope))

        def look_up(function: str, arguments: tuple[str, ...]) -> int | None:
            if function == "TIMESTAMP":
                return _stamp(arguments, scope)
            name = arguments[0] if arguments else next(iter(self.dataset.bounds))
            opens, closes = self.dataset.bounds.get(name, (None, None))
            return opens if function == "WINDOW_OPEN" else closes

        return replace(self.context, row=solution, exists=exists, look_up=look_up)


def _stamp(arguments: tuple[str, ...], scope: Scope) -> int | None:
    """The latest time of a triple in the active graph, or of an item of the window around it."""
    if len(arguments) == 3:
        return scope.graph.times.get((arguments[0], arguments[1], arguments[2]))
    item = scope.named.get(arguments[0]) if scope.in_window else None
    return max(item.times.values(), default=None) if item is not None else None


def chain_of(pattern: Extend) -> tuple[list[Extend], Pattern]:
    """BINDs that follow each other, first to last, and what is before them. They extend one solution: ``BNODE("x")`` is the same node in
    all of them (section 17.4.2.9)."""
    chain, inner = [pattern], pattern.pattern
    while isinstance(inner, Extend):
        chain, inner = [inner, *chain], inner.pattern
    return chain, inner


def basic_graph_pattern(graph: Graph, triples: Iterable[TriplePattern]) -> Bag:
    """The solutions of a basic graph pattern, the pattern with the fewest matches extended first."""
    rows: Bag = [{}]
    waiting = list(triples)
    while waiting and rows:
        triple = min(waiting, key=lambda t: openness(t, rows[0]))
        waiting.remove(triple)
        rows = [extended for row in rows for extended in matches(graph, triple, row)]
    return rows


def canonical(row: Row, names: Iterable[str]) -> tuple[str, ...]:
    """The key of the canonical row order: the tokens of the variables in the order of their names, unbound first."""
    return tuple(row.get(name, "") for name in sorted(names))


def matches(graph: Graph, triple: TriplePattern, row: Row) -> Bag:
    """The extensions of `row` by each triple that matches."""
    places = [_fixed(term, row) for term in triple.terms]
    found = (bind(triple.terms, match, row) for match in graph.match(*places))
    return [extended for extended in found if extended is not None]


def bind(terms: Iterable[PatternTerm], tokens: Iterable[str], row: Row) -> Row | None:
    """`row` with the variables among `terms` bound to `tokens`; None where they disagree."""
    extended = dict(row)
    for term, token in zip(terms, tokens):
        match term:
            case Variable(name=name):
                if extended.setdefault(name, token) != token:
                    return None
            case Constant(token=constant):
                if constant != token:
                    return None
            case OneOf(tokens=admitted):
                if token not in admitted:
                    return None
    return extended


def _fixed(term: PatternTerm, row: Row) -> str | None:
    match term:
        case Constant(token=token):
            return token
        case Variable(name=name):
            return row.get(name)
    return None


def openness(triple: TriplePattern, row: Row) -> tuple[int, bool]:
    """How many places of a pattern are open once `row` is known: fewer first, unconnected ones last."""
    open_places = sum(_fixed(term, row) is None for term in triple.terms)
    connected = any(isinstance(t, Variable) and t.name in row for t in triple.terms)
    return open_places - connected, not connected


Route = tuple[str, str, tuple[Triple, ...]]
"""From, to, and the triples in between."""


def routes(graph: Graph, start: str | None, path: Path, end: str | None) -> Iterator[Route]:
    """The pairs that `path` connects, with their multiplicity, each with one way; of a repeated path a shortest one. None stands for a
    variable at that end."""
    match path:
        case Link(predicate=predicate):
            yield from ((t[0], t[2], (t,)) for t in graph.match(start, predicate.token, end))
        case Inverse(path=inner):
            yield from ((x, y, steps) for y, x, steps in routes(graph, end, inner, start))
        case Alternative(first=first, second=second):
            yield from routes(graph, start, first, end)
            yield from routes(graph, start, second, end)
        case Sequence(first=first, second=second):
            yield from _sequence(graph, start, first, second, end)
        case NegatedSet(forward=forward, backward=backward):
            if forward or not backward:
                yield from ((t[0], t[2], (t,)) for t in graph.match(start, None, end) if Constant(t[1]) not in forward)
            if backward:
                yield from ((t[2], t[0], (t,)) for t in graph.match(end, None, start) if Constant(t[1]) not in backward)
        case Repeat():
            yield from _repeated(graph, start, path, end)


def _sequence(graph: Graph, start: str | None, first: Path, second: Path, end: str | None) -> Iterator[Route]:
    """Join on a fresh variable: the middle is a node of the graph, or a given end that a path of length zero reaches."""
    rest: dict[str, list[Route]] = {}
    for x, middle, steps in routes(graph, start, first, None):
        if middle not in rest:
            rest[middle] = list(routes(graph, middle, second, end)) if middle in graph.nodes or middle == end else []
        yield from ((x, y, steps + more) for _, y, more in rest[middle])


def _repeated(graph: Graph, start: str | None, path: Repeat, end: str | None) -> Iterator[Route]:
    """The repeated paths, which give sets. A given end has its path of length zero though no triple names it."""
    if start is None and end is not None:
        backwards = Repeat(Inverse(path.path), path.least, path.most)
        yield from ((x, y, steps[::-1]) for y, x, steps in _repeated(graph, end, backwards, None))
        return
    starts: Iterable[str] = sorted(graph.nodes) if start is None else (start,)
    for x in starts:
        reached = _reach(graph, x, path)
        yield from ((x, y, reached[y]) for y in (sorted(reached) if end is None else [end] if end in reached else []))


def _reach(graph: Graph, start: str, path: Repeat) -> dict[str, tuple[Triple, ...]]:
    """The nodes that the repeated path leads to, each with a shortest way there (ALP of the specification, without recursion)."""
    found: dict[str, tuple[Triple, ...]] = {start: ()} if path.least == 0 else {}
    frontier: dict[str, tuple[Triple, ...]] = {start: ()}
    rounds = 0
    while frontier and (path.most is None or rounds < path.most):
        rounds += 1
        following: dict[str, tuple[Triple, ...]] = {}
        for x, steps in frontier.items():
            for _, y, more in routes(graph, x, path.path, None):
                if y not in found and y not in following:
                    following[y] = steps + more
        found |= following
        frontier = following
    return found

"""Query forms, grouping and solution modifiers of the parse tree as queries of the IR (SPARQL 1.1 sections 18.2.4 and 18.2.5)."""

from collections.abc import Iterator, Mapping

from engine.ir.expressions import Aggregate, Call, Expression, conj, variables_of
from engine.ir.patterns import (BGP, Distinct, Extend, Filter, GraphPattern, Group, OrderBy, PathPattern, Pattern, Project, Slice,
                                TriplePattern, Values, WindowPattern, children, scope)
from engine.ir.statement import Ask, Construct, Describe, Query, Select
from engine.ir.terms import Term, Variable
from grammar.patterns import EMPTY, Patterns, join
from grammar.terms import Block, Labels, Names
from grammar.text import Leaf, Node


class Queries:
    def __init__(self, names: Names, labels: Labels, patterns: Patterns) -> None:
        self._names, self._labels, self._patterns = names, labels, patterns
        patterns.select = lambda node: self._select(node)[0]

    def query(self, node: Node) -> Query:
        match node.name:
            case "SelectQuery":
                return Select(*self._select(node))
            case "AskQuery":
                return Ask(self._modified(node))
            case "ConstructQuery":
                pattern = self._modified(node)
                return Construct(self._template(node), pattern)
        pattern = self._modified(node)
        written = node.all("var")
        terms: tuple[Term, ...] = tuple(self._names.term(leaf) for leaf in written) or visible(pattern)
        return Describe(tuple(dict.fromkeys(terms)), pattern)

    def _template(self, node: Node) -> tuple[TriplePattern, ...]:
        triples = node.all("template")
        where = node.get("where")
        if where is not None and where.name == "FakeGroupGraphPatten":      # CONSTRUCT WHERE { }
            triples = [triple for part in where.all("part") for triple in part.all("triples")]
        renamed = {label: self._labels.fresh("b") for label in sorted(self._patterns.labels)}   # a template's labels are its own
        block = Block(self._names, self._labels, renamed)
        for triple in triples:
            block.add(triple)
        return tuple(block.triples)

    def _modified(self, node: Node) -> Pattern:
        """The pattern of a query that projects nothing, with its modifiers."""
        level = _Level(self._names, self._patterns, node)
        level.group_and_extend([])
        return _sliced(level.ordered(), node)

    def _select(self, node: Node) -> tuple[Pattern, tuple[Variable, ...]]:
        level = _Level(self._names, self._patterns, node)
        projection = node.all("projection")
        level.group_and_extend(projection)
        pattern = level.ordered()
        if projection:
            variables = tuple(dict.fromkeys(Variable((item.get("var") or item.parts["evar"]).text[1:]) for item in projection))
        else:
            if level.grouped:
                self._names.error("SELECT * of a grouped query: its variables must be named.", node.start, node.start + len("SELECT"),
                                  hint="name the keys of GROUP BY, and (COUNT(?x) AS ?n)")
            variables = visible(pattern)
        pattern = Project(pattern, variables, span=self._names.span(node))
        if node.get("modifier"):
            pattern = Distinct(pattern, span=pattern.span)
        return _sliced(pattern, node), variables


class _Level:
    """One SELECT level: WHERE, grouping, expressions, order."""

    def __init__(self, names: Names, patterns: Patterns, node: Node) -> None:
        self._names, self._patterns, self._node = names, patterns, node
        self._aggregates: dict[Aggregate, Variable] = {}
        where = node.get("where")
        self._pattern = patterns.group(where) if where is not None else EMPTY
        self._where_scope = scope(self._pattern)
        self._keys: tuple[Variable, ...] = ()
        self._orders: tuple[tuple[Expression, bool], ...] = ()
        self.grouped = False

    def group_and_extend(self, projection: list[Node]) -> None:
        """Sections 18.2.4.1 to 18.2.4.4."""
        node, patterns = self._node, self._patterns
        groupby, having, orderby = node.get("groupby"), node.get("having"), node.get("orderby")
        if groupby is not None:
            self._group_keys(groupby)
        patterns.expressions.aggregate = lambda found: self._aggregates.setdefault(found, Variable(f".agg{len(self._aggregates)}"))
        columns = [(item, patterns.expressions.translate(item.parts["expr"])) for item in projection if item.get("expr") is not None]
        conditions = [patterns.expressions.translate(item) for item in (having.all("condition") if having else [])]
        self._orders = tuple((patterns.expressions.translate(item.parts["expr"]), item.get("order") == "DESC")
                             for item in (orderby.all("condition") if orderby else []))
        patterns.expressions.aggregate = None
        self.grouped = groupby is not None or bool(self._aggregates)
        if self.grouped:
            aggregates = tuple((variable, aggregate) for aggregate, variable in self._aggregates.items())
            self._pattern = Group(self._pattern, self._keys, aggregates, groupby is None, span=self._names.span(groupby or node))
        if conditions:
            named = {Variable(item.parts["evar"].text[1:]): expression for item, expression in columns}
            condition = conj(*(_substitute(c, named, self._where_scope) for c in conditions))
            self._pattern = Filter(condition, self._pattern, span=self._names.span(having))
        values = node.get("valuesClause")
        if values is not None:
            self._pattern = join(self._pattern, patterns.values(values), self._names.span(values))
        self._extend(projection, dict((id(item), expression) for item, expression in columns))

    def ordered(self) -> Pattern:
        return OrderBy(self._pattern, self._orders, span=self._names.span(self._node.parts["orderby"])) if self._orders else self._pattern

    def _group_keys(self, groupby: Node) -> None:
        keys: list[Variable] = []
        for condition in groupby.all("condition"):
            written = condition.get("var") if isinstance(condition, Node) and condition.name == "GroupAs" else None
            item = condition.parts["expr"] if isinstance(condition, Node) and condition.name == "GroupAs" else condition
            expression = self._patterns.expressions.translate(item)
            if isinstance(expression, Variable) and written is None:
                if expression not in keys:
                    keys.append(expression)
                continue
            variable = Variable(written.text[1:]) if written else Variable(f".key{len(keys)}")
            if written is not None:
                self._refuse_if_used(written, variable, scope(self._pattern))
            self._pattern = Extend(self._pattern, variable, expression, span=self._names.span(condition))
            keys.append(variable)
        self._keys = tuple(keys)

    def _extend(self, projection: list[Node], columns: Mapping[int, Expression]) -> None:
        named: set[Variable] = set()
        for item in projection:
            leaf = item.get("evar") or item.parts["var"]
            variable = Variable(leaf.text[1:])
            expression = columns.get(id(item))
            if expression is None:
                self._refuse_if_not_grouped(leaf, variable, named)
                continue
            for read in sorted(variables_of(expression)):
                self._refuse_if_not_grouped(item, read, named)
            self._refuse_if_used(leaf, variable, self._where_scope | named | frozenset(self._keys))
            named.add(variable)
            self._pattern = Extend(self._pattern, variable, expression, span=self._names.span(item))

    def _refuse_if_used(self, leaf: Leaf, variable: Variable, used: frozenset[Variable]) -> None:
        if variable in used:
            self._names.error(f"{leaf.text} is used already: AS needs a new variable.", leaf.start, leaf.end,
                              hint=f"choose another name, such as {leaf.text}_2")

    def _refuse_if_not_grouped(self, place: Leaf | Node, variable: Variable, named: set[Variable]) -> None:
        if self.grouped and variable.visible and variable not in self._keys and variable not in named:
            self._names.error(f"?{variable.name} is not a key of GROUP BY, so it has no single value in a group.", place.start, place.end,
                              hint=f"add ?{variable.name} to GROUP BY, or take an aggregate, such as (SAMPLE(?{variable.name}) AS ?any)")


def _sliced(pattern: Pattern, node: Node) -> Pattern:
    clause = node.get("limitoffset")
    if clause is None:
        return pattern
    limit, offset = clause.get("limit"), clause.get("offset")
    return Slice(pattern, _count(offset) if offset else 0, _count(limit) if limit else None, span=pattern.span)


def _count(leaf: Leaf) -> int:
    return int(leaf.text) if len(leaf.text) < 19 else 10 ** 18     # more rows than there can be


def _substitute(expression: Expression, named: Mapping[Variable, Expression], used: frozenset[Variable]) -> Expression:
    """HAVING may name an expression of SELECT, as RSP-QL texts do; SPARQL 1.1 would leave it unbound, and never true."""
    match expression:
        case Variable() if expression in named and expression not in used:
            return _substitute(named[expression], {k: v for k, v in named.items() if k != expression}, used)
        case Call(function=function, args=args):
            return Call(function, tuple(_substitute(a, named, used) for a in args), span=expression.span)
    return expression


def visible(pattern: Pattern) -> tuple[Variable, ...]:
    """What ``SELECT *`` shows: the visible variables in scope, in the order in which the text has them first."""
    in_scope = scope(pattern)
    return tuple(dict.fromkeys(v for v in _in_order(pattern) if v.visible and v in in_scope))


def _in_order(pattern: Pattern) -> Iterator[Variable]:
    match pattern:
        case BGP(triples=triples):
            yield from (t for triple in triples for t in triple.terms if isinstance(t, Variable))
        case PathPattern():
            yield from (t for t in (pattern.subject, pattern.object) if isinstance(t, Variable))
        case Values(variables=variables) | Project(variables=variables) | Group(keys=variables):
            yield from variables
        case _:
            if isinstance(pattern, (GraphPattern, WindowPattern)) and isinstance(pattern.name, Variable):
                yield pattern.name
            for child in children(pattern):
                yield from _in_order(child)
            if isinstance(pattern, Extend):
                yield pattern.variable

"""Group graph patterns and expressions of the parse tree as those of the IR (SPARQL 1.1 section 18.2.2)."""

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

from engine.ir.expressions import Aggregate, Call, Exists, Expression, conj
from engine.ir.patterns import BGP, Extend, Filter, GraphPattern, Join, LeftJoin, Minus, Pattern, Union, Values, WindowPattern, scope
from engine.ir.spans import DiagnosticError, Span
from engine.ir.statement import OWN_WINDOW
from engine.ir.terms import XSD, Constant, Variable
from engine.ir.windows import WINDOW_FUNCTIONS
from grammar.terms import Block, Labels, Names, literal, string_value
from grammar.text import Leaf, Node

_ONE_SPELLING = {"URI": "IRI", "ISURI": "ISIRI"}
_SIGNS = {"UnaryNot": "!", "UnaryPlus": "+", "UnaryMinus": "-"}
_AGGREGATES = {"Count": "COUNT", "Sum": "SUM", "Min": "MIN", "Max": "MAX", "Avg": "AVG", "Sample": "SAMPLE", "GroupConcat": "GROUP_CONCAT"}
TIMESTAMP_IRIS = ("http://larkc.eu/csparql/sparql/jena/ext#timestamp",)     # C-SPARQL's name of TIMESTAMP
EMPTY = BGP(())
MAX_PARTS = 200     # each part is one level of the tree that all later stages walk


class Expressions:
    """Translates expressions; `group` translates the pattern of EXISTS."""

    def __init__(self, names: Names, group: Callable[[Node], Pattern]) -> None:
        self._names, self._group = names, group
        self._readers: dict[str, Callable[[Node], Expression]] = {
            "Binary": self._binary, "literal": names.term, "Function": self._function, **dict.fromkeys(_SIGNS, self._unary),
            "Builtin_EXISTS": self._exists, "Builtin_NOTEXISTS": self._exists,
            **{f"Aggregate_{name}": self._aggregate for name in _AGGREGATES}}
        self.aggregate: Callable[[Aggregate], Expression] | None = None     # where aggregates may stand: what stands for one

    def translate(self, item: Any) -> Expression:
        return self._names.term(item) if isinstance(item, Leaf) else self._readers.get(item.name, self._builtin)(item)

    def _exists(self, node: Node) -> Expression:
        outer, self.aggregate = self.aggregate, None
        pattern = self._group(node.parts["graph"])
        self.aggregate = outer
        return Exists(pattern, node.name == "Builtin_NOTEXISTS", span=self._names.span(node))

    def _binary(self, node: Node) -> Expression:
        chain = [node]      # a chain of operators leans to the left; read it without recursion
        while isinstance(chain[-1].parts["left"], Node) and chain[-1].parts["left"].name == "Binary":
            chain.append(chain[-1].parts["left"])
        result = self.translate(chain[-1].parts["left"])
        for link in reversed(chain):
            operator = link.parts["operator"]
            right = link.parts["right"]
            span = self._names.span(link)
            if operator.endswith("IN"):
                items = right if isinstance(right, list) else []
                result = Call(operator, (result, *map(self.translate, items)), span=span)
            elif operator == "&&":
                result = conj(result, self.translate(right))
            else:
                result = Call(operator, (result, self.translate(right)), span=span)
        return result

    def _unary(self, node: Node) -> Expression:
        operand = node.parts["expr"]
        sign = _SIGNS[node.name]
        number = (isinstance(operand, Leaf) and operand.kind in ("integer", "decimal", "double") and operand.start == node.start + 1)
        if sign != "!" and number and operand.text[0] not in "+-":
            return literal(sign + operand.text, XSD + operand.kind)
        function = "!" if sign == "!" else f"U{sign}"
        return Call(function, (self.translate(operand),), span=self._names.span(node))

    def _function(self, node: Node) -> Expression:
        span = self._names.span(node)
        if node.get("distinct"):
            self._names.error("DISTINCT stands in aggregates only, and an IRI does not name one here.", node.start, node.end,
                              hint="COUNT, SUM, MIN, MAX, AVG, SAMPLE and GROUP_CONCAT take DISTINCT")
        iri = self._names.iri(node.parts["iri"])
        return Call("TIMESTAMP" if iri in TIMESTAMP_IRIS else f"<{iri}>", tuple(map(self.translate, node.all("expr"))), span=span)

    def _builtin(self, node: Node) -> Expression:
        name = node.name.removeprefix("Builtin_").upper()
        args: list[Any] = []
        for part in node.parts.values():
            if isinstance(part, list):
                args.extend(part)
            elif not (isinstance(part, Leaf) and part.kind == "nil" and name in ("CONCAT", "COALESCE", *WINDOW_FUNCTIONS)):
                args.append(part)
        name = _ONE_SPELLING.get(name, name)
        translated = tuple(map(self.translate, args))
        if name == "IRI" and self._names.base is not None:
            translated += (Constant(f"<{self._names.base}>"),)
        return Call(name, translated, span=self._names.span(node))

    def _aggregate(self, node: Node) -> Expression:
        function = _AGGREGATES[node.name.removeprefix("Aggregate_")]
        if self.aggregate is None:
            self._names.error(f"{function} stands only in SELECT, HAVING and ORDER BY, and in no other aggregate.", node.start, node.end,
                              hint=f"compute it in a sub-query: {{ SELECT ({function}(...) AS ?n) {{ ... }} }}")
            return literal("0")
        outer, self.aggregate = self.aggregate, None
        inner = node.parts["vars"]
        expression = None if inner == "*" else self.translate(inner)
        self.aggregate = outer
        separator = node.get("separator")
        return outer(Aggregate(function, expression, bool(node.get("distinct")),
                               string_value(separator.text) if separator else " ", span=self._names.span(node)))


class Patterns:
    """Translates groups. `windows` tells which ``GRAPH`` key words of the parsed text were written as ``WINDOW`` or ``STREAM`` (by offset),
    and for the latter the name of the window; `named` are the declared window names, `streams` those that ``GRAPH`` may name too (both
    None where some could not be read: any)."""

    def __init__(self, names: Names, labels: Labels, windows: Mapping[int, str | None], named: frozenset[str] | None,
                 streams: frozenset[str] | None) -> None:
        self._names, self._labels = names, labels
        self._windows, self._named, self._streams = windows, named, streams
        self.labels: dict[str, Leaf] = {}   # labels of the blank nodes of all basic graph patterns so far
        self.expressions = Expressions(names, self.group)
        self.select: Callable[[Node], Pattern] | None = None

    def group(self, node: Node) -> Pattern:
        """The pattern of a group, its filters applied."""
        pattern, condition = self._group(node)
        return pattern if condition is None else Filter(condition, pattern, span=self._names.span(node))

    def values(self, node: Node) -> Values:
        written = node.all("var")
        variables = tuple(Variable(leaf.text[1:]) for leaf in written)
        rows: list[tuple[Constant | None, ...]] = []
        for value in node.all("value"):
            cells = value if isinstance(value, list) else [value]
            if len(cells) == 1 and isinstance(cells[0], Leaf) and cells[0].kind == "nil":
                cells = []
            if len(cells) != len(variables):
                place = cells[0] if cells and not isinstance(cells[0], str) else node
                self._names.error(f"This row has {len(cells)} values for {len(variables)} variables.", place.start, place.end,
                                  hint="write UNDEF for a value that is not given")
                continue
            rows.append(tuple(None if isinstance(cell, str) else self._constant(cell) for cell in cells))
        return Values(variables, tuple(rows), span=self._names.span(node))

    def _constant(self, cell: Leaf | Node) -> Constant:
        term = self._names.term(cell)
        assert isinstance(term, Constant)
        return term

    def _group(self, node: Node) -> tuple[Pattern, Expression | None]:
        if node.name == "SubSelect":
            assert self.select is not None
            return self.select(node), None
        result: Pattern = EMPTY
        filters: list[Expression] = []
        block: list[Node] = []
        self._refuse_if_long([part for part in node.all("part") if part.name not in ("TriplesBlock", "Filter")], "A group")
        for part in node.all("part"):
            if part.name == "TriplesBlock":
                block.extend(part.all("triples"))
            elif part.name == "Filter":
                filters.append(self.expressions.translate(part.parts["expr"]))
            else:
                result = self._join_block(result, block)
                block = []
                result = self._add(result, part)
        return self._join_block(result, block), conj(*filters) if filters else None

    def _add(self, before: Pattern, part: Node) -> Pattern:
        span = self._names.span(part)
        match part.name:
            case "OptionalGraphPattern":
                inner, condition = self._group(part.parts["graph"])
                return LeftJoin(before, inner, condition, span=span)
            case "MinusGraphPattern":
                return Minus(before, self.group(part.parts["graph"]), span=span)
            case "Bind":
                return self._bind(before, part)
            case "GroupOrUnionGraphPattern":
                self._refuse_if_long(part.all("graph"), "A UNION")
                branches = [self.group(branch) for branch in part.all("graph")]
                return join(before, reduce(lambda left, right: Union(left, right, span=span), branches), span)
            case "InlineData":
                return join(before, self.values(part), span)
            case "GraphGraphPattern":
                return join(before, self._graph(part), span)
        self._names.error(
            "SERVICE is disabled: a query reads the streams and graphs of this server.", part.start, part.start + len("SERVICE"),
            code="service-disabled", hint="upload the data as a graph and name it with FROM or GRAPH")
        return before

    def _refuse_if_long(self, parts: list[Node], what: str) -> None:
        if len(parts) > MAX_PARTS:
            raise DiagnosticError(self._names.text.error(
                f"{what} has more than {MAX_PARTS} parts.", parts[MAX_PARTS].start, parts[MAX_PARTS].end, code="nesting-too-deep",
                hint="alternatives that differ in a value only are shorter with VALUES"))

    def _bind(self, before: Pattern, part: Node) -> Pattern:
        leaf = part.parts["var"]
        variable = Variable(leaf.text[1:])
        if variable in scope(before):
            self._names.error(f"BIND to {leaf.text}, which the group before it uses already.", leaf.start, leaf.end,
                              hint="bind to a new variable, or test with FILTER")
        return Extend(before, variable, self.expressions.translate(part.parts["expr"]), span=self._names.span(part))

    def _graph(self, part: Node) -> Pattern:
        leaf = part.parts["term"]
        name = self._names.term(leaf)
        inner = self.group(part.parts["graph"])
        if part.start in self._windows:
            generated = self._windows[part.start]
            if generated is not None:
                return WindowPattern(Constant(f"<{generated}>"), inner, span=self._names.span(part))
            if isinstance(name, Constant) and self._named is not None and name.token[1:-1] not in self._named:
                self._undeclared(leaf, self._named)
            return WindowPattern(name, inner, span=self._names.span(part))
        if isinstance(name, Constant) and (self._streams is None or name.token[1:-1] in self._streams):
            return WindowPattern(name, inner, span=self._names.span(part))
        return GraphPattern(name, inner, span=self._names.span(part))

    def _undeclared(self, leaf: Leaf, named: frozenset[str]) -> None:
        declared = ", ".join(f"<{name}>" for name in sorted(named) if not name.startswith(OWN_WINDOW))
        self._names.error(f"WINDOW {leaf.text} is not declared.", leaf.start, leaf.end,
                          note=f"declared are {declared}" if declared else "this statement declares no windows",
                          hint=f"FROM NAMED WINDOW {leaf.text} ON <stream> [RANGE 10s STEP 2s]")

    def _join_block(self, before: Pattern, nodes: list[Node]) -> Pattern:
        if not nodes:
            return before
        block = Block(self._names, self._labels)
        for node in nodes:
            block.add(node)
        for label, leaf in block.used.items():
            if label in self.labels:
                self._names.error(f"Blank node {label} is used in two groups of triples.", leaf.start, leaf.end,
                                  hint=f"write a variable, such as ?{label[2:]}, to mean the same node in both")
            self.labels[label] = leaf
        span = self._names.text.span(nodes[0].start, nodes[-1].end)
        result = join(before, BGP(tuple(block.triples), span=span), span)
        for path in block.paths:
            result = join(result, path, span)
        return result


def join(left: Pattern, right: Pattern, span: Span | None = None) -> Pattern:
    """Join, without the empty pattern."""
    if left == EMPTY:
        return right
    return left if right == EMPTY else Join(left, right, span=span)

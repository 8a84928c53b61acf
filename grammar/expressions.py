"""Expressions of the parse tree as expressions of the IR."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engine.ir.expressions import Aggregate, Call, Exists, Expression, conj
from engine.ir.patterns import Pattern
from engine.ir.terms import Constant
from engine.ir.windows import WINDOW_FUNCTIONS
from grammar.terms import Names, literal, string_value
from grammar.tree import Leaf, Node

_ONE_SPELLING = {"URI": "IRI", "ISURI": "ISIRI"}
_AGGREGATES = {"Count": "COUNT", "Sum": "SUM", "Min": "MIN", "Max": "MAX", "Avg": "AVG", "Sample": "SAMPLE",
               "GroupConcat": "GROUP_CONCAT"}
TIMESTAMP_IRIS = ("http://larkc.eu/csparql/sparql/jena/ext#timestamp",)     # C-SPARQL's name of TIMESTAMP


class Expressions:
    """Translates expressions; `group` translates the pattern of EXISTS."""

    def __init__(self, names: Names, group: Callable[[Node], Pattern]) -> None:
        self._names = names
        self._group = group
        self.aggregate: Callable[[Aggregate], Expression] | None = None     # where aggregates may stand: what stands for one

    def translate(self, item: Any) -> Expression:
        """The expression of a parse tree."""
        if isinstance(item, Leaf):
            return self._names.term(item)
        name = item.name
        if name == "Binary":
            return self._binary(item)
        if name == "literal":
            return self._names.term(item)
        if name == "Function":
            return self._function(item)
        if name.startswith("Unary"):
            return self._unary(item)
        if name.startswith("Aggregate_"):
            return self._aggregate(item)
        if name in ("Builtin_EXISTS", "Builtin_NOTEXISTS"):
            return self._exists(item)
        return self._builtin(item)

    def _exists(self, node: Node) -> Expression:
        outer, self.aggregate = self.aggregate, None
        pattern = self._group(node.parts["graph"])
        self.aggregate = outer
        return Exists(pattern, node.name == "Builtin_NOTEXISTS", self._names.text.span(node.start, node.end))

    def _binary(self, node: Node) -> Expression:
        operator = node.parts["operator"]
        chain = [node]      # a chain of operators leans to the left; read it without recursion
        while isinstance(chain[-1].parts["left"], Node) and chain[-1].parts["left"].name == "Binary":
            chain.append(chain[-1].parts["left"])
        result = self.translate(chain[-1].parts["left"])
        for link in reversed(chain):
            operator = link.parts["operator"]
            right = link.parts["right"]
            span = self._names.text.span(link.start, link.end)
            if operator.endswith("IN"):
                items = right if isinstance(right, list) else []
                result = Call(operator, (result, *map(self.translate, items)), span)
            elif operator == "&&":
                result = conj(result, self.translate(right))
            else:
                result = Call(operator, (result, self.translate(right)), span)
        return result

    def _unary(self, node: Node) -> Expression:
        operand = node.parts["expr"]
        sign = {"UnaryNot": "!", "UnaryPlus": "+", "UnaryMinus": "-"}[node.name]
        number = (isinstance(operand, Leaf) and operand.kind in ("integer", "decimal", "double")
                  and operand.start == node.start + 1)
        if sign != "!" and number and operand.text[0] not in "+-":
            return literal(sign + operand.text, _datatype(self._names.term(operand)))
        function = "!" if sign == "!" else f"U{sign}"
        return Call(function, (self.translate(operand),), self._names.text.span(node.start, node.end))

    def _function(self, node: Node) -> Expression:
        span = self._names.text.span(node.start, node.end)
        if node.get("distinct"):
            self._names.error(
                "DISTINCT stands in aggregates only, and an IRI does not name one here.", node.start, node.end,
                hint="COUNT, SUM, MIN, MAX, AVG, SAMPLE and GROUP_CONCAT take DISTINCT")
        iri = self._names.iri(node.parts["iri"])
        return Call("TIMESTAMP" if iri in TIMESTAMP_IRIS else f"<{iri}>", tuple(map(self.translate, node.all("expr"))), span)

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
        return Call(name, translated, self._names.text.span(node.start, node.end))

    def _aggregate(self, node: Node) -> Expression:
        text = self._names.text
        function = _AGGREGATES[node.name.removeprefix("Aggregate_")]
        if self.aggregate is None:
            self._names.error(
                f"{function} stands only in SELECT, HAVING and ORDER BY, and in no other aggregate.", node.start, node.end,
                hint=f"compute it in a sub-query: {{ SELECT ({function}(...) AS ?n) {{ ... }} }}")
            return literal("0")
        outer, self.aggregate = self.aggregate, None
        inner = node.parts["vars"]
        expression = None if inner == "*" else self.translate(inner)
        self.aggregate = outer
        separator = node.get("separator")
        return outer(Aggregate(function, expression, bool(node.get("distinct")),
                               string_value(separator.text) if separator else " ", text.span(node.start, node.end)))


def _datatype(term: Any) -> str:
    assert isinstance(term, Constant)
    return term.token.rsplit("<", 1)[1][:-1]

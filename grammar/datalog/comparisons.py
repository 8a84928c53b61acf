"""Comparisons and arithmetic of Datalog bodies: ``X > 3``, ``Z = X + Y * 2``. Operators and values are those of SPARQL."""

from __future__ import annotations

from dataclasses import dataclass

from engine.ir.expressions import Call, Expression
from engine.ir.rules import Test
from engine.ir.spans import Span
from grammar.datalog.sources import SourceReader
from grammar.rule_text import MAX_ATOMS, MAX_NESTING, Stop

COMPARED = ("=", "!=", "<", "<=", ">", ">=")
ARITHMETIC = ("+", "-", "*", "/")
# As other languages write them.
_OTHERS = {"==": "equality is written =", "<>": "not equal is written !=", ":=": "equality is written =, and so is Z = X + 1",
           "<-": "put a space between < and a negative number"}
AGGREGATES = frozenset("count sum min max avg".split())
AN_EXPRESSION = "a variable, a constant or '('"


@dataclass(frozen=True, slots=True)
class Equality:
    """``left = right``: a test, or where a side is a variable that nothing else binds, its value (safety.py)."""

    left: Expression
    right: Expression
    span: Span


class ComparisonReader(SourceReader):
    """Reads comparisons; an expression has at most MAX_NESTING operators and brackets."""

    _parts = 0

    def starts_comparison(self) -> bool:
        """Whether what begins here is no atom but a comparison."""
        if self.at("(") or self.token.kind in ("number", "string", "variable") or self.at("-", "+"):
            return True
        operators = (*COMPARED, *ARITHMETIC, "==", "<>", ":=")
        return (self.token.kind in ("word", "iri", "name") and self.after.kind == "mark" and self.after.text in operators)

    def comparison(self) -> Test | Equality:
        """Two expressions with an operator between them."""
        start = self.token.start
        self._parts = 0
        left = self._sum()
        if not self.at(*COMPARED):
            self.fail("an operator", _OTHERS.get(self.token.text, "a comparison has one of = != < <= > >="))
        operator = self.next().text
        right = self._sum()
        if self.at(*COMPARED, "==", "<>"):
            self.fail("',' or '.'", "compare two at a time: 1 < X, X < 3")
        span = self.span(start)
        return Equality(left, right, span) if operator == "=" else Test(Call(operator, (left, right), span))

    def _sum(self) -> Expression:
        found = self._product()
        while self.at("+", "-"):
            found = self._call(self.next().text, found, self._product())
        return found

    def _product(self) -> Expression:
        found = self._operand()
        while self.at("*", "/"):
            found = self._call(self.next().text, found, self._operand())
        return found

    def _operand(self) -> Expression:
        if self.at("-", "+") and not self._signed():
            self._count()
            return Call(f"U{self.next().text}", (self._operand(),))
        if self.take("("):
            self._count()
            inner = self._sum()
            self.expect(")")
            return inner
        if not self.starts_term():
            self.fail(AN_EXPRESSION, "aggregates are not in this language" if self.at("#") else None)
        if self.token.kind in ("word", "name", "iri") and self.after.text in ("(", "{"):
            aggregate = self.token.text.lower() in AGGREGATES
            what = f"The aggregate {self.token.text}" if aggregate else f"The function {self.token.text}"
            self.report.error(f"{what} is not in this language.", self.here(),
                              hint=None if aggregate else "values are made by + - * / only")
            raise Stop
        return self.term()

    def _call(self, function: str, *args: Expression) -> Call:
        self._count()
        return Call(function, args)

    def check_length(self, parts: int) -> None:
        """Another part of a body that has so many comes next."""
        if parts >= MAX_ATOMS:
            self.report.error(f"A body has more than {MAX_ATOMS} atoms and comparisons.", self.here(), code="rule-too-long",
                              hint="derive a part of it by a rule of its own")
            raise Stop

    def _count(self) -> None:
        self._parts += 1
        if self._parts > MAX_NESTING:
            self.report.error(f"An expression has more than {MAX_NESTING} operators and brackets.", self.here(), code="nesting-too-deep",
                              hint="give a part of it a variable of its own: Z = X + 1")
            raise Stop

"""Random expressions: comparisons and functions of variables that hold terms of any kind, so that many are errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

NAMES = ("?a", "?b", "?c", "?d", "?e", "?n1")
EQUALITIES = ("=", "=", "!=")
ORDERS = ("<", ">", "<=", ">=")
UNARY = ("STR", "LANG", "DATATYPE", "UCASE", "STRLEN", "ABS", "CEIL", "FLOOR", "ROUND", "YEAR", "MONTH", "TZ", "xsd:integer", "xsd:string",
         "xsd:boolean", "xsd:double", "xsd:decimal", "-", "+", "IRI", "ENCODE_FOR_URI", "MD5")
TESTS = ("isIRI", "isBLANK", "isLITERAL", "isNUMERIC")
TEXT_TESTS = ("CONTAINS", "STRSTARTS", "STRENDS", "REGEX", "LANGMATCHES")
TEXTS = ('"a"', '"1"', '""', '"e"', '"en"')


class Conditions:
    """Makes expressions; `group` makes the pattern of EXISTS."""

    def __init__(self, random: Random, literals: Sequence[str], group: Callable[[int], str]) -> None:
        self.random = random
        self.constants = (*literals, ":a", ":b")
        self.group = group

    def test(self, depth: int) -> str:
        """What a FILTER tests: any expression."""
        kind = self.random.randrange(100)
        if depth and kind < 25:
            return f"({self.test(depth - 1)} {self.pick(('&&', '||', '||'))} {self.test(depth - 1)})"
        if depth and kind < 32:
            return f"!({self.test(depth - 1)})"
        if kind < 45:
            return f"({self.operand(depth)} {self.pick(EQUALITIES)} {self.operand(depth)})"
        if kind < 60:
            right = self.pick(self.constants) if self.chance(80) else self.operand(depth)
            return f"({self.operand(depth)} {self.pick(ORDERS)} {right})"
        if kind < 68:
            return f"{self.pick(('', '!'))}BOUND({self.pick(NAMES)})"
        if kind < 76:
            return f"{self.pick(TESTS)}({self.pick(NAMES)})"
        if kind < 82:
            return f"{self.pick(TEXT_TESTS)}({self.operand(depth)}, {self.pick(TEXTS)})"
        if kind < 90:
            choices = ", ".join(self.operand(0) for _ in range(self.random.randint(0, 2)))
            return f"({self.pick(NAMES)} {self.pick(('IN', 'NOT IN'))} ({choices}))"
        if kind < 94:
            return f"sameTerm({self.operand(0)}, {self.operand(0)})"
        return self.pick(NAMES)

    def value(self, depth: int) -> str:
        """An expression with a value of any kind, or none."""
        kind = self.random.randrange(100)
        if depth == 0 or kind < 20:
            return self.operand(0)
        if kind < 45:
            return f"({self.value(depth - 1)} {self.pick('+-*/')} {self.value(depth - 1)})"
        if kind < 75:
            return f"{self.pick(UNARY)}({self.value(depth - 1)})"
        if kind < 82:
            return f"IF({self.test(depth - 1)}, {self.value(depth - 1)}, {self.value(depth - 1)})"
        if kind < 89:
            return f"COALESCE({self.value(depth - 1)}, {self.value(depth - 1)})"
        if kind < 94:
            return f"CONCAT(STR({self.operand(0)}), {self.pick(TEXTS)})"
        return self.test(depth - 1)

    def exists(self, depth: int) -> str:
        """(NOT) EXISTS over a group that shares variables by chance."""
        return f"{self.pick(('', 'NOT '))}EXISTS {self.group(depth)}"

    def operand(self, depth: int) -> str:
        kind = self.random.randrange(100)
        if kind < 60:
            return self.pick(NAMES)
        return self.pick(self.constants) if kind < 90 or not depth else self.value(depth - 1)

    def chance(self, percent: int) -> bool:
        return self.random.randrange(100) < percent

    def pick(self, choices: Sequence[str]) -> str:
        return choices[self.random.randrange(len(choices))]

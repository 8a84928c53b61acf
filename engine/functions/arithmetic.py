"""Operators ``+ - * /`` and functions on numbers (SPARQL 1.1 sections 17.3 and 17.4.4), on tokens."""

import math
import operator
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from engine.functions import dates, numeric
from engine.functions.context import ExpressionError
from engine.functions.numeric import EXACT
from engine.functions.terms import Kind, Value, decode, number, numeric_value, promote

Binary = Callable[[Any, Any], Any]
Unary = Callable[[Any], Any]


def _binary(plain: Binary, exact: Binary, dated: Callable[[Value, Value], str]) -> Callable[[str, str], str]:
    """A binary operator: `plain` on integers and floats, `exact` on decimals, `dated` on dates and durations."""
    def calculate(first: str, second: str) -> str:
        left, right = decode(first), decode(second)
        if not (left.numeric and right.numeric):
            if left.kind >= Kind.DATETIME or right.kind >= Kind.DATETIME:
                return dated(left, right)
            raise ExpressionError("not a number")
        kind, one, two = promote(left, right)
        if kind is Kind.DECIMAL:
            return number(kind, exact(one, two))
        if kind is Kind.INTEGER:
            return number(kind, plain(one, two))
        return _float(kind, plain(one, two))
    return calculate


add = _binary(operator.add, EXACT.add, dates.add)
subtract = _binary(operator.sub, EXACT.subtract, dates.subtract)
multiply = _binary(operator.mul, EXACT.multiply, dates.multiply)


def divide(first: str, second: str) -> str:
    """``first / second``: of two integers a decimal; a zero divisor is an error for exact types only."""
    one, two = decode(first), decode(second)
    if one.kind is Kind.DURATION:
        return dates.divide(one, two)
    kind, dividend, divisor = promote(numeric_value(first), numeric_value(second))
    if kind <= Kind.DECIMAL:
        return number(Kind.DECIMAL, numeric.divide_decimals(dividend, divisor))
    return _float(kind, numeric.divide_floats(dividend, divisor))


def _float(kind: Kind, value: float) -> str:
    return number(kind, numeric.single(value) if kind is Kind.FLOAT else value)


def _unary(of_integer: Unary, of_decimal: Unary, of_float: Unary) -> Callable[[str], str]:
    """A unary function, by its implementation for each type of number."""
    def calculate(operand: str) -> str:
        kind, value, _ = numeric_value(operand)
        if kind is Kind.INTEGER:
            return number(kind, of_integer(value))
        return number(kind, of_decimal(value) if kind is Kind.DECIMAL else of_float(value))
    return calculate


def _same(value: Any) -> Any:
    return value


def _whole(rounding: Callable[[Any], int]) -> Callable[[str], str]:
    """CEIL or FLOOR. The sign of a float is kept: the ceiling of -0.5 is -0.0."""
    def of_float(value: float) -> float:
        return math.copysign(float(rounding(value)), value) if math.isfinite(value) else value
    return _unary(_same, lambda value: Decimal(rounding(value)), of_float)


plus = _unary(_same, _same, _same)
minus = _unary(operator.neg, Decimal.copy_negate, operator.neg)
absolute = _unary(abs, Decimal.copy_abs, abs)
rounded = _unary(_same, numeric.round_decimal, numeric.round_double)
ceiling, floor = _whole(math.ceil), _whole(math.floor)

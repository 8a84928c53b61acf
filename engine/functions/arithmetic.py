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


def add(first: str, second: str) -> str:
    return _calculate(first, second, operator.add, EXACT.add, dates.add)


def subtract(first: str, second: str) -> str:
    return _calculate(first, second, operator.sub, EXACT.subtract, dates.subtract)


def multiply(first: str, second: str) -> str:
    return _calculate(first, second, operator.mul, EXACT.multiply, dates.multiply)


def divide(first: str, second: str) -> str:
    """``first / second``: of two integers a decimal; a zero divisor is an error for exact types only."""
    one, two = decode(first), decode(second)
    if one.kind is Kind.DURATION:
        return dates.divide(one, two)
    kind, dividend, divisor = promote(numeric_value(first), numeric_value(second))
    if kind <= Kind.DECIMAL:
        return number(Kind.DECIMAL, numeric.divide_decimals(dividend, divisor))
    return _float(kind, numeric.divide_floats(dividend, divisor))


def minus(operand: str) -> str:
    value = numeric_value(operand)
    return number(value.kind, value.value.copy_negate() if value.kind is Kind.DECIMAL else -value.value)


def plus(operand: str) -> str:
    value = numeric_value(operand)
    return number(value.kind, value.value)


def absolute(operand: str) -> str:
    value = numeric_value(operand)
    return number(value.kind, value.value.copy_abs() if value.kind is Kind.DECIMAL else abs(value.value))


def rounded(operand: str) -> str:
    """ROUND: to the nearest whole number, ties towards positive infinity."""
    return _whole(operand, numeric.round_decimal, numeric.round_double)


def ceiling(operand: str) -> str:
    return _whole(operand, lambda value: Decimal(math.ceil(value)), numeric.ceil_double)


def floor(operand: str) -> str:
    return _whole(operand, lambda value: Decimal(math.floor(value)), numeric.floor_double)


def _whole(operand: str, of_decimal: Callable[[Any], Any], of_double: Callable[[float], float]) -> str:
    value = numeric_value(operand)
    if value.kind is Kind.INTEGER:
        return number(Kind.INTEGER, value.value)
    return number(value.kind, of_decimal(value.value) if value.kind is Kind.DECIMAL else of_double(value.value))


Operation = Callable[[Any, Any], Any]


def _calculate(first: str, second: str, plain: Operation, exact: Operation, dated: Callable[[Value, Value], str]) -> str:
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


def _float(kind: Kind, value: float) -> str:
    return number(kind, numeric.single(value) if kind is Kind.FLOAT else value)

"""RIF's built-ins on numbers and booleans (RIF-DTB 2nd edition, sections 4.5 and 4.6): XPath's operators, as SPARQL has them.

A decimal without fraction is written as the xs:integer that it is, so that the value has one token.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal

from engine.functions import arithmetic
from engine.functions.compare import compare_values
from engine.functions.errors import ExpressionError
from engine.functions.numeric import EXACT, single
from engine.functions.values import Kind, decode, number, numeric_value, promote

HOLDS = {"equal": (0,), "not-equal": (-1, 1, None), "less-than": (-1,), "less-than-or-equal": (-1, 0), "greater-than": (1,),
         "greater-than-or-equal": (1, 0)}
"""The outcomes of a comparison (None: one is NaN) at which a predicate holds, by the end of its name."""


def whole(token: str) -> str:
    """The token of a number, as an xs:integer where it is a decimal without fraction."""
    found = decode(token)
    if found.kind is Kind.DECIMAL and found.value == found.value.to_integral_value():
        return number(Kind.INTEGER, int(found.value))
    return token


def operation(apply: Callable[[str, str], str]) -> Callable[[str, str], str]:
    """An operator of SPARQL on numbers alone."""
    def calculate(first: str, second: str) -> str:
        numeric_value(first), numeric_value(second)
        return whole(apply(first, second))
    return calculate


def integer_divide(first: str, second: str) -> str:
    """op:numeric-integer-divide: the quotient without its fraction."""
    kind, one, two = promote(numeric_value(first), numeric_value(second))
    if not two:
        raise ExpressionError("division by zero")
    if kind >= Kind.FLOAT:
        if not math.isfinite(one) or two != two:
            raise ExpressionError("no integer is infinite or not a number")
        return number(Kind.INTEGER, math.trunc(one / two))
    return number(Kind.INTEGER, _quotient(one, two))


def _quotient(one: Decimal | int, two: Decimal | int) -> int:
    """Towards zero, exactly."""
    above, below = one.as_integer_ratio()
    over, under = two.as_integer_ratio()
    found = abs(above * under) // abs(below * over)
    return found if (one < 0) == (two < 0) else -found


def modulo(first: str, second: str) -> str:
    """op:numeric-mod: what a division leaves, with the sign of the dividend."""
    kind, one, two = promote(numeric_value(first), numeric_value(second))
    if kind >= Kind.FLOAT:
        if not two or not math.isfinite(one) or two != two:
            return number(kind, math.nan)
        rest = math.fmod(one, two)
        return number(kind, single(rest) if kind is Kind.FLOAT else rest)
    if not two:
        raise ExpressionError("division by zero")
    quotient = _quotient(one, two)
    if kind is Kind.INTEGER:
        return number(kind, one - two * quotient)
    return whole(number(kind, EXACT.subtract(one, EXACT.multiply(two, Decimal(quotient)))))


def integer_modulo(first: str, second: str) -> str:
    """op:numeric-mod of integers."""
    if not (_is_integer(first) and _is_integer(second)):
        raise ExpressionError("not an integer")
    return modulo(first, second)


def _is_integer(token: str) -> bool:
    found = decode(token)
    return found.kind is Kind.INTEGER or (found.kind is Kind.DECIMAL and found.value == found.value.to_integral_value())


def compared(name: str) -> Callable[[str, str], bool]:
    """A comparison of numbers (a key of HOLDS)."""
    holds = HOLDS[name]
    return lambda first, second: compare_values(numeric_value(first), numeric_value(second)) in holds


def truth(token: str) -> bool:
    """The value of a boolean argument. Raises ExpressionError."""
    found = decode(token)
    if found.kind is not Kind.BOOLEAN:
        raise ExpressionError("not a boolean")
    return bool(found.value)


FUNCTIONS: dict[str, Callable[..., str | bool]] = {
    "numeric-add": operation(arithmetic.add), "numeric-subtract": operation(arithmetic.subtract),
    "numeric-multiply": operation(arithmetic.multiply), "numeric-divide": operation(arithmetic.divide),
    "numeric-integer-divide": integer_divide, "numeric-mod": modulo, "numeric-integer-mod": integer_modulo,
    "not": lambda token: not truth(token),
}
PREDICATES: dict[str, Callable[..., bool]] = {
    **{f"numeric-{name}": compared(name) for name in HOLDS},
    "boolean-equal": lambda first, second: truth(first) == truth(second),
    "boolean-less-than": lambda first, second: truth(first) < truth(second),
    "boolean-greater-than": lambda first, second: truth(first) > truth(second),
}

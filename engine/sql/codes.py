"""What plans hand to the Python functions of worker/functions.py, as text of a SQL literal and back: JSON, which says nothing but data.

An expression is a token (a string), ``["?", name]``, or ``[function, place in the statement's text or null, argument, ...]``.

>>> from engine.ir.terms import Constant, Variable
>>> write_call(Call("STRLEN", (Variable("x"),)), ["x"], [], "q", 0)
'[["STRLEN",null,["?","x"]],["x"],[],"q",0]'
>>> read_call(write_call(Constant("<a>"), [], [], "q", 0)).expression
Constant(token='<a>')
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from engine.ir.expressions import Call, Expression
from engine.ir.spans import Span
from engine.ir.terms import Constant, Variable

_VARIABLE = "?"


@dataclass(frozen=True, slots=True)
class RowCall:
    """An expression over rows: `names` are those of the tokens of a row, in order; `solution` of them tell rows apart for RAND, UUID and
    BNODE, which `identity` seeds; NOW() is the evaluation time and `label_offset` (ms)."""

    expression: Expression
    names: tuple[str, ...]
    solution: tuple[str, ...]
    identity: str
    label_offset: int


@dataclass(frozen=True, slots=True)
class GroupCall:
    """An aggregate over a group's tokens."""

    function: str
    distinct: bool
    separator: str


def write_call(expression: Expression, names: Sequence[str], solution: Sequence[str], identity: str, label_offset: int) -> str:
    """The text of a `RowCall`."""
    return _text([_parts(expression), list(names), list(solution), identity, label_offset])


def write_aggregate(function: str, distinct: bool, separator: str) -> str:
    """The text of a `GroupCall`."""
    return _text([function, distinct, separator])


def read_call(code: str) -> RowCall:
    """Undo `write_call`. Raises ValueError for any other text."""
    match json.loads(code):
        case [expression, [*names], [*solution], str() as identity, int() as label_offset]:
            return RowCall(_expression(expression), _texts(names), _texts(solution), identity, label_offset)
    raise ValueError("no call of an expression")


def read_aggregate(code: str) -> GroupCall:
    """Undo `write_aggregate`. Raises ValueError for any other text."""
    match json.loads(code):
        case [str() as function, bool() as distinct, str() as separator]:
            return GroupCall(function, distinct, separator)
    raise ValueError("no call of an aggregate")


def _text(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def _parts(expression: Expression) -> object:
    match expression:
        case Constant(token=token):
            return token
        case Variable(name=name):
            return [_VARIABLE, name]
        case Call(function=function, args=args, span=span):
            return [function, span and span.start, *map(_parts, args)]
    raise TypeError(f"no expression over a row: {type(expression).__name__}")


def _expression(parts: Any) -> Expression:
    match parts:
        case str() as token:
            return Constant(token)
        case ["?", str() as name]:
            return Variable(name)
        case [str() as function, None, *args]:
            return Call(function, tuple(map(_expression, args)))
        case [str() as function, int() as place, *args]:
            return Call(function, tuple(map(_expression, args)), span=Span("", place, place))
    raise ValueError("no expression")


def _texts(values: list[Any]) -> tuple[str, ...]:
    if not all(isinstance(value, str) for value in values):
        raise ValueError("no list of texts")
    return tuple(values)

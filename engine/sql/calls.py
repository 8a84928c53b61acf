"""Calls of the Python functions of worker/functions.py from SQL: how columns are spelled, and what an expression depends on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from engine.functions.library import FUNCTIONS
from engine.functions.typed import Kinds
from engine.ir.expressions import Call, Expression
from engine.ir.terms import Variable
from engine.sql.functions.values import Typed

VOLATILE = frozenset(name for name, function in FUNCTIONS.items() if function.volatile)
ROWWISE = frozenset(name for name, function in FUNCTIONS.items() if function.rowwise)


@dataclass(frozen=True, slots=True)
class Columns:
    """How a relation's variables are spelled: `token` gives the column (None: there is none) of a token, or of a truth value for
    those in `booleans`; `typed` ones have companions, of these kinds. `at` is the column of T; `row` are the variables that tell rows
    apart. The values of the expressions in `steps` stand in columns of their own."""

    token: Callable[[Variable], str | None]
    typed: Mapping[Variable, Kinds]
    booleans: frozenset[Variable]
    at: str | None
    row: tuple[Variable, ...]
    steps: Mapping[Expression, Typed] = field(default_factory=dict)


def functions_in(expression: Expression) -> frozenset[str]:
    """Names of the functions an expression calls."""
    if isinstance(expression, Call):
        return frozenset((expression.function,)).union(*map(functions_in, expression.args))
    return frozenset()


def is_volatile(expression: Expression) -> bool:
    """Whether the value depends on the evaluation time."""
    return bool(functions_in(expression) & VOLATILE)


def is_rowwise(expression: Expression) -> bool:
    """Whether the value depends on the whole row: RAND, UUID, BNODE."""
    return bool(functions_in(expression) & ROWWISE)

"""Expressions -> SQL: comparisons with constants and logic run on the typed columns, everything else in one Python call.

SQL's three-valued logic is SPARQL's error logic with NULL for an error, so lowered parts and calls combine freely under
``&& || !``. The tables below are the documentation: LOWERED has a SQL form; what is not in it calls engine/functions.
"""

from __future__ import annotations

import base64
import pickle
from collections.abc import Callable
from math import copysign, inf, isfinite
from struct import pack, unpack

from engine.functions.typed import Kind, typed
from engine.ir import expressions as ex
from engine.ir.expressions import Call, Expression
from engine.ir.spans import Span
from engine.ir.terms import Constant, Variable
from engine.plan.nodes import Filter, Plan, inputs
from engine.spark.sql.dialect import Dialect

EXACT = (Kind.INTEGER, Kind.DECIMAL)
NUMERIC = (*EXACT, Kind.FLOAT, Kind.DOUBLE)
MOMENTS = (Kind.DATETIME, Kind.DATETIME_LOCAL)
UNDECIDED = (Kind.OTHER, Kind.ILL, Kind.HARD)
COMPARISONS = {"=": "=", "!=": "<>", "<": "<", ">": ">", "<=": "<=", ">=": ">="}
MIRRORED = {"=": "=", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
FOURTEEN_HOURS = 14 * 3600 * 1_000_000
VOLATILE = frozenset({"NOW", "RAND", "UUID", "STRUUID", "BNODE"})
ROWWISE = frozenset({"RAND", "UUID", "STRUUID", "BNODE"})


class Columns:
    """How a relation's variables are spelled: `token(v)`, typed companions, boolean marks."""

    def __init__(self, token: Callable[[Variable], str | None], typed: frozenset[Variable], booleans: frozenset[Variable],
                 at: str | None, row: tuple[Variable, ...]) -> None:
        self.token, self.typed, self.booleans, self.at, self.row = token, typed, booleans, at, row


def encode(payload: object) -> str:
    """Our own plan pieces as text for a SQL literal."""
    return base64.b64encode(pickle.dumps(payload)).decode()


def textless(expression: Expression) -> Expression:
    """The expression with its places but without the statement's text, which no worker needs."""
    if isinstance(expression, Call):
        span = expression.span and Span("", expression.span.start, expression.span.end)
        return Call(expression.function, tuple(map(textless, expression.args)), span)
    return expression


def functions_in(expression: Expression) -> frozenset[str]:
    """Names of the functions an expression calls."""
    if isinstance(expression, Call):
        return frozenset((expression.function,)).union(*map(functions_in, expression.args))
    return frozenset()


def is_volatile(expression: Expression) -> bool:
    """Whether the value depends on the evaluation time."""
    return bool(functions_in(expression) & VOLATILE)


def comparable_variables(expression: Expression) -> frozenset[Variable]:
    """Variables compared with a constant: the ones whose typed columns a scan should carry."""
    match expression:
        case Call(function=function, args=(Variable() as v, Constant())) if function in COMPARISONS:
            return frozenset((v,))
        case Call(function=function, args=(Constant(), Variable() as v)) if function in COMPARISONS:
            return frozenset((v,))
        case Call(args=args):
            return frozenset().union(*map(comparable_variables, args))
    return frozenset()


class Lowering:
    """Lowers the expressions of one query; `identity` seeds RAND and UUID, `label_offset` makes NOW() the label of T."""

    def __init__(self, dialect: Dialect, identity: str, label_offset: int) -> None:
        self.dialect = dialect
        self.context = (identity, label_offset)

    def condition(self, expression: Expression, columns: Columns) -> str:
        """A SQL boolean: true, false, or NULL for an error."""
        return self.plain(expression, columns) or self._call("tw_test", expression, columns)

    def value(self, expression: Expression, columns: Columns) -> str:
        """A SQL string: the value's token, or NULL for an error."""
        match expression:
            case Constant(token=token):
                return self.dialect.quote(token)
            case Variable() if expression not in columns.booleans:
                return columns.token(expression) or "CAST(NULL AS STRING)"
            case Variable() | Call(function="!", args=(Variable(),)) if ex.variables_of(expression) <= columns.booleans:
                return _boolean_token(self.condition(expression, columns))
        return self._call("tw_eval", expression, columns)

    def plain(self, expression: Expression, columns: Columns) -> str | None:
        """The SQL form without a Python call, or None where there is none for the whole expression's own operator."""
        match expression:
            case Variable() if expression in columns.booleans:
                return columns.token(expression)
            case Call(function="&&" | "||" as operator, args=args):
                word = " AND " if operator == "&&" else " OR "
                return "(" + word.join(self.condition(a, columns) for a in args) + ")"
            case Call(function="!", args=(inner,)):
                return f"(NOT {self.condition(inner, columns)})"
            case Call(function="BOUND", args=(Variable() as v,)):
                return f"({columns.token(v) or 'NULL'} IS NOT NULL)"
            case Call(function="ISIRI" | "ISURI" | "ISBLANK" | "ISLITERAL" as test, args=(Variable() as v,)):
                first = {"ISBLANK": "_", "ISLITERAL": '"'}.get(test, "<")
                return f"(substr({columns.token(v) or 'NULL'}, 1, 1) = '{first}')"
            case Call(function="SAMETERM", args=(Variable() as a, Variable() | Constant() as b)):
                return f"({self.value(a, columns)} = {self.value(b, columns)})"
            case Call(function=operator, args=(left, right)) if operator in COMPARISONS:
                return self._comparison(operator, left, right, columns)
            case Call(function="IN" | "NOT IN" as word, args=(Variable() as v, *choices)) if choices and all(map(_is_iri, choices)):
                tokens = ", ".join(self.value(c, columns) for c in choices)
                return f"({columns.token(v) or 'CAST(NULL AS STRING)'} {word} ({tokens}))"
        return None

    def _comparison(self, operator: str, left: Expression, right: Expression, columns: Columns) -> str | None:
        if isinstance(left, Constant) and isinstance(right, Variable):
            left, right, operator = right, left, MIRRORED[operator]
        if not isinstance(left, Variable):
            return None
        column = columns.token(left)
        if column is None:
            return "CAST(NULL AS BOOLEAN)"
        if operator in ("=", "!=") and _is_iri(right):
            return f"({column} {COMPARISONS[operator]} {self.value(right, columns)})"
        if isinstance(right, Constant) and left in columns.typed:
            return _typed_comparison(operator, column, right.token)
        if operator in ("=", "!=") and isinstance(right, Variable) and columns.token(right) and self.dialect.case_short_circuits:
            other = columns.token(right)
            same = f"{column} {COMPARISONS[operator]} {other}"
            call = self._call("tw_test", Call(operator, (left, right)), columns)
            return f"(CASE WHEN substr({column}, 1, 1) <> '\"' OR substr({other}, 1, 1) <> '\"' THEN {same} ELSE {call} END)"
        return None

    def _call(self, function: str, expression: Expression, columns: Columns) -> str:
        names = sorted(v for v in ex.variables_of(expression) if columns.token(v) is not None)
        solution: list[str] = []
        if functions_in(expression) & ROWWISE:
            own = [v for v in columns.row if columns.token(v) is not None]
            names, solution = sorted({*names, *own}), [v.name for v in own]
        code = encode((textless(expression), [v.name for v in names], solution, *self.context))
        tokens = [_boolean_token(str(columns.token(v))) if v in columns.booleans else str(columns.token(v)) for v in names]
        return self.dialect.call(function, code, columns.at or "CAST(0 AS BIGINT)", tokens)


def _is_iri(expression: Expression) -> bool:
    return isinstance(expression, Constant) and expression.token.startswith("<")


def _boolean_token(truth: str) -> str:
    boolean = '"^^<http://www.w3.org/2001/XMLSchema#boolean>'
    return f"(CASE WHEN {truth} THEN '\"true{boolean}' WHEN NOT {truth} THEN '\"false{boolean}' END)"


def _typed_comparison(operator: str, column: str, token: str) -> str | None:
    """Compare typed columns with a number or dateTime constant (SPARQL 1.1 section 17.3; other kinds are type errors)."""
    kind, number, micros = typed(token)
    sql = COMPARISONS[operator]
    if kind in (*EXACT, Kind.DOUBLE) and number is not None and isfinite(number):
        kinds = ", ".join(str(int(k)) for k in NUMERIC if k != Kind.FLOAT or kind == Kind.DOUBLE)
        same = f"WHEN {column}_k IN ({kinds}) THEN {_number_test(column, sql, number)}"
        if kind in EXACT:  # a float is compared with an exact number in single precision
            same += f" WHEN {column}_k = {int(Kind.FLOAT)} THEN {_number_test(column, sql, _single(number))}"
    elif kind in MOMENTS and micros is not None:
        other = Kind.DATETIME_LOCAL if kind == Kind.DATETIME else Kind.DATETIME
        same = (f"WHEN {column}_k = {int(kind)} THEN {column}_m {sql} {micros} "
                f"WHEN {column}_k = {int(other)} AND {column}_m + {FOURTEEN_HOURS} < {micros} THEN {_decided(operator, '<')} "
                f"WHEN {column}_k = {int(other)} AND {column}_m - {FOURTEEN_HOURS} > {micros} THEN {_decided(operator, '>')}")
    else:
        return None
    if operator in ("=", "!="):
        others = ", ".join(str(int(k)) for k in Kind if k not in (*UNDECIDED, *(NUMERIC if kind in NUMERIC else MOMENTS)))
        same += f" WHEN {column}_k IN ({others}) THEN {'TRUE' if operator == '!=' else 'FALSE'}"
    return f"(CASE {same} END)"


def _number_test(column: str, operator: str, number: float) -> str:
    return f"({column}_n {operator} CAST('{_spelled(number)}' AS DOUBLE))"


def _spelled(number: float) -> str:
    return "Infinity" if number == inf else "-Infinity" if number == -inf else repr(number)


def _single(number: float) -> float:
    """The nearest single-precision number."""
    try:
        return float(unpack("f", pack("f", number))[0])
    except OverflowError:
        return copysign(inf, number)


def _decided(operator: str, actual: str) -> str:
    return "TRUE" if operator == "!=" or operator.rstrip("=") == actual else "FALSE"


def conditions(plan: Plan) -> list[Expression]:
    """Every filter condition of a plan."""
    own = [plan.condition] if isinstance(plan, Filter) else []
    return own + [c for below in inputs(plan) for c in conditions(below)]

"""Typed columns compared with constants (SPARQL 1.1 section 17.3; constants of other kinds are type errors)."""

from __future__ import annotations

from math import isfinite

from engine.functions.numeric import single
from engine.functions.typed import Kind, Kinds, typed
from engine.sql.dialect import Dialect
from engine.sql.functions import strings
from engine.sql.functions.comparisons import EXACT, FOURTEEN_HOURS, OPERATORS, decided
from engine.sql.functions.values import BOOLEAN, FLOAT, HARD, LANG, MOMENT, NUMERIC, OPAQUE, STRING, double, listed


def with_constant(dialect: Dialect, operator: str, column: str, token: str, kinds: Kinds) -> str | None:
    """A SQL boolean: a column with companions of these kinds against a constant, None for constants that SQL cannot compare."""
    return _with_value(operator, column, token, dialect.undecided("BOOLEAN"), kinds) or _with_text(dialect, operator, column, token)


def _with_value(operator: str, column: str, token: str, undecided: str, kinds: Kinds) -> str | None:
    """A column against a number or a dateTime, `undecided` for values that SQL does not decide: None for other constants."""
    kind, number, micros = typed(token)
    if kind in (*EXACT, Kind.DOUBLE) and number is not None and isfinite(number):
        sql = OPERATORS[operator]
        alike = NUMERIC if kind == Kind.DOUBLE else NUMERIC - {FLOAT}
        if kinds <= alike:
            return _number_test(column, sql, number)
        cases = _when(column, kinds & alike, _number_test(column, sql, number))
        if kind in EXACT:   # a float is compared with an exact number in single precision
            cases += _when(column, kinds & {FLOAT}, _number_test(column, sql, single(number)))
    elif kind in MOMENT and micros is not None:
        other = Kind.DATETIME_LOCAL if kind == Kind.DATETIME else Kind.DATETIME
        cases = [_moments_decided(column, int(kind), int(other), operator, micros)] if kinds & MOMENT else []
    else:
        return None
    if operator in ("=", "!="):
        others = kinds - OPAQUE - {HARD} - (NUMERIC if kind in NUMERIC else MOMENT)
        cases += _when(column, others, "TRUE" if operator == "!=" else "FALSE")
    cases += _when(column, kinds & {HARD}, undecided)
    return f"(CASE {' '.join(cases)} END)" if cases else "CAST(NULL AS BOOLEAN)"


def _when(column: str, kinds: Kinds, truth: str) -> list[str]:
    """The case of a column of some kinds, if there are any."""
    return [f"WHEN {column}_k IN ({listed(kinds)}) THEN {truth}"] if kinds else []


def _number_test(column: str, operator: str, number: float) -> str:
    return f"({column}_n {operator} {double(number)})"


def _with_text(dialect: Dialect, operator: str, column: str, token: str) -> str | None:
    """A column against a string, tagged string or boolean: None for other constants."""
    kind, sql = typed(token)[0], OPERATORS[operator]
    equality = operator in ("=", "!=")
    comparable = "IS NOT NULL" if kind == LANG else f"NOT IN ({listed(OPAQUE)})"
    unequal = f"WHEN {column}_k {comparable} THEN {'FALSE' if operator == '=' else 'TRUE'}"
    if kind == BOOLEAN and token[1] in "tf10":
        truth = f"CAST(substr({column}, 2, 1) IN ('t', '1') AS INT) {sql} {int(token[1] in 't1')}"
        return f"(CASE WHEN {column}_k = {BOOLEAN} THEN {truth} {unequal if equality else ''} END)"
    if kind in (STRING, LANG) and equality:
        return f"(CASE WHEN {column} = {dialect.quote(token)} THEN {'TRUE' if operator == '=' else 'FALSE'} {unequal} END)"
    if kind == STRING and "\\" not in token:
        return f"(CASE WHEN {column}_k = {STRING} THEN {strings.body(dialect, column)} {sql} {dialect.quote(token[1:-1])} END)"
    return None


def _moments_decided(column: str, kind: int, other: int, operator: str, micros: int) -> str:
    """A dateTime column against a constant, 14 hours apart where one of them has no zone."""
    return (f"WHEN {column}_k = {kind} THEN {column}_m {OPERATORS[operator]} {micros} "
            f"WHEN {column}_k = {other} AND {column}_m + {FOURTEEN_HOURS} < {micros} THEN {decided(operator, '<')} "
            f"WHEN {column}_k = {other} AND {column}_m - {FOURTEEN_HOURS} > {micros} THEN {decided(operator, '>')}")

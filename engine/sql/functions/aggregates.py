"""Aggregates as SQL (SPARQL 1.1 section 18.5.1): what is gathered of a group, and the token made of it.

On a column with typed companions SUM, AVG, MIN and MAX are SQL. A group that SQL does not decide (values of kind HARD, single
precision, a mix of doubles and exact numbers, extremes of rare types) ends the plan, which runs again with `engine/functions` over
lists of tokens. So is everything without companions. Sums are exact: integers and decimals of six fraction digits as SQL decimals,
doubles one after the other in the order of their tokens.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from engine.functions.typed import Kind
from engine.ir.expressions import Aggregate
from engine.ir.quoting import quote
from engine.sql.dialect import Dialect
from engine.sql.functions import strings
from engine.sql.functions.values import (
    DECIMAL, DOUBLE, DOUBLE_END, HARD, INTEGER, LANG, LOCAL, MOMENTS, NUMBERS, STRING, ZERO, ZONED, decimal_token,
    integer_token)

LARGEST_DOUBLE = "1.7976931348623157e308"
Calls = Callable[[str, list[str]], str]
"""SQL that applies an operator of engine/functions to tokens."""


@dataclass(frozen=True, slots=True)
class Gathered:
    """`columns` are aggregates over the group, named; `token` is the answer over these names, `count` its number where it is one."""

    columns: dict[str, str]
    token: str
    count: str | None = None


def count(dialect: Dialect, call: Aggregate, counted: str, name: str) -> Gathered:
    """COUNT of what `counted` is not null for."""
    number = f"{name}_c"
    return Gathered({number: f"count({'DISTINCT ' if call.distinct else ''}{counted})"}, integer_token(number), number)


def sample(dialect: Dialect, call: Aggregate, column: str, name: str) -> Gathered:
    """SAMPLE: the least token."""
    return Gathered({f"{name}_s": f"min({column})"}, f"{name}_s")


def group_concat(dialect: Dialect, call: Aggregate, column: str, name: str) -> Gathered:
    """GROUP_CONCAT in the order of tokens. Lexical forms are escaped character by character, so that they are joined as they stand."""
    text = f"CASE WHEN substr({column}, 1, 1) = '\"' THEN {strings.escaped_lexical(dialect, column)} ELSE substr({column}, 2, " \
           f"length({column}) - 2) END"
    rows = dialect.gathered(dialect.struct(c=column, x=text), f"{column} IS NOT NULL", call.distinct)
    joined = dialect.joined(dialect.each(dialect.sorted(rows), "x"), dialect.quote(quote(call.separator)[1:-1]))
    columns = {f"{name}_0": "count(here)", f"{name}_v": f"count({column})", f"{name}_t": joined,
               f"{name}_b": f"count(CASE WHEN substr({column}, 1, 1) = '_' THEN 1 END)"}
    return Gathered(columns, f"CASE WHEN {name}_v = {name}_0 AND {name}_b = 0 THEN '\"' || coalesce({name}_t, '') || '\"' END")


def by_function(dialect: Dialect, code: str, column: str, name: str) -> Gathered:
    """Any aggregate: the group's tokens, and one call of engine/functions."""
    return Gathered({f"{name}_l": dialect.collect(column, "here")}, dialect.aggregate(code, f"{name}_l"))


def total(dialect: Dialect, call: Aggregate, column: str, name: str, calls: Calls) -> Gathered:
    """SUM and AVG."""
    k, n = f"{column}_k", f"{column}_n"
    distinct = "DISTINCT " if call.distinct else ""
    doubles = dialect.gathered(dialect.struct(c=column, n=n), f"{k} = {DOUBLE}", call.distinct)
    columns = {
        "0": "count(here)", "k": f"max({k})", "j": f"min({k})", "v": f"count(CASE WHEN {k} {NUMBERS} THEN 1 END)",
        "i": f"sum({distinct}CASE WHEN {k} = {INTEGER} THEN CAST({n} AS DECIMAL(18, 0)) END)",
        "d": f"sum({distinct}CASE WHEN {k} = {DECIMAL} AND abs({n}) < 1e9 THEN CAST({n} AS DECIMAL(18, 6)) END)",
        "x": f"bool_or(CASE WHEN {k} <> {DECIMAL} THEN FALSE WHEN abs({n}) < 1e9 "
             f"THEN CAST(CAST({n} AS DECIMAL(18, 6)) AS DOUBLE) <> {n} ELSE TRUE END)",
        "f": dialect.sum_in_order(dialect.each(dialect.sorted(doubles), "n"))}
    if call.distinct:
        columns |= {"u": f"count(DISTINCT {column})", "w": f"count(DISTINCT {n})"}
    a = f"{name}_"
    summed = calls("U+", [f"('\"' || CAST({a}f AS STRING) || {DOUBLE_END})"])
    unequal = f"WHEN {a}k <= {DECIMAL} AND {a}u <> {a}w THEN {dialect.undecided('STRING')} " if call.distinct else ""
    token = (f"CASE WHEN {a}k = {HARD} THEN {dialect.undecided('STRING')} WHEN {a}v < {a}0 THEN NULL WHEN {a}0 = 0 THEN {ZERO} {unequal}"
             f"WHEN {a}k = {INTEGER} THEN {integer_token(a + 'i')} "
             f"WHEN {a}k = {DECIMAL} AND NOT {a}x THEN {decimal_token(f'coalesce({a}i, 0) + {a}d')} "
             f"WHEN {a}j = {DOUBLE} AND abs({a}f) <= {LARGEST_DOUBLE} THEN {summed} ELSE {dialect.undecided('STRING')} END")
    if call.function == "AVG":
        rows = a + ("u" if call.distinct else "0")
        token = f"CASE WHEN {a}0 = 0 THEN {ZERO} ELSE {calls('/', [token, integer_token(rows)])} END"
    return Gathered({a + part: sql for part, sql in columns.items()}, token)


def extreme(dialect: Dialect, call: Aggregate, column: str, name: str) -> Gathered:
    """MIN and MAX in the order of ORDER BY; among equal extremes the least token."""
    k, n, m = (f"{column}_{suffix}" for suffix in "knm")
    highest, sign = (True, "-") if call.function == "MAX" else (False, "")
    best = "max" if highest else "min"
    zone = k if highest else f"-{k}"
    text = strings.body(dialect, column)
    parts = {
        "b": f"{best}(CASE WHEN {k} = {int(Kind.BLANK)} THEN {dialect.struct(x=column, c=column)} END)",
        "r": f"{best}(CASE WHEN {k} = {int(Kind.IRI)} THEN {dialect.struct(x=f'substr({column}, 2, length({column}) - 2)', c=column)} END)",
        "n": f"min(CASE WHEN {k} {NUMBERS} THEN {dialect.struct(x=f'{sign}{n}', c=column)} END)",
        "m": f"min(CASE WHEN {k} {MOMENTS} THEN {dialect.struct(x=f'{sign}{m}', z=zone, c=column)} END)",
        "t": f"{best}(CASE WHEN {k} IN ({STRING}, {LANG}) THEN {dialect.struct(x=text, z=dialect.after_quote(column), c=column)} END)"}
    known = ", ".join(str(kind) for kind in (int(Kind.BLANK), int(Kind.IRI), STRING, LANG, INTEGER, DECIMAL, 8, DOUBLE, ZONED, LOCAL))
    a = f"{name}_"
    columns = {a + part: sql for part, sql in parts.items()} | {
        f"{a}0": "count(here)", f"{a}v": f"count({column})", f"{a}x": f"bool_or({k} NOT IN ({known}))"}
    order = [f"{a}{part}.c" for part in parts]
    found = f"coalesce({', '.join(reversed(order) if highest else order)})"
    return Gathered(columns, f"CASE WHEN {a}v < {a}0 THEN NULL WHEN {a}x THEN {dialect.undecided('STRING')} ELSE {found} END")


def number_of(count_column: str) -> list[str]:
    """The typed companions of a count."""
    return [f"CAST({INTEGER} AS TINYINT)", f"CAST({count_column} AS DOUBLE)", "CAST(NULL AS BIGINT)"]

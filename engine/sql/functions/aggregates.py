"""Aggregates as SQL (SPARQL 1.1 section 18.5.1): what is gathered of a group, and the token made of it.

On a column with typed companions SUM, AVG, MIN and MAX are SQL. A group that SQL does not decide (values of kind HARD, single
precision, a mix of doubles and exact numbers, extremes of rare types) ends the plan, which runs again with `engine/functions` over
lists of tokens. So is everything without companions. Sums are exact: integers and decimals of six fraction digits as SQL decimals,
doubles one after the other in the order of their tokens.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from engine.functions.typed import Kind, Kinds
from engine.ir.expressions import Aggregate
from engine.ir.terms import quote
from engine.sql.dialect import Dialect
from engine.sql.functions import strings
from engine.sql.functions.values import (DECIMAL, DOUBLE, DOUBLE_END, HARD, INTEGER, LANG, MOMENT, MOMENTS, NULL_STRING, NUMBERS, NUMERIC,
                                         STRING, TEXT, ZERO, decimal_token, integer_token, listed)

LARGEST_DOUBLE = "1.7976931348623157e308"
COUNTS = "counts"   # numbers of parts, which are added; 0 where there are none
Calls = Callable[[str, list[str]], str]
"""SQL that applies an operator of engine/functions to tokens."""


@dataclass(frozen=True, slots=True)
class Gathered:
    """`columns` are aggregates over the group, named; `token` is the answer over these names, `count` its number where it is one. Where
    parts of a group have been gathered these are merged by the functions `merges`, by name; columns without one cannot be merged. Where the
    answer is `certain` every group that has rows has one."""

    columns: dict[str, str]
    token: str
    count: str | None = None
    merges: Mapping[str, str] = field(default_factory=dict)
    certain: bool = False

    def merged(self) -> dict[str, str] | None:
        """The columns of a group over those of its parts, None where these do not give them."""
        if not self.columns.keys() <= self.merges.keys():
            return None
        return {name: f"CAST(coalesce(sum({name}), 0) AS BIGINT)" if self.merges[name] == COUNTS else f"{self.merges[name]}({name})"
                for name in self.columns}


def count(call: Aggregate, counted: str, name: str) -> Gathered:
    """COUNT of what `counted` is not null for."""
    number = f"{name}_c"
    return Gathered({number: f"count({'DISTINCT ' if call.distinct else ''}{counted})"}, integer_token(number), number,
                    {} if call.distinct else {number: COUNTS}, certain=True)


def sample(column: str, name: str, certain: bool) -> Gathered:
    """SAMPLE: the least token. `certain`: every row has a value."""
    return Gathered({f"{name}_s": f"min({column})"}, f"{name}_s", None, {f"{name}_s": "min"}, certain)


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


def total(dialect: Dialect, call: Aggregate, column: str, name: str, kinds: Kinds, calls: Calls) -> Gathered:
    """SUM and AVG of a column of these kinds."""
    k, n, a = f"{column}_k", f"{column}_n", f"{name}_"
    distinct, undecided = "DISTINCT " if call.distinct else "", dialect.undecided("STRING")
    columns = {"0": "count(here)", "v": f"count(CASE WHEN {k} {NUMBERS} THEN 1 END)"}
    cases = [(f"{a}v < {a}0", "NULL"), (f"{a}0 = 0", ZERO)]
    if kinds & NUMERIC != {INTEGER} or HARD in kinds:
        columns["k"] = f"max({k})"
        cases.insert(0, (f"{a}k = {HARD}", undecided))
    if call.distinct:
        columns |= {"u": f"count(DISTINCT {column})", "w": f"count(DISTINCT {n})"}
        cases.append((f"{a}k <= {DECIMAL} AND {a}u <> {a}w" if "k" in columns else f"{a}u <> {a}w", undecided))
    if INTEGER in kinds:
        columns["i"] = f"sum({distinct}CASE WHEN {k} = {INTEGER} THEN CAST({n} AS DECIMAL(18, 0)) END)"
        cases.append((f"{a}k = {INTEGER}" if "k" in columns else "TRUE", integer_token(a + "i")))
    if DECIMAL in kinds:
        columns |= {"d": f"sum({distinct}CASE WHEN {k} = {DECIMAL} AND abs({n}) < 1e9 THEN CAST({n} AS DECIMAL(18, 6)) END)",
                    "x": f"bool_or(CASE WHEN {k} <> {DECIMAL} THEN FALSE WHEN abs({n}) < 1e9 "
                         f"THEN round({n} * 1e6) / 1e6 <> {n} ELSE TRUE END)"}    # more digits than the sum has
        cases.append((f"{a}k = {DECIMAL} AND NOT {a}x", decimal_token(f"coalesce({a}i, 0) + {a}d" if INTEGER in kinds else f"{a}d")))
    if DOUBLE in kinds:
        doubles = dialect.gathered(dialect.struct(c=column, n=n), f"{k} = {DOUBLE}", call.distinct)
        columns |= {"j": f"min({k})", "f": dialect.sum_in_order(dialect.each(dialect.sorted(doubles), "n"))}
        summed = calls("U+", [f"('\"' || CAST({a}f AS STRING) || {DOUBLE_END})"])
        cases.append((f"{a}j = {DOUBLE} AND abs({a}f) <= {LARGEST_DOUBLE}", summed))
    token = f"CASE {' '.join(f'WHEN {condition} THEN {found}' for condition, found in cases)} ELSE {undecided} END"
    if call.function == "AVG":
        rows = a + ("u" if call.distinct else "0")
        token = f"CASE WHEN {a}0 = 0 THEN {ZERO} ELSE {calls('/', [token, integer_token(rows)])} END"
    merges = {} if call.distinct else {"0": COUNTS, "v": COUNTS, "k": "max", "i": "sum", "d": "sum", "x": "bool_or"}
    return Gathered({a + part: sql for part, sql in columns.items()}, token, None, {a + part: merge for part, merge in merges.items()})


def extreme(dialect: Dialect, call: Aggregate, column: str, name: str, kinds: Kinds, certain: bool) -> Gathered:
    """MIN and MAX of a column of these kinds, in the order of ORDER BY; among equal extremes the least token. `certain`: every row has a
    value."""
    k, n, m = (f"{column}_{suffix}" for suffix in "knm")
    highest, sign = (True, "-") if call.function == "MAX" else (False, "")
    best = "max" if highest else "min"
    zone = k if highest else f"-{k}"
    text = strings.body(dialect, column)
    blank, iri = int(Kind.BLANK), int(Kind.IRI)
    groups = {      # in their order, each with what its values are ordered by
        "b": (frozenset((blank,)), f"{best}(CASE WHEN {k} = {blank} THEN {column} END)"),
        "r": (frozenset((iri,)), f"{best}(CASE WHEN {k} = {iri} THEN substr({column}, 2, length({column}) - 2) END)"),
        "n": (NUMERIC, f"min(CASE WHEN {k} {NUMBERS} THEN {dialect.struct(x=f'{sign}{n}', c=column)} END)"),
        "m": (MOMENT, f"min(CASE WHEN {k} {MOMENTS} THEN {dialect.struct(x=f'{sign}{m}', z=zone, c=column)} END)"),
        "t": (TEXT, f"{best}(CASE WHEN {k} IN ({STRING}, {LANG}) "
                    f"THEN {dialect.struct(x=text, z=dialect.after_quote(column), c=column)} END)")}
    parts = {part: sql for part, (group, sql) in groups.items() if group & kinds}
    known = frozenset().union(*(group for group, _ in groups.values()))
    a = f"{name}_"
    columns = {a + part: sql for part, sql in parts.items()}
    merges = {a + part: best if part in ("b", "r", "t") else "min" for part in parts} | {
        f"{a}0": COUNTS, f"{a}v": COUNTS, f"{a}x": "bool_or"}
    cases = []
    if not certain or not columns:      # else nothing would be gathered
        columns |= {f"{a}0": "count(here)", f"{a}v": f"count({column})"}
        cases.append(f"WHEN {a}v < {a}0 THEN NULL")
    if not kinds <= known:
        columns[f"{a}x"] = f"bool_or({k} NOT IN ({listed(known)}))"
        cases.append(f"WHEN {a}x THEN {dialect.undecided('STRING')}")
    order = [f"{a}b" if part == "b" else f"'<' || {a}r || '>'" if part == "r" else f"{a}{part}.c" for part in parts]
    found = f"coalesce({', '.join([*(reversed(order) if highest else order), NULL_STRING])})"
    return Gathered(columns, f"CASE {' '.join(cases)} ELSE {found} END" if cases else found, None, merges, certain)


def number_of(count_column: str) -> list[str]:
    """The typed companions of a count."""
    return [f"CAST({INTEGER} AS TINYINT)", f"CAST({count_column} AS DOUBLE)", "CAST(NULL AS BIGINT)"]

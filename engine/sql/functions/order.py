"""ORDER BY on typed companions: columns whose order is that of `compare.order_key` (SPARQL 1.1 section 15.1)."""

from __future__ import annotations

from engine.functions.typed import Kind, Kinds
from engine.sql.dialect import Dialect
from engine.sql.functions import strings
from engine.sql.functions.values import LANG, LOCAL, MOMENT, MOMENTS, NUMBERS, NUMERIC, STRING, TEXT

BLANK, IRI = int(Kind.BLANK), int(Kind.IRI)
LOWEST = "CAST('-Infinity' AS DOUBLE)"


def order_keys(dialect: Dialect, column: str, kinds: Kinds) -> list[str]:
    """Group, number, time and characters of a column of these kinds, equal where the order has a tie; rare kinds are undecided."""
    kind = f"{column}_k"
    text, inner = f"{kind} IN ({STRING}, {LANG})", f"substr({column}, 2, length({column}) - 2)"
    groups = [(frozenset((BLANK,)), f"{kind} = {BLANK}", 1, column), (frozenset((IRI,)), f"{kind} = {IRI}", 2, inner),
              (NUMERIC, f"{kind} {NUMBERS}", 3, ""), (MOMENT, f"{kind} {MOMENTS}", 5, ""), (TEXT, text, 8, strings.body(dialect, column))]
    there = [group for group in groups if not kinds.isdisjoint(group[0])]
    rest = dialect.undecided("INT") if kinds - frozenset().union(*(group for group, *_ in groups)) else "NULL"
    places = " ".join(f"WHEN {test} THEN {place}" for _, test, place, _ in there)
    found = [f"CASE WHEN {kind} IS NULL THEN 0 {places} ELSE {rest} END"]
    found += [f"CASE WHEN {kind} {NUMBERS} THEN {column}_n ELSE 0 END"] if NUMERIC & kinds else []
    found += [f"CASE WHEN {kind} {MOMENTS} THEN {column}_m ELSE 0 END"] if MOMENT & kinds else []
    found += [f"CASE WHEN {kind} = {LOCAL} THEN 0 ELSE 1 END"] if LOCAL in kinds else []
    characters = " ".join(f"WHEN {test} THEN {characters}" for _, test, _, characters in there if characters)
    found += [f"CASE {characters} ELSE '' END"] if characters else []
    return found + ([f"CASE WHEN {text} THEN {dialect.after_quote(column)} ELSE '' END"] if TEXT & kinds else [])


def rough_key(dialect: Dialect, column: str, kinds: Kinds) -> str | None:
    """A number that orders values of these kinds as `order_keys` do but for ties; None where there are no numbers among them. DuckDB
    takes NaN for the greatest number, as ORDER BY does here. A kind that is added to `order_keys` must be added here."""
    if not NUMERIC & kinds:
        return None
    kind = f"{column}_k"
    after = f"WHEN {kind} {MOMENTS} OR {kind} IN ({STRING}, {LANG}) THEN CAST('NaN' AS DOUBLE)"
    known = NUMERIC | MOMENT | TEXT | {BLANK, IRI}
    rest = f"WHEN {kind} IN ({BLANK}, {IRI}) THEN {LOWEST} ELSE {dialect.undecided('DOUBLE')}" if kinds - known else f"ELSE {LOWEST}"
    return f"CASE WHEN {kind} IS NULL THEN {LOWEST} WHEN {kind} {NUMBERS} THEN {column}_n {after} {rest} END"


def heap(key: str, descending: bool, most: int) -> tuple[str, str]:
    """The aggregate ``firsts`` of the first `most` values of a column, and the condition on a row that its value is one of these."""
    best, compared = ("max", ">=") if descending else ("min", "<=")
    return f"{best}({key}, {most}) AS firsts", f"(len(firsts) < {most} OR {key} {compared} firsts[{most}])"

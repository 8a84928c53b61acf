"""ORDER BY on typed companions: columns whose order is that of `compare.order_key` (SPARQL 1.1 section 15.1)."""

from __future__ import annotations

from engine.functions.typed import Kind
from engine.sql.dialect import Dialect
from engine.sql.functions import strings
from engine.sql.functions.values import LANG, LOCAL, MOMENTS, NUMBERS, STRING

BLANK, IRI = int(Kind.BLANK), int(Kind.IRI)


def order_keys(dialect: Dialect, column: str) -> list[str]:
    """Group, number, time and characters, equal where the order has a tie; rare kinds are undecided."""
    kind = f"{column}_k"
    text = f"{kind} IN ({STRING}, {LANG})"
    group = (f"CASE WHEN {kind} IS NULL THEN 0 WHEN {kind} = {BLANK} THEN 1 WHEN {kind} = {IRI} THEN 2 WHEN {kind} {NUMBERS} THEN 3 "
             f"WHEN {kind} {MOMENTS} THEN 5 WHEN {text} THEN 8 ELSE {dialect.undecided('INT')} END")
    inner = f"substr({column}, 2, length({column}) - 2)"
    characters = f"CASE WHEN {text} THEN {strings.body(dialect, column)} WHEN {kind} = {IRI} THEN {inner} WHEN {kind} = {BLANK} " \
                 f"THEN {column} ELSE '' END"
    return [group, f"CASE WHEN {kind} {NUMBERS} THEN {column}_n ELSE 0 END", f"CASE WHEN {kind} {MOMENTS} THEN {column}_m ELSE 0 END",
            f"CASE WHEN {kind} = {LOCAL} THEN 0 ELSE 1 END", characters, f"CASE WHEN {text} THEN {dialect.after_quote(column)} ELSE '' END"]

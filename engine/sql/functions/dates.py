"""YEAR, MONTH, DAY, HOURS, MINUTES and SECONDS as SQL (SPARQL 1.1 section 17.4.5), on tokens of plain years whose kind is known.

A year of four digits makes every field stand at its place; other years, and the hour 24, are undecided.
"""

from __future__ import annotations

from engine.functions.typed import Kind, Kinds
from engine.sql.functions.values import DECIMAL, HARD, INTEGER, MOMENTS, NOT_A_NUMBER, Typed, listed

PLACES = {"YEAR": (2, 4), "MONTH": (7, 2), "DAY": (10, 2), "HOURS": (13, 2), "MINUTES": (16, 2)}
DATED = ("YEAR", "MONTH", "DAY")
RARE: Kinds = frozenset((*map(int, (Kind.DATE, Kind.TIME, Kind.GREGORIAN)), HARD))
FIELDS = (*PLACES, "SECONDS")


def _plain(column: str) -> str:
    """Whether the fields stand at their places: no sign, four digits, and no hour 24."""
    return f"substr({column}, 6, 1) = '-' AND substr({column}, 2, 1) <> '-' AND substr({column}, 12, 3) <> 'T24'"


def _moment(function: str, column: str) -> str:
    return f"{column}_k {MOMENTS}" if function not in DATED else f"({column}_k {MOMENTS} OR {column}_k = {int(Kind.DATE)})"


def field(function: str, column: str) -> Typed:
    """A field of a typed column: a whole number, or seconds."""
    rare = f"{column}_k IN ({listed(RARE)})"
    kind = f"(CASE WHEN {_moment(function, column)} OR {rare} THEN {DECIMAL if function == 'SECONDS' else INTEGER} END)"
    if function == "SECONDS":
        made = f"(CAST(substr({column}, 19, 2) AS INT) * 1000000 + ({column}_m % 1000000 + 1000000) % 1000000) / 1000000e0"
    else:
        place, length = PLACES[function]
        made = f"CAST(CAST(substr({column}, {place}, {length}) AS INT) AS DOUBLE)"
    number = f"(CASE WHEN {_moment(function, column)} AND {_plain(column)} THEN {made} ELSE {NOT_A_NUMBER} END)"
    return Typed(kind, number, computed=True, kinds=frozenset((DECIMAL if function == 'SECONDS' else INTEGER,)))

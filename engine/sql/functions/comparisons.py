"""``= != < > <= >=`` on typed companions (SPARQL 1.1 section 17.3, with what compare.py adds)."""

from __future__ import annotations

from engine.functions.typed import Kind
from engine.ir.builtins import PRED
from engine.sql.dialect import Dialect
from engine.sql.functions import strings
from engine.sql.functions.values import (
    BOOLEAN, DOUBLE, FLOAT, LANG, MOMENTS, NUMBERS, OPAQUE, STRING, Typed, either)

OPERATORS = {"=": "=", "!=": "<>", "<": "<", ">": ">", "<=": "<=", ">=": ">="}
OF_NUMBERS = {f"<{PRED}numeric-{name}>": operator for name, operator in (
    ("equal", "="), ("not-equal", "!="), ("less-than", "<"), ("greater-than", ">"), ("less-than-or-equal", "<="),
    ("greater-than-or-equal", ">="))}
"""RIF's predicates that are operators of SPARQL on numbers, and errors on anything else (RIF-DTB section 4.5.1)."""
MIRRORED = {"=": "=", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
FOURTEEN_HOURS = 14 * 3600 * 1_000_000
WITHOUT_VALUE = f"({int(Kind.IRI)}, {int(Kind.BLANK)}, {LANG})"  # equal to themselves only, and always unequal to others
BY_VALUE = ", ".join(str(int(k)) for k in (Kind.DATE, Kind.TIME, Kind.GREGORIAN, Kind.DURATION))


def compare(dialect: Dialect, operator: str, left: Typed, right: Typed, otherwise: str) -> str:
    """A SQL boolean; `otherwise` stands for the rows that the companions do not decide."""
    number = all(side.computed or side.known in range(int(Kind.INTEGER), DOUBLE + 1) for side in (left, right))
    cases = [f"WHEN {either(left.undecided + right.undecided)} THEN {otherwise}"] if left.undecided + right.undecided else []
    cases += _numbers(operator, left, right, otherwise)
    if not number:
        cases += _equality(dialect, operator, left, right, otherwise) if operator in ("=", "!=") else \
            _order(dialect, operator, left, right, otherwise)
    return f"(CASE {' '.join(cases)} END)"


def _numbers(operator: str, left: Typed, right: Typed, otherwise: str) -> list[str]:
    both = f"{left.kind} {NUMBERS} AND {right.kind} {NUMBERS}"
    one, two = left.number, right.number
    cases = []
    mixed = [f"{a.kind} = {FLOAT} AND {b.kind} < {FLOAT}" for a, b in ((left, right), (right, left))
             if not a.computed and a.known in (None, FLOAT) and (b.known is None or b.known < FLOAT)]
    single = f"{both} AND {either(mixed)}" if mixed else ""
    if single:
        cases.append(f"WHEN {single} THEN {otherwise}")
    if left.near or right.near:
        cases.append(f"WHEN {both} AND abs({one} - {two}) <= 1e-9 * (abs({one}) + abs({two}) + 1e-6) THEN {otherwise}")
    return [*cases, f"WHEN {both} THEN {one} {OPERATORS[operator]} {two}"]


def _moments(operator: str, left: Typed, right: Typed) -> list[str]:
    both, one, two = f"{left.kind} {MOMENTS} AND {right.kind} {MOMENTS}", left.micros, right.micros
    return [f"WHEN {both} AND {left.kind} = {right.kind} THEN {one} {OPERATORS[operator]} {two}",
            f"WHEN {both} AND {one} + {FOURTEEN_HOURS} < {two} THEN {decided(operator, '<')}",
            f"WHEN {both} AND {one} - {FOURTEEN_HOURS} > {two} THEN {decided(operator, '>')}",
            f"WHEN {both} THEN NULL"]


def _equality(dialect: Dialect, operator: str, left: Typed, right: Typed, otherwise: str) -> list[str]:
    equal, unequal = ("TRUE", "FALSE") if operator == "=" else ("FALSE", "TRUE")
    kinds = f"{left.kind}", f"{right.kind}"
    cases = [f"WHEN {left.token} = {right.token} THEN {equal}"] if left.token and right.token else []
    cases.append(f"WHEN {kinds[0]} IS NULL OR {kinds[1]} IS NULL THEN NULL")
    cases.append(f"WHEN {kinds[0]} IN {WITHOUT_VALUE} OR {kinds[1]} IN {WITHOUT_VALUE} THEN {unequal}")
    cases.append(f"WHEN {kinds[0]} IN {OPAQUE} OR {kinds[1]} IN {OPAQUE} THEN NULL")
    if not (left.computed or right.computed):
        cases += _moments(operator, left, right)
        cases.append(f"WHEN {kinds[0]} = {kinds[1]} AND {kinds[0]} IN ({BOOLEAN}, {BY_VALUE}) THEN {otherwise}")
    return [*cases, f"ELSE {unequal}"]


def _order(dialect: Dialect, operator: str, left: Typed, right: Typed, otherwise: str) -> list[str]:
    if left.computed or right.computed or left.token is None or right.token is None:
        return []
    texts = " ".join((strings.body(dialect, left.token), OPERATORS[operator], strings.body(dialect, right.token)))
    return [*_moments(operator, left, right),
            f"WHEN {left.kind} = {STRING} AND {right.kind} = {STRING} THEN {texts}",
            f"WHEN {left.kind} = {right.kind} AND {left.kind} IN ({BOOLEAN}, {BY_VALUE}) THEN {otherwise}"]


def decided(operator: str, actual: str) -> str:
    """The truth of a comparison whose sides are known to compare as `actual`, ``<`` or ``>``."""
    return "TRUE" if operator == "!=" or operator.rstrip("=") == actual else "FALSE"

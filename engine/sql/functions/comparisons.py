"""``= != < > <= >=`` on typed companions (SPARQL 1.1 section 17.3, with what compare.py adds)."""

from __future__ import annotations

from engine.functions.typed import Kind, Kinds
from engine.ir.builtins import PRED
from engine.sql.dialect import Dialect
from engine.sql.functions import strings
from engine.sql.functions.values import (
    BOOLEAN, DECIMAL, FLOAT, INTEGER, LANG, MOMENT, MOMENTS, NUMBERS, NUMERIC, OPAQUE, STRING, Typed, either, listed)

OPERATORS = {"=": "=", "!=": "<>", "<": "<", ">": ">", "<=": "<=", ">=": ">="}
OF_NUMBERS = {f"<{PRED}numeric-{name}>": operator for name, operator in (
    ("equal", "="), ("not-equal", "!="), ("less-than", "<"), ("greater-than", ">"), ("less-than-or-equal", "<="),
    ("greater-than-or-equal", ">="))}
"""RIF's predicates that are operators of SPARQL on numbers, and errors on anything else (RIF-DTB section 4.5.1)."""
MIRRORED = {"=": "=", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
FOURTEEN_HOURS = 14 * 3600 * 1_000_000
EXACT: Kinds = frozenset((INTEGER, DECIMAL))
WITHOUT_VALUE: Kinds = frozenset((int(Kind.IRI), int(Kind.BLANK), LANG))  # equal to themselves only, and always unequal to others
BY_VALUE: Kinds = frozenset((BOOLEAN, *map(int, (Kind.DATE, Kind.TIME, Kind.GREGORIAN, Kind.DURATION))))
Case = tuple[str, str]
"""A condition and the truth under it; always true where the condition is empty."""


def compare(dialect: Dialect, operator: str, left: Typed, right: Typed, otherwise: str) -> str:
    """A SQL boolean; `otherwise` stands for the rows that the companions do not decide."""
    undecided = left.undecided + right.undecided
    cases = [(either(undecided), otherwise)] if undecided else []
    cases += _numbers(operator, left, right, otherwise)
    if not (left.kinds <= NUMERIC and right.kinds <= NUMERIC):
        cases += _equality(operator, left, right, otherwise) if operator in ("=", "!=") else \
            _order(dialect, operator, left, right, otherwise)
    return _case(cases)


def _case(cases: list[Case]) -> str:
    if not cases:
        return "CAST(NULL AS BOOLEAN)"
    if not cases[0][0]:
        return f"({cases[0][1]})"
    return f"(CASE {' '.join(f'WHEN {condition} THEN {truth}' if condition else f'ELSE {truth}' for condition, truth in cases)} END)"


def _numbers(operator: str, left: Typed, right: Typed, otherwise: str) -> list[Case]:
    if not (left.may_be(NUMERIC) and right.may_be(NUMERIC)):
        return []
    both = [f"{side.kind} {NUMBERS}" for side in (left, right) if side.computed or not side.kinds <= NUMERIC]
    one, two = left.number, right.number
    cases = []
    mixed = [f"{a.kind} = {FLOAT} AND {b.kind} < {FLOAT}" for a, b in ((left, right), (right, left))
             if not a.computed and FLOAT in a.kinds and b.may_be(EXACT)]
    if mixed:
        cases.append((" AND ".join([*both, either(mixed)]), otherwise))
    if left.near or right.near:
        cases.append((" AND ".join([*both, f"abs({one} - {two}) <= 1e-9 * (abs({one}) + abs({two}) + 1e-6)"]), otherwise))
    return [*cases, (" AND ".join(both), f"{one} {OPERATORS[operator]} {two}")]


def _moments(operator: str, left: Typed, right: Typed) -> list[Case]:
    if not (left.may_be(MOMENT) and right.may_be(MOMENT)):
        return []
    both, one, two = f"{left.kind} {MOMENTS} AND {right.kind} {MOMENTS}", left.micros, right.micros
    return [(f"{both} AND {left.kind} = {right.kind}", f"{one} {OPERATORS[operator]} {two}"),
            (f"{both} AND {one} + {FOURTEEN_HOURS} < {two}", decided(operator, "<")),
            (f"{both} AND {one} - {FOURTEEN_HOURS} > {two}", decided(operator, ">")),
            (both, "NULL")]


def _by_value(left: Typed, right: Typed, otherwise: str) -> list[Case]:
    if not left.may_be(BY_VALUE & right.kinds):
        return []
    return [(f"{left.kind} = {right.kind} AND {left.kind} IN ({listed(BY_VALUE)})", otherwise)]


def _equality(operator: str, left: Typed, right: Typed, otherwise: str) -> list[Case]:
    equal, unequal = ("TRUE", "FALSE") if operator == "=" else ("FALSE", "TRUE")
    cases = [(f"{left.token} = {right.token}", equal)] if left.token and right.token and left.may_be(right.kinds) else []
    cases.append((f"{left.kind} IS NULL OR {right.kind} IS NULL", "NULL"))
    for kinds, truth in ((WITHOUT_VALUE, unequal), (OPAQUE, "NULL")):
        tests = [f"{side.kind} IN ({listed(kinds)})" for side in (left, right) if side.may_be(kinds)]
        cases += [(" OR ".join(tests), truth)] if tests else []
    if not (left.computed or right.computed):
        cases += _moments(operator, left, right) + _by_value(left, right, otherwise)
    return [*cases, ("", unequal)]


def _order(dialect: Dialect, operator: str, left: Typed, right: Typed, otherwise: str) -> list[Case]:
    if left.computed or right.computed or left.token is None or right.token is None:
        return []
    texts = []
    if STRING in left.kinds & right.kinds:
        compared = " ".join((strings.body(dialect, left.token), OPERATORS[operator], strings.body(dialect, right.token)))
        texts = [(f"{left.kind} = {STRING} AND {right.kind} = {STRING}", compared)]
    return [*_moments(operator, left, right), *texts, *_by_value(left, right, otherwise)]


def decided(operator: str, actual: str) -> str:
    """The truth of a comparison whose sides are known to compare as `actual`, ``<`` or ``>``."""
    return "TRUE" if operator == "!=" or operator.rstrip("=") == actual else "FALSE"

"""``= != < > <= >=`` on typed companions (SPARQL 1.1 section 17.3, with what compare.py adds), also with constants (those of other kinds
are type errors), and ORDER BY: columns whose order is that of `compare.order_key` (section 15.1)."""

from math import isfinite

from engine.functions.numeric import single
from engine.functions.typed import Kind, Kinds, typed
from engine.ir.builtins import PRED
from engine.sql.dialect import Dialect
from engine.sql.functions import strings
from engine.sql.functions.values import (BOOLEAN, DECIMAL, FLOAT, HARD, INTEGER, LANG, LOCAL, MOMENT, MOMENTS, NUMBERS, NUMERIC, OPAQUE,
                                         STRING, TEXT, Typed, double, either, listed)

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

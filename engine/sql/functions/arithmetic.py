"""``+ - * /``, unary minus, ABS, CEIL, FLOOR and ROUND on typed companions (SPARQL 1.1 section 17.3).

Exact numbers stay exact although they are kept in doubles: whole numbers below 1e15, decimals of at most six fraction digits below
1e8, rounded to six digits after each step. A number that leaves these bounds becomes NaN, which goes through further arithmetic by
itself and means: undecided. A quotient of exact numbers is `near`; comparing it is undecided where it is too close to tell.

YEAR, MONTH, DAY, HOURS, MINUTES and SECONDS (section 17.4.5) are read at their places in tokens of known kind: a year of four digits makes
every field stand at its place; other years, and the hour 24, are undecided.
"""

from collections.abc import Callable

from engine.functions.typed import Kind, Kinds
from engine.ir.expressions import Call, Expression, walk
from engine.sql.functions.values import (DECIMAL, DOUBLE, HARD, INTEGER, MOMENTS, MOST_EXACT, NOT_A_NUMBER, NUMBERS, NUMERIC, Typed,
                                         decimal_token, either, integer_token, listed)

LONGEST = 6_000
MOST_FIXED = "1e8"
FIXED = "1000000e0"


Binary = Callable[[Typed, Typed, Kinds], tuple[str, str]]
"""Kind and number of an operator applied to two values, by the kinds that the result may have."""


def _results(left: Typed, right: Typed) -> Kinds:
    """The kinds that a sum, difference or product may have."""
    return frozenset(max(one, two) for one in left.kinds & NUMERIC for two in right.kinds & NUMERIC)


def _kind(left: Typed, right: Typed, results: Kinds) -> str:
    kinds = sorted({side.kind for side in (left, right)}, key=len)
    numbers = " AND ".join(side.kind + (" IS NOT NULL" if side.kinds <= NUMERIC else f" {NUMBERS}")
                           for side in (left, right) if side.known is None and not side.computed)
    known = [side.known for side in (left, right) if side.known is not None]
    if len(results) == 1:
        highest = listed(results)
    elif len(kinds) == 1:
        highest = kinds[0]
    elif known and known[0] == INTEGER:
        highest = kinds[-1] if len(kinds[-1]) > 1 else kinds[0]
    else:
        highest = f"greatest({kinds[0]}, {kinds[1]})"
    both = [f"{side.kind} IS NOT NULL" for side in (left, right) if side.computed]
    tests = " AND ".join(filter(None, [numbers, *both]))
    return f"CASE WHEN {tests} THEN {highest} END" if tests else highest


def _fixed(value: str) -> str:
    return f"round({value} * {FIXED}) / {FIXED}"


def _is_fixed(side: Typed) -> list[str]:
    """What makes a decimal operand fit for exact arithmetic: computed ones are."""
    if side.computed or side.known == INTEGER:
        return []
    return [f"{side.number} = {_fixed(side.number)}"]


def _by_kind(results: Kinds, kind: str, value: str, exact: str) -> str:
    """The number of a sum, difference or product, null for an error where its kind is sure."""
    ways = {INTEGER: f"CASE WHEN abs({value}) >= {MOST_EXACT} THEN {NOT_A_NUMBER} ELSE {value} END",
            DECIMAL: f"CASE WHEN {exact} THEN {_fixed(value)} ELSE {NOT_A_NUMBER} END", DOUBLE: value}
    if len(results) == 1 and results <= ways.keys():
        return ways[max(results)]
    cases = " ".join(f"WHEN {kind} THEN {way}" for kind, way in ways.items() if kind in results)
    return f"CASE {kind} {cases} ELSE {NOT_A_NUMBER} END" if cases else NOT_A_NUMBER


def _sum(sign: str) -> Binary:
    def made(left: Typed, right: Typed, results: Kinds) -> tuple[str, str]:
        kind, value = _kind(left, right, results), f"({left.number} {sign} {right.number})"
        small = [f"abs({side.number}) < {MOST_FIXED}" for side in (left, right)]
        exact = " AND ".join([*small, *_is_fixed(left), *_is_fixed(right)])
        return kind, _by_kind(results, kind, value, exact)
    return made


def _product(left: Typed, right: Typed, results: Kinds) -> tuple[str, str]:
    kind, value = _kind(left, right, results), f"({left.number} * {right.number})"
    conditions = [f"abs({value}) < {MOST_FIXED}", *_is_fixed(left), *_is_fixed(right)]
    if INTEGER not in (left.known, right.known):
        whole = [f"{side.number} = floor({side.number})" for side in (left, right)]
        conditions.append(either([*whole, f"abs({value}) < 1e3 AND abs({value} - {_fixed(value)}) < 5e-13"]))
    return kind, _by_kind(results, kind, value, " AND ".join(conditions))


def _quotient(left: Typed, right: Typed, results: Kinds) -> tuple[str, str]:
    kind, one, two = _kind(left, right, results), left.number, right.number
    quotient = f"({one} / nullif({two}, 0))"
    divided = f"CASE WHEN {two} = 0 THEN {NOT_A_NUMBER} ELSE {quotient} END"
    if max(results) <= DECIMAL:
        return f"CASE WHEN {two} <> 0 AND {kind} IS NOT NULL THEN {DECIMAL} END", quotient
    kind = f"CASE WHEN {kind} > {DECIMAL} THEN {kind} WHEN {two} <> 0 AND {kind} IS NOT NULL THEN {DECIMAL} END"
    return kind, f"CASE WHEN {kind} <= {DECIMAL} THEN {quotient} WHEN {kind} = {DOUBLE} THEN {divided} ELSE {NOT_A_NUMBER} END"


BINARY: dict[str, Binary] = {"+": _sum("+"), "-": _sum("-"), "*": _product, "/": _quotient}


def binary(operator: str, left: Typed, right: Typed) -> Typed | None:
    """The value of an operator; None where the text would grow too long, a sum would lose a near operand's digits, or one is no number."""
    results = _results(left, right)
    if (left.near or right.near) and operator in "+-":
        return None
    if left.known is not None and right.known is not None or any(s.known not in (None, INTEGER, DECIMAL, DOUBLE) for s in (left, right)):
        return None
    if not results:
        return None
    kind, number = BINARY[operator](left, right, results)
    if len(kind) + len(number) > LONGEST:
        return None
    near = operator == "/" or left.near or right.near
    kinds = results if operator != "/" else frozenset(max(kind, DECIMAL) for kind in results)
    return Typed(f"({kind})", f"({number})", hard=_merged(left, right), computed=True, near=near, kinds=kinds)


def arithmetic_in(expression: Expression) -> list[Expression]:
    """The arithmetic of an expression, inner calls first."""
    calls = (part for part in walk(expression) if isinstance(part, Call))
    return list(dict.fromkeys(call for call in calls if call.function in BINARY or call.function in UNARY))


def _merged(*sides: Typed) -> tuple[str, ...]:
    return tuple(dict.fromkeys(column for side in sides for column in side.hard))


def _whole(value: str, made: str) -> str:
    return f"CASE WHEN abs({value}) < {MOST_EXACT} THEN CAST({made} AS DOUBLE) ELSE {value} END"


UNARY: dict[str, Callable[[str], str]] = {
    "U-": lambda n: f"(- {n})", "U+": lambda n: n, "ABS": lambda n: f"abs({n})",
    "CEIL": lambda n: _whole(n, f"ceil({n})"), "FLOOR": lambda n: _whole(n, f"floor({n})"),
    "ROUND": lambda n: _whole(n, f"floor({n}) + CASE WHEN {n} - floor({n}) >= 0.5e0 THEN 1 ELSE 0 END")}
"""The number that a function makes of a number; kinds stay."""


def unary(function: str, operand: Typed) -> Typed | None:
    """The value of a function of one number."""
    if operand.known is not None or (operand.near and function not in ("U-", "U+", "ABS")):
        return None
    kinds = operand.kinds & NUMERIC
    kind = operand.kind if operand.kinds <= NUMERIC else f"(CASE WHEN {operand.kind} {NUMBERS} THEN {operand.kind} END)"
    number = UNARY[function](operand.number)
    if DECIMAL in kinds and not operand.computed:   # one beyond six fraction digits must not go on as if it were computed
        number = f"CASE WHEN {operand.kind} <> {DECIMAL} OR {operand.number} = {_fixed(operand.number)} THEN {number} " \
                 f"ELSE {NOT_A_NUMBER} END"
    return None if len(number) > LONGEST else Typed(kind, f"({number})", hard=operand.hard, computed=True, near=operand.near, kinds=kinds)


def token(value: Typed, otherwise: str) -> str:
    """The canonical token of a computed value; doubles and undecided rows are left to `otherwise`."""
    whole, decimal = integer_token(f"CAST({value.number} AS BIGINT)"), decimal_token(f"CAST({value.number} AS DECIMAL(18, 6))")
    cases = [f"WHEN {either(value.undecided)} THEN {otherwise}"]
    cases += [f"WHEN {value.kind} = {INTEGER} THEN {whole}"] if INTEGER in value.kinds else []
    cases += [f"WHEN {value.kind} = {DECIMAL} AND abs({value.number}) < {MOST_FIXED} THEN {decimal}"] if DECIMAL in value.kinds else []
    cases += [f"WHEN {value.kind} IS NOT NULL THEN {otherwise}"] if value.kinds != {INTEGER} else []
    return f"(CASE {' '.join(cases)} END)"


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

"""Values with typed companions in SQL, and tokens made of them.

A relation's typed column ``c`` has companions ``c_k`` (kind), ``c_n`` (number) and ``c_m`` (microseconds), filled as
`engine.functions.typed` says. The kind HARD is a value that SQL does not decide: there Python is asked, row by row where the
engine's CASE allows it (`Dialect.otherwise`), else by running the plan again without types.
"""

from dataclasses import dataclass
from math import inf

from engine.functions import terms
from engine.functions.typed import ANY_KIND, Kind, Kinds, typed
from engine.ir.terms import XSD
from engine.sql.dialect import fixed

INTEGER, DECIMAL, FLOAT, DOUBLE, HARD = (int(k) for k in (Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT, Kind.DOUBLE, Kind.HARD))
STRING, LANG, BOOLEAN = int(Kind.STRING), int(Kind.LANG), int(Kind.BOOLEAN)
ZONED, LOCAL = int(Kind.DATETIME), int(Kind.DATETIME_LOCAL)
NUMERIC: Kinds = frozenset(range(INTEGER, DOUBLE + 1))
TEXT: Kinds = frozenset((STRING, LANG))
MOMENT: Kinds = frozenset((ZONED, LOCAL))
DATED: Kinds = frozenset(range(ZONED, int(Kind.DURATION) + 1))
OPAQUE: Kinds = frozenset((int(Kind.OTHER), int(Kind.ILL)))
NUMBERS = f"BETWEEN {INTEGER} AND {DOUBLE}"
MOMENTS = f"IN ({ZONED}, {LOCAL})"
MOST_EXACT = "1e15"
NOT_A_NUMBER = "CAST('NaN' AS DOUBLE)"
INTEGER_END, DECIMAL_END, DOUBLE_END = (fixed(f'"^^<{XSD}{name}>') for name in ("integer", "decimal", "double"))
TRUE, FALSE = map(fixed, (terms.TRUE, terms.FALSE))
ZERO = fixed(f'"0"^^<{XSD}integer>')
NULL_STRING = "CAST(NULL AS STRING)"


@dataclass(frozen=True, slots=True)
class Typed:
    """A value by its kind, number and microseconds.

    `hard` are the columns that hold HARD where the value is undecided; a `computed` value is a number or an error (kind null), and
    undecided where its number is NaN. One that is `near` is within a billionth of the number. `token` is there for columns and constants,
    `known` is the kind of a constant, `kinds` are those that the value may have.
    """

    kind: str
    number: str
    micros: str = "NULL"
    token: str | None = None
    hard: tuple[str, ...] = ()
    computed: bool = False
    near: bool = False
    known: int | None = None
    kinds: Kinds = ANY_KIND

    @property
    def undecided(self) -> list[str]:
        """Conditions under which SQL cannot tell the value (dates and durations have arithmetic too, in Python)."""
        if not self.computed:
            return [f"{column} = {HARD}" for column in self.hard if HARD in self.kinds]
        return [f"{column} IN ({listed(DATED)}, {HARD})" for column in self.hard] + [f"isnan({self.number})"]

    def may_be(self, kinds: Kinds) -> bool:
        """Whether its kind can be one of some."""
        return not self.kinds.isdisjoint(kinds)


def of_column(column: str, kinds: Kinds) -> Typed:
    """The value of a column with companions of these kinds."""
    hard = () if kinds.isdisjoint(DATED | {HARD}) else (f"{column}_k",)
    return Typed(f"{column}_k", f"{column}_n", f"{column}_m", column, hard, kinds=kinds)


def of_constant(token: str, quoted: str) -> Typed | None:
    """The value of a constant, None for a HARD one."""
    kind = typed(token)[0]
    return None if kind == HARD else Typed(*constant_companions(token), quoted, known=kind, kinds=frozenset((kind,)))


def constant_companions(token: str) -> tuple[str, str, str]:
    """Kind, number and microseconds of a constant."""
    kind, number, micros = typed(token)
    return str(kind), "NULL" if number is None else double(number), "NULL" if micros is None else str(micros)


def double(number: float) -> str:
    """A double as SQL."""
    return f"CAST({fixed('Infinity' if number == inf else '-Infinity' if number == -inf else str(number))} AS DOUBLE)"


def integer_token(number: str) -> str:
    """The token of a whole number."""
    return f"('\"' || CAST({number} AS STRING) || {INTEGER_END})"


def decimal_token(number: str) -> str:
    """The canonical token of a SQL decimal with at least one fraction digit."""
    plain = f"CAST({number} AS STRING)"
    return f"('\"' || trim(TRAILING '.' FROM trim(TRAILING '0' FROM {plain})) || {DECIMAL_END})"


def boolean_token(truth: str) -> str:
    """The token of a SQL boolean."""
    return f"(CASE WHEN {truth} THEN {TRUE} WHEN NOT {truth} THEN {FALSE} END)"


def listed(kinds: Kinds) -> str:
    """Kinds as a list in SQL."""
    return ", ".join(map(str, sorted(kinds)))


def either(conditions: list[str]) -> str:
    """A disjunction."""
    return "(" + " OR ".join(conditions or ["FALSE"]) + ")"

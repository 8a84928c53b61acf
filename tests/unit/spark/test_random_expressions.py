"""Random expressions over random tokens: what DuckDB answers is what engine/functions answers, a few thousand rows a text."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache

import duckdb
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from engine.functions.typed import ANY_KIND, Kind, Kinds, typed
from engine.ir.expressions import Call, Expression
from engine.ir.terms import XSD, Constant, literal
from engine.sql.dialect import DUCKDB, UNDECIDED
from engine.sql.functions.comparisons import OF_NUMBERS
from engine.sql.lower import Lowering
from engine.worker.functions import register_duckdb
from tests.examples import examples
from tests.unit.spark.samples import TOKENS, A, B
from tests.unit.spark.test_sql_functions import by_functions, pairs_table, spelled

ROWS = 2_000
KINDS = ("integer", "decimal", "double", "float", "byte", "dateTime", "date", "boolean", "text", "tagged", "sample")
COMPARISONS = ("=", "!=", "<", ">", "<=", ">=", *OF_NUMBERS)
NUMERIC_1 = ("U-", "U+", "ABS", "CEIL", "FLOOR", "ROUND")
FIELDS = ("YEAR", "MONTH", "DAY", "HOURS", "MINUTES", "SECONDS", "STRLEN")
TEXT_1 = ("STR", "UCASE", "LCASE", "LANG")
TEXT_2 = ("STRBEFORE", "STRAFTER", "CONCAT")
TESTS_2 = ("CONTAINS", "STRSTARTS", "STRENDS", "LANGMATCHES", "SAMETERM")
TESTS_1 = ("ISIRI", "ISBLANK", "ISLITERAL", "ISNUMERIC")


@st.composite
def tokens(draw: st.DrawFn) -> str:
    """A term of any kind, lexical forms good and bad."""
    match kind := draw(st.sampled_from(KINDS)):
        case "integer" | "byte":
            return literal(str(draw(st.integers(-10 ** 17, 10 ** 17) | st.integers(-99, 99))), XSD + kind)
        case "decimal":
            whole, places = draw(st.integers(-10 ** 16, 10 ** 16) | st.integers(-9999, 9999)), draw(st.integers(0, 9))
            digits = str(abs(whole)).rjust(places + 1, "0")
            return literal(("-" if whole < 0 else "") + digits[:len(digits) - places] + "." + digits[len(digits) - places:], XSD + kind)
        case "double" | "float":
            return literal(repr(draw(st.floats(allow_nan=False, allow_infinity=False))), XSD + kind)
        case "dateTime":
            stamp = draw(st.datetimes()).isoformat()
            return literal(stamp + draw(st.sampled_from(("", "Z", "+14:00", "-05:30"))), XSD + kind)
        case "date":
            return literal(draw(st.dates()).isoformat(), XSD + kind)
        case "boolean":
            return literal(draw(st.sampled_from(("true", "false", "0", "1", "yes"))), XSD + kind)
        case "text":
            return literal(draw(st.text(st.characters(exclude_categories=["Cs"]), max_size=6)))
        case "tagged":
            return literal(draw(st.text("aAbß\\\"\n", max_size=4)), lang=draw(st.sampled_from(("en", "en-gb", "fr"))))
    return draw(st.sampled_from([t for t in TOKENS if t is not None]))


def _calls(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    def made(names: tuple[str, ...], count: int) -> st.SearchStrategy[Expression]:
        return st.builds(Call, st.sampled_from(names), st.tuples(*[inner] * count))
    places = st.integers(-2, 5).map(lambda n: Constant(literal(str(n), XSD + "integer")))
    return st.one_of(made(COMPARISONS, 2), made(("+", "-", "*", "/"), 2), made(NUMERIC_1, 1), made(FIELDS, 1), made(TEXT_1, 1),
                     made(TEXT_2, 2), made(TESTS_2, 2), made(TESTS_1, 1), made(("&&", "||"), 2), made(("!", "DATATYPE"), 1),
                     made(("IF", "COALESCE", "IN"), 3), st.builds(Call, st.just("SUBSTR"), st.tuples(inner, places)),
                     st.builds(Call, st.just("SUBSTR"), st.tuples(inner, places, places)))


EXPRESSIONS = st.recursive(st.sampled_from((A, B)) | tokens().map(Constant), _calls, max_leaves=6)


@cache
def connection() -> duckdb.DuckDBPyConnection:
    made = duckdb.connect(":memory:", config={"threads": 1})
    register_duckdb(made)
    return made


@cache
def rows() -> tuple[tuple[str | None, str | None], ...]:
    """The sample tokens and some thousand others, paired at random."""
    chance = random.Random(11)
    numbers = [literal(f"{chance.randrange(-10 ** chance.randrange(1, 17), 10 ** 6)}", XSD + "integer") for _ in range(200)]
    numbers += [literal(f"{chance.uniform(-1, 1) * 10 ** chance.randrange(9):.{chance.randrange(1, 8)}f}", XSD + "decimal")
                for _ in range(300)]
    numbers += [literal(repr(chance.uniform(-1, 1) * 10 ** chance.randrange(-5, 20)), XSD + "double") for _ in range(200)]
    pool = [*TOKENS, *TOKENS, *numbers]
    return tuple((chance.choice(pool), chance.choice(pool)) for _ in range(ROWS))


@pytest.fixture(scope="module", autouse=True)
def closed() -> Iterator[None]:
    yield
    connection().close()
    connection.cache_clear()


@examples(75, 150)
@given(EXPRESSIONS, st.lists(st.tuples(tokens(), tokens()), max_size=40))
def test_sql_is_the_functions(expression: Expression, more: list[tuple[str, str]]) -> None:
    lowering = Lowering(DUCKDB, "q", 0)
    value, truth = lowering.value(expression, spelled()), lowering.condition(expression, spelled())
    note(value)
    pairs = [*rows(), *more]
    if UNDECIDED in value + truth:  # what is HARD ends the plan there
        pairs = [pair for pair in pairs if not any(token is not None and typed(token)[0] == Kind.HARD for token in pair)]
    connection().register("rows", pairs_table(pairs))
    found = connection().execute(f"SELECT {value}, {truth} FROM rows").fetchall()
    wrong = [(pair, got, wanted) for pair, got, wanted in zip(pairs, found, by_functions(expression, pairs)) if got != wanted]
    assert not wrong[:3]


@examples(75, 150)
@given(EXPRESSIONS, *[st.sets(st.sampled_from(sorted(ANY_KIND - {Kind.HARD})), min_size=1, max_size=4).map(frozenset)] * 2)
def test_sql_of_columns_of_few_kinds_is_the_functions(expression: Expression, of_a: Kinds, of_b: Kinds) -> None:
    lowering, columns = Lowering(DUCKDB, "q", 0), spelled(of_a, of_b)
    value, truth = lowering.value(expression, columns), lowering.condition(expression, columns)
    note(value)
    pairs = [pair for pair in rows() if all(token is None or typed(token)[0] in kinds for token, kinds in zip(pair, (of_a, of_b)))]
    connection().register("rows", pairs_table([*pairs, (None, None)]))
    found = connection().execute(f"SELECT {value}, {truth} FROM rows").fetchall()
    wrong = [(pair, got, wanted) for pair, got, wanted in zip(pairs, found, by_functions(expression, pairs)) if got != wanted]
    assert not wrong[:3]

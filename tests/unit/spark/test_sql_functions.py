"""What SQL says of an expression is what engine/functions says: every sample expression over all pairs of sample tokens, on DuckDB."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from itertools import product

import duckdb
import pyarrow as pa
import pytest

from engine.functions.context import Context, ExpressionError
from engine.functions.expressions import compile_term, compile_truth
from engine.functions.typed import ANY_KIND, Kind, Kinds, typed_columns
from engine.ir.expressions import Expression
from engine.ir.terms import Variable
from engine.sql.calls import Columns
from engine.sql.dialect import DUCKDB, SPARK
from engine.sql.lower import Lowering
from tests.examples import many
from tests.unit.spark.samples import TOKENS, A, B, call, expressions

PAIRS = list(product(TOKENS, TOKENS))
KINDS: dict[str | None, int | None] = dict(zip(TOKENS, typed_columns(pa.array(TOKENS, pa.string()))[0].to_pylist()))
SETS = many(5, 12)


def pairs_table(pairs: list[tuple[str | None, str | None]]) -> pa.Table:
    """Columns a and b with their companions."""
    made = {}
    for name, values in zip("ab", zip(*pairs)):
        column = pa.array(values, pa.string())
        made |= dict(zip((name, f"{name}_k", f"{name}_n", f"{name}_m"), (column, *typed_columns(column))))
    return pa.table(made).append_column("tick", pa.array([1000] * len(pairs), pa.int64()))


def spelled(of_a: Kinds = ANY_KIND, of_b: Kinds = ANY_KIND) -> Columns:
    """How the table's columns, which have values of these kinds, are spelled."""
    return Columns(lambda v: v.name if v in (A, B) else None, {A: of_a, B: of_b}, frozenset(), "tick", (A, B))


def by_functions(expression: Expression, pairs: list[tuple[str | None, str | None]]) -> list[tuple[str | None, bool | None]]:
    """Value and effective boolean value, None for an error."""
    term, truth = compile_term(expression), compile_truth(expression)
    found: list[tuple[str | None, bool | None]] = []
    for pair in pairs:
        row = {name: token for name, token in zip("ab", pair) if token is not None}
        outcome: list[object] = []
        for function in (term, truth):
            try:
                outcome.append(function(row, Context(1000, "q")))
            except ExpressionError:
                outcome.append(None)
        found.append((outcome[0], outcome[1]))  # type: ignore[arg-type]
    return found


def by_sql(database: duckdb.DuckDBPyConnection, expression: Expression, table: pa.Table,
           columns: Columns) -> list[tuple[str | None, bool | None]]:
    lowering = Lowering(DUCKDB, "q", 0)
    value, truth = lowering.value(expression, columns), lowering.condition(expression, columns)
    database.register("rows", table)
    return database.execute(f"SELECT {value}, {truth} FROM rows").fetchall()


def decided(pairs: list[tuple[str | None, str | None]]) -> list[tuple[str | None, str | None]]:
    """The pairs without values of kind HARD, which end a comparison with a constant."""
    return [pair for pair in pairs if Kind.HARD not in (KINDS[pair[0]], KINDS[pair[1]])]


def ends_plans(expression: Expression) -> bool:
    return "error(" in Lowering(DUCKDB, "q", 0).condition(expression, spelled())


@cache
def rows_for(ends: bool, variables: int) -> tuple[list[tuple[str | None, str | None]], pa.Table]:
    """All pairs for expressions of two variables, some for others; those that a plan which may end decides."""
    pairs = decided(PAIRS) if ends else PAIRS
    pairs = pairs if variables == 2 else pairs[::7] + [p for p in pairs if p[1] == p[0]]
    return pairs, pairs_table(pairs)


@pytest.mark.parametrize("expression", expressions(), ids=str)
def test_sql_says_what_the_functions_say(database: duckdb.DuckDBPyConnection, expression: Expression) -> None:
    variables = len({v for v in (A, B) if v.name in "".join(map(str, _names(expression)))})
    pairs, table = rows_for(ends_plans(expression), variables)
    expected = by_functions(expression, pairs)
    found = by_sql(database, expression, table, spelled())
    wrong = [(pair, got, wanted) for pair, got, wanted in zip(pairs, found, expected) if got != wanted]
    assert not wrong[:5]


@pytest.mark.parametrize("expression", expressions(), ids=str)
def test_it_does_so_where_columns_have_few_kinds(database: duckdb.DuckDBPyConnection, expression: Expression) -> None:
    chance = random.Random(str(expression))
    for _ in range(SETS):
        of_a, of_b = (frozenset(chance.sample(sorted(ANY_KIND), chance.choice((1, 1, 2, 5)))) for _ in "ab")
        pairs = list(product(*([token for token in TOKENS if KINDS[token] in {None, *kinds}] for kinds in (of_a, of_b))))
        pairs = decided(pairs) if ends_plans(expression) else pairs
        pairs = chance.sample(pairs, min(60, len(pairs)))
        expected = by_functions(expression, pairs)
        found = by_sql(database, expression, pairs_table(pairs), spelled(of_a, of_b))
        wrong = [(pair, got, wanted) for pair, got, wanted in zip(pairs, found, expected, strict=True) if got != wanted]
        assert not wrong[:5], (of_a, of_b)


def _names(expression: Expression) -> Iterator[str]:
    if isinstance(expression, Variable):
        yield expression.name
    for arg in getattr(expression, "args", ()):
        yield from _names(arg)


def test_without_quick_nothing_ends_a_plan() -> None:
    for expression in expressions():
        for dialect in (DUCKDB, SPARK):
            lowering = Lowering(dialect, "q", 0, quick=False)
            text = lowering.value(expression, spelled()) + lowering.condition(expression, spelled())
            assert "error(" not in text


@pytest.mark.parametrize("operator", ["=", "!=", "SAMETERM"])
def test_a_datatype_is_compared_without_python(operator: str) -> None:
    lowering, sides = Lowering(DUCKDB, "q", 0), (call("DATATYPE", A), "<http://www.w3.org/2001/XMLSchema#string>")
    for args in (sides, reversed(sides)):
        lowering.condition(call(operator, *args), spelled())
    assert lowering.calls == 0


def test_texts_stay_small() -> None:
    for expression in expressions():
        for dialect in (DUCKDB, SPARK):
            assert len(Lowering(dialect, "q", 0).condition(expression, spelled())) < 20_000

"""Comparisons on typed columns decide as the Python functions do, for every pair of a term and a constant."""

from __future__ import annotations

import re
from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pytest

from engine.compiler import Catalog, compile_statement
from engine.functions.compare import effective_boolean_value
from engine.functions.context import Context, ExpressionError
from engine.functions.expressions import compile_term
from engine.functions.typed import ANY_KIND, Kind, typed, typed_columns
from engine.ir.expressions import Call, Expression
from engine.ir.terms import XSD, Constant, Variable, quote
from engine.sql.calls import Columns
from engine.sql.dialect import DUCKDB, SPARK, Dialect
from engine.sql.lower import Lowering
from engine.worker.functions import register_duckdb
from grammar.statement import parse

V = Variable("v")


def lit(text: str, kind: str) -> str:
    return f'"{text}"^^<{XSD}{kind}>'


TERMS = ['<http://ex.org/a>', "_:b", '"abc"', '"20"', '"abc"@en', lit("true", "boolean"), lit("20", "integer"), lit("-3", "integer"),
         lit("20.0", "decimal"), lit("20.5", "decimal"), lit("0.1", "decimal"), lit("0.1", "float"), lit("0.1", "double"),
         lit("2e1", "double"), lit("INF", "double"), lit("-INF", "float"), lit("7", "byte"), lit("x", "integer"),
         lit("2020-01-01T00:00:00Z", "dateTime"), lit("2020-01-01T00:00:00", "dateTime"), lit("2020-01-01T10:00:00+14:00", "dateTime"),
         lit("2020-01-02T00:00:00", "dateTime"), lit("2020-01-01", "date"), lit("P1D", "duration"), '"v"^^<http://ex.org/own>']
CONSTANTS = [lit("20", "integer"), lit("20.5", "decimal"), lit("0.1", "decimal"), lit("0.1", "double"), lit("20", "double"),
             lit("2020-01-01T00:00:00Z", "dateTime"), lit("2020-01-01T00:00:00", "dateTime"), "<http://ex.org/a>", '"abc"',
             lit("INF", "double")]
OPERATORS = ["=", "!=", "<", ">", "<=", ">="]


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = duckdb.connect(":memory:")
    register_duckdb(connection)
    kinds, numbers, micros = typed_columns(pa.array(TERMS))
    connection.register("terms", pa.table({"c": pa.array(TERMS), "c_k": kinds, "c_n": numbers, "c_m": micros}))
    yield connection
    connection.close()


def by_function(expression: Expression, token: str) -> bool | None:
    try:
        return effective_boolean_value(compile_term(expression)({"v": token}, Context(0)))
    except ExpressionError:
        return None


def columns() -> Columns:
    return Columns(lambda v: "c" if v == V else None, {V: ANY_KIND}, frozenset(), None, (V,))


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("constant", CONSTANTS)
@pytest.mark.parametrize("mirrored", [False, True])
def test_comparisons_agree_with_the_functions(database: duckdb.DuckDBPyConnection, operator: str, constant: str, mirrored: bool) -> None:
    args = (Constant(constant), V) if mirrored else (V, Constant(constant))
    expression = Call(operator, args)
    sql = Lowering(DUCKDB, "q", 0).condition(Call("!", (Call("!", (expression,)),)), columns())
    found = {token: truth for token, truth in database.execute(f"SELECT c, {sql} FROM terms").fetchall()}
    assert found == {token: by_function(expression, token) for token in TERMS}


@pytest.mark.parametrize("constant", [lit("20", "integer"), lit("2020-01-01T00:00:00Z", "dateTime"), "<http://ex.org/a>"])
def test_the_hot_comparisons_call_no_python(constant: str) -> None:
    for dialect in (DUCKDB, SPARK):
        assert "tw_" not in Lowering(dialect, "q", 0).condition(Call("=", (V, Constant(constant))), columns())


@pytest.mark.parametrize("token", [lit("12345678901234567890", "integer"), lit("NaN", "double")])
def test_what_a_double_does_not_decide_is_hard(token: str) -> None:
    """A content with such a value is compared by the functions alone."""
    assert typed(token)[0] == Kind.HARD


@pytest.mark.parametrize("text", ["'", "''", "\\", "\\'", "a\nb", "\0", "${env:HOME}", "\U0001f600", "--", "/*", "%s", "{}"])
def test_a_quoted_text_is_itself(database: duckdb.DuckDBPyConnection, text: str) -> None:
    assert database.execute(f"SELECT {DUCKDB.quote(text)}").fetchall() == [(text,)]


@pytest.mark.parametrize("dialect", [DUCKDB, SPARK], ids=["local", "sql"])
def test_a_text_that_reads_like_a_call_is_none(dialect: Dialect) -> None:
    """How an expression is lowered does not depend on what its literals say."""
    for text in ("tw_eval('", "other"):
        expression = Call("&&", (Call("CONTAINS", (V, Constant(quote(text)))), Call("BOUND", (V,))))
        lowering = Lowering(dialect, "q", 0)
        assert not lowering.value(expression, columns()).startswith("tw_") and lowering.calls == 0


@pytest.mark.parametrize(("executor", "steps"), [("local", 4), ("sql", 0)])
def test_steps_of_arithmetic_have_columns_where_these_are_not_written_out_again(executor: str, steps: int) -> None:
    text = ("REGISTER QUERY q AS SELECT ?a FROM STREAM <http://ex.org/s> [RANGE 1s STEP 1s] "
            "WHERE { ?s <http://ex.org/a> ?a ; <http://ex.org/b> ?b FILTER ((((?a + ?b) * ?b) - ?a) + ?b > 3) }")
    compiled = compile_statement(parse(text), Catalog({"http://ex.org/s": "event"}, {}), "q")
    relations = compiled.text(executor).relations
    assert sum(bool(re.search(r" AS e\d+_\d+_n FROM ", relation)) for relation in relations) == steps
    assert max(map(len, relations)) < 4_000 or executor == "sql"

"""The DuckDB of a worker reaches the tables it is given and nothing else, and what plans tell its functions is data."""

from __future__ import annotations

import base64
import pickle
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from engine.ir.expressions import Call
from engine.ir.terms import Constant, Variable
from engine.sql.codes import read_aggregate, read_call, write_aggregate, write_call
from engine.sql.dialect import DUCKDB
from engine.worker.database import ROW_GROUP, close, connect, few_threads, use_threads
from engine.worker.functions import row_function
from engine.worker.guard import MEMORY_VARIABLE


@pytest.fixture(scope="module")
def worker() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = connect("100MB")
    yield connection
    connection.close()


@pytest.mark.parametrize("text", [
    "SELECT * FROM read_text('{}')", "SELECT * FROM '{}'", "SELECT * FROM read_parquet('{}')", "SELECT * FROM glob('/*')",
    "COPY (SELECT 1) TO '{}'", "ATTACH '{}'", "EXPORT DATABASE '{}'", "IMPORT DATABASE '{}'", "INSTALL httpfs", "LOAD httpfs",
    "LOAD '{}'", "SET memory_limit = '1TB'", "SET enable_external_access = true", "SET lock_configuration = false", "RESET memory_limit",
    "SET allowed_directories = ['/']", "SET allowed_configs = ['memory_limit']",
    "SET temp_directory = '/tmp'", "CREATE PERSISTENT SECRET s (TYPE S3)", "SELECT * FROM variable",
    "CREATE TEMP TABLE large AS SELECT hash(range)::VARCHAR || 'some more text' AS x FROM range(20_000_000)"])
def test_sql_of_a_worker_reaches_tables_alone(worker: duckdb.DuckDBPyConnection, tmp_path: Path, text: str) -> None:
    variable = pa.table({"secret": [1]})    # a variable of Python's is no table
    file = tmp_path / "file"
    with pytest.raises(duckdb.Error):
        worker.execute(text.format(file))
    assert not file.exists() and variable.num_rows == 1


def test_small_statements_have_one_thread() -> None:
    connection = connect("100MB", threads=3)
    found = []
    for rows in (0, ROW_GROUP, ROW_GROUP + 1, 1, None, None):
        use_threads(connection, rows)
        found += connection.execute("SELECT current_setting('threads')").fetchall()
    with pytest.raises(ValueError), few_threads(connection, 1):
        found += connection.execute("SELECT current_setting('threads')").fetchall()
        raise ValueError
    found += connection.execute("SELECT current_setting('threads')").fetchall()
    close(connection)
    assert [threads for threads, in found] == [1, 1, 3, 1, 3, 3, 1, 3]


def test_a_table_is_reached(worker: duckdb.DuckDBPyConnection) -> None:
    worker.register("given", pa.table({"x": ["a", "b"]}))
    code = write_call(Call("UCASE", (Variable("x"),)), ["x"], [], "q", 0)
    assert worker.execute(f"SELECT tw_eval({DUCKDB.quote(code)}, 0, ['\"' || x || '\"']) FROM given").fetchall() == [('"A"',), ('"B"',)]


def test_a_worker_of_spark_has_such_a_database(spark: SparkSession) -> None:
    """With the memory that is set for it."""
    def told(_: int) -> list[str]:
        from engine.worker.database import database
        names = ("memory_limit", "enable_external_access", "lock_configuration", "temp_directory")
        return [str(database().execute(f"SELECT current_setting('{name}')").fetchall()[0][0]) for name in names]

    assert spark.conf.get(f"spark.executorEnv.{MEMORY_VARIABLE}") == "2GB"
    assert spark.sparkContext.parallelize([0], 1).map(told).collect() == [["1.8 GiB", "False", "True", ""]]
    with pytest.raises(Exception, match="UNSUPPORTED_DATASOURCE_FOR_DIRECT_QUERY|TABLE_OR_VIEW_NOT_FOUND"):
        spark.sql("SELECT * FROM text.`/etc/passwd`").collect()


@pytest.mark.parametrize("code", [
    base64.b64encode(pickle.dumps(print)).decode(), "", "[]", "{}", "null", '["?"]', '[["?","x"],["x"],[],"q"]',
    '[["f",null,{"x":1}],[],[],"q",0]', '[["f",null],[1],[],"q",0]'])
def test_what_is_no_expression_is_refused(code: str) -> None:
    with pytest.raises(ValueError):
        row_function(code, False)
    with pytest.raises(ValueError):
        read_aggregate(code)


def test_an_expression_is_read_as_it_was_written() -> None:
    text = 'a\'b"\\\n${x}\\101\\u0000\U0001f600'
    expression = Call("&&", (Call("=", (Variable("x'"), Constant(f'"{text}"@en'))), Call("RAND", ())))
    call = read_call(write_call(expression, ["x'"], ["y"], text, -1))
    assert (call.expression, call.names, call.solution, call.identity, call.label_offset) == (expression, ("x'",), ("y",), text, -1)
    aggregate = read_aggregate(write_aggregate("GROUP_CONCAT", True, text))
    assert (aggregate.function, aggregate.distinct, aggregate.separator) == ("GROUP_CONCAT", True, text)

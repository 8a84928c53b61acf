"""Where the two SQL engines differ: Spark SQL (executor `sql`) and DuckDB inside a Spark task (executor `local`).

Everything else of the plan text is the same for both. User text reaches SQL only through `quote`.
"""

from __future__ import annotations

from collections.abc import Sequence


class Dialect:
    """DuckDB's spelling; Spark's overrides it."""

    name = "local"
    stars = False
    case_short_circuits = True
    recursive = True

    def quote(self, text: str) -> str:
        """A string literal. DuckDB cannot hold NUL in a literal's text, so it is spliced in by code."""
        quoted = "'" + text.replace("'", "''") + "'"
        return "'||chr(0)||'".join(quoted.split("\0")) if "\0" in quoted else quoted

    def call(self, function: str, code: str, at: str, columns: Sequence[str]) -> str:
        """A call of one of the Python functions of udf.py over the tokens in `columns`."""
        return f"{function}({self.quote(code)}, {at}, CAST([{', '.join(columns)}] AS VARCHAR[]))"

    def order_key(self, column: str) -> str:
        return f"tw_key({column})"

    def collect(self, column: str, guard: str) -> str:
        """The list of a group's tokens, '' for an error, without the rows where `guard` is null."""
        return f"list(coalesce({column}, '')) FILTER (WHERE {guard} IS NOT NULL)"

    def aggregate(self, code: str, tokens: str) -> str:
        return f"tw_agg({self.quote(code)}, {tokens})"

    def sorted_text(self, column: str) -> str:
        """The distinct texts of a group, sorted and joined by a character below all others in them."""
        return f"array_to_string(list_sort(list(DISTINCT {column})), chr(1))"


class SparkDialect(Dialect):
    """Spark SQL in ANSI mode, `spark.sql.variable.substitute=false`, `escapedStringLiterals` off."""

    name = "sql"
    stars = True
    case_short_circuits = False
    recursive = False

    def quote(self, text: str) -> str:
        return "'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("${", "$\\{").replace("\0", "\\0") + "'"

    def call(self, function: str, code: str, at: str, columns: Sequence[str]) -> str:
        return f"{function}({', '.join((self.quote(code), at, *columns))})"

    def collect(self, column: str, guard: str) -> str:
        return f"collect_list(CASE WHEN {guard} IS NOT NULL THEN coalesce({column}, '') END)"

    def sorted_text(self, column: str) -> str:
        return f"array_join(array_sort(collect_set({column})), chr(1))"


DUCKDB = Dialect()
SPARK = SparkDialect()
DIALECTS = {dialect.name: dialect for dialect in (DUCKDB, SPARK)}

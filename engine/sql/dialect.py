"""Where the two SQL engines differ: Spark SQL (executor `sql`) and DuckDB inside a Spark task (executor `local`).

Everything else of the plan text is the same for both. What a document says reaches SQL through `Dialect.quote` alone; nothing else in
engine/spark puts quotes around a value (tests/unit/spark/test_quoting.py reads the sources).
"""

import re
from collections.abc import Callable, Sequence

UNDECIDED = "thalweg: not decided in SQL"
_FIXED = re.compile(r"[ -&(-\[\]-~]*")


def fixed(text: str) -> str:
    """A literal of Thalweg's own words, which every dialect spells alike. Raises ValueError for any other than printable ASCII without
    quote mark, backslash and dollar sign."""
    if not _FIXED.fullmatch(text) or "$" in text:
        raise ValueError(f"not a text of our own: {text!r}")
    return "'" + text + "'"


_NUL, _SPLICED = "\0", "'||chr(0)||'"


class Dialect:
    """DuckDB's spelling; Spark's overrides it."""

    name = "local"
    stars = False
    case_short_circuits = True
    recursive = True
    heaps = True
    steps = True    # Spark puts the text of a column where it is read: each step of arithmetic would double the one before
    numbers_stars = True    # the facts of a star are made once, and each scan knows its own by a number; Spark makes them for each scan
    inline = "NOT MATERIALIZED "
    """What stands before a common table expression that is not to be made: DuckDB makes those that are read more than once."""

    def sort_key(self, parts: Sequence[tuple[str, bool]]) -> str:
        """One value in whose order columns stand in theirs; True for those that descend."""
        listed = [f"{name}, {self.quote('DESC NULLS LAST' if descends else 'ASC NULLS LAST')}" for name, descends in parts]
        return f"create_sort_key({', '.join(listed)})"

    def quote(self, text: str) -> str:
        """A string literal, of any text that UTF-8 can hold. DuckDB cannot hold NUL in a literal's text, so it is spliced in by code;
        nothing that a plan asks for has one (canonical tokens escape it)."""
        quoted = "'" + text.replace("'", "''") + "'"
        return f"({_SPLICED.join(quoted.split(_NUL))})" if _NUL in quoted else quoted

    def call(self, function: str, code: str, at: str, columns: Sequence[str]) -> str:
        """A call of one of the Python functions of worker/functions.py over the tokens in `columns`."""
        return f"{function}({self.quote(code)}, {at}, CAST([{', '.join(columns)}] AS VARCHAR[]))"

    def order_key(self, column: str) -> str:
        """The text that ORDER BY compares for a column of tokens."""
        return f"tw_key({column})"

    def collect(self, column: str, guard: str) -> str:
        """The list of a group's tokens, '' for an error, without the rows where `guard` is null."""
        return f"list(coalesce({column}, '')) FILTER (WHERE {guard} IS NOT NULL)"

    def aggregate(self, code: str, tokens: str) -> str:
        """The call of an aggregate of worker/functions.py over a list of tokens."""
        return f"tw_agg({self.quote(code)}, {tokens})"

    def sorted_text(self, column: str) -> str:
        """The distinct texts of a group, sorted and joined by a character below all others in them."""
        return f"array_to_string(list_sort(list(DISTINCT {column})), chr(1))"

    def undecided(self, kind: str) -> str:
        """What ends the plan where SQL cannot tell: it is run again without types."""
        return f"CAST(error({fixed(UNDECIDED)}) AS {kind})"

    def otherwise(self, call: Callable[[], str], kind: str) -> str:
        """What a CASE gives for a row that SQL cannot decide; DuckDB asks Python for such rows alone."""
        return call()

    def struct(self, **fields: str) -> str:
        """A struct; structs are ordered by their fields, the first one first."""
        return "struct_pack(" + ", ".join(f"{name} := {value}" for name, value in fields.items()) + ")"

    def gathered(self, value: str, condition: str, distinct: bool) -> str:
        """The list of a group's values where `condition` is true."""
        return f"list({'DISTINCT ' if distinct else ''}{value}) FILTER (WHERE {condition})"

    def sorted(self, values: str) -> str:
        """A list in ascending order."""
        return f"list_sort({values})"

    def each(self, values: str, field: str) -> str:
        """A field of each struct of a list."""
        return f"list_transform({values}, lambda e: e.{field})"

    def joined(self, values: str, separator: str) -> str:
        """The texts of a list as one."""
        return f"array_to_string({values}, {separator})"

    def sum_in_order(self, values: str) -> str:
        """The sum of doubles, one after the other."""
        return f"list_aggregate({values}, 'sum')"

    def unescaped(self, quoted: str) -> str:
        """The characters of a string in quotes: canonical N-Triples escapes as JSON does."""
        return f"json_extract_string({quoted}, '$')"

    def after_quote(self, token: str) -> str:
        """What follows a literal's last quote."""
        return f"split_part({token}, '\"', -1)"

    def starts(self, text: str, start: str) -> str:
        """Whether a text starts with another."""
        return f"starts_with({text}, {start})"

    def ends(self, text: str, end: str) -> str:
        """Whether a text ends with another."""
        return f"ends_with({text}, {end})"

    def octets(self, text: str) -> str:
        """The length in UTF-8."""
        return f"strlen({text})"

    def matches(self, text: str, pattern: str) -> str:
        """Whether a part of the text matches a pattern that both engines read alike."""
        return f"regexp_matches({text}, {self.quote(pattern)})"


class SparkDialect(Dialect):
    """Spark SQL in ANSI mode, `spark.sql.variable.substitute=false`, `escapedStringLiterals` off."""

    name = "sql"
    stars = True
    case_short_circuits = False
    recursive = False
    heaps = False
    steps = False
    numbers_stars = False
    inline = ""

    def quote(self, text: str) -> str:
        """A string literal. NUL is three digits, lest those that follow be read as a part of it."""
        return "'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("${", "$\\{").replace(_NUL, "\\000") + "'"

    def call(self, function: str, code: str, at: str, columns: Sequence[str]) -> str:
        return f"{function}({', '.join((self.quote(code), at, *columns))})"

    def collect(self, column: str, guard: str) -> str:
        return f"collect_list(CASE WHEN {guard} IS NOT NULL THEN coalesce({column}, '') END)"

    def sorted_text(self, column: str) -> str:
        return f"array_join(array_sort(collect_set({column})), chr(1))"

    def undecided(self, kind: str) -> str:
        return f"CAST(raise_error({fixed(UNDECIDED)}) AS {kind})"

    def otherwise(self, call: Callable[[], str], kind: str) -> str:
        """Spark would call Python for every row: the plan is run again without types instead."""
        return self.undecided(kind)

    def struct(self, **fields: str) -> str:
        return "named_struct(" + ", ".join(f"{fixed(name)}, {value}" for name, value in fields.items()) + ")"

    def gathered(self, value: str, condition: str, distinct: bool) -> str:
        return f"collect_{'set' if distinct else 'list'}(CASE WHEN {condition} THEN {value} END)"

    def sorted(self, values: str) -> str:
        return f"array_sort({values})"

    def each(self, values: str, field: str) -> str:
        return f"transform({values}, e -> e.{field})"

    def joined(self, values: str, separator: str) -> str:
        return f"array_join({values}, {separator})"

    def sum_in_order(self, values: str) -> str:
        return f"aggregate({values}, CAST(0 AS DOUBLE), (a, e) -> a + e)"

    def unescaped(self, quoted: str) -> str:
        return f"from_json('{{\"a\":' || {quoted} || '}}', 'a string').a"

    def after_quote(self, token: str) -> str:
        return f"substring_index({token}, '\"', -1)"

    def starts(self, text: str, start: str) -> str:
        return f"startswith({text}, {start})"

    def ends(self, text: str, end: str) -> str:
        return f"endswith({text}, {end})"

    def octets(self, text: str) -> str:
        return f"octet_length({text})"

    def matches(self, text: str, pattern: str) -> str:
        return f"({text} RLIKE {self.quote(pattern)})"


DUCKDB = Dialect()
SPARK = SparkDialect()
DIALECTS = {dialect.name: dialect for dialect in (DUCKDB, SPARK)}

"""Where the two SQL engines differ: Spark SQL (executor `sql`) and DuckDB inside a Spark task (executor `local`).

Everything else of the plan text is the same for both. What a document says reaches SQL through `Dialect.quote` alone; nothing else in
engine/spark puts quotes around a value (tests/unit/spark/test_quoting.py reads the sources).
"""

from __future__ import annotations

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
    inline = "NOT MATERIALIZED "
    """What stands before a common table expression that is not to be made: DuckDB makes those that are read more than once."""

    # Templates: what stands for each text that they are given.
    order_key = "tw_key({})".format
    """The text that ORDER BY compares for a column of tokens."""
    collect = "list(coalesce({}, '')) FILTER (WHERE {} IS NOT NULL)".format
    """The list of a group's tokens in a column, '' for an error, without the rows where the second text, a guard, is null."""
    sorted_text = "array_to_string(list_sort(list(DISTINCT {})), chr(1))".format
    """The distinct texts of a group, sorted and joined by a character below all others in them."""
    sorted = "list_sort({})".format
    """A list in ascending order."""
    each = "list_transform({}, lambda e: e.{})".format
    """Of a list of structs one field of each."""
    joined = "array_to_string({}, {})".format
    """The texts of a list as one, with a separator."""
    sum_in_order = "list_aggregate({}, 'sum')".format
    """The sum of doubles, one after the other."""
    after_quote = "split_part({}, '\"', -1)".format
    """What follows a literal's last quote."""
    starts = "starts_with({}, {})".format
    """Whether a text starts with another."""
    ends = "ends_with({}, {})".format
    """Whether a text ends with another."""
    octets = "strlen({})".format
    """The length in UTF-8."""

    def sort_key(self, parts: Sequence[tuple[str, bool]]) -> str:
        """One value in whose order columns stand in theirs; True for those that descend."""
        return f"create_sort_key({', '.join(f'{name}, {self.quote(self._direction(descends))}' for name, descends in parts)})"

    @staticmethod
    def _direction(descends: bool) -> str:
        return "DESC NULLS LAST" if descends else "ASC NULLS LAST"

    def quote(self, text: str) -> str:
        """A string literal, of any text that UTF-8 can hold. DuckDB cannot hold NUL in a literal's text, so it is spliced in by code;
        nothing that a plan asks for has one (canonical tokens escape it)."""
        quoted = "'" + text.replace("'", "''") + "'"
        return f"({_SPLICED.join(quoted.split(_NUL))})" if _NUL in quoted else quoted

    def call(self, function: str, code: str, at: str, columns: Sequence[str]) -> str:
        """A call of one of the Python functions of worker/functions.py over the tokens in `columns`."""
        return f"{function}({self.quote(code)}, {at}, CAST([{', '.join(columns)}] AS VARCHAR[]))"

    def aggregate(self, code: str, tokens: str) -> str:
        """The call of an aggregate of worker/functions.py over a list of tokens."""
        return f"tw_agg({self.quote(code)}, {tokens})"

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

    def unescaped(self, quoted: str) -> str:
        """The characters of a string in quotes: canonical N-Triples escapes as JSON does."""
        return f"json_extract_string({quoted}, '$')"

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
    inline = ""

    collect = "collect_list(CASE WHEN {1} IS NOT NULL THEN coalesce({0}, '') END)".format
    sorted_text = "array_join(array_sort(collect_set({})), chr(1))".format
    sorted = "array_sort({})".format
    each = "transform({}, e -> e.{})".format
    joined = "array_join({}, {})".format
    sum_in_order = "aggregate({}, CAST(0 AS DOUBLE), (a, e) -> a + e)".format
    after_quote = "substring_index({}, '\"', -1)".format
    starts = "startswith({}, {})".format
    ends = "endswith({}, {})".format
    octets = "octet_length({})".format

    def quote(self, text: str) -> str:
        """A string literal. NUL is three digits, lest those that follow be read as a part of it."""
        return "'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("${", "$\\{").replace(_NUL, "\\000") + "'"

    def call(self, function: str, code: str, at: str, columns: Sequence[str]) -> str:
        return f"{function}({', '.join((self.quote(code), at, *columns))})"

    def undecided(self, kind: str) -> str:
        return f"CAST(raise_error({fixed(UNDECIDED)}) AS {kind})"

    def otherwise(self, call: Callable[[], str], kind: str) -> str:
        """Spark would call Python for every row: the plan is run again without types instead."""
        return self.undecided(kind)

    def struct(self, **fields: str) -> str:
        return "named_struct(" + ", ".join(f"{fixed(name)}, {value}" for name, value in fields.items()) + ")"

    def gathered(self, value: str, condition: str, distinct: bool) -> str:
        return f"collect_{'set' if distinct else 'list'}(CASE WHEN {condition} THEN {value} END)"

    def unescaped(self, quoted: str) -> str:
        return f"from_json('{{\"a\":' || {quoted} || '}}', 'a string').a"

    def matches(self, text: str, pattern: str) -> str:
        return f"({text} RLIKE {self.quote(pattern)})"


DUCKDB = Dialect()
SPARK = SparkDialect()
DIALECTS = {dialect.name: dialect for dialect in (DUCKDB, SPARK)}

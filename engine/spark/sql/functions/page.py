"""Writes docs/functions.md from the tables: ``python -m engine.spark.sql.functions.page > docs/functions.md``."""

from __future__ import annotations

from engine.spark.sql.functions.tables import LOWERED, REFUSED, SIMPLE, UDF

HEAD = """# Functions

How each function, operator, aggregate and cast of SPARQL 1.1 (sections 17 and 18.5.1) runs; made from
`engine/spark/sql/functions/tables.py`. Both executors run the same: SQL where SQL decides a value exactly, else a call of
`engine/functions`, which is also what the reference evaluation calls (an Arrow UDF in Spark SQL, an Arrow function in DuckDB).
A content in which a value turns up that the SQL does not decide is evaluated once more by calls alone.
"""
SECTIONS = (
    ("SIMPLE", "A template over the tokens of the arguments.", {name: f"`{sql}`" for name, sql in SIMPLE.items()}),
    ("LOWERED", "SQL for what the right column says; the rest is a call.", LOWERED),
    ("UDF", "A call for each distinct row.", UDF),
    ("REFUSED", "Refused when the query is registered, with its place.", REFUSED),
)


def page() -> str:
    """The text of the page."""
    parts = [HEAD]
    for title, about, table in SECTIONS:
        rows = [f"| `{name.replace('|', chr(92) + '|')}` | {how.replace('|', chr(92) + '|')} |" for name, how in table.items()]
        parts.append("\n".join([f"## {title}", "", about, "", "| function | how |", "|---|---|", *rows]) + "\n")
    return "\n".join(parts)


if __name__ == "__main__":
    print(page(), end="")

"""Writes docs/functions.md from the tables: ``python -m tests.functions_page --update``."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

from engine.functions import regex_matchers, regexes
from engine.functions.library import FUNCTIONS
from engine.functions.regex_syntax import DEEPEST_NESTING, LONGEST_PATTERN, MOST_REPEATS
from engine.ir.builtins import BUILTINS
from engine.ir.terms import RDF, XSD
from engine.sql.functions.tables import REFUSED, SIMPLE, TABLES, UDF

PAGE = Path(__file__).resolve().parents[1] / "docs" / "functions.md"
HEAD = """# Functions

How each function, operator, aggregate and cast of SPARQL 1.1 runs, on the executors `sql` (Spark SQL) and `local` (DuckDB inside
Spark's tasks). Made from `engine/sql/functions/tables.py`; `python -m tests.functions_page --update` writes it anew.

- **SQL** is text of the plan. It decides a value exactly or not at all: values of kind HARD (numbers of more than 15 digits, NaN,
  nanoseconds) and what the last column leaves out are *undecided*. `local` calls `engine/functions` for an undecided row alone;
  comparisons of variables with constants, groups and ORDER BY end the plan instead, as all of them do on `sql`. Such a plan is run
  again by calls alone, and so is that query from then on.
- **A call** is one Python function for a whole expression, once for each distinct row: an Arrow UDF on `sql`, an Arrow function of
  DuckDB on `local`. It is what the reference evaluation uses, so the answers are the same.
- `NOW()` is the evaluation time T, and `RAND()` is seeded by query, T, row and call, as are `UUID`, `STRUUID` and `BNODE`: a replay
  gives what the live run gave.
- A function named by an unknown IRI is an error in every row, as SPARQL 1.1 section 17.6 allows.
- A pattern of `REGEX` or `REPLACE` has at most {pattern:,} characters, a counted repeat (`{{n,m}}`) at most {repeats:,}; parentheses and
  classes nest at most {nesting:,} deep. A text for which backtracking might take more than about {steps:,.0f} steps (more than
  {long:,} characters for `a{{1000}}`; any text for repeats without a bound within such repeats) is matched by an
  automaton instead. It has at most {program:,} states, takes at most {machine:,} steps, and knows no back references. What exceeds a bound
  is an error in SPARQL's sense: a FILTER is not true, BIND leaves the variable unbound. `POST /explain` and the answer to a registration
  warn of a constant pattern that is an error whatever the text (`bad-pattern`).
- RIF's built-ins (`docs/rules.md`) can be called in queries too, by their IRIs. They include casts that the tables below do not have:
  {casts}.
"""
CASTS = [iri for iri, builtin in BUILTINS.items() if builtin.group == "casts" and iri not in FUNCTIONS]
"""Casts that RIF has and SPARQL has not."""
SECTIONS: dict[str, tuple[str, ...]] = {
    "17.2": ("!", "&&", "||"),
    "17.3": ("=", "!=", "<", ">", "<=", ">=", "+", "-", "*", "/", "U+", "U-"),
    "17.4.1": ("BOUND", "IF", "COALESCE", "EXISTS", "NOT EXISTS", "SAMETERM", "IN", "NOT IN"),
    "17.4.2": ("ISIRI", "ISURI", "ISBLANK", "ISLITERAL", "ISNUMERIC", "STR", "LANG", "DATATYPE", "IRI", "URI", "BNODE", "STRDT",
               "STRLANG", "UUID", "STRUUID"),
    "17.4.3": ("STRLEN", "SUBSTR", "UCASE", "LCASE", "STRSTARTS", "STRENDS", "CONTAINS", "STRBEFORE", "STRAFTER", "ENCODE_FOR_URI",
               "CONCAT", "LANGMATCHES", "REGEX", "REPLACE"),
    "17.4.4": ("ABS", "ROUND", "CEIL", "FLOOR", "RAND"),
    "17.4.5": ("NOW", "YEAR", "MONTH", "DAY", "HOURS", "MINUTES", "SECONDS", "TIMEZONE", "TZ"),
    "17.4.6": ("MD5", "SHA1", "SHA256", "SHA384", "SHA512"),
    "18.5.1": ("COUNT", "SUM", "MIN", "MAX", "AVG", "SAMPLE", "GROUP_CONCAT"),
}
FORMS = {"!": "! a", "U+": "+ a", "U-": "- a", "IN": "a IN (b, ...)", "NOT IN": "a NOT IN (b, ...)", "IF": "IF(a, b, c)",
         "BOUND": "BOUND(?a)", "COALESCE": "COALESCE(a, ...)", "EXISTS": "EXISTS { ... }", "NOT EXISTS": "NOT EXISTS { ... }",
         "COUNT": "COUNT([DISTINCT] a or *)", "GROUP_CONCAT": 'GROUP_CONCAT([DISTINCT] a ; SEPARATOR = "...")',
         "TIMESTAMP": "TIMESTAMP(?s, ?p, ?o), TIMESTAMP(?item)",
         "WINDOW_OPEN": "WINDOW_OPEN(window)", "WINDOW_CLOSE": "WINDOW_CLOSE(window)"}
AGGREGATES = SECTIONS["18.5.1"]
OF_PLANS = frozenset(("EXISTS", "NOT EXISTS", "TIMESTAMP", "WINDOW_OPEN", "WINDOW_CLOSE"))


def section(name: str) -> str:
    """The section of SPARQL 1.1 that defines a function."""
    if name.startswith("<"):
        return "17.5" if name in FUNCTIONS else "18.5.1"
    return next((number for number, names in SECTIONS.items() if name in names), "ours")


def short(name: str) -> str:
    """A function's name as texts with the usual prefixes have it."""
    return name.replace(f"<{XSD}", "xsd:").replace(f"<{RDF}", "rdf:").rstrip(">") if name[0] == "<" else name


def form(name: str) -> str:
    """How a function is written, with its arguments."""
    if name in FORMS or name in REFUSED:
        return FORMS.get(name, name)
    if name in AGGREGATES:
        return f"{name}([DISTINCT] a)"
    function = FUNCTIONS.get(name)
    if function is None or not (name[0].isalpha() or name[0] == "<"):
        return f"a {name} b"
    names = "abcd"
    args = ", ".join(names[:function.least])
    if function.most is None:
        args = "a, ..."
    elif function.most > function.least:
        args += f"[, {', '.join(names[function.least:function.most])}]" if args else f"[{names[:function.most]}]"
    return f"{short(name)}({args})"


def runs(name: str) -> tuple[str, str]:
    """How it runs on `sql` and on `local`."""
    if name in UDF:
        return "call", "call"
    if name in REFUSED:
        return "refused", "refused"
    return ("SQL", "SQL") if name in SIMPLE or name in OF_PLANS else ("SQL, or the plan by calls", "SQL, or a call for the row")


def page() -> str:
    """The text of the page."""
    order = [*SECTIONS, "17.5", "ours"]
    casts = textwrap.fill(", ".join(f"`{short(name)}`" for name in CASTS), 130, subsequent_indent="  ", break_on_hyphens=False)
    parts = [HEAD.format(casts=casts, pattern=LONGEST_PATTERN, repeats=MOST_REPEATS, nesting=DEEPEST_NESTING, steps=regexes.MOST_STEPS,
                         long=regexes.regex("a{1000}").finder.longest, program=regex_matchers.LARGEST_PROGRAM,
                         machine=regex_matchers.MOST_STEPS)]
    for title, table in TABLES.items():
        rows = ["| function | `sql` | `local` | SPARQL 1.1 | how |", "|---|---|---|---|---|"]
        for name in sorted(table, key=lambda name: order.index(section(name))):
            how = f"`{table[name]}`" if name in SIMPLE else table[name]
            rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in (f"`{form(name)}`", *runs(name), section(name), how)) + " |")
        parts.append("\n".join([f"## {title}", "", *rows]) + "\n")
    return "\n".join(parts)


if __name__ == "__main__":
    if "--update" in sys.argv[1:]:
        PAGE.write_text(page(), encoding="utf-8")
    else:
        print(page(), end="")

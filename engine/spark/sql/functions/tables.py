"""How every function, operator, aggregate and cast of SPARQL 1.1 runs: each stands in exactly one of four tables.

SIMPLE is a template over the tokens of the arguments. LOWERED is rewritten into other SQL first: what the text says is SQL on both
executors, the rest is a call. UDF is a call of engine/functions (Arrow UDF on `sql`, function of DuckDB on `local`). REFUSED is
refused when the query is registered.
"""

from __future__ import annotations

SIMPLE: dict[str, str] = {
    "BOUND": "({0} IS NOT NULL)",
    "SAMETERM": "({0} = {1})",
    "ISIRI": "(substr({0}, 1, 1) = '<')",
    "ISURI": "(substr({0}, 1, 1) = '<')",
    "ISBLANK": "(substr({0}, 1, 1) = '_')",
    "ISLITERAL": "(substr({0}, 1, 1) = '\"')",
}

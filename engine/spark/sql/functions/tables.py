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

_COMPARED = "numbers, dateTimes, booleans and strings by their typed companions; IRIs by their tokens"
_COUNTED = "whole numbers and decimals of at most 15 digits by their typed companions"
_TEXT = "strings with and without a language tag; texts with escapes, and what a text engine might see otherwise, by a call"

LOWERED: dict[str, str] = {
    "&&": "three-valued AND, an error being NULL", "||": "three-valued OR, an error being NULL", "!": "NOT",
    **dict.fromkeys(("=", "!=", "<", ">", "<=", ">="), _COMPARED),
    "IN": "equality with each of at most 16 choices", "NOT IN": "equality with each of at most 16 choices",
    **dict.fromkeys(("+", "-", "*", "/", "U+", "U-", "ABS", "CEIL", "FLOOR", "ROUND"), _COUNTED),
    "ISNUMERIC": "the kind among the typed companions",
    **dict.fromkeys(("STR", "LANG", "DATATYPE", "STRLEN", "UCASE", "LCASE", "SUBSTR", "STRBEFORE", "STRAFTER", "CONCAT", "CONTAINS",
                     "STRSTARTS", "STRENDS", "LANGMATCHES"), _TEXT),
    "REGEX": "constant patterns that RE2, Java's engine and ours read alike",
    **dict.fromkeys(("YEAR", "MONTH", "DAY", "HOURS", "MINUTES", "SECONDS"), "the digits of a dateTime with a year of four digits"),
    "IF": "CASE, where condition and branches are SQL", "COALESCE": "coalesce, where the arguments are SQL",
    "EXISTS": "a join with the distinct outer rows", "COUNT": "count",
    **dict.fromkeys(("SUM", "AVG"), "whole numbers and decimals of at most 15 digits; other groups by a call"),
    **dict.fromkeys(("MIN", "MAX"), "numbers, dateTimes and strings by their typed companions; other groups by a call"),
    "SAMPLE": "the least token", "GROUP_CONCAT": "strings in the order of their tokens; other groups by a call",
    "TIMESTAMP": "a look-up in the windows' content", "WINDOW_OPEN": "a look-up in the windows' bounds",
    "WINDOW_CLOSE": "a look-up in the windows' bounds",
}

UDF: dict[str, str] = {
    "ENCODE_FOR_URI": "", "REPLACE": "", "IRI": "resolved against the BASE of the text", "URI": "as IRI", "STRDT": "", "STRLANG": "",
    "MD5": "", "SHA1": "", "SHA256": "", "SHA384": "", "SHA512": "", "TZ": "", "TIMEZONE": "",
    "NOW": "the evaluation time T, so that a replay equals the live query",
    **dict.fromkeys(("RAND", "UUID", "STRUUID", "BNODE"),
                    "derived from the query, T, the row and the call, so that a replay equals the live query"),
    "xsd:<type>": "casts to the XSD types, integer's derived ones included",
}

REFUSED: dict[str, str] = {
    "<iri>(DISTINCT ...)": "aggregates named by an IRI: none is defined",
    "<<( ... )>>": "triple terms of RDF 1.2 and their functions: not part of SPARQL 1.1",
}

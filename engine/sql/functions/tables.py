"""How every function, operator, aggregate and cast of SPARQL 1.1 runs: each stands in exactly one of four tables.

SIMPLE is a template over the tokens of the arguments. LOWERED is rewritten into other SQL first; the text says what of it is SQL, the
rest is a call. UDF is a call of engine/functions (Arrow UDF on executor `sql`, function of DuckDB on `local`). REFUSED is refused when
the query is registered. The keys are the names of `engine.ir.expressions.Call` and `Aggregate`; docs/functions.md is made of them.
"""

from engine.functions.datatypes import CASTS

SIMPLE: dict[str, str] = {
    "BOUND": "({0} IS NOT NULL)",
    "SAMETERM": "({0} = {1})",
    "ISIRI": "(substr({0}, 1, 1) = '<')",
    "ISURI": "(substr({0}, 1, 1) = '<')",
    "ISBLANK": "(substr({0}, 1, 1) = '_')",
    "ISLITERAL": "(substr({0}, 1, 1) = '\"')",
}

_COMPARED = "numbers, dateTimes, strings, IRIs, blank nodes and booleans with constants, on the columns kind, number and micros"
_EXACT = "whole numbers below 1e15, decimals of six fraction digits below 1e8, doubles; the token of a double is a call"
_FIELD = "dateTimes of four-digit years"
_TEXT = "all strings; a result that needs escapes is a call"
_DATE = "dateTimes and dates of four-digit years"

LOWERED: dict[str, str] = {
    "||": "three-valued OR", "&&": "three-valued AND", "!": "NOT",
    "=": _COMPARED, "!=": _COMPARED, "<": _COMPARED, ">": _COMPARED, "<=": _COMPARED, ">=": _COMPARED,
    "+": _EXACT, "-": _EXACT, "*": _EXACT, "/": "in comparisons that are not too close to tell; the token is a call",
    "U-": _EXACT, "U+": _EXACT, "ABS": _EXACT, "CEIL": _EXACT, "FLOOR": _EXACT, "ROUND": _EXACT,
    "IN": "a chain of = of at most 16 choices; any number of IRIs", "NOT IN": "as IN",
    "IF": "CASE, where all three arguments are SQL", "COALESCE": "coalesce, where all arguments are SQL",
    "EXISTS": "a join with the distinct outer values", "NOT EXISTS": "as EXISTS",
    "ISNUMERIC": "of variables, by kind",
    "STR": "of variables, and inside other functions", "LANG": "of variables, and inside other functions", "DATATYPE": "of variables",
    "STRLEN": "all strings", "SUBSTR": "with whole constants as places; " + _TEXT,
    "UCASE": "ASCII texts; " + _TEXT, "LCASE": "ASCII texts; " + _TEXT,
    "STRSTARTS": "all strings", "STRENDS": "all strings", "CONTAINS": "all strings",
    "STRBEFORE": "before a constant without tag; " + _TEXT, "STRAFTER": "after a constant without tag; " + _TEXT,
    "CONCAT": _TEXT, "LANGMATCHES": "with a constant range",
    "REGEX": "constant patterns that Java and RE2 read as XPath does: no back references, no repeated groups, no class subtraction, flags "
             "none or i; with i, \\d, \\p{..} and the like, ASCII texts",
    "YEAR": _DATE, "MONTH": _DATE, "DAY": _DATE, "HOURS": _FIELD, "MINUTES": _FIELD, "SECONDS": _FIELD,
    "COUNT": "count", "SAMPLE": "the least token", "GROUP_CONCAT": "in the order of tokens",
    "SUM": "integers and decimals exactly, doubles in the order of tokens; mixes of doubles and exact numbers are a call",
    "AVG": "as SUM; the quotient is a call for each group",
    "MIN": "numbers, dateTimes, strings, IRIs, blank nodes, mixed too", "MAX": "as MIN",
    "TIMESTAMP": "a look-up in the window", "WINDOW_OPEN": "a look-up among the windows' bounds", "WINDOW_CLOSE": "as WINDOW_OPEN",
}

_CASE = "its lexical rules are those of XSD"
_DIGEST = "a digest of the characters"
_OWN = "derived from (query, T, row, call), so that a replay equals the live run"

UDF: dict[str, str] = {
    "IRI": "resolves against BASE", "URI": "resolves against BASE", "STRDT": "checks its arguments", "STRLANG": "checks its arguments",
    "BNODE": _OWN, "UUID": _OWN, "STRUUID": _OWN, "RAND": "seeded by (query, T, row, call)",
    "NOW": "the evaluation time T, so that a replay equals the live run",
    "ENCODE_FOR_URI": "percent-encodes UTF-8", "REPLACE": "the engines replace differently",
    "TIMEZONE": "the written zone", "TZ": "the written zone",
    "MD5": _DIGEST, "SHA1": _DIGEST, "SHA256": _DIGEST, "SHA384": _DIGEST, "SHA512": _DIGEST,
    **dict.fromkeys(CASTS, _CASE),
}

REFUSED: dict[str, str] = {
    "<iri>(DISTINCT ...)": "aggregates named by an IRI: SPARQL 1.1 defines none",
}

TABLES: dict[str, dict[str, str]] = {"SIMPLE": SIMPLE, "LOWERED": LOWERED, "UDF": UDF, "REFUSED": REFUSED}

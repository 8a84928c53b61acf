"""Where pyoxigraph is known to differ from SPARQL 1.1: by reason, and the queries for which it may. These are compared with the
reference evaluator on Spark only."""

from __future__ import annotations

import re

_TEXT = r"\b(?:STR|STRLEN|CONCAT|UCASE|MD5|ENCODE_FOR_URI|IRI|REGEX|CONTAINS|STRSTARTS|STRENDS|xsd:string|GROUP_CONCAT)\("
_INEXACT = r"e0|xsd:float|xsd:double"
_REPEATED = r"(?:\)[*?]|[*?]/)"

# The text that is searched is the query with the triples of its dataset behind it.
DIFFERENCES: dict[str, str] = {
    "the new name in GROUP BY (?v AS ?k) is forgotten (section 18.2.4.1)": r"GROUP BY .*\(\?\w+ AS ",
    "COUNT of an expression that is an error everywhere is no error, but 0 (section 18.5.1.2)": r"COUNT\((?:DISTINCT )?[^?*D]",
    "alternatives inside a path add up, as UNION does (section 18.4)": r"\w\|[:^(]|\)[*+?]?\|[:^(!]",
    "floats and doubles lose their lexical form, and are not written as XSD's canonical form (section 17.5)":
        f"(?s)(?=.*(?:{_INEXACT})).*{_TEXT}",
    "a given end of a path of length zero need not occur in the graph (section 18.4, ZeroLengthPath)":
        rf"(?::a [^ ]*{_REPEATED}[^ ]* |{_REPEATED}[^ ]* :b)",
    "IN () and NOT IN () do not look at the truth of their left side (section 17.4.1.9)": r"IN \(\)",
    "an order that is not in the operator table is an error even between equal terms (section 17.3)":
        r"[<>]=? (?:\?|\(|\w+\()|(?:\?\w+|\)) [<>]",
    "MINUS inside EXISTS does not share the variables that are substituted (section 18.6)": r"EXISTS .*MINUS",
    "GRAPH ?g binds ?g after the group is evaluated: MINUS in it does not share ?g (section 18.6)": r"GRAPH \?.*MINUS",
    "GRAPH ?g with a group without triples ranges over the named graphs all the same (section 18.6)":
        r"GRAPH [^ ]+ \{ (?:VALUES|BIND|\}|\{|FILTER|OPTIONAL|MINUS)",
    "blank nodes of a pattern are no part of its solutions, which COUNT(DISTINCT *) counts (section 18.3)": r"COUNT\(DISTINCT \*\)",
    "which of several equal terms is the least, and of terms without an order, is open (section 15.1)": r"\b(?:MIN|MAX)\(",
    "a literal with a language tag has a truth value, an ill-typed number is false (section 17.2.2)":
        r"(?s)(?=.*@|.*\^xsd:integer).*(?:IF\(|FILTER\(|[(!|&] ?)\?\w+(?:\)| \|| &|,)",
    "a negated property set has a solution for each triple, between given ends too (section 18.4)": r":a !\S+ :b",
}


def reasons(text: str) -> list[str]:
    """The differences that a query may show."""
    return [reason for reason, pattern in DIFFERENCES.items() if re.search(pattern, text)]

"""From "the grammar came this far" to a message with a hint: the mistakes that people make most, and how to write it instead."""

from bisect import bisect_right
from collections.abc import Iterable
from difflib import get_close_matches

from engine.ir.spans import Diagnostic
from grammar.body import beginnings
from grammar.clauses import FORMS, ClauseError
from grammar.text import Text, Token

_UPDATES = frozenset("INSERT DELETE LOAD CLEAR DROP CREATE ADD MOVE COPY WITH".split())
_MODIFIERS = frozenset(("GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET"))
_OURS = ("REGISTER", "FROM", "USING", "WINDOW", "STREAM", "RSTREAM", "ISTREAM", "DSTREAM", "WHERE", *_MODIFIERS)
_NO_TOKEN = Token("", "", -1, -1)
_NAMED_WINDOW = "FROM NAMED WINDOW :w ON <stream> [RANGE 10s STEP 2s]"
_NO_IRI = "an IRI ends with > and holds no spaces, quotes, braces or backslashes"
_CLAUSE_HINTS = {
    "'['": "a window stands in brackets: FROM STREAM <iri> [RANGE 10s STEP 2s]",
    "an IRI": "write <http://ex.org/s>, or prefix:name with its PREFIX",
    "ON": _NAMED_WINDOW,
}
_A_TERM = 'a variable is written ?{0}, an IRI <http://ex.org/{0}> or prefix:{0}, a string "{0}"'
_REGISTER = "REGISTER QUERY name AS SELECT ..."
_ARROWS = ":-", "<-"
_RULES = "a program of rules is sent as text/x-lars or text/x-datalogmtl; files end in .lars or .dmtl"
_QUOTES = frozenset("\u2018\u2019\u201a\u201c\u201d\u201e\u00ab\u00bb`")
# What stood before a place where only a bracket or brace fits.
_BRACED = frozenset(("WHERE", "OPTIONAL", "MINUS", "EXISTS", "UNION", "ASK", "CONSTRUCT"))
_BRACKETED = {"FILTER": "a condition stands in brackets: FILTER({0} > 30)", "HAVING": "a condition stands in brackets: HAVING({0} > 30)",
              "BIND": "write BIND({0} AS ?name)", "ASC": "write ASC({0})", "DESC": "write DESC({0})",
              "NOT": "write FILTER(!{0}), or FILTER NOT EXISTS {{ ... }}"}
_ENDS = {"LIMIT": "LIMIT takes a number: LIMIT 10", "OFFSET": "OFFSET takes a number: OFFSET 10", "BY": "name a variable: BY ?x",
         "FILTER": "a condition stands in brackets: FILTER(?x > 30)", "WHERE": "the pattern stands in braces: WHERE { ... }"}
# Extents of windows as other languages write them.
_THE_LAST = "the last triples or items: [TRIPLES 10] or [ITEMS 10]"
_EXTENTS = {"ROWS": _THE_LAST, "LAST": _THE_LAST, "STEP": "RANGE stands before STEP: [RANGE 10s STEP 2s]",
            "SLIDE": "RANGE stands before SLIDE: [RANGE 10s SLIDE 2s]",
            "TUMBLING": "write [RANGE 10s TUMBLING]", "SLIDING": "write [RANGE 10s STEP 2s]"}
_WORD_HINTS = {
    "GROUPBY": "write GROUP BY", "ORDERBY": "write ORDER BY",
    "AND": "write &&", "OR": "write ||", "NOT": "write ! before the operand",
    "SELECT": "a sub-query stands in braces of its own: { SELECT ... }",
    "UNION": "UNION stands between groups: { ... } UNION { ... }",
    "FROM": "sources stand between the SELECT clause and WHERE", "USING": "sources stand between the SELECT clause and WHERE",
    **{word: f"{word} stands before SELECT, or right after it" for word in ("RSTREAM", "ISTREAM", "DSTREAM")},
}


def clause_diagnostic(text: Text, tokens: tuple[Token, ...], error: ClauseError) -> Diagnostic:
    """The message about a mistake in REGISTER, FROM, USING or a window."""
    index = _index_at(tokens, error.place)
    if error.length:
        return text.error(error.message, error.place, error.place + error.length, hint=error.hint)
    hint = _clause_hint(error.message.removeprefix("Expected "), tokens, index)
    if index == len(tokens):
        return text.error(f"{error.message}, found the end of the text.", error.place, error.place, hint=hint)
    token = tokens[index]
    return text.error(f"{error.message}, found '{token.shown}'.", token.start, token.end, hint=hint)


def body_diagnostic(text: Text, tokens: tuple[Token, ...], place: int, expected: tuple[str, ...]) -> Diagnostic:
    """The message about a text that SPARQL's grammar does not take: it came to `place`, where it tried `expected`."""
    index = _index_at(tokens, place)
    wanted = set(expected)
    if FORMS <= wanted and not any(token.word == "REGISTER" for token in tokens):
        wanted.add("REGISTER")
    if index == len(tokens):
        end = tokens[-1].end if tokens else 0
        last = tokens[-1].word if tokens else ""
        hint = "close the group with '}'" if "'}'" in wanted else _ENDS.get(last)
        return text.error(f"The text ends too early: expected {listed(wanted)}.", end, end, hint=hint)
    token = tokens[index]
    message = f"Expected {listed(wanted)}, found '{token.shown}'."
    hint = _RULES if FORMS <= wanted and any(arrow in text.written for arrow in _ARROWS) else _body_hint(tokens, index, wanted)
    return _limit(text, tokens, index, wanted) or text.error(message, token.start, token.end, hint=hint)


def listed(expected: Iterable[str]) -> str:
    """What was expected, as a person says it: all that a term or an expression can begin with is "a term", "an expression"."""
    names = set(expected)
    for label, beginning in beginnings():
        if beginning <= names:
            names = names - beginning | {label}
    ordered = sorted(names, key=lambda name: (not name.startswith(("a ", "an ")), name))
    if len(ordered) > 9:
        ordered = ordered[:8] + ["..."]
    return ordered[0] if len(ordered) == 1 else f"{', '.join(ordered[:-1])} or {ordered[-1]}"


def _clause_hint(expected: str, tokens: tuple[Token, ...], index: int) -> str | None:
    found = tokens[index].text if index < len(tokens) else ""
    before = tokens[index - 1].word if index else ""
    match expected:
        case "an IRI" if before == "WINDOW":
            return f"the name comes before its stream: {_NAMED_WINDOW}"
        case "an IRI" if found == "<":
            return _NO_IRI
        case "'['" | "an IRI" | "ON":
            return _CLAUSE_HINTS[expected]
        case "']'" if found == ",":
            return "no comma in a window: [RANGE 10s STEP 2s]"
        case "']'" if found[:1].isdigit():
            return "after RANGE: STEP 2s, or TUMBLING"
        case "']'":
            return _misspelt(found, ("STEP", "SLIDE", "TUMBLING")) or "close the window: [RANGE 10s STEP 2s]"
        case "FROM, USING or WHERE" if found == "[":
            return "a window goes with a stream: FROM STREAM <iri> [RANGE 10s STEP 2s]"
        case "FROM, USING or WHERE" if found == ",":
            return "no comma between sources: FROM STREAM <a> [...] FROM STREAM <b> [...]"
        case "STREAM, NAMED or an IRI" if found.upper() == "WINDOW":
            return _NAMED_WINDOW
        case "STREAM, NAMED or an IRI" if found.upper() == "GRAPH":
            return "FROM <graph>, without GRAPH"
        case "RULES or GRAPH" if index < len(tokens):
            return f"write USING RULES {found}"
        case "a count":
            return f"{before} needs a count: [{before} 100]"
    if expected.startswith("RANGE,"):
        return _extent_hint(tokens, index)
    if expected.startswith("QUERY,"):
        return _misspelt(found, ("QUERY", "STREAM")) or f"say what is registered: {_REGISTER}"
    if expected.startswith("a duration"):
        return f"{before} needs a value: {before} 2s" if before in ("STEP", "SLIDE", "RANGE", "EVERY") else "10s, 500ms or PT10S"
    return _misspelt(found, expected.replace(",", " ").split())


def _extent_hint(tokens: tuple[Token, ...], index: int) -> str | None:
    """What stands first in a window's brackets, and is neither RANGE nor TRIPLES."""
    found = tokens[index] if index < len(tokens) else None
    if found is None:
        return None
    if found.kind == "number":
        after = tokens[index + 1] if index + 1 < len(tokens) else None
        unit = after.text if after is not None and after.kind == "word" and after.start == found.end else "s"
        return f"say what it is: [RANGE {found.text}{unit}], or [TRIPLES {found.text}]"
    return _EXTENTS.get(found.word) or _misspelt(found.text, ("RANGE", "TRIPLES", "ITEMS", "FROM", "NOW", "ALL"))


def _limit(text: Text, tokens: tuple[Token, ...], index: int, expected: set[str]) -> Diagnostic | None:
    """What is no mistake in SPARQL, or in another of its versions, and not taken here."""
    token = tokens[index]
    follows = text.decoded[token.end:token.end + 1]
    if token.word in _UPDATES and FORMS <= expected:
        return text.error(f"{token.word} is SPARQL Update, which this server does not take.", token.start, token.end,
                          code="update-not-supported", hint="push to a stream, or replace a graph")
    if token.text == ";" and index + 1 == len(tokens) and "the end of the text" in expected:
        return text.error("Expected the end of the text, found ';'.", token.start, token.end, hint="no ';' behind a query")
    if "the end of the text" in expected and (token.word in FORMS | {"REGISTER", "PREFIX", "BASE"} or token.text == ";"):
        return text.error("One text holds one query.", token.start, token.end, code="two-queries", hint="register each query on its own")
    if token.text == "<" and follows == "<":
        return text.error("Triple terms of RDF 1.2 are not supported.", token.start, token.end + 1,
                          hint="use rdf:Statement with rdf:subject, rdf:predicate and rdf:object")
    if token.text == "|" and index and tokens[index - 1].text == "{":
        return text.error("Annotations of RDF 1.2 are not supported.", tokens[index - 1].start, token.end)
    return None


def _body_hint(tokens: tuple[Token, ...], index: int, expected: set[str]) -> str | None:
    token = tokens[index]
    before = tokens[index - 1] if index else _NO_TOKEN
    after = tokens[index + 1] if index + 1 < len(tokens) else _NO_TOKEN
    selects = before.word in ("SELECT", "DISTINCT", "REDUCED")
    found = _first(
        ("AS" in expected and token.kind == "variable", f"write AS before the new variable: AS {token.text}"),
        ("AS" in expected and token.text == ")", "an expression in SELECT or BIND needs a name: (... AS ?name)"),
        (selects and token.kind == "word" and after.text == "(",
         f"an expression in SELECT stands in brackets: ({token.word}(...) AS ?name)"),
        (token.word == "AS", "an expression and its name stand in brackets: (COUNT(?x) AS ?n)"),
        (token.text in _QUOTES, "a string stands in straight quotes: \"...\" or '...'"),
        (True, _prologue_hint(tokens, index, expected)),
        (True, _bracket_hint(before, token, expected)),
        (token.text == "," and "WHERE" in expected, "no commas in SELECT: SELECT ?x ?y"),
        (before.end == token.start and (before.text, token.text) == ("=", ">"), "greater or equal is written >="),
        (token.text == "<>", "not equal is written !="),
        (token.text == "=" and before.text == "=", "equality is written ="),
        (token.text == "," and "an operator" in expected and before.kind == "number", "a decimal number has a point: 30.5"),
        ("a number" in expected and before.word in ("LIMIT", "OFFSET"), _ENDS.get(before.word)),
        (token.word in _MODIFIERS and "'}'" in expected, f"close the group with '}}' before {token.word}"),
        ("an operator" in expected and token.text == "{", "close the bracket of the expression before the group"),
        (token.text == "<" and "an IRI" in expected, _NO_IRI),
        (token.text == "A" and "'a'" in expected, "rdf:type is written a, in lower case"),
        (True, _WORD_HINTS.get(token.word)))
    if found is not None:
        return found
    if token.word:
        meant = _misspelt(token.word, [name for name in expected if name.isupper()] + list(_OURS))
        return meant or _name_hint(token, expected, selects)
    ended = "'.'" in expected and token.kind in ("variable", "iri", "name", "blank")
    return "end the triple before it with '.', or go on with ';' or ','" if ended else None


def _first(*rows: tuple[bool, str | None]) -> str | None:
    """The first hint that there is beside what holds."""
    return next((hint for holds, hint in rows if holds and hint is not None), None)


def _prologue_hint(tokens: tuple[Token, ...], index: int, expected: set[str]) -> str | None:
    """A declaration of a prefix as other languages write it."""
    token, words = tokens[index], [before.word for before in tokens[max(0, index - 3):index]]
    text = token.text
    return _first(
        (text.lower() in ("@prefix", "@base"), f"SPARQL writes {text[1:].upper()} ex: <http://ex.org/>, without @ and without a dot"),
        ("a prefix" in expected and words[-1:] == ["PREFIX"], f"a prefix ends with a colon: PREFIX {text}: <http://ex.org/>"),
        (words[-2:-1] == ["PREFIX"] and "an IRI" in expected and token.kind == "name",
         "the IRI stands in angle brackets: PREFIX ex: <http://ex.org/>"),
        ("PREFIX" in words and "PREFIX" in expected and text in (".", ";"), f"no '{text}' behind PREFIX ex: <http://ex.org/>"))


def _bracket_hint(before: Token, token: Token, expected: set[str]) -> str | None:
    """Where a bracket or brace must stand and does not."""
    what = "template" if before.word == "CONSTRUCT" else "pattern"
    bracketed = before.word in _BRACKETED and token.kind in ("variable", "word", "number", "name")
    return _first(
        ("'{'" in expected and before.word in _BRACED and token.text != "{", f"the {what} stands in braces: {before.word} {{ ... }}"),
        (bracketed, _BRACKETED.get(before.word, "").format(token.text)),
        (before.word in ("ORDER", "GROUP") and expected == {"BY"}, f"write {before.word} BY {token.text}"),
        (token.text in ("<", ">", "=", "!=", "<=", ">=") and before.text == ")" and "LIMIT" in expected,
         "a condition stands in brackets: HAVING(COUNT(?x) > 1)"),
        (before.word == "SELECT" and token.text == "{", "say what is selected: SELECT * or SELECT ?x ?y"))


def _name_hint(token: Token, expected: set[str], selects: bool) -> str | None:
    """A bare word where SPARQL has variables, IRIs and strings."""
    if selects:
        return f"a variable begins with a question mark: ?{token.text}"
    if "a variable" in expected and not expected & {"a string"}:
        return f"a property is written <http://ex.org/{token.text}>, prefix:{token.text} or ?{token.text}"
    return _A_TERM.format(token.text) if "a string" in expected else None


def _misspelt(found: str, words: Iterable[str]) -> str | None:
    close = get_close_matches(found.upper(), sorted({word for word in words if word.isalpha()}), 1, 0.7)
    return f"did you mean {close[0]}?" if close and close[0] != found.upper() else None


def _index_at(tokens: tuple[Token, ...], place: int) -> int:
    """The index of the first token that ends behind `place`."""
    return bisect_right([token.end for token in tokens], place)

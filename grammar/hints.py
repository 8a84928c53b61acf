"""From "the grammar came this far" to a message with a hint: the mistakes that people make most, and how to write it instead."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from difflib import get_close_matches

from engine.ir.spans import Diagnostic
from grammar.clauses import ClauseError
from grammar.scanner import Token
from grammar.text import Text

_TERM = frozenset(("an IRI", "a variable", "a blank node", "a string", "a number", "a boolean", "'('", "'['"))
_OPERAND = frozenset(("a variable", "a string", "a number", "EXISTS", "REGEX", "'!'", "'-'"))
_STARTS = frozenset(("SELECT", "CONSTRUCT", "ASK", "DESCRIBE"))
_UPDATES = frozenset("INSERT DELETE LOAD CLEAR DROP CREATE ADD MOVE COPY WITH".split())
_OURS = ("REGISTER", "FROM", "USING", "WINDOW", "STREAM", "RSTREAM", "ISTREAM", "DSTREAM", "WHERE", "GROUP", "ORDER", "HAVING", "LIMIT")


def token_at(tokens: tuple[Token, ...], place: int) -> Token | None:
    """The first token that ends behind `place`."""
    index = bisect_left([token.end for token in tokens], place + 1)
    return tokens[index] if index < len(tokens) else None


def clause_diagnostic(text: Text, tokens: tuple[Token, ...], error: ClauseError) -> Diagnostic:
    """The message about a mistake in REGISTER, FROM, USING or a window."""
    token = token_at(tokens, error.place)
    if error.length or token is None:
        start, end = error.place, error.place + max(error.length, 1)
        message = error.message if error.length else f"{error.message}, found the end of the text."
        return text.error(message, start, end, hint=error.hint or _clause_hint(error.message, tokens, None))
    hint = error.hint or _clause_hint(error.message, tokens, token)
    return text.error(f"{error.message}, found '{_short(token.text)}'.", token.start, token.end, hint=hint)


def _clause_hint(message: str, tokens: tuple[Token, ...], token: Token | None) -> str | None:
    expected = message.removeprefix("Expected ")
    before = _word_before(tokens, token)
    found = token.text if token else ""
    if expected == "'['":
        return "a window stands in brackets: FROM STREAM <iri> [RANGE 10s STEP 2s]"
    if expected == "']'":
        if token is not None and token.kind == "number":
            return "after RANGE: STEP 2s or TUMBLING"
        return _misspelt(found, ("STEP", "SLIDE", "TUMBLING")) or "close the window: [RANGE 10s STEP 2s]"
    if expected.startswith("a duration"):
        return f"{before} needs a value: {before} 2s" if before in ("STEP", "SLIDE", "RANGE", "EVERY") else "10s, 500ms or PT10S"
    if expected == "an IRI" and before == "WINDOW":
        return "the name comes before its stream: FROM NAMED WINDOW :w ON <stream> [RANGE 10s STEP 2s]"
    if expected == "an IRI":
        return "write <http://ex.org/s>, or prefix:name with its PREFIX"
    if expected == "ON":
        return "FROM NAMED WINDOW :w ON <stream> [RANGE 10s STEP 2s]"
    if expected == "FROM, USING or WHERE":
        if found == ",":
            return "no comma between sources: FROM STREAM <a> [...] FROM STREAM <b> [...]"
        return _misspelt(found, ("FROM", "USING", "WHERE"))
    if expected == "STREAM, NAMED or an IRI" and found.upper() == "WINDOW":
        return "FROM NAMED WINDOW :w ON <stream> [RANGE 10s STEP 2s]"
    if expected == "STREAM, NAMED or an IRI" and found.upper() == "GRAPH":
        return "FROM <graph>, without GRAPH"
    return _misspelt(found, expected.replace(",", " ").split())


def body_diagnostic(text: Text, tokens: tuple[Token, ...], place: int, expected: tuple[str, ...]) -> Diagnostic:
    """The message about a text that SPARQL's grammar does not take."""
    token = token_at(tokens, place)
    if token is None:
        end = len(text.decoded)
        start = tokens[-1].start if tokens else 0
        return text.error(f"The text ends too early: expected {listed(expected)}.", start, end, hint=_ending_hint(expected))
    found = _short(token.text)
    if token.word in _UPDATES and _STARTS <= set(expected):
        return text.error(f"{token.word} is SPARQL Update, which this server does not take.", token.start, token.end,
                          code="update-not-supported", hint="push to a stream, or PUT a graph")
    if "the end of the text" in expected and (token.word in _STARTS or token.word in ("REGISTER", "PREFIX", "BASE") or found == ";"):
        return text.error("One text holds one query.", token.start, token.end, code="two-queries", hint="register each query on its own")
    if found == "<" and text.decoded[token.end:token.end + 1] == "<":
        return text.error("Triple terms of RDF 1.2 are not supported.", token.start, token.end + 1,
                          hint="use rdf:Statement with rdf:subject, rdf:predicate and rdf:object")
    if found.startswith("{") and text.decoded[token.end:token.end + 1] == "|":
        return text.error("Annotations of RDF 1.2 are not supported.", token.start, token.end + 1)
    return text.error(f"Expected {listed(expected)}, found '{found}'.", token.start, token.end,
                      hint=_body_hint(tokens, token, set(expected)))


def _body_hint(tokens: tuple[Token, ...], token: Token, expected: set[str]) -> str | None:
    word = token.word
    index = tokens.index(token)
    before = tokens[index - 1] if index else None
    if "AS" in expected and token.kind == "variable":
        return f"write AS before the new variable: AS {token.text}"
    if "AS" in expected and token.text == ")":
        return "an expression in SELECT or BIND needs a name: (... AS ?name)"
    if word == "AS" and "AS" not in expected:
        return "an expression with its name stands in brackets: (COUNT(?x) AS ?n)"
    if before is not None and before.word == "SELECT" and token.kind == "word" and index + 1 < len(tokens) and tokens[index + 1].text == "(":
        return f"an expression in SELECT stands in brackets: ({word}(...) AS ?name)"
    if word in ("GROUPBY", "ORDERBY"):
        return f"write {word[:-2]} BY"
    if word in ("GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET") and "'}'" in expected:
        return f"close the group with '}}' before {word}"
    if word in ("FROM", "USING"):
        return "sources stand between the SELECT clause and WHERE"
    if word in ("RSTREAM", "ISTREAM", "DSTREAM"):
        return f"{word} stands before SELECT, or right after it"
    if "an operator" in expected and token.text == "{":
        return "close the bracket of the expression before the group"
    if word:
        words = [name for name in expected if name.isupper()]
        if _STARTS & expected or "WHERE" in expected or "GRAPH" in expected:
            words.extend(_OURS)
        return _misspelt(word, words)
    if token.kind == "name" and token.text.endswith(":") and "PREFIX" in expected:
        return "declare prefixes with PREFIX"
    if "'.'" in expected and before is not None and token.kind in ("variable", "iri", "name", "blank"):
        return "end the triple before it with '.', or go on with ';' or ','"
    return None


def listed(expected: Iterable[str]) -> str:
    """What was expected, as a person says it; long lists of what a term or an expression can begin with become one word."""
    names = set(expected)
    if _OPERAND <= names:
        names = {"an expression"} | (names & {"'*'", "DISTINCT", "')'", "AS", "ASC", "DESC"})
    elif len(_TERM & names) >= 6:
        names = {"a term"} | {name for name in names - _TERM if not name.isalpha() or name.isupper()}
    ordered = sorted(names, key=lambda name: (not name.startswith("a"), name))
    if len(ordered) > 10:
        ordered = ordered[:9] + ["..."]
    return ordered[0] if len(ordered) == 1 else f"{', '.join(ordered[:-1])} or {ordered[-1]}"


def _ending_hint(expected: tuple[str, ...]) -> str | None:
    return "close the group with '}'" if "'}'" in expected else None


def _misspelt(found: str, words: Iterable[str]) -> str | None:
    close = get_close_matches(found.upper(), sorted({word for word in words if word.isalpha()}), 1, 0.7)
    return f"did you mean {close[0]}?" if close and close[0] != found.upper() else None


def _word_before(tokens: tuple[Token, ...], token: Token | None) -> str:
    index = tokens.index(token) if token is not None else len(tokens)
    return tokens[index - 1].word if index else ""


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "..."

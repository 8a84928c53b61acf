"""Bytes of a body under caps: decompressed piece by piece, nested no deeper than allowed, no DOCTYPE, no ill-formed language tags.

The nesting is checked before pyoxigraph reads: very deep JSON-LD or triple terms overflow its stack and would take the process along. Of
JSON-LD it leaves out the literals with an ill-formed tag (JSON-LD 1.1 API, section 8.2.2), and says nothing: here they are refused. A tag
may stand under `@language`, under a term that a context makes a name for that, or as a key of a language map. Which terms are names and
which have language maps is found in all contexts of a body together, wherever they stand.
"""

import json
import re
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO, BinaryIO
from xml.parsers import expat

from engine.ir.terms import is_language_tag
from server.formats.items import syntax_problem
from server.formats.media import JSONL, JSONLD, NQUADS, NTRIPLES, RDFXML, TIMED
from server.problems import Problem

_PIECE = 256 * 1024
_BOM = b"\xef\xbb\xbf"
_DOCTYPE = re.compile(rb"<!\s*(?:DOCTYPE|ENTITY)", re.IGNORECASE)
# Strings, IRIs, comments and escapes of Turtle and TriG. Each alternative matches whatever follows its first character (an
# unclosed one runs to the end of the line or text), so that a scan is linear in the length.
_TURTLE_TOKENS = re.compile(
    rb'"""[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*(?:"""|\\?\Z)' rb"|'''[^'\\]*(?:(?:\\.|'(?!''))[^'\\]*)*(?:'''|\\?\Z)"
    rb'|"[^"\\\n]*(?:\\.[^"\\\n]*)*(?:"|(?=\n)|\\?\Z)' rb"|'[^'\\\n]*(?:\\.[^'\\\n]*)*(?:'|(?=\n)|\\?\Z)"
    rb"|<(?:[^<>\"{}|^`\x00-\x20]*>)?|#[^\n]*|\\.", re.DOTALL)
JSON_STRINGS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)', re.DOTALL)
_NOT_BRACKETS = bytes(set(range(256)) - set(b"()[]{}"))
_OPEN = frozenset(b"([{")
_LANGUAGE, _NONE, _CONTEXT = "@language", "@none", "@context"


def read_body(source: BinaryIO, encoding: str | None, limit: int, limit_decompressed: int | None = None) -> bytes:
    """The whole body, at most `limit` bytes as sent and `limit_decompressed` after ``Content-Encoding: gzip``."""
    coding = (encoding or "identity").strip().lower()
    if coding == "identity":
        return b"".join(_capped(source, limit))
    if coding not in ("gzip", "x-gzip"):
        raise Problem("unsupported-media-type", f"Content-Encoding {coding} is not supported; gzip is.",
                      extra={"supported": ["gzip", "identity"]}, headers={"Accept-Encoding": "gzip"})
    return gunzip(source, limit, limit_decompressed or limit)


def gunzip(source: IO[bytes], limit: int, limit_decompressed: int) -> bytes:
    """Decompress one or several gzip members, stopping as soon as a cap is passed."""
    pieces: list[bytes] = []
    given = 0
    engine, started = zlib.decompressobj(31), False
    for piece in _capped(source, limit):
        while piece:
            try:
                pieces.append(engine.decompress(piece, limit_decompressed - given + 1))
            except zlib.error as error:
                raise Problem("bad-request", f"The body is not valid gzip: {error}.") from error
            started = True
            given += len(pieces[-1])
            if given > limit_decompressed:
                raise _too_large(limit_decompressed, given, "decompressed ")
            piece = engine.unconsumed_tail
            if engine.eof:
                piece, engine, started = engine.unused_data, zlib.decompressobj(31), False
    if started:
        raise Problem("bad-request", "The gzip body ends too early.")
    return b"".join(pieces)


def inflates_past(source: IO[bytes], limit: int) -> bool:
    """Whether a gzip body has more than `limit` bytes when it is decompressed. One that is not valid has none."""
    try:
        gunzip(source, sys.maxsize, limit)
    except Problem as problem:
        return problem.slug == "body-too-large"
    return False


def prepared(body: bytes, media: str, nesting: int) -> bytes:
    """`body` without its byte order mark, once it is known to be safe to parse as `media`."""
    body = body[len(_BOM):] if body.startswith(_BOM) else body
    if media == RDFXML:
        _check_xml(body, nesting)
    elif media in (NQUADS, NTRIPLES, TIMED):
        _check_triple_terms(body, nesting)
    elif media != JSONL:
        check_nesting(body, JSON_STRINGS if media == JSONLD else _TURTLE_TOKENS, nesting)
    return body


def check_lines(body: bytes, media: str, most: int) -> None:
    """Refuse a body of lines that has too many, before anything is made of them. Empty ones count: each costs memory too."""
    if media not in (NQUADS, NTRIPLES, TIMED, JSONL):
        return
    if body.count(b"\n") + (body.count(b"\r") - body.count(b"\r\n") if b"\r" in body else 0) > most:
        raise Problem("too-many-triples", f"A push may have {most} lines.", extra={"limit": most})


def check_nesting(text: bytes, tokens: re.Pattern[bytes], nesting: int) -> None:
    """Refuse `text` whose brackets outside of `tokens` nest deeper than `nesting`."""
    if sum(text.count(bracket) for bracket in (b"(", b"[", b"{")) <= nesting:
        return
    depth = 0
    for bracket in tokens.sub(b"", text).translate(None, _NOT_BRACKETS):
        depth = depth + 1 if bracket in _OPEN else max(0, depth - 1)
        if depth > nesting:
            raise _too_deep(nesting, depth)


def _check_triple_terms(body: bytes, nesting: int) -> None:
    """Line formats nest only by RDF 1.2 triple terms, which are refused later, by name."""
    if body.count(b"<<") > nesting:
        for line in body.split(b"\n"):
            if line.count(b"<<(") > nesting:
                check_nesting(line, _TURTLE_TOKENS, nesting)


def _check_xml(body: bytes, nesting: int) -> None:
    parser, depth = expat.ParserCreate(), 0

    def start(*_: object) -> None:
        nonlocal depth
        depth += 1
        if depth > nesting:
            raise _too_deep(nesting, depth)

    def end(*_: object) -> None:
        nonlocal depth
        depth -= 1

    def doctype(*_: object) -> None:
        raise Problem("rdf-syntax", "RDF/XML with a DOCTYPE or ENTITY declaration is refused.")

    if _DOCTYPE.search(body):
        doctype()
    parser.StartElementHandler, parser.EndElementHandler, parser.StartDoctypeDeclHandler = start, end, doctype
    try:
        parser.Parse(body, True)
    except expat.ExpatError as error:
        raise syntax_problem(f"The XML is not well-formed: {expat.ErrorString(error.code)}.", body,
                             error.lineno, error.offset + 1) from error


def _capped(source: IO[bytes], limit: int) -> Iterator[bytes]:
    taken = 0
    while piece := source.read(_PIECE):
        taken += len(piece)
        if taken > limit:
            raise _too_large(limit, taken)
        yield piece


def _too_large(limit: int, actual: int, what: str = "") -> Problem:
    return Problem("body-too-large", f"The {what}body has more than {limit} bytes.", extra={"limit": limit, "actual": actual})


def _too_deep(limit: int, actual: int) -> Problem:
    return Problem("nesting-too-deep", f"The body is nested more than {limit} levels deep.", extra={"limit": limit, "actual": actual})


class _Members(list[tuple[str, object]]):
    """A JSON object as it is written: two members may have one name."""


@dataclass(slots=True)
class _Terms:
    """What contexts say of terms: `names` by what they stand for, `maps` are the terms whose values are language maps."""

    names: dict[str, set[str]] = field(default_factory=dict)
    maps: set[str] = field(default_factory=set)

    def names_of(self, keyword: str) -> set[str]:
        """A keyword and all terms that stand for it, also through other terms."""
        found, waiting = set[str](), [keyword]
        while waiting:
            if (name := waiting.pop()) not in found:
                found.add(name)
                waiting += self.names.get(name, ())
        return found


def check_languages(text: bytes) -> None:
    """Refuse JSON-LD with an ill-formed language tag. What is no JSON is left to the parser."""
    if b"@language" not in text and b"\\u" not in text:
        return
    try:
        tree = json.loads(text, object_pairs_hook=_Members, parse_int=str, parse_float=str, strict=False)
    except ValueError:
        return
    terms = _Terms()
    for name, value, in_context in _members(tree):
        if in_context:
            _define(name, value, terms)
    for tag in _tags(tree, terms):
        if not is_language_tag(tag):
            raise Problem("rdf-syntax", f"{tag[:200]!r} is no language tag.", errors=[{"detail": f"not a language tag: {tag[:200]!r}"}])


def _define(term: str, value: object, terms: _Terms) -> None:
    """A term's definition: what it stands for, or an object that says so."""
    if term.startswith("@"):
        return
    if isinstance(value, str):
        terms.names.setdefault(value, set()).add(term)
    elif isinstance(value, _Members):
        for name, said in value:
            if name == "@id" and isinstance(said, str):
                terms.names.setdefault(said, set()).add(term)
            elif name == "@container" and (said == _LANGUAGE or isinstance(said, list) and _LANGUAGE in said):
                terms.maps.add(term)


def _members(node: object, in_context: bool = False) -> Iterator[tuple[str, object, bool]]:
    """All members of all objects, each with whether it stands in a context."""
    if isinstance(node, _Members):
        for name, value in node:
            yield name, value, in_context
            yield from _members(value, in_context or name == _CONTEXT)
    elif isinstance(node, list):
        for value in node:
            yield from _members(value, in_context)


def _tags(tree: object, terms: _Terms) -> Iterator[str]:
    """All language tags. In a context a term that stands for `@language` is defined, not used."""
    names, nowhere = terms.names_of(_LANGUAGE), terms.names_of(_NONE)
    for name, value, in_context in _members(tree):
        if isinstance(value, str) and (name == _LANGUAGE if in_context else name in names):
            yield value
        if not in_context and name in terms.maps and isinstance(value, _Members):
            yield from (tag for tag, _ in value if tag not in nowhere)

"""Bytes of a body under caps: decompressed piece by piece, nested no deeper than allowed, no DOCTYPE.

The nesting is checked before pyoxigraph reads: very deep JSON-LD or triple terms overflow its stack and would take the process along.
"""

from __future__ import annotations

import re
import sys
import zlib
from typing import IO, BinaryIO
from xml.parsers import expat

from server.formats.media import JSONL, JSONLD, NQUADS, NTRIPLES, RDFXML, TIMED
from server.formats.syntax import syntax_problem
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
_JSON_STRINGS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)', re.DOTALL)
_NOT_BRACKETS = bytes(set(range(256)) - set(b"()[]{}"))
_OPEN = frozenset(b"([{")


def read_body(source: BinaryIO, encoding: str | None, limit: int, limit_decompressed: int | None = None) -> bytes:
    """The whole body, at most `limit` bytes as sent and `limit_decompressed` after ``Content-Encoding: gzip``."""
    coding = (encoding or "identity").strip().lower()
    if coding == "identity":
        return _capped(source, limit)
    if coding not in ("gzip", "x-gzip"):
        raise Problem("unsupported-media-type", f"Content-Encoding {coding} is not supported; gzip is.",
                      extra={"supported": ["gzip", "identity"]}, headers={"Accept-Encoding": "gzip"})
    return gunzip(source, limit, limit_decompressed or limit)


def gunzip(source: IO[bytes], limit: int, limit_decompressed: int) -> bytes:
    """Decompress one or several gzip members, stopping as soon as a cap is passed."""
    pieces: list[bytes] = []
    taken = given = 0
    engine, started = zlib.decompressobj(31), False
    while piece := source.read(_PIECE):
        taken += len(piece)
        if taken > limit:
            raise _too_large(limit, taken)
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
        check_nesting(body, _JSON_STRINGS if media == JSONLD else _TURTLE_TOKENS, nesting)
    return body


def check_lines(body: bytes, media: str, most: int) -> None:
    """Refuse a body of lines that has too many, before anything is made of them. Empty ones count: each costs memory too."""
    if media not in (NQUADS, NTRIPLES, TIMED, JSONL):
        return
    if body.count(b"\n") + (body.count(b"\r") - body.count(b"\r\n") if b"\r" in body else 0) > most:
        raise Problem("too-many-triples", f"A push may have {most} lines.", extra={"limit": most})


def check_json_nesting(text: bytes, nesting: int) -> None:
    """Refuse JSON that is nested deeper than `nesting`."""
    check_nesting(text, _JSON_STRINGS, nesting)


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
    if _DOCTYPE.search(body):
        raise Problem("rdf-syntax", "RDF/XML with a DOCTYPE or ENTITY declaration is refused.")
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

    parser.StartElementHandler, parser.EndElementHandler, parser.StartDoctypeDeclHandler = start, end, doctype
    try:
        parser.Parse(body, True)
    except expat.ExpatError as error:
        raise syntax_problem(f"The XML is not well-formed: {expat.ErrorString(error.code)}.", body,
                             error.lineno, error.offset + 1) from error


def _capped(source: BinaryIO, limit: int) -> bytes:
    pieces, taken = [], 0
    while piece := source.read(_PIECE):
        taken += len(piece)
        if taken > limit:
            raise _too_large(limit, taken)
        pieces.append(piece)
    return b"".join(pieces)


def _too_large(limit: int, actual: int, what: str = "") -> Problem:
    return Problem("body-too-large", f"The {what}body has more than {limit} bytes.", extra={"limit": limit, "actual": actual})


def _too_deep(limit: int, actual: int) -> Problem:
    return Problem("nesting-too-deep", f"The body is nested more than {limit} levels deep.", extra={"limit": limit, "actual": actual})

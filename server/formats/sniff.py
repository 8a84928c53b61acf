"""Which type a body is, by its first bytes: only to tell a client that named none, never to read it so."""

from __future__ import annotations

import re
import zlib

from server.formats.media import JSONL, JSONLD, NQUADS, NTRIPLES, RDFXML, TIMED, TRIG, TURTLE

LOOKED_AT = 4096
_BLANK = re.compile(rb"\A(?:\xef\xbb\xbf)?(?:\s+|#[^\n]*(?:\n|\Z))*")
_TERM = rb'(?:<[^<>"{}|^`\\\s]*>|_:[^\s<>"]+)'
_TRIPLE = rb"(?:" + _TERM + rb"\s*" + _TERM + rb'\s*(?:' + _TERM + rb'|"(?:[^"\\]|\\.)*"(?:@[\w-]+|\^\^<[^>]*>)?)\s*'
_NAMES = re.compile(_TRIPLE + _TERM + rb"\s*\.)")
_PLAIN = re.compile(_TRIPLE + rb"\.)")
_GRAPH = re.compile(rb"(?:\A|[.}>\s])(?:GRAPH\s*)?(?:" + _TERM + rb"|[\w.-]*:[\w.-]*)?\s*\{", re.IGNORECASE)
_QUOTED = re.compile(rb'"(?:[^"\\\n]|\\.)*"')


def fitting(start: bytes, encoding: str | None = None) -> str | None:
    """The type that a body with this `start` (of `LOOKED_AT` bytes at most) seems to have; None where it has the look of none."""
    if (encoding or "").strip().lower() in ("gzip", "x-gzip"):
        try:
            start = zlib.decompressobj(31).decompress(start, LOOKED_AT)
        except zlib.error:
            return None
    text = start[_BLANK.match(start).end():]  # type: ignore[union-attr]
    if text[:1] in (b"{", b"["):
        lines = text.split(b"\n")
        return JSONL if text[:1] == b"{" and len(lines) > 1 and lines[0].rstrip().endswith(b"}") and lines[1][:1] == b"{" else JSONLD
    if re.match(rb"-?\d+\t", text):
        return TIMED
    if re.match(rb"<\?xml|<!--|<(?:\w+:)?RDF[\s>]", text):
        return RDFXML
    if _NAMES.match(text):
        return NQUADS
    if _PLAIN.match(text):
        return NTRIPLES
    if re.match(rb"@prefix|@base|PREFIX\s|BASE\s|GRAPH\s|<|_:|[A-Za-z][\w.-]*:|:|\(", text, re.IGNORECASE):
        return TRIG if _GRAPH.search(_QUOTED.sub(b"", text)) else TURTLE
    return None

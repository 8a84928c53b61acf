"""Media types: which formats there are, what a request sends and what it accepts, and which type a body is by its first bytes: only to tell
a client that named none, never to read it so.

Werkzeug is imported with the first request: ``thalweg run`` has none, and saves 75 ms.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from pyoxigraph import QueryResultsFormat, RdfFormat

from server.problems import Problem

if TYPE_CHECKING:
    from werkzeug.datastructures import MIMEAccept

TRIG, NQUADS, NTRIPLES, TURTLE = "application/trig", "application/n-quads", "application/n-triples", "text/turtle"
JSONLD, RDFXML, JSONL, TIMED = "application/ld+json", "application/rdf+xml", "application/jsonl", "text/x-timed-ntriples"
XML = "application/xml"
JSON, SSE, HTML, TEXT = "application/json", "text/event-stream", "text/html", "text/plain"
SPARQL_QUERY, SPARQL_UPDATE, FORM = "application/sparql-query", "application/sparql-update", "application/x-www-form-urlencoded"
MERGE_PATCH = "application/merge-patch+json"
RESULTS_JSON, RESULTS_XML = "application/sparql-results+json", "application/sparql-results+xml"
CSV, TSV = "text/csv", "text/tab-separated-values"

ALIASES = {"application/x-ndjson": JSONL, "application/ndjson": JSONL, "application/x-trig": TRIG, "application/x-turtle": TURTLE,
           "text/x-nquads": NQUADS, "text/n-quads": NQUADS}

RDF_FORMATS: Mapping[str, RdfFormat] = {
    TURTLE: RdfFormat.TURTLE, TRIG: RdfFormat.TRIG, NQUADS: RdfFormat.N_QUADS, NTRIPLES: RdfFormat.N_TRIPLES, JSONLD: RdfFormat.JSON_LD,
    RDFXML: RdfFormat.RDF_XML,
}
PUSH_TYPES = (TRIG, NQUADS, JSONLD, JSONL, TURTLE, NTRIPLES, TIMED, RDFXML)
GRAPH_TYPES = (TURTLE, NTRIPLES, JSONLD, RDFXML, TRIG, NQUADS)
STREAMED_TYPES = frozenset((NQUADS, TRIG, JSONL, TIMED))

TABLE_TYPES = (RESULTS_JSON, RESULTS_XML, CSV, TSV, JSON, XML)
TABLE_FORMATS: Mapping[str, QueryResultsFormat] = {
    RESULTS_JSON: QueryResultsFormat.JSON, RESULTS_XML: QueryResultsFormat.XML, CSV: QueryResultsFormat.CSV, TSV: QueryResultsFormat.TSV,
    JSON: QueryResultsFormat.JSON, XML: QueryResultsFormat.XML,
}
GRAPH_RESULT_TYPES = (TRIG, TURTLE, NQUADS, JSONLD, NTRIPLES, RDFXML)
DATASET_TYPES = frozenset((TRIG, NQUADS, JSONLD))

# What ``format=``, ``output=`` and ``results=`` say at other SPARQL servers: of tables and of graphs.
FORMAT_NAMES: Mapping[str, tuple[str, ...]] = {
    "json": (RESULTS_JSON, JSONLD), "sparql": (RESULTS_XML,), "xml": (RESULTS_XML, RDFXML), "csv": (CSV,), "tsv": (TSV,),
    "rdf+xml": (RDFXML,), "rdfxml": (RDFXML,), "rdf": (RDFXML,), "turtle": (TURTLE,), "ttl": (TURTLE,), "n3": (TURTLE,),
    "json-ld": (JSONLD,), "jsonld": (JSONLD,), "nt": (NTRIPLES,), "ntriples": (NTRIPLES,), "n-triples": (NTRIPLES,),
    "trig": (TRIG,), "nquads": (NQUADS,),
}

EXTENSIONS = {".trig": TRIG, ".trigs": TRIG, ".nq": NQUADS, ".nt": NTRIPLES, ".ttl": TURTLE, ".jsonld": JSONLD, ".json": JSONLD,
              ".jsonl": JSONL, ".ndjson": JSONL, ".rdf": RDFXML, ".owl": RDFXML, ".xml": RDFXML, ".tsv": TIMED, ".timed": TIMED}
LOOKED_AT = 4096
_BLANK = re.compile(rb"\A(?:\xef\xbb\xbf)?(?:\s+|#[^\n]*(?:\n|\Z))*")
_TERM = rb'(?:<[^<>"{}|^`\\\s]*>|_:[^\s<>"]+)'
_TRIPLE = rb"(?:" + _TERM + rb"\s*" + _TERM + rb'\s*(?:' + _TERM + rb'|"(?:[^"\\]|\\.)*"(?:@[\w-]+|\^\^<[^>]*>)?)\s*'
_NAMES = re.compile(_TRIPLE + _TERM + rb"\s*\.)")
_PLAIN = re.compile(_TRIPLE + rb"\.)")
_GRAPH = re.compile(rb"(?:\A|[.}>\s])(?:GRAPH\s*)?(?:" + _TERM + rb"|[\w.-]*:[\w.-]*)?\s*\{", re.IGNORECASE)
_QUOTED = re.compile(rb'"(?:[^"\\\n]|\\.)*"')


def content_type(header: str | None, supported: Sequence[str], default: str | None = None) -> str:
    """The type of a body, one of `supported`, in UTF-8; 415 says so otherwise."""
    from werkzeug.http import parse_options_header
    written, options = parse_options_header(header or "")
    given = written.lower() or default or ""
    charset = options.get("charset", "utf-8").lower()
    if charset not in ("utf-8", "utf8", "us-ascii"):
        raise Problem("unsupported-media-type", f"A body in {charset[:100]} cannot be read here; UTF-8 can.",
                      extra={"supported": ["utf-8"]})
    media = ALIASES.get(given, given)
    if media not in supported:
        raise Problem("unsupported-media-type", f"A body of type {given or '(none)'} cannot be read here; see 'supported'.",
                      extra={"supported": list(supported)}, headers={"Accept": ", ".join(supported)})
    return media


def accepted(header: str | None, offered: Sequence[str]) -> str:
    """The best of `offered` for an Accept header, the first where anything will do; 406 names them otherwise."""
    accept = _accept(header or "*/*")
    if any(media == "*/*" and quality > 0 for media, quality in accept) and accept.best == "*/*":
        return offered[0]
    best = accept.best_match([*offered, *(alias for alias, media in ALIASES.items() if media in offered)])
    if best is None:
        raise Problem("not-acceptable", "None of the accepted types can be given here; see 'supported'.",
                      extra={"supported": list(offered)})
    return ALIASES.get(best, best)


def wished(header: str | None, names: Iterable[str], offered: Sequence[str]) -> str:
    """The best of `offered` for an Accept header; where that takes anything, or nothing of it, the first that one of `names` (of
    ``format=`` and the like) means. Names that mean nothing here are passed over."""
    meant = [media for name in names for media in FORMAT_NAMES.get(name.strip().lower(), (name.strip().lower(),)) if media in offered]
    if not meant:
        return accepted(header, offered)
    if not any(quality > 0 for media, quality in _accept(header or "") if media != "*/*"):
        return meant[0]
    try:
        return accepted(header, offered)
    except Problem:
        return meant[0]


def _accept(header: str) -> MIMEAccept:
    from werkzeug.datastructures import MIMEAccept
    from werkzeug.http import parse_accept_header
    return parse_accept_header(header, MIMEAccept)


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

"""Stored results in the formats that clients accept.

SELECT and ASK are stored as SPARQL 1.1 Results JSON, CONSTRUCT and DESCRIBE as N-Triples; the other formats are made from these.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping, Sequence

from pyoxigraph import Literal, NamedNode, Quad, QueryResultsFormat, RdfFormat, parse, parse_query_results, serialize

from engine.records import Triple
from server.formats.media import DATASET_TYPES, JSON, NTRIPLES, RDF_FORMATS, RDFXML, RESULTS_JSON, RESULTS_XML, TABLE_FORMATS, XML
from server.formats.stamps import GENERATED_AT, XSD
from server.problems import Problem

_NO_CHARACTER = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]|\xef\xbf[\xbe\xbf]")
_NO_NAME = re.compile(rb'<oxprefix: xmlns:oxprefix="([^"]*)"')      # an element whose name is only a prefix

PREFIXES: Mapping[str, str] = {
    "prov": "http://www.w3.org/ns/prov#", "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#", "sosa": "http://www.w3.org/ns/sosa/", "xsd": XSD,
}


def table(payload: bytes, media: str) -> bytes:
    """SPARQL Results JSON as `media` (SPARQL 1.1 Results JSON, XML, CSV and TSV)."""
    if media in (RESULTS_JSON, JSON):
        return payload
    text = bytes(parse_query_results(payload, QueryResultsFormat.JSON).serialize(format=TABLE_FORMATS[media]))  # type: ignore[arg-type]
    return _xml(text) if media in (RESULTS_XML, XML) else text


def graph(payload: bytes, media: str, name: str | None = None, at: str | None = None) -> bytes:
    """N-Triples as `media`; dataset formats get the graph `name` with ``prov:generatedAtTime`` where both are given."""
    if media == NTRIPLES:
        return payload
    triples = [quad.triple for quad in parse(payload, RdfFormat.N_TRIPLES, lenient=True)]
    if name is None or at is None or media not in DATASET_TYPES:
        text = bytes(serialize(triples, format=RDF_FORMATS[media], prefixes=_used(payload)) or b"")
        return _xml(text) if media == RDFXML else text
    label = NamedNode(name)
    stamp = Quad(label, NamedNode(GENERATED_AT), Literal(at, datatype=NamedNode(f"{XSD}dateTime")))
    quads = [stamp, *(Quad(t.subject, t.predicate, t.object, label) for t in triples)]
    prefixes = {"prov": PREFIXES["prov"], "xsd": XSD, **_used(payload)}
    return bytes(serialize(quads, format=RDF_FORMATS[media], prefixes=prefixes) or b"")


def dataset(graphs: Iterable[tuple[str | None, Sequence[Triple], Sequence[Triple]]], media: str) -> bytes:
    """Stream items as `media`: (graph name token, triples, triples of the default graph) each."""
    lines: list[str] = []
    for name, triples, about in graphs:
        lines += [f"{s} {p} {o} {name or ''} .\n" for s, p, o in triples]
        lines += [f"{s} {p} {o} .\n" for s, p, o in about]
    text = "".join(lines).encode()
    return bytes(serialize(parse(text, RdfFormat.N_QUADS, lenient=True), format=RDF_FORMATS[media], prefixes=_used(text)) or b"")


def graph_members(payload: bytes) -> bytes:
    """N-Triples as the JSON array of a JSON-LD ``@graph``."""
    return bytes(serialize((quad.triple for quad in parse(payload, RdfFormat.N_TRIPLES, lenient=True)), format=RdfFormat.JSON_LD) or b"[]")


def graph_of(triples: Iterable[Triple], media: str) -> bytes:
    """The triples of a static graph as `media`."""
    text = "".join(f"{s} {p} {o} .\n" for s, p, o in triples).encode()
    return graph(text, media)


def _xml(text: bytes) -> bytes:
    """The text itself; 406 where pyoxigraph wrote what no XML parser would read, since XML has no way to say it."""
    if _NO_CHARACTER.search(text):
        raise Problem("not-acceptable", "A literal of the result has a control character, which XML cannot hold; ask for another type.")
    if b"<oxprefix:" in text and (nameless := _NO_NAME.search(text)):
        raise Problem("not-acceptable", f"RDF/XML cannot hold the property <{html.unescape(nameless[1].decode())[:200]}>: it does not end "
                      "in a name; ask for another type.")
    return text


def _used(text: bytes) -> dict[str, str]:
    """The prefixes that would shorten something in `text`."""
    return {prefix: namespace for prefix, namespace in PREFIXES.items() if b"<" + namespace.encode() in text}

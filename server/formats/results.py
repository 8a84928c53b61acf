"""Stored results in the formats that clients accept.

SELECT and ASK are stored as SPARQL 1.1 Results JSON, CONSTRUCT and DESCRIBE as N-Triples; the other formats are made from these.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pyoxigraph import Literal, NamedNode, Quad, QueryResultsFormat, RdfFormat, parse, parse_query_results, serialize

from engine.records import Triple
from server.formats.media import DATASET_TYPES, JSON, NTRIPLES, RDF_FORMATS, RESULTS_JSON, TABLE_FORMATS
from server.formats.stamps import GENERATED_AT, XSD

PREFIXES: Mapping[str, str] = {
    "prov": "http://www.w3.org/ns/prov#", "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#", "sosa": "http://www.w3.org/ns/sosa/", "xsd": XSD,
}


def table(payload: bytes, media: str) -> bytes:
    """SPARQL Results JSON as `media` (SPARQL 1.1 Results JSON, XML, CSV and TSV)."""
    if media in (RESULTS_JSON, JSON):
        return payload
    return bytes(parse_query_results(payload, QueryResultsFormat.JSON).serialize(format=TABLE_FORMATS[media]))  # type: ignore[arg-type]


def graph(payload: bytes, media: str, name: str | None = None, at: str | None = None) -> bytes:
    """N-Triples as `media`; dataset formats get the graph `name` with ``prov:generatedAtTime`` where both are given."""
    if media == NTRIPLES:
        return payload
    triples = [quad.triple for quad in parse(payload, RdfFormat.N_TRIPLES, lenient=True)]
    if name is None or at is None or media not in DATASET_TYPES:
        return bytes(serialize(triples, format=RDF_FORMATS[media], prefixes=_used(payload)) or b"")
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


def _used(text: bytes) -> dict[str, str]:
    """The prefixes that would shorten something in `text`."""
    return {prefix: namespace for prefix, namespace in PREFIXES.items() if b"<" + namespace.encode() in text}

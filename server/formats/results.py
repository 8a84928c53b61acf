"""Stored results in the formats that clients accept, and streams in the VoCaLS vocabulary (https://w3id.org/rsp/vocals#).

SELECT and ASK are stored as SPARQL 1.1 Results JSON, CONSTRUCT and DESCRIBE as N-Triples; the other formats are made from these.
"""

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pyoxigraph import BlankNode, Literal, NamedNode, Quad, QueryResultsFormat, RdfFormat, parse, parse_query_results, serialize
from pyoxigraph import Triple as OxTriple

from engine.ir.terms import RDF_TYPE, XSD
from engine.records import Triple
from engine.runtime.resources import StreamInfo
from server.formats.media import DATASET_TYPES, JSON, NTRIPLES, RDFXML, RDF_FORMATS, RESULTS_JSON, RESULTS_XML, TABLE_FORMATS, XML
from server.formats.reading import read_graph
from server.formats.values import GENERATED_AT
from server.limits import Limits
from server.problems import Problem

_NO_CHARACTER = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]|\xef\xbf[\xbe\xbf]")
_NO_NAME = re.compile(rb'<oxprefix: xmlns:oxprefix="([^"]*)"')      # an element whose name is only a prefix

PREFIXES: Mapping[str, str] = {
    "prov": "http://www.w3.org/ns/prov#", "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#", "sosa": "http://www.w3.org/ns/sosa/", "xsd": XSD,
}
VOCALS, DCAT, DCT = "https://w3id.org/rsp/vocals#", "http://www.w3.org/ns/dcat#", "http://purl.org/dc/terms/"
_TYPE = NamedNode(RDF_TYPE[1:-1])
_PREFIXES = {"vocals": VOCALS, "dcat": DCAT, "dct": DCT}


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


def stream_catalogue(streams: Iterable[StreamInfo], base_url: str, media: str) -> bytes:
    """The streams as a ``vocals:StreamDescriptor``, each with its endpoint."""
    root = NamedNode(f"{base_url}/streams")
    triples = [OxTriple(root, _TYPE, NamedNode(f"{VOCALS}StreamDescriptor"))]
    for info in streams:
        stream, endpoint = NamedNode(info.iri), BlankNode(f"endpoint-{info.name}")
        triples += [OxTriple(root, NamedNode(f"{DCAT}dataset"), stream), OxTriple(stream, _TYPE, NamedNode(f"{VOCALS}RDFStream")),
                    OxTriple(stream, NamedNode(f"{DCT}title"), Literal(info.name)),
                    OxTriple(stream, NamedNode(f"{VOCALS}hasEndpoint"), endpoint),
                    OxTriple(endpoint, _TYPE, NamedNode(f"{VOCALS}StreamEndpoint")),
                    OxTriple(endpoint, NamedNode(f"{DCAT}accessURL"), NamedNode(f"{base_url}/streams/{info.name}"))]
    return bytes(serialize(triples, format=RDF_FORMATS[media], prefixes=_PREFIXES) or b"")


def stream_descriptor(body: bytes, media: str, limits: Limits, base: str) -> dict[str, Any]:
    """The members of a stream descriptor that a VoCaLS description gives: the IRI of its one ``vocals:RDFStream``."""
    triples = read_graph(body, media, limits, base)
    kinds = {f"<{VOCALS}RDFStream>", f"<{VOCALS}Stream>"}
    found = sorted({s for s, p, o in triples if p == RDF_TYPE and o in kinds and s.startswith("<")})
    if len(found) != 1:
        raise Problem("rdf-syntax", f"A stream description has one vocals:RDFStream with an IRI; this one has {len(found)}.", status=422)
    return {"iri": found[0][1:-1]}

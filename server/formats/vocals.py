"""Streams in the VoCaLS vocabulary (https://w3id.org/rsp/vocals#): the catalogue out, a stream description in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pyoxigraph import BlankNode, Literal, NamedNode, Triple, serialize

from engine.ir.terms import RDF_TYPE
from engine.runtime.resources import StreamInfo
from server.formats.media import RDF_FORMATS
from server.formats.reading import read_graph
from server.limits import Limits
from server.problems import Problem

VOCALS, DCAT, DCT = "https://w3id.org/rsp/vocals#", "http://www.w3.org/ns/dcat#", "http://purl.org/dc/terms/"
_TYPE = NamedNode(RDF_TYPE[1:-1])
_PREFIXES = {"vocals": VOCALS, "dcat": DCAT, "dct": DCT}


def catalogue(streams: Iterable[StreamInfo], base_url: str, media: str) -> bytes:
    """The streams as a ``vocals:StreamDescriptor``, each with its endpoint."""
    root = NamedNode(f"{base_url}/streams")
    triples = [Triple(root, _TYPE, NamedNode(f"{VOCALS}StreamDescriptor"))]
    for info in streams:
        stream, endpoint = NamedNode(info.iri), BlankNode(f"endpoint-{info.name}")
        triples += [Triple(root, NamedNode(f"{DCAT}dataset"), stream), Triple(stream, _TYPE, NamedNode(f"{VOCALS}RDFStream")),
                    Triple(stream, NamedNode(f"{DCT}title"), Literal(info.name)),
                    Triple(stream, NamedNode(f"{VOCALS}hasEndpoint"), endpoint),
                    Triple(endpoint, _TYPE, NamedNode(f"{VOCALS}StreamEndpoint")),
                    Triple(endpoint, NamedNode(f"{DCAT}accessURL"), NamedNode(f"{base_url}/streams/{info.name}"))]
    return bytes(serialize(triples, format=RDF_FORMATS[media], prefixes=_PREFIXES) or b"")


def descriptor(body: bytes, media: str, limits: Limits, base: str) -> dict[str, Any]:
    """The members of a stream descriptor that a VoCaLS description gives: the IRI of its one ``vocals:RDFStream``."""
    triples = read_graph(body, media, limits, base)
    kinds = {f"<{VOCALS}RDFStream>", f"<{VOCALS}Stream>"}
    found = sorted({s for s, p, o in triples if p == RDF_TYPE and o in kinds and s.startswith("<")})
    if len(found) != 1:
        raise Problem("rdf-syntax", f"A stream description has one vocals:RDFStream with an IRI; this one has {len(found)}.", status=422)
    return {"iri": found[0][1:-1]}

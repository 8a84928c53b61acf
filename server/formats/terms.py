"""pyoxigraph's quads as canonical tokens."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pyoxigraph import DefaultGraph, Quad

from engine.records import Triple
from server.problems import Problem

_DIRECTIONS = ("--ltr", "--rtl")


def tokens(quads: Iterable[Quad], literal_cap: int | None = None) -> Iterator[tuple[str | None, Triple]]:
    """(graph token or None, triple) of each quad; RDF 1.2 terms and literals above `literal_cap` bytes are refused.

    `literal_cap` None skips the check (a text shorter than the cap cannot hold such a literal).
    """
    default = DefaultGraph()
    for quad in quads:
        subject, predicate, object_ = str(quad.subject), str(quad.predicate), str(quad.object)
        if (" " in object_ and object_[0] != '"') or object_.endswith(_DIRECTIONS):
            raise Problem("rdf-syntax", "RDF 1.2 triple terms and base directions are not supported.",
                          errors=[{"detail": f"not supported: {object_[:200]}"}])
        if literal_cap is not None and len(object_) > literal_cap:
            raise Problem("item-too-large", f"A literal has more than {literal_cap} bytes.",
                          extra={"limit": literal_cap, "actual": len(object_.encode())})
        graph = quad.graph_name
        yield None if graph == default else str(graph), (subject, predicate, object_)


def own_blank_nodes(graph: str | None, triples: Iterable[Triple]) -> tuple[str | None, tuple[Triple, ...]]:
    """Blank nodes named ``_:b0``, ``_:b1``... in the order in which they appear, so that the same text gives the same item."""
    names: dict[str, str] = {}

    def own(token: str) -> str:
        return names.setdefault(token, f"_:b{len(names)}") if token[0] == "_" else token

    renamed = tuple([(own(s), p, own(o)) if s[0] == "_" or o[0] == "_" else (s, p, o) for s, p, o in triples])
    return (own(graph) if graph else None), renamed

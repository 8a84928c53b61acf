"""RDFS entailment by naive closure: rules rdfs2, 3, 5, 7, 9 and 11 of RDF 1.1 Semantics, section 9.2.1.

The axiomatic triples and the rules rdfs4, 6, 8, 10, 12 and 13 are left out: they add what no one asks a stream for. Triples whose
subject would be a literal, or whose predicate a blank node, are not RDF and are left out too.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.ir.terms import RDF_TYPE, RDFS
from engine.records import Triple
from engine.reference.dataset import Graph

SUB_CLASS, SUB_PROPERTY = f"<{RDFS}subClassOf>", f"<{RDFS}subPropertyOf>"
DOMAIN, RANGE = f"<{RDFS}domain>", f"<{RDFS}range>"


def closure(graph: Graph) -> Graph:
    """`graph` with everything the rules derive from it."""
    while True:
        derived = frozenset(t for t in _consequences(graph) if t[0][0] != '"' and t[1][0] == "<")
        if derived <= graph.triples:
            return graph
        graph = Graph(graph.triples | derived)


def _consequences(graph: Graph) -> Iterator[Triple]:
    for a, p, b in graph.match(None, SUB_CLASS, None):
        yield from ((a, p, c) for _, _, c in graph.match(b, SUB_CLASS, None))            # rdfs11
        yield from ((x, RDF_TYPE, b) for x, _, _ in graph.match(None, RDF_TYPE, a))      # rdfs9
    for a, p, b in graph.match(None, SUB_PROPERTY, None):
        yield from ((a, p, c) for _, _, c in graph.match(b, SUB_PROPERTY, None))         # rdfs5
        yield from ((x, b, y) for x, _, y in graph.match(None, a, None))                 # rdfs7
    for a, _, c in graph.match(None, DOMAIN, None):
        yield from ((x, RDF_TYPE, c) for x, _, _ in graph.match(None, a, None))          # rdfs2
    for a, _, c in graph.match(None, RANGE, None):
        yield from ((y, RDF_TYPE, c) for _, _, y in graph.match(None, a, None))          # rdfs3

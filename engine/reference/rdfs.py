"""RDFS entailment by naive closure: rules rdfs2, 3, 5, 6, 7, 9, 10 and 11 of RDF 1.1 Semantics, section 9.2.1.

The rules rdfs4, 8, 12 and 13 are left out, and of the axiomatic triples all but those that make properties and classes of what the schema
speaks of (which rdfs6 and rdfs10 put below themselves): they add what no one asks a stream for. Triples whose subject would be a literal,
or whose predicate a blank node, are not RDF and are left out too.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.ir.terms import RDF, RDF_TYPE, RDFS
from engine.records import Triple
from engine.reference.dataset import Graph

SUB_CLASS, SUB_PROPERTY = f"<{RDFS}subClassOf>", f"<{RDFS}subPropertyOf>"
DOMAIN, RANGE = f"<{RDFS}domain>", f"<{RDFS}range>"
PROPERTY, CLASS = f"<{RDF}Property>", f"<{RDFS}Class>"


def closure(graph: Graph) -> Graph:
    """`graph` with everything the rules derive from it."""
    while True:
        derived = frozenset(t for t in _consequences(graph) if t[0][0] != '"' and t[1][0] == "<")
        if derived <= graph.triples:
            return graph
        graph = Graph(graph.triples | derived)


def _consequences(graph: Graph) -> Iterator[Triple]:
    for x in {x for x, _, _ in graph.match(None, RDF_TYPE, PROPERTY)} | _named(graph, SUB_PROPERTY) | {
            x for relation in (DOMAIN, RANGE) for x, _, _ in graph.match(None, relation, None)}:
        yield x, SUB_PROPERTY, x                                                         # rdfs6
    for x in {x for x, _, _ in graph.match(None, RDF_TYPE, CLASS)} | _named(graph, SUB_CLASS) | {
            x for relation in (DOMAIN, RANGE) for _, _, x in graph.match(None, relation, None)}:
        yield x, SUB_CLASS, x                                                            # rdfs10
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


def _named(graph: Graph, relation: str) -> set[str]:
    return {x for a, _, b in graph.match(None, relation, None) for x in (a, b)}

"""RDFS entailment by naive closure: rules rdfs2, 3, 5, 7, 9 and 11 of RDF 1.1 Semantics, section 9.2.1.

The axiomatic triples and the rules rdfs4, 6, 8, 10, 12 and 13 are left out: they add what no one asks a stream for. Triples whose
subject would be a literal, or whose predicate a blank node, are not RDF and are left out too.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.ir.terms import RDF_TYPE, RDFS
from engine.records import Triple
from engine.reference.dataset import Content, Dataset, Graph

SUB_CLASS, SUB_PROPERTY = f"<{RDFS}subClassOf>", f"<{RDFS}subPropertyOf>"
DOMAIN, RANGE = f"<{RDFS}domain>", f"<{RDFS}range>"


def closure(graph: Graph) -> Graph:
    """`graph` with everything the rules derive from it."""
    while True:
        derived = frozenset(t for t in _consequences(graph) if t[0][0] != '"' and t[1][0] == "<")
        if derived <= graph.triples:
            return graph
        graph = Graph(graph.triples | derived)


def entail(dataset: Dataset, background: Graph, reasoning: Graph) -> Dataset:
    """What a query with ``USING RULES rdfs`` sees instead of `dataset` (docs/architecture.md, "Entailment of a query").

    `background` is the FROM graphs (part of the default graph already), `reasoning` the USING GRAPH ones, which count for what
    follows from them but are not answers themselves. A window, an item of it or a named graph is its closure together with both,
    minus what they entail without it.
    """
    alone = closure(background | reasoning)

    def added(graph: Graph) -> Graph:
        return Graph(closure(graph | background | reasoning).triples - alone.triples, graph.times)

    own = closure(dataset.default)
    default = Graph(closure(dataset.default | reasoning).triples - closure(reasoning).triples | own.triples, dataset.default.times)
    windows = {name: Content(added(content.graph), {g: added(item) for g, item in content.items.items()})
               for name, content in dataset.windows.items()}
    return Dataset(default, {name: added(graph) for name, graph in dataset.named.items()}, windows, dataset.bounds)


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

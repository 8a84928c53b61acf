"""What a query with ``USING RULES`` sees instead of its dataset (docs/architecture.md, "Entailment of a query").

RDFS has a naive closure of its own: rules rdfs2, 3, 5, 6, 7, 9, 10 and 11 of RDF 1.1 Semantics, section 9.2.1. The rules rdfs4, 8, 12 and
13 are left out, and of the axiomatic triples all but those that make properties and classes of what the schema speaks of (which rdfs6 and
rdfs10 put below themselves): they add what no one asks a stream for. Triples whose subject would be a literal, or whose predicate a blank
node, are not RDF and are left out too.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import lru_cache

from engine.ir.rules import RuleSet
from engine.ir.terms import RDF, RDF_TYPE, RDFS
from engine.records import Triple
from engine.reference.closure import closure, is_rdf
from engine.reference.dataset import Content, Dataset, Graph

Views = Mapping[int, Graph]
"""What rules with a Window of their own see, by its length in ms."""
Close = Callable[..., Graph]
"""A graph, and Views if there are any, to the closure of the graph."""


def entail(dataset: Dataset, background: Graph, reasoning: Graph, close: Close, views: Mapping[str | None, Views] | None = None) -> Dataset:
    """The dataset under the rules by which `close` gives a graph with all that follows from it. `background` is the FROM graphs (part of
    the default graph already), `reasoning` the USING GRAPH ones, which count for what follows from them but are not answers themselves. A
    window, an item of it or a named graph is its closure together with both, minus what they entail without it. `views` are those of the
    default graph (under None) and of named windows."""
    through: Mapping[str | None, Views] = views or {}
    known: dict[object, Graph] = {}     # without a background or a reasoning graph several of these are one

    def closed(graph: Graph, beside: Graph, name: str | None) -> Graph:
        whole, seen = graph | beside, {length: view | beside for length, view in through.get(name, {}).items()}
        key = whole.triples, frozenset((length, view.triples) for length, view in seen.items())
        if key not in known:
            known[key] = close(whole, seen) if seen else close(whole)
        return known[key]

    def added(graph: Graph, name: str | None = "") -> Graph:
        return Graph(closed(graph, background | reasoning, name).triples - alone.triples, graph.times)

    alone = closed(background, reasoning, "")
    own = closed(dataset.default, background, None)
    default = Graph(closed(dataset.default, background | reasoning, None).triples - closed(reasoning, reasoning, "").triples | own.triples,
                    dataset.default.times)
    windows = {name: Content(added(content.graph, name), {g: added(item) for g, item in content.items.items()})
               for name, content in dataset.windows.items()}
    return Dataset(default, {name: added(graph) for name, graph in dataset.named.items()}, windows, dataset.bounds)


def closing(names: Collection[str], rules: Mapping[str, RuleSet]) -> Close:
    """How a graph is closed under the rule sets of these names together; nothing follows from a set that `rules` does not have."""
    if set(names) == {"rdfs"}:
        return rdfs_closure
    used = [rules[name] for name in names if name in rules]
    together = RuleSet("+".join(names), tuple(r for own in used for r in own.rules), tuple(f for own in used for f in own.facts))
    return lambda graph, views=None: Graph(_closure(graph.triples, together, tuple((n, v.triples) for n, v in (views or {}).items())))


@lru_cache(maxsize=512)
def _closure(triples: frozenset[Triple], rules: RuleSet, views: tuple[tuple[int, frozenset[Triple]], ...]) -> frozenset[Triple]:
    """The same graphs come again at each evaluation."""
    return closure(Graph(triples), rules, views={length: Graph(seen) for length, seen in views})[0].triples


SUB_CLASS, SUB_PROPERTY = f"<{RDFS}subClassOf>", f"<{RDFS}subPropertyOf>"
DOMAIN, RANGE = f"<{RDFS}domain>", f"<{RDFS}range>"
PROPERTY, CLASS = f"<{RDF}Property>", f"<{RDFS}Class>"


def rdfs_closure(graph: Graph) -> Graph:
    """`graph` with everything the rules derive from it."""
    while True:
        derived = frozenset(filter(is_rdf, _consequences(graph)))
        if derived <= graph.triples:
            return graph
        graph = Graph(graph.triples | derived)


def _consequences(graph: Graph) -> Iterator[Triple]:
    for kind, below, place in ((PROPERTY, SUB_PROPERTY, 0), (CLASS, SUB_CLASS, 2)):
        spoken_of = {triple[place] for relation in (DOMAIN, RANGE) for triple in graph.match(None, relation, None)}
        members = {x for x, _, _ in graph.match(None, RDF_TYPE, kind)}
        named = {x for a, _, b in graph.match(None, below, None) for x in (a, b)}
        yield from ((x, below, x) for x in members | spoken_of | named)   # rdfs6, rdfs10
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

"""What a query with ``USING RULES`` sees instead of its dataset (docs/architecture.md, "Entailment of a query")."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from engine.ir.rules import RuleSet
from engine.reference import rdfs
from engine.reference.closure import closure
from engine.reference.dataset import Content, Dataset, Graph

Views = Mapping[int, Graph]
"""What rules with a Window of their own see, by its length in ms."""
Close = Callable[..., Graph]
"""A graph, and Views if there are any, to the closure of the graph."""


def entail(dataset: Dataset, background: Graph, reasoning: Graph, close: Close, views: Mapping[str | None, Views] | None = None) -> Dataset:
    """The dataset under the rules by which `close` gives a graph with all that follows from it.

    `background` is the FROM graphs (part of the default graph already), `reasoning` the USING GRAPH ones, which count for what
    follows from them but are not answers themselves. A window, an item of it or a named graph is its closure together with both,
    minus what they entail without it. `views` are those of the default graph (under None) and of named windows.
    """
    alone, through = close(background | reasoning), views or {}

    def closed(graph: Graph, beside: Graph, name: str | None) -> Graph:
        seen = {length: view | beside for length, view in through.get(name, {}).items()}
        return close(graph | beside, seen) if seen else close(graph | beside)

    def added(graph: Graph, name: str | None = "") -> Graph:
        return Graph(closed(graph, background | reasoning, name).triples - alone.triples, graph.times)

    own = closed(dataset.default, background, None)
    default = Graph(closed(dataset.default, background | reasoning, None).triples - close(reasoning).triples | own.triples,
                    dataset.default.times)
    windows = {name: Content(added(content.graph, name), {g: added(item) for g, item in content.items.items()})
               for name, content in dataset.windows.items()}
    return Dataset(default, {name: added(graph) for name, graph in dataset.named.items()}, windows, dataset.bounds)


def closing(names: Collection[str], rules: Mapping[str, RuleSet]) -> Close:
    """How a graph is closed under the rule sets of these names together; nothing follows from a set that `rules` does not have."""
    if set(names) == {"rdfs"}:
        return rdfs.closure
    used = [rules[name] for name in names if name in rules]
    together = RuleSet("+".join(names), tuple(r for own in used for r in own.rules), tuple(f for own in used for f in own.facts))
    return lambda graph, views=None: closure(graph, together, views=views)[0]

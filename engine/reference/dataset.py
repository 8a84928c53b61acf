"""What a query is evaluated over: graphs as indexed sets of triples, and the dataset of SPARQL with the windows beside it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from engine.grouping import by_key
from engine.records import Triple


class Graph:
    """An immutable set of triples of tokens, with an index for each combination of bound places made when first asked for. `times` has the
    latest time stamp, in ms, of those that came on a stream."""

    def __init__(self, triples: Iterable[Triple] = (), times: Mapping[Triple, int] | None = None) -> None:
        self.triples = frozenset(triples)
        self.times = times or {}
        self._indexes: dict[tuple[bool, bool, bool], dict[tuple[str, ...], list[Triple]]] = {}

    def match(self, subject: str | None, predicate: str | None, object_: str | None) -> Iterable[Triple]:
        """The triples with these terms; None matches any."""
        places = (subject is not None, predicate is not None, object_ is not None)
        if places == (False, False, False):
            return self.triples
        key = tuple(t for t in (subject, predicate, object_) if t is not None)
        if places not in self._indexes:
            self._indexes[places] = by_key((tuple(term for term, bound in zip(triple, places) if bound), triple) for triple in self.triples)
        return self._indexes[places].get(key, ())

    @cached_property
    def nodes(self) -> frozenset[str]:
        """Every subject and object (SPARQL 1.1 section 18.4, "nodes(G)")."""
        return frozenset(term for s, _, o in self.triples for term in (s, o))

    def __or__(self, other: Graph) -> Graph:
        if not other.triples or not self.triples:
            return self if self.triples else other
        times = {t: max(g.times[t] for g in (self, other) if t in g.times) for t in {**self.times, **other.times}}
        return Graph(self.triples | other.triples, times)

    def __len__(self) -> int:
        return len(self.triples)

    def __bool__(self) -> bool:
        return bool(self.triples)


EMPTY = Graph()


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a window: the set of all its triples, and its items' named graphs by the token of the name."""

    graph: Graph = EMPTY
    items: Mapping[str, Graph] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Dataset:
    """The default graph, FROM NAMED graphs and named windows, both by the token of their name. `bounds` are the times in ms at which
    windows open and close, by the names that WINDOW_OPEN and WINDOW_CLOSE know them by."""

    default: Graph = EMPTY
    named: Mapping[str, Graph] = field(default_factory=dict)
    windows: Mapping[str, Content] = field(default_factory=dict)
    bounds: Mapping[str, tuple[int | None, int]] = field(default_factory=dict)

    def graphs(self) -> Iterator[Graph]:
        """Every graph that the query can see."""
        yield self.default
        yield from self.named.values()
        for content in self.windows.values():
            yield content.graph

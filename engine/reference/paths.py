"""Property paths by the definitions of SPARQL 1.1 section 18.4, a bag of pairs each, with the triples that lead from one to the other; sets
where the specification says so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from engine.ir.patterns import Alternative, Inverse, Link, NegatedSet, Path, Repeat, Sequence
from engine.ir.terms import Constant
from engine.records import Triple
from engine.reference.dataset import Graph

Route = tuple[str, str, tuple[Triple, ...]]
"""From, to, and the triples in between."""


def routes(graph: Graph, start: str | None, path: Path, end: str | None) -> Iterator[Route]:
    """The pairs that `path` connects, with their multiplicity, each with one way; of a repeated path a shortest one. None stands for a
    variable at that end."""
    match path:
        case Link(predicate=predicate):
            yield from ((t[0], t[2], (t,)) for t in graph.match(start, predicate.token, end))
        case Inverse(path=inner):
            yield from ((x, y, steps) for y, x, steps in routes(graph, end, inner, start))
        case Alternative(first=first, second=second):
            yield from routes(graph, start, first, end)
            yield from routes(graph, start, second, end)
        case Sequence(first=first, second=second):
            yield from _sequence(graph, start, first, second, end)
        case NegatedSet(forward=forward, backward=backward):
            if forward or not backward:
                yield from ((t[0], t[2], (t,)) for t in graph.match(start, None, end) if Constant(t[1]) not in forward)
            if backward:
                yield from ((t[2], t[0], (t,)) for t in graph.match(end, None, start) if Constant(t[1]) not in backward)
        case Repeat():
            yield from _repeated(graph, start, path, end)


def _sequence(graph: Graph, start: str | None, first: Path, second: Path, end: str | None) -> Iterator[Route]:
    """Join on a fresh variable: the middle is a node of the graph, or a given end that a path of length zero reaches."""
    rest: dict[str, list[Route]] = {}
    for x, middle, steps in routes(graph, start, first, None):
        if middle not in rest:
            rest[middle] = list(routes(graph, middle, second, end)) if middle in graph.nodes or middle == end else []
        yield from ((x, y, steps + more) for _, y, more in rest[middle])


def _repeated(graph: Graph, start: str | None, path: Repeat, end: str | None) -> Iterator[Route]:
    """The repeated paths, which give sets. A given end has its path of length zero though no triple names it."""
    if start is None and end is not None:
        backwards = Repeat(Inverse(path.path), path.least, path.most)
        yield from ((x, y, steps[::-1]) for y, x, steps in _repeated(graph, end, backwards, None))
        return
    starts: Iterable[str] = sorted(graph.nodes) if start is None else (start,)
    for x in starts:
        reached = _reach(graph, x, path)
        yield from ((x, y, reached[y]) for y in (sorted(reached) if end is None else [end] if end in reached else []))


def _reach(graph: Graph, start: str, path: Repeat) -> dict[str, tuple[Triple, ...]]:
    """The nodes that the repeated path leads to, each with a shortest way there (ALP of the specification, without recursion)."""
    found: dict[str, tuple[Triple, ...]] = {start: ()} if path.least == 0 else {}
    frontier: dict[str, tuple[Triple, ...]] = {start: ()}
    rounds = 0
    while frontier and (path.most is None or rounds < path.most):
        rounds += 1
        following: dict[str, tuple[Triple, ...]] = {}
        for x, steps in frontier.items():
            for _, y, more in routes(graph, x, path.path, None):
                if y not in found and y not in following:
                    following[y] = steps + more
        found |= following
        frontier = following
    return found

"""Property paths by the definitions of SPARQL 1.1 section 18.4, a bag of pairs each; sets where the specification says so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from engine.ir.patterns import Alternative, Inverse, Link, NegatedSet, Path, Repeat, Sequence
from engine.ir.terms import Constant
from engine.reference.dataset import Graph

Pair = tuple[str, str]


def solve(graph: Graph, start: str | None, path: Path, end: str | None) -> list[Pair]:
    """The pairs that `path` connects, with their multiplicity. None stands for a variable at that end."""
    match path:
        case Link(predicate=predicate):
            return [(s, o) for s, _, o in graph.match(start, predicate.token, end)]
        case Inverse(path=inner):
            return [(x, y) for y, x in solve(graph, end, inner, start)]
        case Alternative(first=first, second=second):
            return solve(graph, start, first, end) + solve(graph, start, second, end)
        case Sequence(first=first, second=second):
            return list(_sequence(graph, start, first, second, end))
        case NegatedSet(forward=forward, backward=backward):
            pairs: list[Pair] = []
            if forward or not backward:
                pairs += [(s, o) for s, p, o in graph.match(start, None, end) if Constant(p) not in forward]
            if backward:
                pairs += [(o, s) for s, p, o in graph.match(end, None, start) if Constant(p) not in backward]
            return pairs
    return sorted(_repeat(graph, start, path, end))


def _sequence(graph: Graph, start: str | None, first: Path, second: Path, end: str | None) -> Iterator[Pair]:
    """Join on a fresh variable: the middle is a node of the graph, or a given end that a path of length zero reaches."""
    rest: dict[str, list[str]] = {}
    for x, middle in solve(graph, start, first, None):
        if middle not in rest:
            known = middle in graph.nodes or middle == end
            rest[middle] = [y for _, y in solve(graph, middle, second, end)] if known else []
        for y in rest[middle]:
            yield x, y


def _repeat(graph: Graph, start: str | None, path: Repeat, end: str | None) -> set[Pair]:
    """The repeated paths, which give sets. A given end has its path of length zero though no triple names it."""
    if start is None and end is not None:
        return {(x, y) for y, x in _repeat(graph, end, Repeat(Inverse(path.path), path.least, path.most), start)}
    starts: Iterable[str] = graph.nodes if start is None else (start,)
    found = {(x, y) for x in starts for y in _reach(graph, x, path)}
    return {(x, y) for x, y in found if end is None or y == end}


def _reach(graph: Graph, start: str, path: Repeat) -> set[str]:
    """The nodes that the repeated path leads to from `start` (ALP of the specification, without recursion)."""
    seen = {start} if path.least == 0 else set()
    frontier = [start]
    rounds = 0
    while frontier and (path.most is None or rounds < path.most):
        rounds += 1
        step = {y for x in frontier for _, y in solve(graph, x, path.path, None)}
        frontier = sorted(step - seen)
        seen |= step
    return seen

"""The triples by which a property path leads from one node to another: paths.py with what it went through."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from engine.ir.patterns import Alternative, Inverse, Link, NegatedSet, Path, Repeat, Sequence
from engine.ir.terms import Constant
from engine.records import Triple
from engine.reference.dataset import Graph

Route = tuple[str, str, tuple[Triple, ...]]
"""From, to, and the triples in between."""


def routes(graph: Graph, start: str | None, path: Path, end: str | None) -> Iterator[Route]:
    """One route for each pair that paths.solve gives, as often as it gives it; of a repeated path a shortest one. None stands for a
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
            for x, middle, steps in routes(graph, start, first, None):
                if middle in graph.nodes or middle == end:
                    yield from ((x, y, steps + more) for _, y, more in routes(graph, middle, second, end))
        case NegatedSet(forward=forward, backward=backward):
            if forward or not backward:
                yield from ((t[0], t[2], (t,)) for t in graph.match(start, None, end) if Constant(t[1]) not in forward)
            if backward:
                yield from ((t[2], t[0], (t,)) for t in graph.match(end, None, start) if Constant(t[1]) not in backward)
        case Repeat():
            yield from _repeated(graph, start, path, end)


def _repeated(graph: Graph, start: str | None, path: Repeat, end: str | None) -> Iterator[Route]:
    if start is None and end is not None:
        backwards = Repeat(Inverse(path.path), path.least, path.most)
        yield from ((x, y, steps[::-1]) for y, x, steps in _repeated(graph, end, backwards, None))
        return
    starts: Iterable[str] = sorted(graph.nodes) if start is None else (start,)
    for x in starts:
        reached = _reach(graph, x, path)
        yield from ((x, y, reached[y]) for y in (sorted(reached) if end is None else [end] if end in reached else []))


def _reach(graph: Graph, start: str, path: Repeat) -> dict[str, tuple[Triple, ...]]:
    """The nodes that the repeated path leads to, each with a shortest way there."""
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

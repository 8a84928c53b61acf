"""Graph algorithms in plain Python, as one task runs them: near-linear ones over strings, nodes named by their tokens."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Iterator

Pair = tuple[str, str]
Ended = tuple[str, str, int]


def components(pairs: Iterable[Pair]) -> dict[str, str]:
    """The least node of each node's weakly connected component (union-find with path halving, Tarjan and van Leeuwen 1984)."""
    above: dict[str, str] = {}

    def root(node: str) -> str:
        above.setdefault(node, node)
        while above[node] != node:
            above[node] = node = above[above[node]]
        return node

    for x, y in pairs:
        one, other = root(x), root(y)
        above[max(one, other)] = min(one, other)
    return {node: root(node) for node in above}


def strong_components(pairs: Iterable[Pair]) -> dict[str, str]:
    """The least node of each node's strongly connected component (Tarjan 1972, without recursion)."""
    after = _following(pairs)
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    found: dict[str, str] = {}
    path: list[str] = []
    for start in list(after):
        calls: list[tuple[str, Iterator[str]]] = [] if start in order else [(start, iter(after[start]))]
        while calls:
            node, rest = calls[-1]
            if node not in order:
                order[node] = low[node] = len(order)
                path.append(node)
            for target in rest:
                if target not in order:
                    calls.append((target, iter(after[target])))
                    break
                if target not in found:
                    low[node] = min(low[node], order[target])
            else:
                calls.pop()
                if calls:
                    low[calls[-1][0]] = min(low[calls[-1][0]], low[node])
                if low[node] == order[node]:
                    _close(node, path, found)
    return found


def _close(first: str, path: list[str], found: dict[str, str]) -> None:
    """Take the component that begins with `first` off the path."""
    members = [path.pop()]
    while members[-1] != first:
        members.append(path.pop())
    found |= dict.fromkeys(members, min(members))


def widest(edges: Iterable[Ended], base: Iterable[Ended]) -> Iterator[Ended]:
    """The pairs that begin as in `base` and go on along `edges`, each with the latest end among its paths. A path ends with the first of
    its edges: the greatest least end (the widest path; Dijkstra's order, latest first)."""
    after: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for x, y, hi in edges:
        after[x].append((y, hi))
    starts: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for x, y, hi in base:
        starts[x].append((-hi, y))
    for start, waiting in starts.items():
        heapq.heapify(waiting)
        seen: set[str] = set()
        while waiting:
            end, node = heapq.heappop(waiting)
            if node not in seen:
                seen.add(node)
                yield start, node, -end
                for target, hi in after.get(node, ()):
                    if target not in seen:
                        heapq.heappush(waiting, (max(end, -hi), target))


def _following(pairs: Iterable[Pair]) -> dict[str, list[str]]:
    after: dict[str, list[str]] = defaultdict(list)
    for x, y in pairs:
        after[x].append(y)
        after[y] += ()
    return after

"""What depends on what: the strongly connected components of a graph, each after those that it needs.

>>> components({"p": ["q", "e"], "q": ["p"], "r": ["p"], "e": []})
[['e'], ['p', 'q'], ['r']]
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

Node = TypeVar("Node", bound=Hashable)


def components(needs: Mapping[Node, Iterable[Node]]) -> list[list[Node]]:
    """The nodes in groups that need each other, in order: what a group needs stands in it or before it. Inside a group the order is that
    of `needs`, which has all nodes (Tarjan 1972, with a stack of its own instead of recursion)."""
    place = {node: number for number, node in enumerate(needs)}
    number: dict[Node, int] = {}
    low: dict[Node, int] = {}
    open_: dict[Node, None] = {}    # visited, and in no group yet; in the order of their numbers
    groups: list[list[Node]] = []
    for root in needs:
        path = [] if root in number else [(root, iter(needs[root]))]
        while path:
            here, rest = path[-1]
            if here not in number:
                number[here] = low[here] = len(number)
                open_[here] = None
            for need in rest:
                if need not in number:
                    path.append((need, iter(needs[need])))
                    break
                if need in open_:
                    low[here] = min(low[here], low[need])
            else:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[here])
                if low[here] == number[here]:
                    group = [here]
                    while (last := open_.popitem()[0]) != here:
                        group.append(last)
                    groups.append(sorted(group, key=place.__getitem__))
    return groups

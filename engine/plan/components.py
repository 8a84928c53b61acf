"""What depends on what: the strongly connected components of a graph, each before those that need it (Tarjan).

>>> components({"p": ["q", "e"], "q": ["p"], "r": ["p"], "e": []})
[['e'], ['p', 'q'], ['r']]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def components(needs: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """The nodes in groups that need each other, in order: what a group needs stands in it or before it. Inside a group the order is that
    of `needs`."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    groups: list[list[str]] = []
    order = {node: place for place, node in enumerate(needs)}

    def visit(root: str) -> None:
        waiting = [(root, iter(needs[root]))]
        number[root] = lowest[root] = len(number)
        stack.append(root)
        while waiting:
            node, rest = waiting[-1]
            following = next(rest, None)
            if following is None:
                waiting.pop()
                if waiting:
                    above = waiting[-1][0]
                    lowest[above] = min(lowest[above], lowest[node])
                if lowest[node] == number[node]:
                    start = stack.index(node)
                    groups.append(sorted(stack[start:], key=order.__getitem__))
                    del stack[start:]
            elif following not in number:
                number[following] = lowest[following] = len(number)
                stack.append(following)
                waiting.append((following, iter(needs[following])))
            elif following in stack:
                lowest[node] = min(lowest[node], number[following])

    for node in needs:
        if node not in number:
            visit(node)
    return groups

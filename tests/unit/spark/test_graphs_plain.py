"""The graph algorithms of one task against their definitions, and the choice of a way by the number of edges."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.plan.graphs import LIMITS, Problem, choose
from engine.spark.graphs import plain

NODES = st.sampled_from("abcdefg")
Ended = tuple[str, str, int]


def closure(edges: list[Ended], base: list[Ended]) -> dict[tuple[str, str], int]:
    """The latest end of each pair: rules applied until nothing changes."""
    found: dict[tuple[str, str], int] = {}
    waiting = set(base)
    while waiting:
        for x, y, hi in waiting:
            found[x, y] = max(hi, found.get((x, y), hi))
        waiting = {(x, z, min(hi, end)) for (x, y), hi in found.items() for y2, z, end in edges
                   if y == y2 and min(hi, end) > found.get((x, z), -1)}
    return found


def named(groups: dict[str, set[str]]) -> dict[str, str]:
    return {node: min(group) for node, group in groups.items()}


def nodes_of(edges: list[tuple[str, str]]) -> set[str]:
    return {node for edge in edges for node in edge}


@given(st.lists(st.tuples(NODES, NODES), max_size=12))
def test_components(edges: list[tuple[str, str]]) -> None:
    both = [(x, y, 0) for a, b in edges for x, y in ((a, b), (b, a))]
    linked = closure(both, both)
    assert plain.components(edges) == named({n: {n} | {m for m in nodes_of(edges) if (n, m) in linked} for n in nodes_of(edges)})


@given(st.lists(st.tuples(NODES, NODES), max_size=14))
def test_strong_components(edges: list[tuple[str, str]]) -> None:
    reached = closure([(x, y, 0) for x, y in edges], [(x, y, 0) for x, y in edges])
    assert plain.strong_components(edges) == named({
        n: {n} | {m for m in nodes_of(edges) if (n, m) in reached and (m, n) in reached} for n in nodes_of(edges)})


@given(st.lists(st.tuples(NODES, NODES, st.integers(0, 5)), max_size=14), st.sets(NODES, max_size=3))
def test_latest_ends(edges: list[Ended], starts: set[str]) -> None:
    for base in (edges, [edge for edge in edges if edge[0] in starts]):
        found = list(plain.widest(edges, base))
        assert len(found) == len({(x, y) for x, y, _ in found})
        assert {(x, y): hi for x, y, hi in found} == closure(edges, base)


def test_long_paths_do_not_recurse() -> None:
    """A chain, and a circle, far longer than Python's stack."""
    chain = [(f"{n:06}", f"{n + 1:06}") for n in range(20_000)]
    assert set(plain.strong_components(chain).values()) == {node for edge in chain for node in edge}
    assert set(plain.strong_components([*chain, (chain[-1][1], chain[0][0])]).values()) == {"000000"}
    assert set(plain.components(chain).values()) == {"000000"}


@pytest.mark.parametrize("problem", LIMITS)
def test_the_way_follows_the_edges(problem: Problem) -> None:
    most, above = LIMITS[problem]
    assert choose(problem, most) == "task" or most == 0
    assert choose(problem, most + 1) == above
    assert choose(problem, most + 1, loaded=False) == "sql"

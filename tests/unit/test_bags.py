"""The comparison of answers that every conformance and treatment test relies on."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from tests.bags import ordered_alike, same_bag

TOKENS = st.sampled_from(["<a>", '"1"', "_:a", "_:b", "_:c", "_:d"])
ROWS = st.lists(st.dictionaries(st.sampled_from("xyz"), TOKENS, max_size=3), max_size=6)


@given(ROWS, st.randoms(use_true_random=False))
def test_a_bag_equals_its_renaming(rows: list[dict[str, str]], rng: random.Random) -> None:
    labels = ["_:a", "_:b", "_:c", "_:d"]
    renamed = dict(zip(labels, rng.sample(["_:p", "_:q", "_:r", "_:s"], 4), strict=True))
    other = [{name: renamed.get(token, token) for name, token in row.items()} for row in rows]
    rng.shuffle(other)
    assert same_bag(rows, other)
    assert not same_bag(rows, [*other, {"x": "<extra>"}])


def test_multiplicity_counts() -> None:
    assert not same_bag([{"x": "<a>"}, {"x": "<a>"}], [{"x": "<a>"}])
    assert not same_bag([{"x": "<a>"}, {"x": "<a>"}, {"x": "<b>"}], [{"x": "<a>"}, {"x": "<b>"}, {"x": "<b>"}])


def test_blank_nodes_are_not_merged() -> None:
    assert not same_bag([{"x": "_:a"}, {"x": "_:b"}], [{"x": "_:a"}, {"x": "_:a"}])


def test_two_triangles_are_not_a_hexagon() -> None:
    """Every node of both looks alike: only pairing them one by one tells."""
    triangles = [{"s": f"_:{a}", "o": f"_:{b}"} for a, b in ("01", "12", "20", "34", "45", "53")]
    hexagon = [{"s": f"_:{i}", "o": f"_:{(i + 1) % 6}"} for i in range(6)]
    assert same_bag(hexagon, hexagon[::-1])
    assert not same_bag(triangles, hexagon)


def test_order_matters_only_when_asked() -> None:
    rows = [{"x": "_:a"}, {"x": "<b>"}]
    assert same_bag(rows, rows[::-1])
    assert ordered_alike(rows, [{"x": "_:z"}, {"x": "<b>"}])
    assert not ordered_alike(rows, rows[::-1])

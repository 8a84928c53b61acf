"""Which batches may have facts with the hashes of a new one."""

from __future__ import annotations

import numpy as np
from hypothesis import given, strategies as st

from engine.arrays import each_once
from engine.worker.hash_runs import HashRuns

Batches = st.lists(st.lists(st.integers(0, 40), max_size=12), max_size=30)


def hashes(numbers: list[int]) -> np.typing.NDArray[np.uint64]:
    return each_once(np.array(numbers, np.uint64))


def added(runs: HashRuns, batch: int, brought: list[int]) -> int:
    """What is nearest to a batch that is taken in."""
    nearest = runs.nearest(batch, hashes(brought))
    runs.add(batch, hashes(brought))
    return nearest


@given(st.lists(st.integers(0, 40), max_size=20))
def test_hashes_are_sorted_each_once(numbers: list[int]) -> None:
    assert hashes(numbers).tolist() == sorted(set(numbers))


@given(st.lists(st.integers(0, 40), max_size=20), Batches)
def test_no_batch_before_the_nearest_has_one_of_the_hashes(first: list[int], batches: list[list[int]]) -> None:
    runs, before = HashRuns(hashes(first)), {0: set(first)}
    for batch, brought in enumerate(batches, 1):
        nearest = added(runs, batch, brought)
        assert not any(held & set(brought) for number, held in before.items() if number < nearest)
        assert all(runs.have(hashes([number]), batch - 1) == any(number in held for held in before.values()) for number in range(41))
        before[batch] = set(brought)
        assert nearest <= batch
        held = set().union(*before.values())
        assert all(runs.have(hashes([number])) == (number in held) for number in range(41))


def test_a_hash_that_is_new_is_near() -> None:
    runs = HashRuns(hashes([*range(1_000)]))
    assert added(runs, 1, [1_001, 1_002]) == 1
    assert added(runs, 2, [1_003, 1_001]) == 1, "the last batch has one of them"
    assert added(runs, 3, [5]) == 0
    assert runs.count <= 1_005


def test_hashes_are_kept_once_where_runs_are_merged() -> None:
    runs = HashRuns(hashes([]))
    for batch in range(1, 100):
        runs.add(batch, hashes([7]))
    assert runs.count <= 2

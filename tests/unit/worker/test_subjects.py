"""Which batches may have facts about the subjects of a new one."""

from __future__ import annotations

import numpy as np
from hypothesis import given, strategies as st

from engine.worker.subjects import Subjects

Batches = st.lists(st.lists(st.integers(0, 40), max_size=12), max_size=30)


def hashes(numbers: list[int]) -> np.typing.NDArray[np.uint64]:
    return np.array(numbers, np.uint64)


@given(st.lists(st.integers(0, 40), max_size=20), Batches)
def test_no_batch_before_the_nearest_has_one_of_the_subjects(first: list[int], batches: list[list[int]]) -> None:
    subjects, before = Subjects(hashes(first)), {0: set(first)}
    for batch, brought in enumerate(batches, 1):
        nearest = subjects.add(batch, hashes(brought))
        assert not any(held & set(brought) for number, held in before.items() if number < nearest)
        before[batch] = set(brought)
        assert nearest <= batch


def test_a_subject_that_is_new_is_near() -> None:
    subjects = Subjects(hashes([*range(1_000)]))
    assert subjects.add(1, hashes([1_001, 1_002])) == 1
    assert subjects.add(2, hashes([1_003, 1_001])) == 1, "the last batch has one of them"
    assert subjects.add(3, hashes([5])) == 0
    assert subjects.count <= 1_005


def test_hashes_are_kept_once_where_runs_are_merged() -> None:
    subjects = Subjects(hashes([]))
    for batch in range(1, 100):
        subjects.add(batch, hashes([7]))
    assert subjects.count <= 2

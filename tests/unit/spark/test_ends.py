"""The index of kept rows by their ends, against looking at all of them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given, strategies as st

from engine.worker.closures import Ends

# Hashes are spread over 64 bits, but two may have their first bits in common.
ENDS = st.sampled_from([0, 1, 2, 2**32, 2**61, 2**63 - 1, 2**63, 3 * 2**62, 2**64 - 2, 2**64 - 1])
BATCHES = st.lists(st.lists(st.tuples(ENDS, ENDS), max_size=12), max_size=20)


def rows(pairs: list[tuple[int, int]], first: int = 0) -> pa.Table:
    s, o = (np.array([pair[end] for pair in pairs], np.uint64) for end in (0, 1))
    return pa.table({"number": pa.array(range(first, first + len(pairs)), pa.int64()), "hs": s, "ho": o})


def test_one_of_many_is_found() -> None:
    """Subjects of one row each, beside one object that all have but a few."""
    chance = np.random.default_rng(7)
    subjects = chance.integers(0, 2**64, 10_000, dtype=np.uint64)
    objects = np.where(chance.random(10_000) < 0.99, np.uint64(2**63), subjects)
    ends = Ends(pa.table({"number": range(10_000), "hs": subjects, "ho": objects}))
    wanted = np.sort(np.append(subjects[::100], chance.integers(0, 2**64, 1_000, dtype=np.uint64)))
    for column, hashes in (("s", subjects), ("o", objects)):
        found = ends.rows_at([(column, wanted)])["number"].to_pylist()
        assert found == np.flatnonzero(np.isin(hashes, wanted)).tolist()
    assert ends.rows_at([("o", np.array([2**63], np.uint64))]).num_rows == (objects == 2**63).sum()


@given(BATCHES, st.sets(ENDS), st.sets(ENDS))
def test_what_is_beside_is_found_once_in_all_parts(batches: list[list[tuple[int, int]]], subjects: set[int], objects: set[int]) -> None:
    ends, added = Ends(rows([])), list[tuple[int, int]]()
    for batch in batches:
        ends.add(rows(batch, len(added)))
        added += batch
    found = ends.rows_at([("s", np.array(sorted(subjects), np.uint64)), ("o", np.array(sorted(objects), np.uint64))])
    assert sorted(found["number"].to_pylist()) == [n for n, (s, o) in enumerate(added) if s in subjects or o in objects]
    assert ends.rows_at([]).num_rows == 0

"""Which batches may have brought facts that have some hashes in a column, of subjects or objects: its hashes in sorted runs, each of some
batches.

New facts mostly come together with all others about their subjects. So a look for what they join with need not read what came long before:
where a run has none of their hashes, none of its batches has such facts. Runs are merged as in a log-structured merge tree (O'Neil et al.,
"The Log-Structured Merge-Tree", 1996); a run has twice as many hashes as the next, or more. What the last batch brought is a run by
itself.
"""

from dataclasses import dataclass

import numpy as np

from engine.arrays import each_once

Hashes = np.typing.NDArray[np.uint64]
NO_HASHES: Hashes = np.empty(0, np.uint64)


@dataclass(frozen=True, slots=True)
class _Run:
    """The sorted hashes of what batch number `first`, and those up to the next run, brought."""

    first: int
    hashes: Hashes


class HashRuns:
    """The hashes in a column of a table by its batches. All that is given is sorted, each hash once."""

    def __init__(self, hashes: Hashes) -> None:
        """Those that are there, whichever batches brought them."""
        self._runs = [_Run(0, hashes)]

    @property
    def count(self) -> int:
        """How many hashes are kept."""
        return sum(len(run.hashes) for run in self._runs)

    def nearest(self, batch: int, hashes: Hashes) -> int:
        """The least batch that may have one of these: this batch, which brings them, where none before has."""
        return next((run.first for run in self._runs if _have_common(run.hashes, hashes)), batch)

    def add(self, batch: int, hashes: Hashes) -> None:
        """Take in what a batch brought."""
        while len(self._runs) > 1 and len(self._runs[-2].hashes) < 2 * len(self._runs[-1].hashes):
            later, earlier = self._runs.pop(), self._runs.pop()
            self._runs.append(_Run(earlier.first, each_once(np.concatenate((earlier.hashes, later.hashes)))))
        self._runs.append(_Run(batch, hashes))      # alone, until the next comes: it is asked what came before

    def have(self, hashes: Hashes, upto: int | None = None) -> bool:
        """Whether one of these may be in the column, of what batches up to a number brought (None: of all)."""
        return any(_have_common(run.hashes, hashes) for run in self._runs if upto is None or run.first <= upto)


def _have_common(hashes: Hashes, wanted: Hashes) -> bool:
    """Whether two sorted arrays have an element in common."""
    if not len(hashes):
        return False
    places = np.searchsorted(hashes, wanted)
    return bool((hashes[np.minimum(places, len(hashes) - 1)] == wanted).any())

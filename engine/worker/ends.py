"""An index of the rows that are kept of a closure, by subject and by object: those beside a few new ones are found without a scan.

It is log-structured: what is added is sorted by hashes of its subjects and of its objects, and small parts are merged as they become many.
A hash tells rows that may be wanted; whoever joins them compares the terms themselves.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    import numpy.typing as npt

MOST_PARTS = 6


@dataclass(frozen=True, slots=True)
class _Part:
    """Some rows, and by end (``s``, ``o``) their hashes in order, with the places of the rows."""

    rows: pa.Table
    order: dict[str, tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]]

    def places(self, end: str, hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        """Where the rows are whose end has one of the hashes, which are distinct and ascend."""
        known, places = self.order[end]
        first = np.searchsorted(known, hashes)
        there = known[np.minimum(first, len(known) - 1)] == hashes
        first = first[there]
        counts = np.searchsorted(known, hashes[there], "right") - first
        offsets = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        found: npt.NDArray[np.int64] = places[np.repeat(first, counts) + offsets]
        return found


class Ends:
    """Rows by their ends. A table of rows has their columns, and the hashes ``hs`` and ``ho``."""

    def __init__(self, rows: pa.Table) -> None:
        self._none = rows.slice(0, 0)
        self._parts: list[_Part] = []
        self.add(rows)

    def add(self, rows: pa.Table) -> None:
        """Take in further rows."""
        if not rows.num_rows:
            return
        self._parts.append(_part(rows))
        if len(self._parts) > MOST_PARTS:
            greatest, *others = sorted(self._parts, key=lambda part: -part.rows.num_rows)
            small = sum(part.rows.num_rows for part in others) * 2 < greatest.rows.num_rows
            merged = _part(pa.concat_tables([part.rows for part in (others if small else self._parts)]))
            self._parts = [greatest, merged] if small else [merged]

    def rows_at(self, wanted: Iterable[tuple[str, npt.NDArray[np.uint64]]]) -> pa.Table:
        """The rows that have one of the hashes at an end, for some of the ends and hashes `wanted`."""
        pairs, found = [(end, np.unique(hashes)) for end, hashes in wanted], [self._none]
        for part in self._parts:
            places = np.concatenate([np.empty(0, np.int64), *(part.places(end, hashes) for end, hashes in pairs)])
            found.append(part.rows.take(pa.array(np.unique(places))))
        return pa.concat_tables(found)


def _part(rows: pa.Table) -> _Part:
    rows = rows.combine_chunks()
    orders = {}
    for end in "so":
        hashes = rows[f"h{end}"].to_numpy()
        order = np.argsort(hashes, kind="stable")
        orders[end] = hashes[order], order
    return _Part(rows, orders)

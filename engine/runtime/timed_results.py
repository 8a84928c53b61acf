"""What a program with a time of its own tells, of the rows that an evaluation gave: by time, what begins and what ceases."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from engine.execution.due import moments
from engine.worker.timed_task import CEASED


class Telling:
    """`rows` are the facts that begin or cease, as Program.variables has them. Of a T that is silent nothing is told, neither that a fact
    begins there, nor later that it ceases."""

    def __init__(self, found: pa.Table, grain_ms: int, is_silent: Callable[[int], bool]) -> None:
        begins, ends = found["lo"].to_numpy() // 2, (found["hi"].to_numpy() + 1) // 2
        self._ceased = np.asarray(found[CEASED].to_numpy(), np.bool_)
        self._ticks = np.where(self._ceased, ends, begins) + grain_ms
        ticks = np.unique(np.concatenate([self._ticks, begins + grain_ms]))
        silent = np.array([tick for tick in ticks.tolist() if is_silent(tick)], np.int64)
        self._known = ~np.isin(begins + grain_ms, silent)
        self._loud = self._known & ~np.isin(self._ticks, silent)
        rows = found.select(found.column_names[:-3]).append_column("from", moments(pa.chunked_array([begins])))
        self.rows = rows.append_column("until", moments(pa.chunked_array([pa.array(ends, mask=~self._ceased)])))

    def told(self) -> Iterator[tuple[int, bool, pa.Table]]:
        """By T: whether the facts cease, and these; in the order of their times, what begins first."""
        order = np.lexsort((self._ceased, self._ticks))
        order = order[self._loud[order]]
        rows = self.rows.take(order)
        keys, firsts = np.unique(2 * self._ticks[order] + self._ceased[order], return_index=True)
        for key, first, after in zip(keys.tolist(), firsts.tolist(), [*firsts.tolist()[1:], len(order)]):
            yield key // 2, bool(key % 2), rows.slice(first, after - first)

    def unsaid(self) -> Iterator[tuple[int, pa.Table]]:
        """By T: the facts that cease in silence and were told to begin."""
        places = np.flatnonzero(self._ceased & self._known & ~self._loud)
        for tick in np.unique(self._ticks[places]).tolist():
            yield tick, self.rows.take(places[self._ticks[places] == tick])

"""What a program with a time of its own tells, of the rows that an evaluation gave: by time, what begins and what ceases."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from engine.execution.instances import moments
from engine.worker.timed_task import CEASED


def told(found: pa.Table, grain_ms: int, is_silent: Callable[[int], bool]) -> Iterator[tuple[int, bool, pa.Table]]:
    """By T: whether the facts cease, and rows as Program.variables has them; in the order of their times, what begins first. Of a T that
    is silent nothing is told, neither that a fact begins there, nor later that it ceases."""
    begins, ends = found["lo"].to_numpy() // 2, (found["hi"].to_numpy() + 1) // 2
    ceased = np.asarray(found[CEASED].to_numpy(), np.bool_)
    ticks = np.where(ceased, ends, begins) + grain_ms
    silent = {int(tick): is_silent(int(tick)) for tick in np.unique(np.concatenate([ticks, begins + grain_ms]))}
    loud = np.array([not silent[tick] and not silent[begin + grain_ms] for tick, begin in zip(ticks.tolist(), begins.tolist())], np.bool_)
    order = np.lexsort((ceased, ticks))
    order = order[loud[order]]
    rows = found.select(found.column_names[:-3]).take(order)
    rows = rows.append_column("from", moments(pa.chunked_array([begins[order]])))
    rows = rows.append_column("until", moments(pa.chunked_array([pa.array(ends[order], mask=~ceased[order])])))
    keys, firsts = np.unique(2 * ticks[order] + ceased[order], return_index=True)
    for key, first, after in zip(keys.tolist(), firsts.tolist(), [*firsts.tolist()[1:], len(order)]):
        yield key // 2, bool(key % 2), rows.slice(first, after - first)

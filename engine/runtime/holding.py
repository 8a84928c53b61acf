"""What a rule program tells: by time, what begins and what ceases; and what it has told to hold: the facts of stream P that have not
ceased since, with their times.

That changes with results only, but where a fact ceases in a time of which nothing is told (a query that goes on after a pause leaves it
out): such a fact is gone at once, and the next result says so beside what it tells. So what holds at a result is what held at the one
before, with what it adds and without what it takes away."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from engine.arrays import each_once
from engine.execution.due import moments
from engine.output import difference
from engine.worker.timed_task import CEASED

GONE = "gone"
"""The column of a relation that is kept: the fact does not hold any more, and no result has said so."""
_UNTIL = "until"


class Telling:
    """`rows` are the facts that begin or cease, as Program.variables has them. Of a T that is silent nothing is told, neither that a fact
    begins there, nor later that it ceases."""

    def __init__(self, found: pa.Table, grain_ms: int, is_silent: Callable[[int], bool]) -> None:
        begins, ends = found["lo"].to_numpy() // 2, (found["hi"].to_numpy() + 1) // 2
        self._ceased = np.asarray(found[CEASED].to_numpy(), np.bool_)
        self._ticks = np.where(self._ceased, ends, begins) + grain_ms
        ticks = each_once(np.concatenate([self._ticks, begins + grain_ms]))
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
        for tick in each_once(self._ticks[places]).tolist():
            yield tick, self.rows.take(places[self._ticks[places] == tick])


@dataclass(frozen=True, slots=True)
class Held:
    """What a program holds up to its result `seq`: as that result left it (`told`), and `now`. Rows as Program.variables has them, of which
    `most` are shown. `open_ended`: until when a fact holds is not told before it ceases."""

    epoch: str
    seq: int
    told: pa.Table
    now: pa.Table
    open_ended: bool
    most: int


def held_of(kept: tuple[str, int, pa.Table | None] | None, epoch: str, variables: Sequence[str], open_ended: bool, most: int) -> Held:
    """What a program of `epoch` holds, of the relation that is kept of it (ResultLog.relation); nothing where it has told nothing yet."""
    none = pa.table({name: pa.array([], pa.string()) for name in variables})
    _, seq, relation = kept if kept is not None and kept[0] == epoch else (epoch, 0, None)
    now, gone = parts(relation, none)
    return Held(epoch, seq, pa.concat_tables([now, gone]).select(none.column_names), now.select(none.column_names), open_ended, most)


def parts(kept: pa.Table | None, none: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The facts of a relation that is kept which hold, and those that are gone; `none` where there is no relation yet."""
    if kept is None:
        return none, none
    if GONE not in kept.column_names:
        return kept, kept.slice(0, 0)
    rows = kept.drop_columns([GONE])
    return rows.filter(pc.invert(kept[GONE])), rows.filter(kept[GONE])


def whole(held: pa.Table, gone: Sequence[pa.Table]) -> pa.Table:
    flags = pa.array([False] * held.num_rows + [True] * sum(rows.num_rows for rows in gone), pa.bool_())
    return pa.concat_tables([held, *gone]).combine_chunks().append_column(GONE, flags)


def after(held: pa.Table, begun: Sequence[pa.Table], ceased: Sequence[pa.Table]) -> pa.Table:
    """What holds once facts have begun and others have ceased. Of a large relation only what looks like these is compared whole."""
    found, gone = pa.concat_tables([held, *begun]), pa.concat_tables([held.slice(0, 0), *ceased])
    if not gone.num_rows:
        return found
    like = reduce(pc.and_, (pc.is_in(found[name], value_set=pc.unique(gone[name])) for name in gone.column_names))
    return pa.concat_tables([found.filter(pc.invert(like)), difference(found.filter(like), gone)])


def begun_as(rows: pa.Table) -> pa.Table:
    """Facts that cease, of a program that is `open_ended`, as they were told to begin."""
    place = rows.schema.get_field_index(_UNTIL)
    return rows.set_column(place, rows.schema.field(place), pa.nulls(rows.num_rows, rows.schema.field(place).type))

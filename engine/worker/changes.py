"""At which evaluation times a query sees something else of its rules with a time of their own than at the one before, and when next."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from engine.plan.timed import Look, StagedPlan
from engine.timeline import MAX, MIN

Times = npt.NDArray[np.int64]
Rows = Sequence[tuple[int | None, pa.Table]]
"""Triples ``a1 a2 a3`` with the points ``lo hi`` between which they hold, by the stage that derives them; None: as their facts say."""
_TRIPLE = ["a1", "a2", "a3"]


@dataclass(frozen=True, slots=True)
class Reached:
    """When a query sees what holds at some points of its stages. On the grids of its windows, or, on change, at `listed` times only."""

    plan: StagedPlan
    grids: tuple[tuple[int, int], ...]
    listed: tuple[int, ...] = ()

    def first(self, place: int | None, points: Times) -> Times:
        """The first evaluation time at which each point of a stage has come; MAX where none has."""
        if not self.grids:
            seen = [2 * tick - 2 if place is None else self.plan.points(tick, True)[place] for tick in self.listed]
            return np.array([*self.listed, MAX], np.int64)[np.array(seen, np.int64).searchsorted(points, "left")]
        times = (points + 2) // 2       # an evaluation at T sees the point 2T - 1
        times = times if place is None else reaching(self.plan, place, times)
        found: Times = np.minimum.reduce([start - (start - times) // step * step for step, start in self.grids])
        return found


def reaching(plan: StagedPlan, place: int, times: Times) -> Times:
    """The first times (ms) at which a stage is final up to some times."""
    stage = plan.stages[place]
    length = stage.timeline.granularity_ms
    whole = -(-times // length) * length if length else times
    found: Times = np.maximum.reduce([reaching(plan, below, whole) for below in stage.reads]) if stage.reads else whole
    return found


def changed(plan: StagedPlan, rows: Rows, look: Look, past: int, ticks: Sequence[int]) -> list[int]:
    """The evaluation times beyond those of `ticks` that are sure at which something else is seen than at the one before, none of them
    behind the last of these; `rows` are those that hold after the time `past`, up to which the rules were taken on."""
    begin, last = max(past, MIN if look.before is None else look.before), ticks[-1]
    sure = [tick for tick in ticks if tick > begin and tick not in look.unsure]
    if not look.grids and not look.unsure or len(look.grids) == 1 and len(sure) == _count(*look.grids[0], begin, last):
        return []
    reached = Reached(plan, look.grids, () if look.grids else ((begin,) if begin > MIN else ()) + tuple(t for t in ticks if t > begin))
    found = set[int]()
    for spans in _touched([_spans(reached, place, table) for place, table in rows], begin, last):
        found.update(time for span in _joined(spans) for time in span if begin < time <= last)
    return sorted(found.difference(sure))


def _count(step: int, start: int, begin: int, last: int) -> int:
    """How many evaluation times of a grid there are in ``(begin, last]``."""
    return (last - start) // step - (begin - start) // step


def _spans(reached: Reached, place: int | None, table: pa.Table) -> pa.Table:
    """The triples that are seen at some time, with the first time, and the first at which they are not."""
    on, off = reached.first(place, table["lo"].to_numpy()), reached.first(place, table["hi"].to_numpy() + 1)
    names = [*_TRIPLE, "on", "off"]
    return pa.table([*(table[name] for name in _TRIPLE), pa.array(on), pa.array(off)], names=names).filter(pa.array(on < off))


def _touched(parts: Iterable[pa.Table], begin: int, last: int) -> Iterator[list[tuple[int, int]]]:
    """For each triple that comes or goes in ``(begin, last]`` all times for which it is seen."""
    rows = pa.concat_tables(parts)
    comes_or_goes = [pc.and_(pc.greater(rows[name], begin), pc.less_equal(rows[name], last)) for name in ("on", "off")]
    touched = rows.filter(pc.or_(*comes_or_goes)).select(_TRIPLE)
    if not touched.num_rows:
        return
    found = defaultdict[tuple[str, str, str], list[tuple[int, int]]](list)
    for *triple, on, off in zip(*(column.to_pylist() for column in rows.join(touched.group_by(_TRIPLE).aggregate([]), _TRIPLE,
                                                                             join_type="left semi").columns)):
        found[triple[0], triple[1], triple[2]].append((on, off))
    yield from found.values()


def _joined(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Half-open spans of time without those ends that others bridge."""
    found: list[tuple[int, int]] = []
    for on, off in sorted(spans):
        if found and on <= found[-1][1]:
            found[-1] = found[-1][0], max(off, found[-1][1])
        else:
            found.append((on, off))
    return found


def upcoming(plan: StagedPlan, stages: Iterable[tuple[int, int | None]], own: Iterable[int], tick: int) -> int | None:
    """The first point behind T at which something may change though nothing comes, where `stages` have such points and the facts of the
    rule sets have their `own`; as that of an evaluation time."""
    times = [int(reaching(plan, place, np.array([(point + 2) // 2]))[0]) for place, point in stages if point is not None]
    times += [(point + 2) // 2 for point in own]
    return 2 * max(min(times), tick + 1) - 1 if times else None

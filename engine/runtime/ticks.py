"""Which evaluation times of a query are due: a pure function of its windows, the times of the events it saw, and the watermark.

A tick T is logged when some window has content at T or had at the tick before (docs/architecture.md, "Time"). The ticks at
which a window has content are kept as a few intervals, so that a year without events costs nothing."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.arrays import each_once
from engine.ir.statement import AllWindow, Program, Statement, TimedProgram, TimeWindow, TupleWindow, Window
from engine.plan.timed import Look
from engine.timeline import MAX, MIN, ON_CHANGE_STEP, Range, content, first_close_after, last_close_by, merge


@dataclass(frozen=True, slots=True)
class Need:
    """What may still be seen of a stream: events from `from_ms` on, and of the older ones the last `triples` and `items`."""

    from_ms: int
    triples: int = 0
    items: int = 0

    def join(self, other: Need) -> Need:
        return Need(min(self.from_ms, other.from_ms), max(self.triples, other.triples), max(self.items, other.items))


KnownNeeds = dict[tuple[int, int], dict[str, Need]]
"""What is needed by the id of a timetable and a floor (`Ticker.needs`): found once for all queries of which both are the same."""


Times = npt.NDArray[np.int64]
Known = dict[tuple[int, int, int, int], list[Range]]
"""What windows make of some times (`Timetable.seen`): found once for all queries that see these."""


@dataclass(frozen=True, slots=True)
class Timetable:
    """The reporting side of a statement. `grids` are (step, start) of its evaluation times; empty for reports on change. `expiry`: it may
    report that an event leaves; `ceasing`: to the last one. What happens at a time is told at the T that is `grain_ms` later, of reports on
    change."""

    windows: tuple[tuple[str, Window], ...]
    grids: tuple[Range, ...]
    start: int
    full: bool
    on_change: bool
    expiry: bool
    ceasing: bool
    grain_ms: int = 1
    streams: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "streams", tuple(sorted({stream for stream, _ in self.windows})))

    @classmethod
    def of(cls, statement: Statement) -> Timetable:
        """The timetable of a statement; one without time windows and COMPUTE EVERY reports on change."""
        windows = tuple((source.stream, source.window) for source in statement.windows)
        every, start = statement.compute_every_ms, statement.start_at_ms
        steps = sorted({source.window.step_ms for source in statement.streams if isinstance(source.window, TimeWindow)})
        on_change = statement.on_change
        grids = ((every, start),) if every is not None else tuple((step, start) for step in steps)
        grain_ms = statement.query.grain_ms if isinstance(statement.query, TimedProgram) else 1
        return _one(cls(windows, () if on_change else grids, start, statement.report == "full", on_change, statement.expires,
                        isinstance(statement.query, Program), grain_ms))

    def label(self, tick: int) -> int:
        """The time that results of `tick` carry: the event's own time for reports on change."""
        return tick - self.grain_ms if self.on_change else tick

    def content(self, window: TimeWindow, tick: int) -> Range:
        """Events with ``first <= t < second`` are in the window at `tick`."""
        return content(tick, window.range_ms, self.step(window), self.start, window.delay_ms)

    def step(self, window: TimeWindow) -> int:
        """The time between two closes of a window; its own STEP does not count for reports on change."""
        return ON_CHANGE_STEP if self.on_change else window.step_ms

    def next_tick(self, after: int) -> int:
        """The first grid point after `after`."""
        return min(first_close_after(after, step, start) for step, start in self.grids)

    def tick_from(self, time: int) -> int:
        """The first evaluation time at or after `time`."""
        return time if self.on_change else self.next_tick(time - 1)

    def expected(self, span_ms: int) -> int:
        """About how many evaluation times there are in a span of time; of reports on change as many as there are events, so 0."""
        return sum(span_ms // step for step, _ in self.grids)

    def last_tick(self, until: int) -> int:
        """The last grid point at or before `until`."""
        return max(last_close_by(until, step, start) for step, start in self.grids)

    def evaluated(self, watermark: int) -> int:
        """The last evaluation time that is done at a watermark, reported or not; MIN for none."""
        return watermark if self.on_change or watermark == MIN else self.last_tick(watermark)

    def ticks(self, first: int, last: int, limit: int) -> list[int]:
        """At most `limit` grid points from `first` to `last`, both included."""
        if last < first:
            return []
        found = set[int]()
        for step, start in self.grids:
            begin = first_close_after(first - 1, step, start)
            found.update(range(begin, min(last + 1, begin + limit * step), step))
        return sorted(found)[:limit]

    def seen(self, window: Window, times: Times, known: Known) -> list[Range]:
        """Half-open ranges of T at which `window` has content because of events at `times` (ascending, not empty)."""
        if not isinstance(window, TimeWindow):
            return [(int(times[0]) + 1, MAX)]
        step = self.step(window)
        key = window.delay_ms, window.range_ms, step, self.start
        if key not in known:
            entered, left = times + window.delay_ms, times + window.delay_ms + window.range_ms
            known[key] = _runs(first_close_after(entered, step, self.start), first_close_after(left, step, self.start))
        return known[key]


@lru_cache(maxsize=4096)
def _one(timetable: Timetable) -> Timetable:
    """One object for equal timetables, so that what follows from one is found once for all its queries."""
    return timetable


Mark = dict[str, Any]
"""Where a Ticker stands: all that it knows."""


class Ticker:
    """The moving part: which ticks of one query are done, and where its windows have content."""

    look: Look | None = None    # of what was due last: which of it counts only if timed rules derive something else

    def __init__(self, timetable: Timetable, floor: int) -> None:
        self.timetable = timetable
        self.floor = floor
        self.filled = False
        self._first: dict[str, int] = {}
        self._last_close = MIN
        self._content: list[Range] = []
        self._changes: Times = np.empty(0, np.int64)
        self._grid = MAX, MIN       # a time, and the first grid point after it

    def see(self, stream: str, times: Times, known: Known | None = None) -> None:
        """Take in visible events of `stream` at `times` (ascending, distinct); `known` is of these times."""
        if not len(times) or stream not in self.timetable.streams:
            return
        known = {} if known is None else known
        self._first[stream] = min(int(times[0]), self._first.get(stream, MAX))
        windows = [w for name, w in self.timetable.windows if name == stream]
        for window in windows:
            ranges = self.timetable.seen(window, times, known)
            self._content = _joined(self._content, ranges)
            if ranges:
                last = int(times[-1]) + 1       # the last close that sees one of the events
                if isinstance(window, TimeWindow):
                    last = ranges[-1][1] - self.timetable.step(window)
                self._last_close = max(self._last_close, last)
        if self.timetable.on_change:
            instants = [times + 1]
            if self.timetable.expiry:
                instants += [times + w.delay_ms + w.range_ms + 1 for w in windows if isinstance(w, TimeWindow)]
            fresh = each_once(np.concatenate([self._changes, *instants]))
            self._changes = fresh[fresh > self.floor]

    def due(self, watermark: int, limit: int) -> list[int]:
        """At most `limit` ticks after `floor` up to `watermark`, in order; `floor` moves on to the last one looked at."""
        if watermark <= self.floor:
            return []
        found = self._due_changes(watermark, limit) if self.timetable.on_change else self._due_closes(watermark, limit)
        self._content = [r for r in self._content if r[1] > self.floor]
        return found

    def skip(self, watermark: int) -> None:
        """Leave out the ticks up to `watermark`."""
        self.floor = max(self.floor, watermark)
        self._changes = self._changes[self._changes > self.floor]

    def mark(self) -> Mark:
        return vars(self).copy()

    def back(self, mark: Mark) -> None:
        """Stand where it stood: what was due since is due again. Nothing may have been seen since."""
        vars(self).update(mark)

    def _due_changes(self, watermark: int, limit: int) -> list[int]:
        ready = [int(t) for t in self._changes[:limit] if t <= watermark]
        self.floor = watermark if len(ready) < limit else ready[-1]
        self._changes = self._changes[self._changes > self.floor]
        return self._reported(ready)

    def passes(self, watermark: int) -> bool:
        """Whether nothing can be due up to `watermark`, as the next evaluation time is later; `floor` moves on to it."""
        if self.floor < watermark and (self.timetable.on_change or self._upcoming() <= watermark):
            return False
        self.floor = max(self.floor, watermark)
        return True

    def _due_closes(self, watermark: int, limit: int) -> list[int]:
        candidates = self._candidates(watermark, limit + 1)
        if len(candidates) > limit:
            self.floor = candidates[limit - 1]
            return self._reported(candidates[:limit])
        before, self.floor = self.floor, watermark
        found = self._reported(candidates)
        last = self.timetable.last_tick(watermark)
        if last > before:
            self.filled = self._covers(last)
        return found

    def _upcoming(self) -> int:
        """The first grid point after `floor`."""
        if not self._grid[0] <= self.floor < self._grid[1]:
            self._grid = self.floor, self.timetable.next_tick(self.floor)
        return self._grid[1]

    def _candidates(self, watermark: int, limit: int) -> list[int]:
        """Ticks with content, and the first one after each run of them."""
        table, first = self.timetable, self.floor + 1
        found = set[int]()
        if self.filled:
            found.add(table.next_tick(self.floor))
        for begin, end in self._content:
            if len(found) >= limit or begin > watermark:
                break
            run = table.ticks(max(begin, first), min(end - 1, watermark), limit)
            found.update(run)
            if run and len(run) < limit and end <= watermark:
                found.add(table.next_tick(max(end, first) - 1))
        return sorted(t for t in found if t <= watermark)[:limit]

    def _reported(self, candidates: Sequence[int]) -> list[int]:
        """Those of the candidates (which leave out only ticks with empty windows) that are to be logged."""
        full_from = self._full_from() if self.timetable.full else MIN
        found = []
        for tick in candidates:
            filled = self._covers(tick)
            if (filled or self.filled) and tick >= full_from:
                found.append(tick)
            self.filled = filled
        return found

    def _full_from(self) -> int:
        """The first T at which every time window lies within what the query has seen (REPORT FULL)."""
        starts = [MIN]
        for stream, window in self.timetable.windows:
            if stream not in self._first:
                return MAX
            starts.append(self._first[stream] + 1)
            if isinstance(window, TimeWindow):
                whole = self._first[stream] + window.delay_ms + window.range_ms
                starts.append(first_close_after(whole - 1, self.timetable.step(window), self.timetable.start))
        return max(starts)

    def _covers(self, tick: int) -> bool:
        place = bisect_right(self._content, (tick, MAX + 1)) - 1
        return place >= 0 and tick < self._content[place][1]

    def next(self) -> int | None:
        """The next tick that will be logged if nothing else comes in; None where there is none."""
        if self.timetable.on_change:
            return int(self._changes[0]) if len(self._changes) else None
        if self.filled or self._covers(self._upcoming()):
            return self._upcoming()
        found = self._candidates(MAX - 1, 1)
        return found[0] if found else None

    @property
    def soonest(self) -> int:
        """The first time that may be an evaluation time still to come, whatever comes in."""
        return self.floor + 1 if self.timetable.on_change else self._upcoming()

    def last(self) -> int:
        """Where a replay ends: the last close that still sees an event, or the first tick after it; MIN where there is none."""
        if self._last_close != MIN and self.timetable.ceasing:
            return self._last_close + 1
        if self.timetable.on_change or self._last_close == MIN:
            return self._last_close
        return self.timetable.next_tick(self._last_close - 1)

    @property
    def evaluated(self) -> int:
        return self.timetable.evaluated(self.floor)

    def needs(self, least_floor: int = MIN, known: KnownNeeds | None = None) -> dict[str, Need]:
        """What must be kept of each stream for the ticks after `floor`, or after `least_floor` if that is greater."""
        floor, known = max(self.floor, least_floor), {} if known is None else known
        key = id(self.timetable), floor
        if key not in known:
            needs = known[key] = {}
            for stream, window in self.timetable.windows:
                need = self._need(window, floor)
                needs[stream] = needs[stream].join(need) if stream in needs else need
        return known[key]

    def _need(self, window: Window, floor: int) -> Need:
        match window:
            case AllWindow():
                return Need(MIN)
            case TimeWindow():
                return Need(self.timetable.content(window, floor)[0] if floor > MIN else MIN)
            case TupleWindow(count=count, unit="triples"):
                return Need(floor, triples=count)
            case TupleWindow(count=count):
                return Need(floor, items=count)
        return Need(floor, triples=1)

    def written_as(self) -> Hashable | None:
        """Equal to that of an older snapshot where this will do as well: no grid point was passed since, and what came is found again. None
        where that is not known."""
        return None if self.timetable.on_change else (self._upcoming(), self.filled, *self._first.values())

    def move_on(self, watermark: int) -> None:
        """Move `floor` on as far as no grid point is passed: an older snapshot was restored."""
        if self.written_as() is not None:
            self.floor = max(self.floor, min(watermark, self._upcoming() - 1))

    def snapshot(self) -> dict[str, Any]:
        """What cannot be found again by seeing the kept events anew."""
        return {"floor": self.floor, "filled": self.filled, "first": self._first, "last": self._last_close}

    def restore(self, state: dict[str, Any]) -> None:
        """Take back a snapshot; the kept events are to be seen again after it."""
        self.floor, self.filled = state["floor"], state["filled"]
        self._first, self._last_close = dict(state["first"]), state["last"]
        endless = [(first + 1, MAX) for stream, first in self._first.items()
                   if any(name == stream and not isinstance(w, TimeWindow) for name, w in self.timetable.windows)]
        self._content = merge([*self._content, *endless])


def _joined(content: list[Range], ranges: list[Range]) -> list[Range]:
    """`merge` of both, where one range mostly goes on with the last."""
    if len(ranges) == 1 and content and content[-1][0] <= ranges[0][0] <= content[-1][1]:
        return [*content[:-1], (content[-1][0], max(content[-1][1], ranges[0][1]))]
    return merge([*content, *ranges]) if ranges else content


def _runs(begin: Times, end: Times) -> list[Range]:
    """Merge the ranges ``[begin, end)``, both ascending; empty ones are left out."""
    proper = end > begin
    begin, end = begin[proper], end[proper]
    if not len(begin):
        return []
    cuts = np.flatnonzero(begin[1:] > end[:-1]) + 1
    return [(int(b[0]), int(e[-1])) for b, e in zip(np.split(begin, cuts), np.split(end, cuts), strict=True)]


def query_watermark(watermarks: Sequence[tuple[int, bool]]) -> int:
    """The least watermark of the streams that are not idle, given (watermark, idle) of each; the greatest where all are idle."""
    active = [watermark for watermark, idle in watermarks if not idle]
    return min(active) if active else max((watermark for watermark, _ in watermarks), default=MIN)

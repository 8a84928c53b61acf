"""When a query whose rule sets have a time of their own is evaluated: as its windows say, and where they are empty when what the rules
derive is not what it was.

Whether it changed is known once the rules were taken on. They are where an event came that they have not seen, or where time alone may
bring about something; what is due then says which of its times count in any case, and where others are to be looked for (`Look`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.plan.timed import Look
from engine.runtime.ticks import Known, Mark, Ticker, Times, Timetable
from engine.timeline import MIN


class MixedTicker(Ticker):
    """`done` is the T up to which the rules were taken on, `next_point` the point of the next at which time alone may bring about
    something. `before`: of reports on change the T before those that are due next."""

    def __init__(self, timetable: Timetable, floor: int) -> None:
        super().__init__(timetable, floor)
        self.done = MIN
        self.next_point: int | None = None
        self.before: int | None = None
        self._waiting: Times = np.empty(0, np.int64)
        self._looked: Sequence[int] = ()

    def follow(self, done: int, next_point: int | None) -> None:
        """The rules have been taken on to a T, after which something may change at a point though nothing comes."""
        self.done, self.next_point = done, next_point
        self._waiting = self._waiting[self._waiting >= done]

    def see(self, stream: str, times: Times, known: Known | None = None) -> None:
        """As Ticker; the rules will look at events that are not older than `done`."""
        super().see(stream, times, known)
        if len(times) and stream in self.timetable.streams:
            self._waiting = np.union1d(self._waiting, times[times >= self.done])

    def due(self, watermark: int, limit: int) -> list[int]:
        """As Ticker, with times that count only as `look` says."""
        begin, self.look, self._looked = self.floor, None, ()
        found = super().due(watermark, limit)
        if self.timetable.on_change:
            return self._with_instants(found)
        if (first := self._first_after(begin)) is None or (may := self._may_change()) is None:
            return found
        last = self.timetable.last_tick(self.floor) if self.floor > begin else MIN
        if last < max(first, may):
            return found
        self.look = Look(self.timetable.last_tick(first - 1), frozenset((last,)).difference(found), self.timetable.grids)
        return found if last in found else [*found, last]

    def skip(self, watermark: int) -> None:
        """Leave out the ticks up to `watermark`."""
        passed = self._changes[self._changes <= watermark]
        self.before = int(passed[-1]) if len(passed) else self.before
        super().skip(watermark)

    def mark(self) -> Mark:
        """Where it stands, for `back`."""
        return *super().mark(), self.before

    def back(self, mark: Mark) -> None:
        """Stand where it stood: what was due since is due again. Nothing may have been seen since."""
        *mark_of_windows, self.before = mark
        super().back(tuple(mark_of_windows))

    def next(self) -> int | None:
        """The next tick that may be logged if nothing else comes in; None where there is none."""
        found = super().next()
        if self.timetable.on_change or (first := self._first_after(self.floor)) is None or (may := self._may_change()) is None:
            return found
        may = max(may, first)
        return may if found is None else min(found, may)

    def written_as(self) -> None:
        """It is written after each batch."""

    def snapshot(self) -> dict[str, Any]:
        """What cannot be found again by seeing the kept events anew."""
        return {**super().snapshot(), "before": self.before}

    def restore(self, state: dict[str, Any]) -> None:
        """Take back a snapshot; the kept events are to be seen again after it."""
        super().restore(state)
        self.before = state.get("before")

    def _reported(self, candidates: Sequence[int]) -> list[int]:
        self._looked = candidates
        return super()._reported(candidates)

    def _with_instants(self, sure: list[int]) -> list[int]:
        """What is due of reports on change: instants at which all windows are empty count if something changed."""
        begin = self._full_from() if self.timetable.full else MIN
        looked = sorted({*sure, *(tick for tick in self._looked if tick >= begin)})
        if unsure := frozenset(looked).difference(sure):
            self.look = Look(self.before, unsure)
        self.before = self._looked[-1] if self._looked else self.before
        return looked

    def _first_after(self, floor: int) -> int | None:
        """The first T after `floor` that may be evaluated though its windows are empty: it is one after an event."""
        if not self._first:
            return None
        first = self.timetable.next_tick(max(floor, min(self._first.values())))
        return self.timetable.tick_from(max(first, self._full_from())) if self.timetable.full else first

    def _may_change(self) -> int | None:
        """The first T at which the rules may derive something else than at `done`."""
        found = [] if self.next_point is None else [self.timetable.tick_from((self.next_point + 1) // 2)]
        if len(self._waiting):
            found.append(self.timetable.next_tick(int(self._waiting[0])))
        return min(found, default=None)

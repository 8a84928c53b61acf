"""When what has rules with a time of their own is evaluated.

A query whose rule sets are such: as its windows say, and where they are empty when what the rules derive is not what it was. Whether it
changed is known once the rules were taken on. They are where an event came that they have not seen, or where time alone may bring about
something; what is due then says which of its times count in any case, and where others are to be looked for (`Look`).

A program: an evaluation takes it on to where the watermark is, if there is anything to take in or to tell. All instants that a batch
brought are one evaluation, so how often there is one says nothing about results: each of them has the T at which its own time was final."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.ir.programs import last_told_at
from engine.ir.statement import TimedProgram
from engine.plan.timed import Look
from engine.runtime.ticks import Known, KnownNeeds, Need, Ticker, Times, Timetable
from engine.timeline import MAX, MIN, Range, merge


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
        passed = self._changes[self._changes <= watermark]
        self.before = int(passed[-1]) if len(passed) else self.before
        super().skip(watermark)

    def next(self) -> int | None:
        found = super().next()
        if self.timetable.on_change or (first := self._first_after(self.floor)) is None or (may := self._may_change()) is None:
            return found
        may = max(may, first)
        return may if found is None else min(found, may)

    def written_as(self) -> None:
        """It is written after each batch."""

    def snapshot(self) -> dict[str, Any]:
        return {**super().snapshot(), "before": self.before}

    def restore(self, state: dict[str, Any]) -> None:
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


class TimedTicker(Ticker):
    """`done` is the watermark that the program has come to, `next_point` the first point at which something may be told though nothing
    comes. `silent` are half-open ranges of T whose results are not told: those before the query was there, and those that a resumption
    leaves out. What holds meanwhile is followed all the same."""

    def __init__(self, timetable: Timetable, program: TimedProgram, floor: int) -> None:
        super().__init__(timetable, floor)
        self._program = program
        self.done = MIN
        self.next_point: int | None = None
        self.silent: list[Range] = [(MIN, floor + 1)]
        self._waiting: Times = np.empty(0, np.int64)
        self._last_seen = MIN

    def see(self, stream: str, times: Times, known: Known | None = None) -> None:
        """Take in visible events of `stream` at `times` (ascending, distinct); those that are done are left out."""
        if len(times) and stream in self.timetable.streams:
            self._last_seen = max(self._last_seen, int(times[-1]))
            self._waiting = np.union1d(self._waiting, times[times >= self.done])

    def passes(self, watermark: int) -> bool:
        """Whether nothing can be due up to `watermark`: it may be at any time."""
        return watermark <= self.floor

    def due(self, watermark: int, limit: int) -> list[int]:
        """The T to go on to, if there is something to do by then; `floor` moves on to the watermark."""
        if watermark <= self.floor:
            return []
        self.floor, first, reached = watermark, self.next(), self._last_whole(watermark)
        if first is None or first > reached:
            return []
        self.done = reached
        self._waiting = self._waiting[self._waiting >= reached]
        return [reached]

    def skip(self, watermark: int) -> None:
        """Tell nothing of the Ts up to `watermark`."""
        if watermark > self.floor:
            self.silent = merge([*self.silent, (self.floor + 1, watermark + 1)])

    def is_silent(self, tick: int) -> bool:
        return any(begin <= tick < end for begin, end in self.silent)

    def next(self) -> int | None:
        """The next T at which there is something to do, if nothing else comes in."""
        found = [] if self.next_point is None else [self._whole(self.next_point // 2 + 1)]
        if len(self._waiting):
            found.append(self._whole(int(self._waiting[0]) + 1))
        return min(found, default=None)

    def last(self) -> int:
        """Where a replay ends; MIN where it has seen nothing."""
        return MIN if self._last_seen == MIN else last_told_at(self._program, self._last_seen)

    def needs(self, least_floor: int = MIN, known: KnownNeeds | None = None) -> dict[str, Need]:
        """What must be kept of each stream: what is not done yet, also for a program that is paused."""
        first = int(self._waiting[0]) if len(self._waiting) else MAX
        return {stream: Need(min(first, self.floor)) for stream in self.timetable.streams}

    def written_as(self) -> None:
        """It is written after each batch."""

    def snapshot(self) -> dict[str, Any]:
        return {"floor": self.floor, "done": self.done, "last": self._last_seen, "next": self.next_point, "silent": self.silent}

    def restore(self, state: dict[str, Any]) -> None:
        self.floor, self.done, self._last_seen, self.next_point = state["floor"], state["done"], state["last"], state["next"]
        self.silent = [(begin, end) for begin, end in state["silent"]]

    def _last_whole(self, time: int) -> int:
        grain = self._program.grain_ms
        return time // grain * grain

    def _whole(self, time: int) -> int:
        return -self._last_whole(-time)

"""When a program with a time of its own is evaluated: an evaluation takes it on to where the watermark is, if there is anything to take in
or to tell.

All instants that a batch brought are one evaluation, so how often there is one says nothing about results: each of them has the T at which
its own time was final.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.ir.programs import last_told_at
from engine.ir.statement import TimedProgram
from engine.runtime.needs import KnownNeeds, Need
from engine.runtime.ticks import Known, Mark, Range, Ticker, Times, Timetable, merge
from engine.timeline import MAX, MIN


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
        """Whether nothing is told of a T."""
        return any(begin <= tick < end for begin, end in self.silent)

    def mark(self) -> Mark:
        """Where it stands, for `back`."""
        return self.floor, self.done, self._waiting

    def back(self, mark: Mark) -> None:
        """Stand where it stood. Nothing may have been seen since."""
        self.floor, self.done, self._waiting = mark

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
        """What cannot be found again by seeing the kept events anew."""
        return {"floor": self.floor, "done": self.done, "last": self._last_seen, "next": self.next_point, "silent": self.silent}

    def restore(self, state: dict[str, Any]) -> None:
        """Take back a snapshot; the kept events are to be seen again after it."""
        self.floor, self.done, self._last_seen, self.next_point = state["floor"], state["done"], state["last"], state["next"]
        self.silent = [(begin, end) for begin, end in state["silent"]]

    def _last_whole(self, time: int) -> int:
        grain = self._program.grain_ms
        return time // grain * grain

    def _whole(self, time: int) -> int:
        return -self._last_whole(-time)

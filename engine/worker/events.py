"""The last atoms of the input: windows of tuples as relations, in which an event holds from its granule until so many later ones have come.

Events are ordered by granule, predicate and tokens, each atom once in a granule.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from engine.functions.terms import integer
from engine.plan import intervals as plan
from engine.timeline import MAX, MIN
from engine.worker.tables import table_of

Event = tuple[int, tuple[str, tuple[str, ...]]]


class Events:
    """The events that windows of tuples can still see, and those of facts that go on beyond the step."""

    def __init__(self, program: plan.Program) -> None:
        self.windows = program.windows
        self.granule = program.granule
        self.kept: list[Event] = []

    @property
    def held(self) -> int:
        """How many are kept."""
        return len(self.kept)

    def advance(self, given: Iterable[tuple[str, pa.Table]], past: int, until: int, start: int) -> list[tuple[str, pa.Table]]:
        """The rows of the windows' relations in a step, given the facts that came in."""
        came = {event for name, table in given for event in self._events(name, table, start)}
        events = sorted({*self.kept, *came})
        made = [(window.relation, self._rows(window, events, past, until)) for window in self.windows]
        there = [event for event in events if event[0] * self.granule <= until]
        self.kept = there[-max(window.size for window in self.windows):] + events[len(there):]
        return made

    def _events(self, name: str, table: pa.Table, start: int) -> Iterable[Event]:
        predicate, _, arity = name.rpartition("/")
        if predicate.startswith("."):
            return
        cells = [table[f"a{place}"].to_pylist() for place in range(1, int(arity) + 1)]
        for row, (lo, hi) in enumerate(zip(table["lo"].to_pylist(), table["hi"].to_pylist())):
            if (lo, hi) != (MIN, MAX):
                atom = predicate, tuple(column[row] for column in cells)
                yield from ((k, atom) for k in range(max(lo, start) // self.granule, hi // self.granule + 1))

    def _rows(self, window: plan.TupleWindow, events: Sequence[Event], past: int, until: int) -> pa.Table:
        rows: list[tuple[str | int, ...]] = []
        for place, (k, (predicate, terms)) in enumerate(events):
            later = events[place + window.size][0] * self.granule - 1 if place + window.size < len(events) else until
            lo, hi = max(past + 1, k * self.granule), min(until, later)
            if (predicate, len(terms)) == (window.predicate, window.arity) and lo <= hi:
                rows.append((*terms, integer(k), lo, hi))
        return table_of(rows, window.arity + 1)

"""The last atoms of the input: windows of tuples as relations, in which an event holds from its granule until so many later ones have come.

Events are ordered by granule, predicate and tokens, each atom once in a granule.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from engine.functions.terms import integer
from engine.ir.rules import is_auxiliary
from engine.plan import intervals as plan
from engine.timeline import MAX, MIN
from engine.worker.tables import table_of

Ground = tuple[str, tuple[str, ...]]
Event = tuple[int, Ground]
Lasting = tuple[int, int, Ground]
"""An atom that holds from one granule to another, both included."""


class Events:
    """The events that windows of tuples can still see (`kept`), and what holds beyond the step (`waiting`), which may be for ever."""

    def __init__(self, program: plan.Program) -> None:
        self.windows = program.windows
        self.granule = program.granule
        self.kept: list[Event] = []
        self.waiting: list[Lasting] = []

    @property
    def held(self) -> int:
        """How many are kept."""
        return len(self.kept) + len(self.waiting)

    def advance(self, given: Iterable[tuple[str, pa.Table]], past: int, until: int, start: int) -> list[tuple[str, pa.Table]]:
        """The rows of the windows' relations in a step, given the facts that came in. ValueError for one that always holds and that a
        window would have to show."""
        lasting = {*self.waiting, *(found for name, table in given for found in self._lasting(name, table, start))}
        reach = until // self.granule
        came = {(k, atom) for first, last, atom in lasting for k in range(first, min(last, reach) + 1)}
        self.waiting = sorted((max(first, reach + 1), last, atom) for first, last, atom in lasting if last > reach)
        events = sorted({*self.kept, *came})
        made = [(window.relation, self._rows(window, events, past, until)) for window in self.windows]
        self.kept = events[-max(window.size for window in self.windows):]
        return made

    def _lasting(self, name: str, table: pa.Table, start: int) -> Iterable[Lasting]:
        predicate, _, arity = name.rpartition("/")
        if is_auxiliary(predicate):
            return
        seen = (predicate, int(arity)) in {(window.predicate, window.arity) for window in self.windows}
        cells = [table[f"a{place}"].to_pylist() for place in range(1, int(arity) + 1)]
        for row, (lo, hi) in enumerate(zip(table["lo"].to_pylist(), table["hi"].to_pylist())):
            if (lo, hi) != (MIN, MAX):
                yield max(lo, start) // self.granule, hi // self.granule, (predicate, tuple(column[row] for column in cells))
            elif seen:
                raise ValueError(f"a fact of {predicate} holds always: a window of tuples over {predicate} cannot be evaluated with it")

    def _rows(self, window: plan.TupleWindow, events: Sequence[Event], past: int, until: int) -> pa.Table:
        rows: list[tuple[str | int, ...]] = []
        for place, (k, (predicate, terms)) in enumerate(events):
            later = events[place + window.size][0] * self.granule - 1 if place + window.size < len(events) else until
            lo, hi = max(past + 1, k * self.granule), min(until, later)
            if (predicate, len(terms)) == (window.predicate, window.arity) and lo <= hi:
                rows.append((*terms, integer(k), lo, hi))
        return table_of(rows, window.arity + 1)

"""The last atoms of the input: windows of tuples as relations, in which an event holds from its granule until so many later ones have come.

Events are ordered by granule, predicate and tokens, each atom once in a granule.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import itemgetter

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
State = tuple[tuple[Event, ...], tuple[Lasting, ...], tuple[Ground, ...]]


class Events:
    """The events that windows of tuples can still see (`kept`), what holds beyond the step (`waiting`), which may be for ever, and what
    holds always (`always`): it is in every window, and counts in none."""

    def __init__(self, program: plan.Program) -> None:
        self.windows = program.windows
        self.granule = program.granule
        self.kept: list[Event] = []
        self.waiting: list[Lasting] = []
        self.always: set[Ground] = set()

    @property
    def held(self) -> int:
        return len(self.kept) + len(self.waiting) + len(self.always)

    @property
    def state(self) -> State:
        """What is kept between two steps, as a value; it can be set."""
        return tuple(self.kept), tuple(self.waiting), tuple(sorted(self.always))

    @state.setter
    def state(self, state: State) -> None:
        self.kept, self.waiting, self.always = list(state[0]), list(state[1]), set(state[2])

    def advance(self, given: Iterable[tuple[str, pa.Table]], past: int, until: int, start: int) -> list[tuple[str, pa.Table]]:
        """The rows of the windows' relations in a step, given the facts that came in."""
        lasting = {*self.waiting, *(found for name, table in given for found in self._lasting(name, table, start))}
        reach = until // self.granule
        came = {(k, atom) for first, last, atom in lasting for k in range(first, min(last, reach) + 1)}
        self.waiting = sorted((max(first, reach + 1), last, atom) for first, last, atom in lasting if last > reach)
        events = sorted({*self.kept, *came})
        begin = max(past + 1, start)
        made = [(w.relation, self._rows(w, events, begin, until, start) if w.box is None else self._boxed(w, events, begin, until, start))
                for w in self.windows]
        self.kept = events[-max(window.size for window in self.windows):]
        return made

    def _lasting(self, name: str, table: pa.Table, start: int) -> Iterable[Lasting]:
        predicate, _, arity = name.rpartition("/")
        if is_auxiliary(predicate):
            return
        seen = (predicate, int(arity)) in {(window.predicate, window.arity) for window in self.windows}
        cells = [table[f"a{place}"].to_pylist() for place in range(1, int(arity) + 1)]
        for row, (lo, hi) in enumerate(zip(table["lo"].to_pylist(), table["hi"].to_pylist())):
            atom = predicate, tuple(column[row] for column in cells)
            if (lo, hi) != (MIN, MAX):
                yield max(lo, start) // self.granule, hi // self.granule, atom
            elif seen:
                self.always.add(atom)

    def _rows(self, window: plan.TupleWindow, events: Sequence[Event], begin: int, until: int, start: int) -> pa.Table:
        """Events with their granules, until so many later ones have come; what always holds at each granule since the oldest."""
        granules = [k for k, _ in events]
        rows: list[tuple[str | int, ...]] = []

        def show(terms: tuple[str, ...], k: int, place: int) -> None:
            later = granules[place] * self.granule - 1 if place < len(events) else until
            lo, hi = max(begin, k * self.granule), min(until, later)
            if lo <= hi:
                rows.append((*terms, integer(k), lo, hi))

        for place, (k, atom) in enumerate(events):
            if _is_of(window, atom):
                show(atom[1], k, place + window.size)
        oldest = self._oldest(window, events, bisect_right(granules, begin // self.granule), start)
        for _, terms in (atom for atom in self.always if _is_of(window, atom)):
            for k in range(oldest, until // self.granule + 1):
                show(terms, k, bisect_right(granules, k) + window.size - 1)
        return table_of(rows, window.arity + 1)

    def _boxed(self, window: plan.TupleWindow, events: Sequence[Event], begin: int, until: int, start: int) -> pa.Table:
        """The granules of an event at which it was among the last at each granule since the oldest of these, or for so long as is asked."""
        places = {event: place for place, event in enumerate(events)}
        runs: dict[Ground, tuple[int, int]] = {}        # the first and the last granule of one after another
        rows: list[tuple[str | int, ...]] = []
        if begin == start:      # the first step
            rows += [(*terms, start, MAX) for _, terms in (atom for atom in self.always if _is_of(window, atom))]
        count = 0
        for k, together in groupby(events, itemgetter(0)):
            atoms = [atom for _, atom in together]
            count += len(atoms)
            oldest = self._oldest(window, events, count, start)
            asked = oldest if window.box in (None, MAX) else max(oldest, k - (window.box or 0) // self.granule)
            for atom in atoms:
                first, last = runs.get(atom, (k, k))
                runs[atom] = first if last >= k - 1 else k, k
                there = runs[atom][0] <= asked and places[asked, atom] >= count - window.size
                if there and _is_of(window, atom) and k * self.granule >= begin:
                    rows.append((*atom[1], k * self.granule, (k + 1) * self.granule - 1))
        return table_of(rows, window.arity)

    def _oldest(self, window: plan.TupleWindow, events: Sequence[Event], count: int, start: int) -> int:
        """The first granule that a window sees when so many events have come."""
        return events[count - window.size][0] if count >= window.size else start // self.granule


def _is_of(window: plan.TupleWindow, atom: Ground) -> bool:
    return (atom[0], len(atom[1])) == (window.predicate, window.arity)

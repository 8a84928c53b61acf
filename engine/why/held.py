"""Facts by what is bound of them, and with the intervals during which they are known to hold, each part since a round of the derivation.

What a rule gives in a round follows from what was known before it, so a proof by these facts cannot use what it proves.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from engine.ir.rules import Atom, Fact
from engine.ir.terms import Constant
from engine.reference.formulas import Ground, Row, ground
from engine.timeline import Interval, coalesce, interval
from engine.why.trees import Source

Places = tuple[int, ...]


class Index:
    """Ground atoms, found by the terms that a pattern and a row say."""

    def __init__(self) -> None:
        self._all: dict[tuple[str, int], list[Ground]] = defaultdict(list)
        self._by: dict[tuple[str, int, Places], dict[tuple[str, ...], list[Ground]]] = {}

    def add(self, fact: Ground) -> None:
        """A fact that was not there."""
        predicate, terms = fact
        self._all[predicate, len(terms)].append(fact)
        for (name, arity, places), index in self._by.items():
            if name == predicate and arity == len(terms):
                index[tuple(terms[place] for place in places)].append(fact)

    def facts(self, atom: Atom, row: Row) -> Sequence[Ground]:
        """The facts that agree with an atom in all that is a constant or bound."""
        shape = atom.predicate, len(atom.terms)
        if shape not in self._all:
            return ()
        tokens = [term.token if isinstance(term, Constant) else row.get(term.name) for term in atom.terms]
        places = tuple(place for place, token in enumerate(tokens) if token is not None)
        if not places:
            return tuple(self._all[shape])
        name = *shape, places
        if name not in self._by:
            self._by[name] = defaultdict(list)
            for fact in self._all[shape]:
                self._by[name][tuple(fact[1][place] for place in places)].append(fact)
        return tuple(self._by[name].get(tuple(token for token in tokens if token is not None), ()))


Intervals = tuple[Interval, ...]
Given = tuple[Fact, Source]
LAST = 1 << 62
"""A round after all rounds."""


class Held:
    """Facts on dense time. What is given is of round 0."""

    def __init__(self, given: Iterable[Given], derived: Iterable[Given] = ()) -> None:
        """What is `derived` by others is no event."""
        self.given: dict[Ground, dict[Interval, tuple[Source, ...]]] = defaultdict(dict)
        self._rounds: dict[Ground, list[int]] = {}
        self._known: dict[Ground, list[Intervals]] = {}
        self._index = Index()
        listed = list(given)
        self._events = {(ground(fact.atom, {}), fact.interval) for fact, _ in listed if fact.interval.lo == fact.interval.hi}
        for fact, source in (*listed, *derived):
            pieces = self.given[ground(fact.atom, {})]
            pieces[fact.interval] = tuple(dict.fromkeys((*pieces.get(fact.interval, ()), source)))
        for atom, pieces in self.given.items():
            self.add(atom, pieces, 0)

    def add(self, fact: Ground, when: Iterable[Interval], number: int) -> bool:
        """Know that a fact holds, since the round `number`; whether that is new."""
        before = self._known[fact][-1] if fact in self._known else ()
        after = tuple(coalesce([*before, *when]))
        if after == before:
            return False
        if fact not in self._known:
            self._known[fact], self._rounds[fact] = [], []
            self._index.add(fact)
        self._known[fact].append(after)
        self._rounds[fact].append(number)
        return True

    def all(self) -> Iterable[Ground]:
        """Everything that holds at some time."""
        return self._known

    def facts(self, atom: Atom, row: Row) -> Sequence[Ground]:
        """The facts that may match."""
        return self._index.facts(atom, row)

    def during(self, fact: Ground, window_ms: int | None = None, by: int = LAST) -> Intervals:
        """When a fact holds as known after the round `by`; for a rule with a Window each event counts from its instant on so long."""
        rounds = self._rounds.get(fact, [])
        place = bisect_right(rounds, by)
        found = self._known[fact][place - 1] if place else ()
        return tuple(coalesce([*found, *(seen for _, seen in self.events(fact, window_ms))])) if window_ms is not None else found

    def round_of(self, fact: Ground, point: int, window_ms: int | None = None) -> int | None:
        """The round since which a fact is known to hold at a point."""
        if any(point in seen for _, seen in self.events(fact, window_ms)):
            return 0
        return next((number for number, held in zip(self._rounds.get(fact, ()), self._known.get(fact, ()))
                     if any(point in when for when in held)), None)

    def events(self, fact: Ground, window_ms: int | None) -> Iterator[tuple[Interval, Interval]]:
        """The punctual facts of the input, each with when a rule with this Window sees it."""
        if window_ms is None:
            return
        for piece in self.given.get(fact, ()):
            if (fact, piece) in self._events:
                seen = interval(piece.lo // 2, piece.lo // 2 + window_ms, closed_end=False)
                assert seen is not None
                yield piece, seen

"""Facts in relations by predicate, with an index for each combination of bound places, and joins of them, a set at a time.

A triple is a pair in the relation of its property: a schema of a hundred thousand sub-class axioms is one relation.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

from engine.ir.rules import TRIPLE, Atom
from engine.ir.terms import Constant, Variable
from engine.records import Triple

Name = tuple[str, bool]
"""What a relation is of: a property's token (True), or the predicate of another atom (False)."""
Row = tuple[str, ...]
Places = tuple[int, ...]


class Relation:
    """A set of rows of one length."""

    def __init__(self) -> None:
        self.rows: set[Row] = set()
        self._indexes: dict[Places, dict[Any, list[Row]]] = {}

    def add(self, rows: Iterable[Row]) -> set[Row]:
        """The rows that are new."""
        new = set(rows) - self.rows
        self.rows |= new
        for places, index in self._indexes.items():
            key = itemgetter(*places)
            for row in new:
                index[key(row)].append(row)
        return new

    def index(self, places: Places) -> dict[Any, list[Row]]:
        """Rows by their terms at these places: the term itself where it is one place."""
        if places not in self._indexes:
            index: dict[Any, list[Row]] = defaultdict(list)
            key = itemgetter(*places)
            for row in self.rows:
                index[key(row)].append(row)
            self._indexes[places] = index
        return self._indexes[places]


class Store:
    """Relations by name."""

    def __init__(self, triples: Iterable[Triple] = ()) -> None:
        self.relations: dict[Name, Relation] = {}
        sorted_out: dict[Name, set[Row]] = defaultdict(set)
        for s, p, o in triples:
            sorted_out[p, True].add((s, o))
        for name, rows in sorted_out.items():
            self.add(name, rows)

    def add(self, name: Name, rows: Iterable[Row]) -> set[Row]:
        """The rows that are new."""
        return self.relations.setdefault(name, Relation()).add(rows)

    def size(self, name: Name) -> int:
        """How many facts a relation has."""
        return len(self.relations[name].rows) if name in self.relations else 0

    def triples(self) -> Iterator[Triple]:
        """Every fact that is a triple."""
        for (predicate, is_property), relation in self.relations.items():
            if is_property:
                yield from ((s, predicate, o) for s, o in relation.rows)


class Bindings:
    """Rows of terms for `variables`."""

    def __init__(self, variables: tuple[Variable, ...] = (), rows: Iterable[Row] = ((),)) -> None:
        self.variables = variables
        self.rows = list(rows)

    def joined(self, atom: Atom, store: Store) -> Bindings:
        """The rows extended by the facts of the store that match the atom."""
        link = atom.terms[1] if atom.predicate == TRIPLE else None
        if not isinstance(link, Variable):
            return self._with(name_of(atom), places_of(atom), store)
        if link in self.variables:
            at = self.variables.index(link)
            parts: dict[str, list[Row]] = defaultdict(list)
            for row in self.rows:
                parts[row[at]].append(row)
            found = [Bindings(self.variables, rows)._with((p, True), places_of(atom), store) for p, rows in parts.items()]
        else:
            named = (*self.variables, link)
            found = [Bindings(named, [(*row, name[0]) for row in self.rows])._with(name, places_of(atom), store)
                     for name in store.relations if name[1]]
        return Bindings(found[0].variables if found else (), (row for part in found for row in part.rows))

    def filtered(self, keep: Callable[[Mapping[Variable, str]], bool]) -> Bindings:
        """The rows that pass."""
        return Bindings(self.variables, (row for row in self.rows if keep(dict(zip(self.variables, row)))))

    def projected(self, variables: Sequence[Variable]) -> set[Row]:
        """The terms of these variables only."""
        if not self.rows:
            return set()
        places = [self.variables.index(v) for v in variables]
        if len(places) == 1:
            return {(row[places[0]],) for row in self.rows}
        return set(map(itemgetter(*places), self.rows)) if places else {() for _ in self.rows[:1]}

    def _with(self, name: Name, terms: tuple[Variable | Constant, ...], store: Store) -> Bindings:
        """Joined with one relation: by the index for what is bound; a new variable that stands twice is compared."""
        fresh = {t: place for place, t in reversed(list(enumerate(terms))) if isinstance(t, Variable) and t not in self.variables}
        twice = [(fresh[t], place) for place, t in enumerate(terms) if isinstance(t, Variable) and t in fresh and fresh[t] != place]
        bound = tuple(place for place, t in enumerate(terms) if not isinstance(t, Variable) or t not in fresh)
        variables = (*self.variables, *fresh)
        if name not in store.relations or not self.rows:
            return Bindings(variables, ())
        taken = tuple(fresh.values())
        if len(bound) == len(terms):
            facts, keys = store.relations[name].rows, [getter(term, self.variables) for term in terms]
            return Bindings(variables, (row for row in self.rows if tuple(key(row) for key in keys) in facts))
        if not bound:
            found = [(row, store.relations[name].rows) for row in self.rows]
        else:
            index = store.relations[name].index(bound)
            keys = [getter(terms[place], self.variables) for place in bound]
            found = [(row, hits) for row in self.rows if (hits := index.get(_key(keys, row)))]  # type: ignore[misc]
        if twice:
            found = [(row, {hit for hit in hits if all(hit[a] == hit[b] for a, b in twice)}) for row, hits in found]
        if len(taken) == 1:
            at = taken[0]
            return Bindings(variables, [(*row, hit[at]) for row, hits in found for hit in hits])
        take = itemgetter(*taken)
        return Bindings(variables, [row + take(hit) for row, hits in found for hit in hits])


def name_of(atom: Atom) -> Name:
    """The relation of an atom whose property, if it is a triple, is a constant."""
    if atom.predicate != TRIPLE:
        return atom.predicate, False
    assert isinstance(atom.terms[1], Constant)
    return atom.terms[1].token, True


def places_of(atom: Atom) -> tuple[Variable | Constant, ...]:
    """The terms of an atom that are in its relation's rows."""
    return (atom.terms[0], atom.terms[2]) if atom.predicate == TRIPLE else atom.terms


def getter(term: Variable | Constant, variables: tuple[Variable, ...]) -> Callable[[Row], str]:
    """What gives a term's token in a row of these variables."""
    if isinstance(term, Constant):
        token = term.token
        return lambda row: token
    return itemgetter(variables.index(term))


def _key(keys: list[Callable[[Row], str]], row: Row) -> Any:
    return keys[0](row) if len(keys) == 1 else tuple(key(row) for key in keys)

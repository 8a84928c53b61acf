"""Ground facts by their bound terms, and types that the searches for proofs share."""

from collections import defaultdict
from collections.abc import Sequence

from engine.grouping import by_key
from engine.ir.rules import Atom, Fact
from engine.ir.terms import Constant
from engine.reference.formulas import Ground, Row
from engine.why.trees import Source

Places = tuple[int, ...]
Given = tuple[Fact, Source]
LAST = 1 << 62
"""A round after all rounds."""


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
                index.setdefault(tuple(terms[place] for place in places), []).append(fact)

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
            self._by[name] = by_key((tuple(fact[1][place] for place in places), fact) for fact in self._all[shape])
        return tuple(self._by[name].get(tuple(token for token in tokens if token is not None), ()))

"""Facts by what is bound of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from engine.ir.rules import Assign, At, Atom, BoxMinus, DiamondMinus, Formula, Negation, Table, Test, WindowFormula, atoms, rule_variables
from engine.ir.terms import Constant
from engine.reference.formulas import Ground, Row, needs

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
        tokens = [term.token if isinstance(term, Constant) else row.get(term.name) for term in atom.terms]
        places = tuple(place for place, token in enumerate(tokens) if token is not None)
        shape = atom.predicate, len(tokens)
        if not places:
            return tuple(self._all.get(shape, ()))
        name = *shape, places
        if name not in self._by:
            self._by[name] = defaultdict(list)
            for fact in self._all.get(shape, ()):
                self._by[name][tuple(fact[1][place] for place in places)].append(fact)
        return tuple(self._by[name].get(tuple(token for token in tokens if token is not None), ()))


def in_order(body: Iterable[Formula], known: Iterable[str] = ()) -> list[Formula]:
    """A safe order of a body (formulas.needs) in which few rows come up: tests at once, then what is bound most. The variables `known`
    are bound before. Raises ValueError where there is none."""
    waiting, bound, found = list(body), set(known), list[Formula]()
    while waiting:
        ready = [formula for formula in waiting if needs(formula) <= bound]
        if not ready:
            raise ValueError(f"unsafe rule: nothing binds a variable of {waiting}")
        best = max(ready, key=lambda formula: _bound_part(formula, bound))
        waiting.remove(best)
        found.append(best)
        bound |= {v.name for v in rule_variables(best)} | ({best.variable.name} if isinstance(best, Assign) else set())
    return found


def _bound_part(formula: Formula, bound: set[str]) -> float:
    """How much of a formula's atom is bound."""
    match formula:
        case Atom(terms=terms):
            return sum(isinstance(t, Constant) or t.name in bound for t in terms) / max(len(terms), 1)
        case DiamondMinus() | BoxMinus() | At() | WindowFormula():
            return min(map(lambda atom: _bound_part(atom, bound), atoms(formula)), default=1)
        case Table(variables=variables):
            return sum(v.name in bound for v in variables) / max(len(variables), 1)
        case Negation() | Test() | Assign():
            return 2
    return 0

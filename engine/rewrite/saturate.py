"""The closure of a schema: rules on its own triples, semi-naively, each round on what the last one found.

Facts are in relations by predicate, with an index for each combination of bound places, and joined a set at a time. A triple is a pair in
the relation of its property: a schema of a hundred thousand sub-class axioms is one relation. Rules whose tests need the value of a
literal are left out: they are about data (dt-*).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

from engine.grouping import by_key
from engine.ir.expressions import Call, Expression, variables_of
from engine.ir.rules import TRIPLE, Atom, Formula, Rule, Table, Test
from engine.ir.strata import reachable
from engine.ir.terms import Constant, Term, Variable
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
                index.setdefault(key(row), []).append(row)
        return new

    def index(self, places: Places) -> dict[Any, list[Row]]:
        """Rows by their terms at these places: the term itself where it is one place."""
        if places not in self._indexes:
            key = itemgetter(*places)
            self._indexes[places] = by_key((key(row), row) for row in self.rows)
        return self._indexes[places]


class Store:
    """Relations by name."""

    def __init__(self, triples: Iterable[Triple] = ()) -> None:
        self.relations: dict[Name, Relation] = {}
        for p, rows in by_key((p, (s, o)) for s, p, o in triples).items():
            self.add((p, True), rows)

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
            parts = by_key((row[at], row) for row in self.rows)
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


def saturate(given: Store, rules: Iterable[Rule]) -> Store:
    """The facts of `given` and all that follow from them. A property that a rule makes transitive is closed by reachability."""
    waiting = [rule for rule in rules if is_static(rule)]
    transitive = {name_of(rule.head) for rule in waiting if is_transitive(rule) and isinstance(rule.head, Atom)}
    applied = [rule for rule in waiting if not is_transitive(rule)]
    known, new = Store(), given
    edges: dict[Name, Store] = {name: Store() for name in transitive}
    for rule in applied:
        if not any(isinstance(part, Atom) for part in rule.body):
            _add(new, rule, solutions(rule.body, [], known))
    while any(relation.rows for relation in new.relations.values()):
        for name in transitive:
            if new.size(name):
                edges[name].add(name, new.relations[name].rows)
                new.add(name, _pairs(edges[name].relations[name].rows))
        delta = Store()
        for name, relation in new.relations.items():
            delta.add(name, known.add(name, relation.rows))
        new = Store()
        for rule in applied:
            for place, part in enumerate(rule.body):
                if isinstance(part, Atom):
                    _add(new, rule, solutions(rule.body, [delta if i == place else known for i in range(len(rule.body))], known))
        for name, relation in new.relations.items():
            if name in known.relations:
                relation.rows -= known.relations[name].rows
    return known


def solutions(body: Sequence[Formula], stores: Sequence[Store], default: Store) -> Bindings:
    """The solutions of a body, each atom in the store of its place: the smallest relations first, tests as soon as they can be made."""
    waiting = [(part, stores[place] if stores else default) for place, part in enumerate(body)]
    if any(isinstance(part, Atom) and not _size(part, store) for part, store in waiting):
        return Bindings((), ())
    found = Bindings()
    while waiting and found.rows:
        bound = set(found.variables)
        chosen = min(waiting, key=lambda pair: _cost(pair[0], pair[1], bound))
        waiting.remove(chosen)
        part, store = chosen
        match part:
            case Atom():
                found = found.joined(part, store)
            case Table(variables=variables, rows=rows):
                listed = Store()
                listed.add(("table", False), (tuple(cell.token for cell in row) for row in rows))
                found = found.joined(Atom("table", variables), listed)
            case Test(condition=condition):
                found = found.filtered(lambda row, condition=condition: bool(_value(condition, row)))  # type: ignore[misc]
    return found if not waiting else Bindings((), ())


def is_static(rule: Rule) -> bool:
    """Whether a rule can be applied here: it has no time, no negation, and no test that needs the value of a literal."""
    return isinstance(rule.head, Atom) and rule.window_ms is None and all(map(_decidable, rule.body))


def is_transitive(rule: Rule) -> bool:
    """Whether a rule says that a property is transitive, and nothing else."""
    match rule.head, rule.body:
        case Atom(terms=(a, Constant() as p, c)), (Atom(terms=(a1, p1, b1)), Atom(terms=(b2, p2, c2))):
            return p == p1 == p2 and a == a1 and b1 == b2 and c == c2 and len({a, b1, c}) == 3
    return False


def _pairs(rows: Iterable[Row]) -> Iterator[Row]:
    """Each node with all that are reached from it by one edge or more."""
    edges = by_key((s, o) for s, o in rows)
    return ((s, o) for s, near in edges.items() for o in reachable(near, lambda node: edges.get(node, ())))


def _add(store: Store, rule: Rule, found: Bindings) -> None:
    head = rule.head
    if not found.rows or not isinstance(head, Atom):
        return
    if head.predicate != TRIPLE:
        store.add((head.predicate, False), _made(head.terms, found))
    elif isinstance(head.terms[1], Constant):
        store.add(name_of(head), _made((head.terms[0], head.terms[2]), found))
    else:
        for p, rows in by_key((p, (s, o)) for s, p, o in _made(head.terms, found)).items():
            store.add((p, True), rows)


def _made(terms: Sequence[Term], found: Bindings) -> Iterator[Row]:
    variables = list(dict.fromkeys(t for t in terms if isinstance(t, Variable)))
    for row in found.projected(variables):
        named = dict(zip(variables, row))
        yield tuple(named[t] if isinstance(t, Variable) else t.token for t in terms)


def _size(atom: Atom, store: Store) -> int:
    if atom.predicate == TRIPLE and isinstance(atom.terms[1], Variable):
        return sum(len(relation.rows) for name, relation in store.relations.items() if name[1])
    return store.size(name_of(atom))


def _cost(part: Formula, store: Store, bound: set[Variable]) -> float:
    """About how many rows a part gives for one; a test that cannot be made yet waits."""
    match part:
        case Atom(terms=terms):
            known = sum(isinstance(t, Constant) or t in bound for t in terms) - (part.predicate == TRIPLE)
            return math.pow(_size(part, store), 1 / (1 + max(known, 0)))
        case Table(variables=variables, rows=rows):
            return math.pow(len(rows), 1 / (1 + sum(v in bound for v in variables)))
        case Test(condition=condition):
            return 0 if variables_of(condition) <= bound else float("inf")
    return float("inf")


def _decidable(part: Formula) -> bool:
    return isinstance(part, (Atom, Table)) or isinstance(part, Test) and _known_call(part.condition)


def _known_call(expression: Expression) -> bool:
    if isinstance(expression, Call):
        return expression.function in ("!", "SAMETERM", "ISLITERAL") and all(map(_known_call, expression.args))
    return isinstance(expression, (Variable, Constant))


def _value(expression: Expression, row: Mapping[Variable, str]) -> str | bool:
    """A token, or the truth of a call."""
    match expression:
        case Variable():
            return row[expression]
        case Constant(token):
            return token
        case Call("!", (inner,)):
            return not _value(inner, row)
        case Call("SAMETERM", (left, right)):
            return _value(left, row) == _value(right, row)
        case Call("ISLITERAL", (inner,)):
            return str(_value(inner, row)).startswith('"')
    raise ValueError(f"a test that is about data: {expression}")

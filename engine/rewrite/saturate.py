"""The closure of a schema: rules on its own triples, semi-naively, each round on what the last one found.

Rules whose tests need the value of a literal are left out: they are about data (dt-*).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from engine.ir.expressions import Call, Expression
from engine.ir.rules import TRIPLE, Atom, Formula, Rule, Table, Test
from engine.ir.terms import Constant, Term, Variable
from engine.rewrite.relations import Bindings, Name, Row, Store, name_of

Edges = Mapping[str, Iterable[str]]


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
            delta.relations.setdefault(name, type(relation)()).add(known.add(name, relation.rows))
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


def reachable(edges: Edges) -> dict[str, set[str]]:
    """All nodes reachable from each node by one edge or more."""
    reached: dict[str, set[str]] = {}
    for start in edges:
        seen: set[str] = set()
        waiting = list(edges[start])
        while waiting:
            node = waiting.pop()
            if node not in seen:
                seen.add(node)
                waiting += edges.get(node, ())
        reached[start] = seen
    return reached


def _pairs(rows: Iterable[Row]) -> Iterator[Row]:
    edges: dict[str, set[str]] = defaultdict(set)
    for s, o in rows:
        edges[s].add(o)
    return ((s, o) for s, reached in reachable(edges).items() for o in reached)


def _add(store: Store, rule: Rule, found: Bindings) -> None:
    head = rule.head
    if not found.rows or not isinstance(head, Atom):
        return
    if head.predicate != TRIPLE:
        store.add((head.predicate, False), _made(head.terms, found))
    elif isinstance(head.terms[1], Constant):
        store.add(name_of(head), _made((head.terms[0], head.terms[2]), found))
    else:
        by_property: dict[str, set[Row]] = defaultdict(set)
        for s, p, o in _made(head.terms, found):
            by_property[p].add((s, o))
        for p, rows in by_property.items():
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
            return 0 if _variables(condition) <= bound else float("inf")
    return float("inf")


def _decidable(part: Formula) -> bool:
    return isinstance(part, (Atom, Table)) or isinstance(part, Test) and _known_call(part.condition)


def _known_call(expression: Expression) -> bool:
    if isinstance(expression, Call):
        return expression.function in ("!", "SAMETERM", "ISLITERAL") and all(map(_known_call, expression.args))
    return isinstance(expression, (Variable, Constant))


def _variables(expression: Expression) -> set[Variable]:
    if isinstance(expression, Call):
        return set().union(*map(_variables, expression.args))
    return {expression} if isinstance(expression, Variable) else set()


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

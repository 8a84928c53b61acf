"""What follows from facts by rules without time, each fact with the round in which it first came: what proofs are found in.

The same facts as closure.py derives, semi-naively: a round applies the rules to what the round before brought. So a fact of round n has
a derivation from facts of earlier rounds only, and no proof through such facts can use what it proves.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from engine.functions.expressions import Context
from engine.grouping import by_key
from engine.ir.rules import TRIPLE, Assign, Atom, Falsum, Formula, Negation, Rule, Table, Test, rule_variables
from engine.ir.strata import endless, rounds, strata
from engine.ir.terms import RDF_TYPE, Constant
from engine.reference.closure import is_rdf
from engine.reference.dataset import Graph
from engine.reference.formulas import Ground, Row, computed, ground, in_quick_order, unify
from engine.why.index import Index

Key = tuple[str, ...]
"""What facts are grouped by: predicate, property of a triple, class of one with rdf:type."""


@dataclass(frozen=True, slots=True)
class _Trigger:
    """A rule and the atom of its body that something new is looked for with; `orders` are known by what a group of facts binds."""

    rule: Rule
    atom: Atom
    rest: tuple[Formula, ...]
    orders: dict[tuple[str, ...], tuple[list[Formula], list[Formula]]] = field(default_factory=dict, repr=False, compare=False)

    def order(self, common: Row) -> tuple[list[Formula], list[Formula]]:
        """What of the rest is joined with what a group has in common, and what with each of its facts, in order."""
        key = tuple(common)
        if key not in self.orders:
            own = {v.name for v in rule_variables(self.atom)} - common.keys()
            shared = _about(self.rest, set(common), own)
            rest = [part for part in self.rest if part not in shared]
            bound = {v.name for part in shared for v in rule_variables(part)}
            self.orders[key] = shared, in_quick_order(rest, {*key, *bound, *own})
        return self.orders[key]


@lru_cache(maxsize=64)
def _layers(rules: tuple[Rule, ...]) -> list[tuple[list[Rule], list[_Trigger]]]:
    """Rules layer by layer (strata.strata), with their triggers: those of the built-in sets come again for each answer."""
    return [(layer, [_Trigger(rule, part, (*rule.body[:place], *rule.body[place + 1:]))
                     for rule in layer for place, part in enumerate(rule.body) if isinstance(part, Atom)]) for layer in strata(rules)]


class Ranked:
    """All that follows from `given`: `rank` has the round of each fact, 0 for what is given."""

    def __init__(self, given: Iterable[Ground], rules: Sequence[Rule], context: Context,
                 spend: Callable[[int], None] = lambda steps: None) -> None:
        """`spend` is told how many facts a rule is tried on. Raises strata.Unstratified, growth.Unending, and ValueError for a rule
        that is not safe or that speaks of time."""
        self._spend = spend
        self.rank: dict[Ground, int] = dict.fromkeys(given, 0)
        self._context = context
        self._relations: set[Key] = set()
        self._index = Index()
        self._note(self.rank)
        self._rounds = 0
        for layer, triggers in _layers(tuple(rule for rule in rules if not isinstance(rule.head, Falsum))):
            self._close(layer, triggers)

    def graph(self) -> Graph:
        """The triples that are RDF."""
        return Graph((s, p, o) for predicate, terms in self.rank if predicate == TRIPLE for s, p, o in [terms] if is_rdf((s, p, o)))

    def solutions(self, body: Sequence[Formula], row: Row) -> Iterator[Row]:
        """The extensions of `row` that satisfy all formulas."""
        return self._extended(in_quick_order(body, row), row)

    # --- rounds

    def _close(self, layer: Sequence[Rule], triggers: Sequence[_Trigger]) -> None:
        new: Iterable[Ground] = list(self.rank)
        found = {head for rule in layer if not any(isinstance(part, Atom) for part in rule.body)
                 for head in self._heads(rule, self.solutions(rule.body, {}))}
        for _ in rounds(endless(layer)):
            if not (new or found):
                break
            groups = by_key((_key_of(fact), fact) for fact in new)
            for trigger in triggers:
                for key in _keys_of(trigger.atom, groups):
                    found.update(self._fired(trigger, key, groups[key]))
            self._rounds += 1
            new = [fact for fact in found if fact not in self.rank]
            self.rank.update(dict.fromkeys(new, self._rounds))
            self._note(new)
            found = set()

    def _fired(self, trigger: _Trigger, key: Key, facts: Sequence[Ground]) -> Iterator[Ground]:
        """What a rule derives from new facts of one group. What the group has in common is joined first: most rules end there."""
        if any(isinstance(part, Atom) and not self._any(part) for part in trigger.rest):
            return
        common = _bound_by(trigger.atom, key)
        if common is None:
            return
        shared, rest = trigger.order(common)
        for row in self._extended(shared, common):
            self._spend(len(facts))
            for fact in facts:
                begun = unify(trigger.atom, fact, row)
                if begun is not None:
                    yield from self._heads(trigger.rule, self._extended(rest, begun))

    @staticmethod
    def _heads(rule: Rule, rows: Iterable[Row]) -> Iterator[Ground]:
        if not isinstance(rule.head, Atom):
            raise ValueError(f"a head that speaks of time: {rule.head}")
        return (ground(rule.head, row) for row in rows)

    # --- look-ups

    def _extended(self, body: Sequence[Formula], row: Row) -> Iterator[Row]:
        """The extensions of `row` by all formulas, taken in this order."""
        if not body:
            yield row
            return
        for extended in self._solve(body[0], row):
            yield from self._extended(body[1:], extended)

    def _solve(self, formula: Formula, row: Row) -> Iterable[Row]:
        match formula:
            case Atom():
                return (found for fact in self._facts(formula, row) if (found := unify(formula, fact, row)) is not None)
            case Negation(body=body):
                return [] if any(True for _ in self._solve(body, row)) else [row]
            case Test() | Assign() | Table():
                return computed(formula, row, self._context)
        raise ValueError(f"a formula that speaks of time: {formula}")

    def _facts(self, atom: Atom, row: Row) -> Iterable[Ground]:
        """Facts that may match; of an atom that is wholly bound, that one."""
        if all(isinstance(term, Constant) or term.name in row for term in atom.terms):
            return [fact] if (fact := ground(atom, row)) in self.rank else []
        return self._index.facts(atom, row)

    def _any(self, atom: Atom) -> bool:
        """Whether there is any fact of an atom's predicate and property."""
        link = atom.terms[1] if atom.predicate == TRIPLE else None
        return (atom.predicate, link.token if isinstance(link, Constant) else "") in self._relations

    def _note(self, facts: Iterable[Ground]) -> None:
        for fact in facts:
            predicate, terms = fact
            self._index.add(fact)
            self._relations.add((predicate, ""))
            if predicate == TRIPLE:
                self._relations.add((predicate, terms[1]))


def _key_of(fact: Ground) -> Key:
    predicate, terms = fact
    if predicate != TRIPLE:
        return (predicate,)
    return predicate, *(terms[1:] if terms[1] == RDF_TYPE else terms[1:2])


def _keys_of(atom: Atom, groups: dict[Key, list[Ground]]) -> list[Key]:
    """The groups of which some fact may match an atom."""
    if atom.predicate != TRIPLE:
        return [(atom.predicate,)] if (atom.predicate,) in groups else []
    _, link, object_ = atom.terms
    if isinstance(link, Constant) and link.token != RDF_TYPE:
        return [(TRIPLE, link.token)] if (TRIPLE, link.token) in groups else []
    if isinstance(link, Constant) and isinstance(object_, Constant):
        return [(TRIPLE, RDF_TYPE, object_.token)] if (TRIPLE, RDF_TYPE, object_.token) in groups else []
    return [key for key in groups if key[0] == TRIPLE and (not isinstance(link, Constant) or key[1] == RDF_TYPE)]


def _bound_by(atom: Atom, key: Key) -> Row | None:
    """What an atom's variables are in all facts of a group; None where they cannot match."""
    row: Row = {}
    for term, token in zip(atom.terms[1:], key[1:]):
        if isinstance(term, Constant):
            if term.token != token:
                return None
        elif row.setdefault(term.name, token) != token:
            return None
    return row


def _about(rest: Sequence[Formula], bound: set[str], own: set[str]) -> list[Formula]:
    """The atoms and tables that hang together with `bound` and not with the variables that differ within a group, in order."""
    found: list[Formula] = []
    waiting = [part for part in rest if isinstance(part, (Atom, Table)) and not own & {v.name for v in rule_variables(part)}]
    near: list[Formula]
    while near := [part for part in waiting if bound & {v.name for v in rule_variables(part)} or not rule_variables(part)]:
        chosen = in_quick_order(near, bound)[0]
        found.append(chosen)
        waiting = [part for part in waiting if part is not chosen]
        bound |= {v.name for v in rule_variables(chosen)}
    return found

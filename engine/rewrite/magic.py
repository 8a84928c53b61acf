"""Magic sets: of a recursive rule only what leads to the terms that a query names (Bancilhon, Maier, Sagiv, Ullman: "Magic Sets and
Other Strange Ways to Implement Logic Programs", PODS 1986; generalised by Beeri, Ramakrishnan, JLP 1991).

A rule is guarded by an atom that holds the terms asked for; more rules say which ones follow, left to right through a body in the order
in which most is bound. Predicates keep their names: what one guard lets through is true wherever it is used. What stands under ``not`` is
derived as a whole, with all that it needs, so a stratified program stays one. Heads of any property, and what is asked for without
a term, are not guarded either.

>>> from engine.ir.notation import show_rule
>>> x, y, z, edge, reach = *map(Variable, "xyz"), Constant("<edge>"), Constant("<reach>")
>>> rules = [Rule(Atom(TRIPLE, (x, reach, y)), (Atom(TRIPLE, (x, edge, y)),)),
...          Rule(Atom(TRIPLE, (x, reach, z)), (Atom(TRIPLE, (x, edge, y)), Atom(TRIPLE, (y, reach, z))))]
>>> for rule in magic(rules, [(TRIPLE, ("<a>", "<reach>", None))]):
...     print(show_rule(rule, str))
magic: magic bf <reach>(<a>) .
[?x <reach> ?y] <- magic bf <reach>(?x), [?x <edge> ?y] .
[?x <reach> ?z] <- magic bf <reach>(?x), [?x <edge> ?y], [?y <reach> ?z] .
magic: magic bf <reach>(?y) <- magic bf <reach>(?x), [?x <edge> ?y] .
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from engine.ir.rules import TRIPLE, Atom, Falsum, Formula, Rule, Table, atoms, relation_of, rule_variables
from engine.ir.terms import Constant, Term, Variable
from engine.rewrite.relevance import Goal
from engine.rewrite.saturate import places_of

Key = tuple[str, str | None]
"""A predicate; of triples, with the property (None: any)."""
_ANY: Key = (TRIPLE, None)


def magic(rules: Sequence[Rule], goals: Sequence[Goal]) -> tuple[Rule, ...]:
    """The rules for what is asked by `goals`; as they are where nothing is bound, or what is inconsistent is asked for."""
    if not all(isinstance(rule.head, (Atom, Falsum)) for rule in rules) or any(isinstance(rule.head, Falsum) for rule in rules):
        return tuple(rules)
    whole = {_key_of(goal) for goal in goals if not any(_own_terms(goal))}
    while True:
        made = _Magic(rules, whole)
        more = made.run(goals)
        if not more:
            return tuple(dict.fromkeys(made.rules)) if made.guarded else tuple(rules)
        whole |= more


class _Magic:
    """One attempt: with `whole`, the predicates that are derived as a whole."""

    def __init__(self, rules: Sequence[Rule], whole: Iterable[Key]) -> None:
        self._given = [(rule, rule.head) for rule in rules if isinstance(rule.head, Atom)]
        self._derived = {relation_of(head) for _, head in self._given}
        self._whole = set(whole) | {_ANY}
        self._asked: set[tuple[Key, str]] = set()
        self._waiting: list[tuple[Key, str]] = []
        self._more: set[Key] = set()
        self.rules: list[Rule] = []
        self.guarded = False

    def run(self, goals: Iterable[Goal]) -> set[Key]:
        """Make the rules; the predicates that turned out to be needed as a whole, too."""
        for goal in goals:
            key, terms = _key_of(goal), _own_terms(goal)
            if self._restricts(key):
                bound = "".join("f" if token is None else "b" for token in terms)
                self._ask(key, bound)
                seed = Atom(_name(key, bound), tuple(Constant(token) for token in terms if token is not None))
                self.rules.append(Rule(seed, (), "magic", role="built-in"))
        for rule, head in self._given:
            if self._is_whole(relation_of(head)):
                self.rules.append(rule)
                self._need_whole(atom for part in rule.body for atom in atoms(part))
        while self._waiting:
            key, bound = self._waiting.pop()
            for rule, head in self._given:
                if relation_of(head) == key and len(places_of(head)) == len(bound):
                    self._guard(rule, head, bound)
        return self._more

    def _is_whole(self, key: Key) -> bool:
        return key in self._whole or key[0] == TRIPLE and (TRIPLE, "") in self._whole

    def _restricts(self, key: Key) -> bool:
        return key in self._derived and not self._is_whole(key)

    def _need_whole(self, needed: Iterable[Atom]) -> None:
        for atom in needed:
            key = relation_of(atom)
            if key == _ANY:
                self._more |= {found for found in self._derived if found[0] == TRIPLE} - self._whole
            elif key in self._derived and key not in self._whole:
                self._more.add(key)

    def _ask(self, key: Key, bound: str) -> None:
        if (key, bound) not in self._asked:
            self._asked.add((key, bound))
            self._waiting.append((key, bound))

    def _guard(self, rule: Rule, head: Atom, bound: str) -> None:
        """The rule behind its guard, and what its body asks for."""
        guard = Atom(_name(relation_of(head), bound), tuple(term for term, mark in zip(places_of(head), bound) if mark == "b"))
        self.rules.append(replace(rule, body=(guard, *rule.body)))
        self.guarded = True
        self._need_whole(atom for part in rule.body if not isinstance(part, Atom) for atom in atoms(part))
        before: list[Formula] = [guard, *(part for part in rule.body if isinstance(part, Table))]
        known = frozenset[Variable]().union(*map(rule_variables, before))
        waiting = [part for part in rule.body if isinstance(part, Atom)]
        while waiting:
            atom = max(waiting, key=lambda part: sum(_bound(term, known) for term in part.terms))
            waiting.remove(atom)
            self._pass_on(atom, known, before)
            before.append(atom)
            known |= rule_variables(atom)

    def _pass_on(self, atom: Atom, known: frozenset[Variable], before: Sequence[Formula]) -> None:
        key = relation_of(atom)
        bound = "".join("b" if _bound(term, known) else "f" for term in places_of(atom))
        if key == _ANY or "b" not in bound:
            self._need_whole([atom])
        elif self._restricts(key):
            self._ask(key, bound)
            asked = Atom(_name(key, bound), tuple(term for term, mark in zip(places_of(atom), bound) if mark == "b"))
            if asked not in before:
                self.rules.append(Rule(asked, tuple(_connected(asked, before)), "magic", role="built-in"))


def _connected(asked: Atom, before: Sequence[Formula]) -> Iterator[Formula]:
    """The guard, and of what was joined before that which has to do with the atom asked for or with what leads to it."""
    wanted, kept = rule_variables(asked), {0}
    while near := {number for number, part in enumerate(before) if number not in kept and wanted & rule_variables(part)}:
        kept |= near
        wanted = wanted.union(*(rule_variables(before[number]) for number in near))
    yield from (part for number, part in enumerate(before) if number in kept)


def _key_of(goal: Goal) -> Key:
    """Of a triple whose property may be any: all of them, as the property ``""``."""
    predicate, tokens = goal
    return (predicate, None) if predicate != TRIPLE else (TRIPLE, tokens[1] or "")


def _own_terms(goal: Goal) -> tuple[str | None, ...]:
    """The terms of a goal without the property; none of a goal for any property is used."""
    predicate, tokens = goal
    if predicate != TRIPLE:
        return tokens
    return (tokens[0], tokens[2]) if tokens[1] is not None else (None, None)


def _bound(term: Term, known: frozenset[Variable]) -> bool:
    return isinstance(term, Constant) or term in known


def _name(key: Key, bound: str) -> str:
    return f"magic {bound} {key[1] or key[0]}"

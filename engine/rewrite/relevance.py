"""Relevance: only the rules, and of their tables only the rows, by which what a query asks can follow.

Backwards from what the patterns ask, through heads to bodies. A rule with head ``false`` is asked for always: what it finds is told
beside the answers, whatever these are; so is all that it needs.

>>> from engine.ir.notation import show_rule
>>> from engine.ir.terms import RDF_TYPE
>>> a, b, c = (Constant(f"<{name}>") for name in "abc")
>>> x, y, below = Variable("x"), Variable("y"), Table((Variable("c"), Variable("d")), ((a, b), (c, a)))
>>> typed = [Atom(TRIPLE, (x, Constant(RDF_TYPE), Variable(name))) for name in "cd"]
>>> rules = [Rule(typed[1], (below, typed[0])), Rule(Atom(TRIPLE, (y, b, x)), (Atom(TRIPLE, (x, b, y)),))]
>>> for rule in relevant(rules, [(TRIPLE, (None, RDF_TYPE, "<a>"))]):
...     print(show_rule(rule, str))
[?x a ?d] <- (?c ?d) in {(<c> <a>)}, [?x a ?c] .
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, product

from engine.grouping import by_key
from engine.ir import patterns as ir
from engine.ir.rules import TRIPLE, Atom, Falsum, Rule, Table, atoms
from engine.ir.statement import Describe, Program, Query
from engine.ir.terms import Constant, OneOf, Variable

Goal = tuple[str, tuple[str | None, ...]]
"""Atoms that are asked for: a predicate with its terms' tokens, None for any."""
ANYTHING: Goal = (TRIPLE, (None, None, None))
_PLACES = (1, 2), (1,)
"""Property and object, or the property alone: heads of triples are indexed by these, as there may be 100,000 facts."""
MOST_ROWS = 1000
"""Of a table with more rows that count, the body is asked with any term in their place."""
PassedOver = Callable[[Rule, Atom, Sequence[str | None]], bool]
"""Whether a rule is taken to derive no such goal by this atom of its head."""


def relevant(rules: Iterable[Rule], goals: Iterable[Goal], passed_over: PassedOver = lambda rule, head, goal: False) -> tuple[Rule, ...]:
    """The rules by which a goal may follow, in their order."""
    search = _Search(tuple(rules), passed_over)
    for goal in goals:
        search.ask(goal)
    for number, rule in enumerate(search.rules):
        if isinstance(rule.head, Falsum):
            search.keep(number, {}, None)
    search.run()
    return tuple(search.kept())


class _Search:
    """What is asked so far, and the rows of each rule's table by which it may follow."""

    def __init__(self, rules: tuple[Rule, ...], passed_over: PassedOver) -> None:
        self.rules, self._passed_over = rules, passed_over
        self._tables = [next((part for part in rule.body if isinstance(part, Table)), None) for rule in rules]
        self._rows: dict[int, set[int]] = {}
        self._indexes: dict[tuple[int, tuple[int, ...]], dict[tuple[str, ...], list[int]]] = {}
        self._asked: set[Goal] = set()
        self._waiting: list[Goal] = []
        heads = [(number, atom) for number, rule in enumerate(rules) for atom in atoms(rule.head)]
        self._heads = by_key((atom.predicate, (number, atom)) for number, atom in heads)
        self._triples = by_key(((places, _tokens(atom, places)), (number, atom)) for number, atom in heads if atom.predicate == TRIPLE
                               for places in _PLACES)

    def ask(self, goal: Goal) -> None:
        """Note a goal that is not part of one that was asked."""
        predicate, tokens = goal
        wider = product(*({token, None} for token in tokens))
        if not any((predicate, terms) in self._asked for terms in wider):
            self._asked.add(goal)
            if goal == ANYTHING:
                self._waiting = [other for other in self._waiting if other[0] != TRIPLE]
            self._waiting.append(goal)

    def run(self) -> None:
        """Follow the goals back until no new ones come."""
        while self._waiting:
            predicate, tokens = self._waiting.pop()
            for number, head in self._heads_of(predicate, tokens):
                given = _unified(head, tokens)
                if given is not None and not self._passed_over(self.rules[number], head, tokens):
                    self.keep(number, given, self._matching(number, given))

    def _heads_of(self, predicate: str, tokens: tuple[str | None, ...]) -> Iterable[tuple[int, Atom]]:
        """The atoms in heads that may match a goal, with the numbers of their rules."""
        for places in _PLACES if predicate == TRIPLE else ():
            given = [tokens[place] for place in places]
            if None not in given:
                keys = product(*((token, None) for token in given))
                return chain.from_iterable(self._triples.get((places, key), ()) for key in keys)
        return self._heads.get(predicate, ())

    def keep(self, number: int, given: dict[Variable, str], rows: Iterable[int] | None) -> None:
        """Note rows (None: all) of a rule's table, and ask for its body; `given` are variables that have one value."""
        table = self._tables[number]
        if table is None:
            self._rows.setdefault(number, set())
            self._ask_body(number, given, [{}])
            return
        chosen = list(range(len(table.rows)) if rows is None else rows)
        if not chosen:
            return
        self._rows.setdefault(number, set()).update(chosen)
        few = chosen if len(chosen) <= MOST_ROWS else []
        named = [{v: cell.token for v, cell in zip(table.variables, table.rows[row])} for row in few]
        self._ask_body(number, given, named or [{}])

    def kept(self) -> Iterator[Rule]:
        """The rules that count, with the rows that do."""
        for number, rule in enumerate(self.rules):
            if number in self._rows:
                table = self._tables[number]
                if table is None or len(self._rows[number]) == len(table.rows):
                    yield rule
                else:
                    less = replace(table, rows=tuple(table.rows[row] for row in sorted(self._rows[number])))
                    yield replace(rule, body=tuple(less if part is table else part for part in rule.body))

    def _ask_body(self, number: int, given: dict[Variable, str], rows: Sequence[dict[Variable, str]]) -> None:
        for part in self.rules[number].body:
            for atom in atoms(part):
                for goal in {_goal(atom, {**row, **given}) for row in rows}:
                    self.ask(goal)

    def _matching(self, number: int, given: dict[Variable, str]) -> Sequence[int]:
        """The rows of a rule's table that have the given values."""
        table = self._tables[number]
        if table is None:
            return ()
        places = tuple(place for place, v in enumerate(table.variables) if v in given)
        if not places:
            return range(len(table.rows))
        if (number, places) not in self._indexes:
            self._indexes[number, places] = by_key((tuple(cells[place].token for place in places), row)
                                                   for row, cells in enumerate(table.rows))
        return self._indexes[number, places].get(tuple(given[table.variables[place]] for place in places), ())


def _tokens(atom: Atom, places: tuple[int, ...]) -> tuple[str | None, ...]:
    """What is named in some places of an atom; None where that is a variable."""
    return tuple(term.token if isinstance(term := atom.terms[place], Constant) else None for place in places)


def _unified(head: Atom, tokens: tuple[str | None, ...]) -> dict[Variable, str] | None:
    """The values that a goal gives to the variables of a head; None where they do not match."""
    given: dict[Variable, str] = {}
    if len(head.terms) != len(tokens):
        return None
    for term, token in zip(head.terms, tokens):
        if token is not None and (term.token if isinstance(term, Constant) else given.setdefault(term, token)) != token:
            return None
    return given


def _goal(atom: Atom, given: dict[Variable, str]) -> Goal:
    return atom.predicate, tuple(term.token if isinstance(term, Constant) else given.get(term) for term in atom.terms)


def goals_of(query: Query) -> list[Goal]:
    """What a query asks of its graphs; DESCRIBE asks for anything, a program for what its own rules derive."""
    match query:
        case Describe():
            return [ANYTHING]
        case Program(rules=rules):
            heads = *(rule.head for rule in rules.written), *(fact.atom for fact in rules.facts)
            return list(dict.fromkeys(_goal(atom, {}) for head in heads for atom in atoms(head)))
    return list(dict.fromkeys(goal for pattern in ir.walk(query.pattern) for goal in _asked(pattern)))


def goals_of_rules(rules: Iterable[Rule]) -> list[Goal]:
    """What the bodies of some rules ask for."""
    return list(dict.fromkeys(_goal(atom, {}) for rule in rules for part in rule.body for atom in atoms(part)))


def _asked(pattern: ir.Pattern) -> Iterator[Goal]:
    """What a pattern itself asks, not those inside."""
    match pattern:
        case ir.BGP(triples=triples):
            for triple in triples:
                choices = [term.tokens if isinstance(term, OneOf) else (term.token if isinstance(term, Constant) else None,)
                           for term in triple.terms]
                yield from ((TRIPLE, tokens) for tokens in product(*choices))
        case ir.PathPattern(path=path):
            yield from _of_path(path)


def _of_path(path: ir.Path) -> Iterator[Goal]:
    """A path of length zero ranges over all terms of a graph, so it asks for anything."""
    match path:
        case ir.Link(predicate=predicate):
            yield TRIPLE, (None, predicate.token, None)
        case ir.Inverse(path=inner) | ir.Repeat(path=inner, least=1):
            yield from _of_path(inner)
        case ir.Sequence(first=first, second=second) | ir.Alternative(first=first, second=second):
            yield from (*_of_path(first), *_of_path(second))
        case _:
            yield ANYTHING

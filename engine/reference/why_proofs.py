"""Proof trees of facts: which rule gave a fact, with what bindings, from which premises, down to what is asserted.

A tree is finite and no fact stands below itself. The trees of a fact come the shortest first: those with the fewest rules on
their longest branch.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from engine.functions.expressions import Context
from engine.ir.printer import show
from engine.ir.rules import TRIPLE, Atom, Falsum, Formula, Negation, Rule, Test
from engine.ir.spans import Span
from engine.ir.terms import Constant, Variable
from engine.reference.formulas import Ground, Row, ground, unify
from engine.reference.substitution import expression
from engine.reference.why_ranks import Ranked

MOST_DEEP = 60
"""Rules on a branch of a tree that is shown."""


@dataclass(frozen=True, slots=True)
class Streamed:
    """A fact came on a stream, with these time stamps (ms, in the window); `query` makes that stream, if one does."""

    stream: str
    times: tuple[int, ...]
    query: str | None = None


@dataclass(frozen=True, slots=True)
class Static:
    """A fact is in a static graph."""

    graph: str


@dataclass(frozen=True, slots=True)
class Stated:
    """A fact stands in a rule set."""

    rules: str
    span: Span | None = field(default=None, compare=False)


Source = Streamed | Static | Stated


class Tree(Protocol):
    """What is counted of a node with all below it: rules on the longest branch, nodes."""

    @property
    def depth(self) -> int: ...

    @property
    def size(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Asserted:
    """A leaf: a fact that was given, and by whom."""

    fact: Ground
    sources: tuple[Source, ...]
    depth: int = 0
    size: int = 1


@dataclass(frozen=True, slots=True)
class Absent:
    """A leaf: nothing matches this."""

    text: str
    depth: int = 0
    size: int = 1


@dataclass(frozen=True, slots=True)
class Holds:
    """A leaf: a condition that is true, or a row of inline data."""

    text: str
    depth: int = 0
    size: int = 1


@dataclass(frozen=True, slots=True)
class Derived:
    """A fact by a rule: `row` binds the variables of its body, `premises` are the proofs of its atoms in their order."""

    fact: Ground
    rule: Rule
    row: Row
    premises: tuple[Proof, ...]
    depth: int
    size: int


Proof = Asserted | Derived | Absent | Holds


class TooMuchError(Exception):
    """The search was given up."""


class Budget:
    """How many steps a search may take."""

    def __init__(self, steps: int) -> None:
        self._left = steps

    def limit(self, steps: int) -> None:
        """Leave no more than so many."""
        self._left = min(self._left, steps)

    def spend(self, steps: int = 1) -> None:
        """Raises TooMuchError where there is nothing left."""
        self._left -= steps
        if self._left < 0:
            raise TooMuchError("The search for a proof takes too many steps.")


Node = TypeVar("Node", bound=Tree)


class Lazy(Generic[Node]):
    """The trees of a premise, made when asked for, the shortest first."""

    def __init__(self, trees: Iterator[Node]) -> None:
        self._trees, self._made = trees, list[Node]()

    def get(self, number: int) -> Node | None:
        """The tree of this number, None where there are fewer."""
        while len(self._made) <= number and (tree := next(self._trees, None)) is not None:
            self._made.append(tree)
        return self._made[number] if number < len(self._made) else None


def choices(premises: Sequence[Lazy[Node]]) -> Iterator[tuple[Node, ...]]:
    """Each choice of one tree for every premise, the shortest first."""
    first = tuple(premise.get(0) for premise in premises)
    start = (0,) * len(premises)
    waiting: list[tuple[int, int, tuple[int, ...], tuple[Node, ...]]] = []
    seen = {start}

    def push(numbers: tuple[int, ...], chosen: tuple[Node | None, ...]) -> None:
        trees = tuple(tree for tree in chosen if tree is not None)
        if len(trees) == len(chosen):
            heapq.heappush(waiting, (max((t.depth for t in trees), default=0), sum(t.size for t in trees), numbers, trees))

    push(start, first)
    while waiting:
        _, _, numbers, trees = heapq.heappop(waiting)
        yield trees
        for place, premise in enumerate(premises):
            following = (*numbers[:place], numbers[place] + 1, *numbers[place + 1:])
            if following not in seen:
                seen.add(following)
                push(following, (*trees[:place], premise.get(following[place]), *trees[place + 1:]))


def shortest(ways: Iterable[tuple[int, Iterator[Node]]]) -> Iterator[Node]:
    """The trees of several ways, the shortest first; each way gives its own in that order, none with a depth below the bound before it.

    What was begun goes before what was not, so that one tree is there before all others of its depth have been made.
    """
    waiting: list[tuple[int, int, int, Node | None, Iterator[Node]]] = []
    for number, (bound, trees) in enumerate(ways):
        waiting.append((bound, 1, number, None, trees))
    heapq.heapify(waiting)
    while waiting:
        _, _, number, tree, more = heapq.heappop(waiting)
        if tree is not None:
            yield tree
        following = next(more, None)
        if following is not None:
            heapq.heappush(waiting, (following.depth, 0, number, following, more))


@dataclass(frozen=True, slots=True)
class _Instance:
    """A rule with its variables replaced, whose premises all hold."""

    rule: Rule
    row: Row
    parts: tuple[Ground | Absent | Holds, ...]
    rank: int


class Prover:
    """Proofs of what follows from `given` by `rules`."""

    def __init__(self, given: Mapping[Ground, tuple[Source, ...]], rules: Iterable[Rule], context: Context, budget: Budget) -> None:
        self.given, self._budget = given, budget
        listed = [rule for rule in rules if not isinstance(rule.head, Falsum)]
        self.known = Ranked(given, listed, context, budget.spend)
        self._heads: dict[tuple[str, str | None], list[Rule]] = defaultdict(list)
        for rule in listed:
            if isinstance(rule.head, Atom):
                self._heads[rule.head.predicate, _property(rule.head)].append(rule)
        self._instances: dict[Ground, list[_Instance]] = {}

    def proofs(self, fact: Ground) -> Iterator[Proof]:
        """All proofs of a fact, the shortest first; none of a fact that does not follow. Raises TooMuchError where the shortest is too
        deep, or the search too long."""
        rank = self.known.rank.get(fact)
        if rank is None:
            return
        if rank > MOST_DEEP:
            raise TooMuchError(f"The shortest proof has {rank} steps one above the other; {MOST_DEEP} are shown.")
        yield from self._trees(fact, frozenset())

    def _trees(self, fact: Ground, above: frozenset[Ground]) -> Iterator[Proof]:
        """The proofs of a fact that use nothing of what stands above it."""
        self._budget.spend()
        if fact in self.given:
            yield Asserted(fact, self.given[fact])
        if len(above) >= MOST_DEEP:
            return
        path = above | {fact}
        yield from shortest((instance.rank, self._derived(fact, instance, path)) for instance in self._instances_of(fact)
                            if path.isdisjoint(part for part in instance.parts if isinstance(part, tuple)))

    def _derived(self, fact: Ground, instance: _Instance, path: frozenset[Ground]) -> Iterator[Derived]:
        premises = [Lazy(self._trees(part, path) if isinstance(part, tuple) else iter([part])) for part in instance.parts]
        for trees in choices(premises):
            self._budget.spend()
            yield Derived(fact, instance.rule, instance.row, trees, 1 + max((t.depth for t in trees), default=0),
                          1 + sum(t.size for t in trees))

    def _instances_of(self, fact: Ground) -> list[_Instance]:
        """The ways in which rules give a fact from what is known."""
        if fact not in self._instances:
            predicate, terms = fact
            rules = list(self._heads[predicate, None])
            if predicate == TRIPLE:
                rules += self._heads[predicate, terms[1]]
            found: dict[object, _Instance] = {}
            for rule in rules:
                for instance in self._by_rule(rule, fact):
                    found.setdefault((instance.rule, tuple(sorted(instance.row.items()))), instance)
            self._instances[fact] = sorted(found.values(), key=lambda instance: instance.rank)
        return self._instances[fact]

    def _by_rule(self, rule: Rule, fact: Ground) -> Iterator[_Instance]:
        assert isinstance(rule.head, Atom)
        begun = unify(rule.head, fact, {})
        for row in self.known.solutions(rule.body, begun) if begun is not None else ():
            self._budget.spend()
            parts = tuple(part for formula in rule.body if (part := _part(formula, row)) is not None)
            ranks = [self.known.rank[part] for part in parts if isinstance(part, tuple)]
            yield _Instance(rule, row, parts, 1 + max(ranks, default=0))


def _part(formula: Formula, row: Row) -> Ground | Absent | Holds | None:
    """A part of a body as a premise; None for what only binds."""
    match formula:
        case Atom():
            return ground(formula, row)
        case Negation(body=Atom() as body):
            terms = tuple(Constant(row[t.name]) if isinstance(t, Variable) else t for t in body.terms)
            return Absent(show(Rule(Atom(body.predicate, terms), ())).removesuffix(" ."))
        case Test(condition=condition):
            return Holds(show(expression(condition, row)))
    return None


def _property(head: Atom) -> str | None:
    """The property of a triple, where it is a constant."""
    link = head.terms[1] if head.predicate == TRIPLE else None
    return link.token if isinstance(link, Constant) else None

"""What proofs are made of: leaves with who said what, and the search for the shortest trees within a number of steps."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, Literal, Protocol, TypeVar

from engine.ir.rules import Rule
from engine.ir.spans import Span
from engine.reference.formulas import Ground, Row
from engine.timeline import Interval

MOST_DEEP = 60
"""Rules, and operators of rules with time, on a branch of a tree that is shown."""


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


@dataclass(frozen=True, slots=True)
class Filed:
    """A fact stands in a file of facts."""

    file: str


@dataclass(frozen=True, slots=True, eq=False)
class Proven:
    """A fact follows from elsewhere: `proofs` gives its trees at a point."""

    proofs: Callable[[int], Iterator[Proof]]


Source = Streamed | Static | Stated | Filed | Proven


class Tree(Protocol):
    """What is counted of a node with all below it: rules on the longest branch, nodes."""

    @property
    def depth(self) -> int: ...

    @property
    def size(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Asserted:
    """A leaf: a fact that was given, and by whom; where rules speak of time with the interval during which it was given to hold."""

    fact: Ground
    sources: tuple[Source, ...]
    depth: int = 0
    size: int = 1
    during: Interval | None = None


@dataclass(frozen=True, slots=True)
class Absent:
    """A leaf: nothing matches this; where rules speak of time, nothing does during all of `during`."""

    text: str
    depth: int = 0
    size: int = 1
    during: Interval | None = None


@dataclass(frozen=True, slots=True)
class Holds:
    """A leaf: a condition that is true, or a row of inline data."""

    text: str
    depth: int = 0
    size: int = 1


@dataclass(frozen=True, slots=True)
class Derived:
    """A fact by a rule: `row` binds the variables of its body, `premises` are the proofs of its parts in their order. Where rules speak
    of time, it proves that the fact holds during all of `during`."""

    fact: Ground
    rule: Rule
    row: Row
    premises: tuple[Proof, ...]
    depth: int
    size: int
    during: Interval | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """An operator of a rule: true during all of `during` for what the premises say. `over` is all that it looks at from there. A Window of
    a rule that a query uses is looked through at the evaluation time: it has no `during`."""

    operator: Operator
    text: str
    premises: tuple[Proof, ...]
    depth: int
    size: int
    during: Interval | None
    over: Interval


Operator = Literal["diamond-minus", "box-minus", "box-plus", "at", "window", "tuple-window", "pieces"]
Proof = Asserted | Derived | Absent | Holds | Step


class TooMuchError(Exception):
    """The search was given up."""


STEPS, STEPS_FOR_MORE = 2_000_000, 50_000
"""What a search may take, in look-ups: some seconds; and one for a further proof."""


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


def taken(trees: Iterator[Node], most: int, budget: Budget) -> tuple[tuple[Node, ...], bool]:
    """At most so many different trees; and whether there are others, or the search for them was given up. Raises TooMuchError where it is
    given up before there is one."""
    found: list[Node] = []
    try:
        for tree in trees:
            if len(found) == most and tree not in found:
                return tuple(found), True
            if tree not in found:
                found.append(tree)
                budget.limit(STEPS_FOR_MORE)
    except TooMuchError:
        if not found:
            raise
        return tuple(found), True
    return tuple(found), False


def depth(premises: Sequence[Tree]) -> int:
    """The rules and operators on the longest branch."""
    return max((premise.depth for premise in premises), default=0)


def asserted(fact: Ground, sources: tuple[Source, ...], during: Interval | None = None, point: int = 0) -> Iterator[Proof]:
    """A fact of the input: said by somebody, or proved by others."""
    if plain := tuple(source for source in sources if not isinstance(source, Proven)):
        yield Asserted(fact, plain, during=during)
    for source in sources:
        if isinstance(source, Proven):
            yield from source.proofs(point)


def choices(premises: Sequence[Lazy[Node]]) -> Iterator[tuple[Node, ...]]:
    """Each choice of one tree for every premise, the shortest first."""
    first = tuple(premise.get(0) for premise in premises)
    start = (0,) * len(premises)
    waiting: list[tuple[int, int, tuple[int, ...], tuple[Node, ...]]] = []
    seen = {start}

    def push(numbers: tuple[int, ...], chosen: tuple[Node | None, ...]) -> None:
        trees = tuple(tree for tree in chosen if tree is not None)
        if len(trees) == len(chosen):
            heapq.heappush(waiting, (depth(trees), sum(t.size for t in trees), numbers, trees))

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
    What was begun goes before what was not, so that one tree is there before all others of its depth have been made."""
    waiting: list[tuple[int, int, int, Node | None, Iterator[Node]]] = [
        (bound, 1, number, None, trees) for number, (bound, trees) in enumerate(ways)]
    heapq.heapify(waiting)
    while waiting:
        _, _, number, tree, more = heapq.heappop(waiting)
        if tree is not None:
            yield tree
        following = next(more, None)
        if following is not None:
            heapq.heappush(waiting, (following.depth, 0, number, following, more))

"""Proof trees of facts, and of such that hold at times: what proofs.py and the timelines (dense.py, granular.py, streamed.py) share.

A goal is a fact at a point. Its trees come the shortest first as far as rounds tell: those by what was known before the fact itself was,
then those by all that is known. Each node says during which interval it is a proof, and no goal stands below itself.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from engine.grouping import by_key
from engine.ir.notation import duration, show_formula
from engine.ir.printer import show_group
from engine.ir.rules import Assign, Atom, Falsum, Formula, Head, Rule, Table, relation_of
from engine.ir.substitution import mapped
from engine.reference.formulas import Ground, Row, headed, shapes, unify
from engine.reference.solutions import bound, expression
from engine.timeline import ALWAYS, MAX, MIN, Interval
from engine.why.trees import MOST_DEEP, Asserted, Budget, Lazy, Operator, Proof, Step, TooMuchError, choices, depth, shortest

MOST_NODES = 10_000
"""Nodes of a tree that is shown."""


G = TypeVar("G", bound=Hashable)
Path = frozenset[Hashable]


@dataclass(frozen=True, slots=True)
class Way:
    """A rule that gives a goal, by these values of its variables: all of its body is true at `where`, as known after `number`
    rounds. `uses` are goals that parts of the body are true by, where a timeline says them."""

    rule: Rule
    row: tuple[tuple[str, str], ...]
    where: int
    number: int
    uses: tuple[tuple[int, Any], ...] = ()


class Search(ABC, Generic[G]):
    """Finds the trees of goals; what rules with head ``false`` find is none."""

    def __init__(self, rules: Iterable[Rule], budget: Budget) -> None:
        self.budget = budget
        self.rules = [rule for rule in rules if not isinstance(rule.head, Falsum)]
        self._by_head = by_key((relation_of(headed(rule.head)), rule) for rule in self.rules)
        self._ways: dict[tuple[G, bool], list[Way]] = {}

    def about(self, fact: Ground) -> Iterator[tuple[Rule, Row]]:
        """The rules whose heads may be a fact, with what it binds."""
        for rule in (rule for key in shapes(*fact) for rule in self._by_head.get(key, ())):
            if (begun := unify(headed(rule.head), fact, {})) is not None:
                yield rule, begun

    # --- what a timeline says

    def key(self, goal: G) -> Hashable:
        """What must not stand below itself."""
        return goal

    @abstractmethod
    def round_of(self, goal: G) -> int | None:
        """The round since which a goal is known, 0 for what is given; None where it is not true."""

    @abstractmethod
    def leaves(self, goal: G) -> Iterator[Proof]:
        """What was given of a goal."""

    @abstractmethod
    def ways(self, goal: G, number: int | None) -> Iterator[Way]:
        """The ways to a goal by what is known after `number` rounds, or by all that is known."""

    @abstractmethod
    def part(self, formula: Formula, way: Way, path: Path) -> Iterator[Proof] | None:
        """The trees of a part of a way's body; None for what only binds."""

    @abstractmethod
    def conclude(self, goal: G, way: Way, premises: tuple[Proof, ...]) -> Proof:
        """The fact by its rule."""

    # --- the search

    def proofs(self, goal: G) -> Iterator[Proof]:
        """All trees of a goal; none of what is not true. Raises TooMuchError where it is too deep, or the search too long."""
        number = self.round_of(goal)
        if number is None:
            return
        found = False
        for tree in self.trees(goal, frozenset()):
            found = True
            yield tree
        if not found:
            raise TooMuchError(f"The shortest proof has more than {MOST_DEEP} steps one above the other; so many are shown.")

    def trees(self, goal: G, above: Path) -> Iterator[Proof]:
        """The trees of a goal that use nothing of what stands above it."""
        self.budget.spend()
        number = self.round_of(goal)
        if number is None or self.key(goal) in above:
            return
        yield from self.leaves(goal)
        if len(above) >= MOST_DEEP:
            return
        path = above | {self.key(goal)}
        for is_further in (False, True):
            if ways := self.listed(goal, number, is_further):
                self.budget.spend(len(ways))
                yield from shortest((way.number + 1, self.by(goal, way, path)) for way in ways)

    def listed(self, goal: G, number: int, is_further: bool) -> list[Way]:
        """The `ways`, by their numbers: those by what was known before a goal of this round was, or the further ones."""
        key = goal, is_further
        if key not in self._ways:
            found = dict.fromkeys(self.ways(goal, None if is_further else number - 1)) if is_further or number else {}
            if is_further:
                before = {(way.rule, way.row, way.uses) for way in self.listed(goal, number, False)}
                found = {way: None for way in found if (way.rule, way.row, way.uses) not in before}
            self._ways[key] = sorted(found, key=lambda way: way.number)
        return self._ways[key]

    def by(self, goal: G, way: Way, path: Path) -> Iterator[Proof]:
        """The trees of a goal that end with one way."""
        parts = [trees for formula in way.rule.body if (trees := self.part(formula, way, path)) is not None]
        for premises in choices([Lazy(trees) for trees in parts]):
            self.budget.spend()
            if 1 + depth(premises) <= MOST_DEEP:
                yield self.conclude(goal, way, premises)

    def cover(self, at: Callable[[int], Iterator[Proof]], begin: int,
              following: Callable[[Proof], int | None]) -> Iterator[tuple[Proof, ...]]:
        """Trees that one after the other hold from `begin` on; `at` gives those of a point, `following` says where the next one goes on."""
        begun, chosen = [at(begin)], list[Proof]()
        while begun:
            self.budget.spend()
            tree = next(begun[-1], None)
            if tree is None:
                begun.pop()
                del chosen[len(begun) - 1:]
            elif (point := following(tree)) is None:
                yield (*chosen, tree)
            else:
                chosen.append(tree)
                begun.append(at(point))


def touched(triggers: Iterable[tuple[Rule, Atom]], changed: Iterable[Ground]) -> Iterator[tuple[Rule, Row]]:
    """The rules that ask for what has changed, with what it binds; `triggers` are rules with the atoms that they ask for."""
    by_shape = by_key(((fact[0], len(fact[1])), fact) for fact in changed)
    seen: set[tuple[int, tuple[tuple[str, str], ...]]] = set()
    for rule, atom in triggers:
        for fact in by_shape.get((atom.predicate, len(atom.terms)), ()):
            row = unify(atom, fact, {})
            if row is not None and (key := (id(rule), tuple(sorted(row.items())))) not in seen:
                seen.add(key)
                yield rule, row


# --- nodes

def during(proof: Proof) -> Interval:
    """When a tree is a proof."""
    return getattr(proof, "during", None) or ALWAYS


def meeting(premises: Sequence[Proof]) -> Interval:
    """When all premises hold; there is such a point where they were found for one."""
    return Interval(max((during(one).lo for one in premises), default=MIN), min((during(one).hi for one in premises), default=MAX))


def size(premises: Sequence[Proof]) -> int:
    """The nodes with one above them. Raises TooMuchError."""
    found = 1 + sum(premise.size for premise in premises)
    if found > MOST_NODES:
        raise TooMuchError(f"The proof has more than {MOST_NODES} nodes.")
    return found


def step(operator: Operator, formula: Formula | Head, row: Row, premises: Sequence[Proof], when: Interval, over: Interval) -> Step:
    text = shown(formula, row) if not isinstance(formula, Atom) else operator
    return Step(operator, text, tuple(premises), 1 + depth(premises), size(premises), when, over)


def window(event: Asserted, window_ms: int, seen: Interval) -> Step:
    """An event as a rule with a Window sees it."""
    return Step("window", f"window {duration(window_ms)}", (event,), 1 + event.depth, 1 + event.size, seen, during(event))


def joined(pieces: Sequence[Proof]) -> Interval:
    """From the begin of the first to the end of the last."""
    return Interval(min(during(one).lo for one in pieces), max(during(one).hi for one in pieces))


def shown(formula: Formula | Head, row: Row) -> str:
    """A formula with its variables replaced, as people read it."""
    return show_formula(replaced(formula, row), show_group)


def replaced(formula: Any, row: Row) -> Any:
    """A formula, or a head, with what the row binds."""
    if isinstance(formula, (Assign, Table)):
        return formula
    return mapped(formula, lambda term: bound(term, row), lambda part: expression(part, row))

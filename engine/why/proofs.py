"""Proof trees of facts: which rule gave a fact, with what bindings, from which premises, down to what is asserted.

A tree is finite and no fact stands below itself. The trees of a fact come the shortest first: those with the fewest rules on their longest
branch.

Rules with a Window of their own (Streaming RIF-Core) see other items of the streams than the query does: each such Window has a copy of
every predicate, what the rule sees of the streams through it, and all that follows, by whichever rule (engine/reference/closure.py). In the
trees that are shown the copies are the facts again, and the Window is a step.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from engine.functions.expressions import Context
from engine.ir.notation import duration
from engine.ir.printer import show
from engine.ir.rules import Atom, Formula, Negation, Rule, Test
from engine.ir.terms import Constant, Variable
from engine.reference.formulas import Ground, ground
from engine.reference.solutions import expression
from engine.timeline import Interval
from engine.why.ranks import Ranked
from engine.why.timed import Path, Search, Way
from engine.why.trees import (MOST_DEEP, Absent, Asserted, Budget, Derived, Holds, Proof, Source, Step, Streamed, TooMuchError, asserted,
                              depth)

Given = Mapping[Ground, tuple[Source, ...]]


class Prover(Search[Ground]):
    """Proofs of what follows from `given` by `rules`."""

    def __init__(self, given: Given, rules: Iterable[Rule], context: Context, budget: Budget) -> None:
        super().__init__(rules, budget)
        self.given = given
        self.known = Ranked(given, self.rules, context, budget.spend)

    def proofs(self, goal: Ground) -> Iterator[Proof]:
        """All proofs of a fact, the shortest first; none of a fact that does not follow. Raises TooMuchError where the shortest is too
        deep, or the search too long."""
        rank = self.known.rank.get(goal, 0)
        if rank > MOST_DEEP:
            raise TooMuchError(f"The shortest proof has {rank} steps one above the other; {MOST_DEEP} are shown.")
        return super().proofs(goal)

    def round_of(self, goal: Ground) -> int | None:
        return self.known.rank.get(goal)

    def leaves(self, goal: Ground) -> Iterator[Proof]:
        return asserted(goal, self.given.get(goal, ()))

    def listed(self, goal: Ground, number: int, is_further: bool) -> list[Way]:
        """All ways at once: the facts that one uses tell how deep its trees are at least."""
        return super().listed(goal, number, is_further) if is_further == (number == 0) else []

    def ways(self, goal: Ground, number: int | None) -> Iterator[Way]:
        for rule, begun in self.about(goal):
            for row in self.known.solutions(rule.body, begun):
                self.budget.spend()
                uses = tuple((place, ground(part, row)) for place, part in enumerate(rule.body) if isinstance(part, Atom))
                yield Way(rule, tuple(sorted(row.items())), 0, max((self.known.rank[fact] for _, fact in uses), default=0), uses)

    def by(self, goal: Ground, way: Way, path: Path) -> Iterator[Proof]:
        return super().by(goal, way, path) if path.isdisjoint(fact for _, fact in way.uses) else iter(())

    def part(self, formula: Formula, way: Way, path: Path) -> Iterator[Proof] | None:
        row = dict(way.row)
        match formula:
            case Atom():
                return self.trees(ground(formula, row), path)
            case Negation(body=Atom() as body):
                terms = tuple(Constant(row[t.name]) if isinstance(t, Variable) else t for t in body.terms)
                return iter([Absent(show(Rule(Atom(body.predicate, terms), ())).removesuffix(" ."))])
            case Test(condition=condition):
                return iter([Holds(show(expression(condition, row)))])
        return None

    def conclude(self, goal: Ground, way: Way, premises: tuple[Proof, ...]) -> Proof:
        return Derived(goal, way.rule, dict(way.row), premises, 1 + depth(premises), 1 + sum(premise.size for premise in premises))


@dataclass(frozen=True, slots=True)
class RuleView:
    """What rules see through a Window of `length_ms`: the facts, and the points of time that it shows."""

    length_ms: int
    given: Given
    over: Interval


class ViewProver(Prover):
    """Proofs of what follows from `given`, and through the views."""

    def __init__(self, given: Given, views: Iterable[RuleView], rules: Iterable[Rule], context: Context, budget: Budget) -> None:
        self._views = {_prefix(view.length_ms): view for view in views}
        self._written: dict[Rule, Rule] = {}
        seen = {(prefix + predicate, terms): sources for prefix, view in self._views.items()
                for (predicate, terms), sources in view.given.items()}
        for rule in rules:
            own = "" if rule.window_ms is None else _prefix(rule.window_ms)
            body = tuple(_copied(part, own if own in self._views else "") for part in rule.body)
            for prefix in ("", *self._views):
                head = Atom(prefix + rule.head.predicate, rule.head.terms) if prefix and isinstance(rule.head, Atom) else rule.head
                self._written[replace(rule, head=head, body=body)] = rule
        super().__init__({**given, **seen}, self._written, context, budget)

    def proofs(self, goal: Ground) -> Iterator[Proof]:
        return map(self._shown, super().proofs(goal))

    def trees(self, goal: Ground, above: Path) -> Iterator[Proof]:
        """Below itself a fact may be what was given to another of its copies."""
        return self.leaves(goal) if self.key(goal) in above else super().trees(goal, above)

    def key(self, goal: Ground) -> Ground:
        return goal[0][len(self._prefix(goal)):], goal[1]

    def _prefix(self, fact: Ground) -> str:
        return next((name for name in self._views if fact[0].startswith(name)), "")

    def _shown(self, proof: Proof) -> Proof:
        """A tree with the facts themselves in place of their copies."""
        match proof:
            case Asserted(fact=fact, sources=sources):
                leaf, prefix = Asserted(self.key(fact), sources), self._prefix(fact)
                if not prefix or not any(isinstance(source, Streamed) for source in sources):
                    return leaf
                view = self._views[prefix]
                return Step("window", f"window {duration(view.length_ms)}", (leaf,), 0, 2, None, view.over)
            case Derived(fact=fact, premises=premises):
                inner = tuple(map(self._shown, premises))
                return replace(proof, fact=self.key(fact), rule=self._written[proof.rule], premises=inner,
                               size=1 + sum(part.size for part in inner))
        return proof


def _prefix(length_ms: int) -> str:
    """What the names of a Window's copies begin with; no document can write it."""
    return f".window {length_ms} "


def _copied(formula: Formula, prefix: str) -> Formula:
    match formula:
        case Atom(predicate=predicate, terms=terms) if prefix:
            return Atom(prefix + predicate, terms)
        case Negation(body=body):
            return Negation(_copied(body, prefix))
    return formula

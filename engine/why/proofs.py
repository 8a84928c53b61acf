"""Proof trees of facts: which rule gave a fact, with what bindings, from which premises, down to what is asserted.

A tree is finite and no fact stands below itself. The trees of a fact come the shortest first: those with the fewest rules on their longest
branch.

Rules with a Window of their own (Streaming RIF-Core) see other items of the streams than the query does: each such Window has a copy of
every predicate, what the rule sees of the streams through it, and all that follows, by whichever rule (engine/reference/closure.py). In the
trees that are shown the copies are the facts again, and the Window is a step.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from engine.functions.expressions import Context
from engine.ir.notation import duration
from engine.ir.printer import show
from engine.ir.rules import TRIPLE, Atom, Falsum, Formula, Negation, Rule, Test, relation_of
from engine.ir.terms import Constant, Variable
from engine.reference.formulas import Ground, Row, ground, unify
from engine.reference.substitution import expression
from engine.timeline import Interval
from engine.why.ranks import Ranked
from engine.why.trees import (MOST_DEEP, Absent, Asserted, Budget, Derived, Holds, Lazy, Proof, Source, Step, Streamed, TooMuchError,
                              asserted, choices, depth, shortest)

Given = Mapping[Ground, tuple[Source, ...]]


@dataclass(frozen=True, slots=True)
class _Instance:
    """A rule with its variables replaced, whose premises all hold."""

    rule: Rule
    row: Row
    parts: tuple[Ground | Absent | Holds, ...]
    rank: int


class Prover:
    """Proofs of what follows from `given` by `rules`."""

    def __init__(self, given: Given, rules: Iterable[Rule], context: Context, budget: Budget) -> None:
        self.given, self._budget = given, budget
        listed = [rule for rule in rules if not isinstance(rule.head, Falsum)]
        self.known = Ranked(given, listed, context, budget.spend)
        self._heads: dict[tuple[str, str | None], list[Rule]] = defaultdict(list)
        for rule in listed:
            if isinstance(rule.head, Atom):
                self._heads[relation_of(rule.head)].append(rule)
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
            yield from asserted(fact, self.given[fact])
        if len(above) >= MOST_DEEP or self._same(fact) in above:
            return
        path = above | {self._same(fact)}
        yield from shortest((instance.rank, self._derived(fact, instance, path)) for instance in self._instances_of(fact)
                            if path.isdisjoint(part for part in instance.parts if isinstance(part, tuple)))

    def _same(self, fact: Ground) -> Ground:
        """What must not be derived below itself."""
        return fact

    def _derived(self, fact: Ground, instance: _Instance, path: frozenset[Ground]) -> Iterator[Derived]:
        premises = [Lazy(self._trees(part, path) if isinstance(part, tuple) else iter([part])) for part in instance.parts]
        for trees in choices(premises):
            self._budget.spend()
            yield Derived(fact, instance.rule, instance.row, trees, 1 + depth(trees), 1 + sum(t.size for t in trees))

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

    def proofs(self, fact: Ground) -> Iterator[Proof]:
        return map(self._shown, super().proofs(fact))

    def _same(self, fact: Ground) -> Ground:
        return fact[0][len(self._prefix(fact)):], fact[1]

    def _prefix(self, fact: Ground) -> str:
        return next((name for name in self._views if fact[0].startswith(name)), "")

    def _shown(self, proof: Proof) -> Proof:
        """A tree with the facts themselves in place of their copies."""
        match proof:
            case Asserted(fact=fact, sources=sources):
                leaf, prefix = Asserted(self._same(fact), sources), self._prefix(fact)
                if not prefix or not any(isinstance(source, Streamed) for source in sources):
                    return leaf
                view = self._views[prefix]
                return Step("window", f"window {duration(view.length_ms)}", (leaf,), 0, 2, None, view.over)
            case Derived(fact=fact, premises=premises):
                inner = tuple(map(self._shown, premises))
                return replace(proof, fact=self._same(fact), rule=self._written[proof.rule], premises=inner,
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

"""Proofs where rules with a Window of their own (Streaming RIF-Core) see other items of the streams than the query does.

Each such Window has a copy of every predicate: what the rule sees of the streams through it, and all that follows, by whichever rule
(engine/reference/closure.py). In the trees that are shown the copies are the facts again, and the Window is a step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from engine.functions.expressions import Context
from engine.ir.notation import duration
from engine.ir.rules import Atom, Formula, Negation, Rule
from engine.reference.formulas import Ground
from engine.timeline import Interval
from engine.why.proofs import Prover
from engine.why.trees import Asserted, Budget, Derived, Proof, Source, Step, Streamed

Given = Mapping[Ground, tuple[Source, ...]]


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

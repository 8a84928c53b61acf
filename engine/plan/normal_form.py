"""Rules without nested temporal operators: the normal form of forward-propagating rules (Wałęga et al., Web Semantics, 2023:
Definition 5).

>>> from engine.ir.rules import BoxMinus
>>> from engine.ir.terms import Variable
>>> x = Variable("x")
>>> flag = Rule(Atom("flag", (x,)), (Atom("monitored", (x,)), BoxMinus(Interval(0, 8), DiamondMinus(Interval(0, 4), Atom("signal", (x,))))))
>>> for rule in normal_form([flag]):
...     print(rule.head.predicate, "<-", *(type(part).__name__ for part in rule.body))
.normal1 <- DiamondMinus
.normal2 <- BoxMinus
flag <- Atom Atom
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from engine.ir.rules import Atom, BoxMinus, BoxPlus, DiamondMinus, Formula, Negation, Rule, rule_variables
from engine.ir.terms import Term
from engine.timeline import Interval


def normal_form(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """The rules as ``p <- diamond-minus q``, ``p <- box-minus q`` or with bodies and heads free of these operators, in the order of
    Proposition 6's proof: a head's box-plus is a diamond-minus of what stands in it. Predicates that it makes begin with ``.normal``."""
    form = _NormalForm()
    for rule in rules:
        form.take(rule)
    return tuple(form.rules)


class _NormalForm:
    def __init__(self) -> None:
        self.rules: list[Rule] = []
        self._made: dict[DiamondMinus | BoxMinus, Atom] = {}
        self._count = 0

    def take(self, rule: Rule) -> None:
        head, body = rule.head, rule.body
        if isinstance(head, BoxPlus):
            begun = self._fresh(head.body.terms)
            self.take(replace(rule, head=begun))
            self.rules.append(replace(rule, head=head.body, body=(DiamondMinus(head.distance, begun),)))
        elif len(body) == 1 and isinstance(body[0], (DiamondMinus, BoxMinus)):
            self.rules.append(replace(rule, body=(replace(body[0], body=self._flat(body[0].body, rule)),)))
        else:
            self.rules.append(replace(rule, body=tuple(self._flat(part, rule) for part in body)))

    def _flat(self, formula: Formula, rule: Rule) -> Formula:
        """A formula whose operators are taken out into rules of their own; equal ones once."""
        match formula:
            case DiamondMinus(body=body) | BoxMinus(body=body):
                inner = replace(formula, body=self._flat(body, rule))
                if inner not in self._made:
                    self._made[inner] = self._fresh(tuple(sorted(rule_variables(inner))))
                    self.rules.append(replace(rule, head=self._made[inner], body=(inner,)))
                return self._made[inner]
            case Negation(body=body):
                return Negation(self._flat(body, rule))
        return formula

    def _fresh(self, terms: tuple[Term, ...]) -> Atom:
        self._count += 1
        return Atom(f".normal{self._count}", terms)


def distances(rules: Iterable[Rule]) -> tuple[Interval, ...]:
    """The intervals that rules in normal form mention."""
    return tuple(part.distance for rule in rules for part in rule.body if isinstance(part, (DiamondMinus, BoxMinus)))

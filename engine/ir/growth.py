"""Rules that may derive for ever: they make terms, and what they derive from them leads back to them.

No static condition tells those that end from those that do not without refusing useful ones, so what they derive
is bounded by rounds.

>>> from engine.ir.rules import Atom
>>> from engine.ir.terms import Variable
>>> n, m = Variable("n"), Variable("m")
>>> more = Assign(m, Call("+", (n, n)))
>>> growing([Rule(Atom("p", (m,)), (Atom("p", (n,)), more), name="twice"), Rule(Atom("q", (m,)), (Atom("p", (n,)), more), name="once")])
('twice',)
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.ir.expressions import Call
from engine.ir.rules import Assign, Formula, Rule
from engine.ir.strata import Predicate, heads, needs

MOST_ROUNDS = 1_000
VALUE = "<urn:thalweg:value>"     # gives a literal of the same value: of finitely many it makes finitely many


class Unending(ValueError):
    """Rules still find something new after `MOST_ROUNDS` rounds."""


def growing(layer: Sequence[Rule]) -> tuple[str, ...]:
    """The names of those rules of a layer (engine/ir/strata.py) that make a term and stand on what they derive."""
    return tuple(dict.fromkeys(rule.name or "?" for rule in layer if any(map(_makes, rule.body)) and _returns(rule, layer)))


def check_rounds(count: int, names: Sequence[str]) -> None:
    """Raise Unending where rules with these names, that may derive for ever, have run too many rounds."""
    if names and count > MOST_ROUNDS:
        raise Unending(f"after {MOST_ROUNDS} rounds the rules still derive something new, by {', '.join(names)}: terms that are made from "
                       "what follows from such terms")


def _makes(part: Formula) -> bool:
    return isinstance(part, Assign) and isinstance(part.expression, Call) and part.expression.function != VALUE


def _returns(rule: Rule, layer: Sequence[Rule]) -> bool:
    """Whether what a rule derives can lead back to its body."""
    reached: set[Predicate] = set()
    following = [rule]
    while following:
        reached |= {head for other in following for head in heads(other)}
        if any(True for _ in needs(rule, reached)):
            return True
        following = [other for other in layer if not reached.issuperset(heads(other)) and any(True for _ in needs(other, reached))]
    return False

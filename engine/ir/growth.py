"""Rules that may derive for ever: they make terms, and what they derive from them leads back to them.

No static condition tells those that end from those that do not without refusing useful ones, so what they derive
is bounded by rounds.

>>> from engine.ir.rules import Atom
>>> from engine.ir.terms import Variable
>>> n, m = Variable("n"), Variable("m")
>>> more = Assign(m, Call("+", (n, n)))
>>> endless([Rule(Atom("p", (m,)), (Atom("p", (n,)), more), name="twice"), Rule(Atom("q", (m,)), (Atom("p", (n,)), more), name="once")])
('twice',)
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.ir.expressions import Call
from engine.ir.rules import TRIPLE, Assign, Atom, Formula, Rule, atoms, tokens_of
from engine.ir.strata import Predicate, predicate_of

MOST_ROUNDS = 1_000
VALUE = "<urn:thalweg:value>"     # gives a literal of the same value: of finitely many it makes finitely many


class Unending(ValueError):
    """Rules still find something new after `MOST_ROUNDS` rounds."""


def endless(layer: Sequence[Rule]) -> tuple[str, ...]:
    """The names of those rules of a layer (engine/ir/strata.py) that make a term and stand on what they derive: they may find something new
    for ever."""
    return tuple(dict.fromkeys(rule.name or "?" for rule in layer if any(map(_makes, rule.body)) and _returns(rule, layer)))


def check_rounds(count: int, names: Sequence[str]) -> None:
    """Raise Unending where a layer has run too many rounds in which rules with these names, that may derive for ever, took part."""
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
        reached |= {head for other in following for head in _heads(other)}
        if _needs(rule, reached):
            return True
        following = [other for other in layer if not reached >= _heads(other) and _needs(other, reached)]
    return False


def _heads(rule: Rule) -> set[Predicate]:
    return {predicate for atom in atoms(rule.head) for predicate in _about(atom, rule)}


def _needs(rule: Rule, known: set[Predicate]) -> bool:
    """Whether a body asks for one of some predicates; a property that may be any meets all triples."""
    asked = {predicate for part in rule.body for atom in atoms(part) for predicate in _about(atom, rule)}
    triples = {property_ for predicate, property_ in known if predicate == TRIPLE}
    return any(one in known or one[0] == TRIPLE and triples and (one[1] is None or None in triples) for one in asked)


def _about(atom: Atom, rule: Rule) -> set[Predicate]:
    """What an atom of a rule is about: of a triple the properties that the rule's tables allow."""
    tokens = tokens_of(atom.terms[1], rule) if atom.predicate == TRIPLE else None
    return {(TRIPLE, token) for token in tokens} if tokens else {predicate_of(atom)}

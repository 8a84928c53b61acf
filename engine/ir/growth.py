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

from collections.abc import Iterator, Sequence
from itertools import count

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
    makers = [rule for rule in layer if any(map(_makes, rule.body))]
    links = [(_heads(rule), _asked(rule)) for rule in layer] if makers else []
    return tuple(dict.fromkeys(_named(rule) for rule in makers if _returns(_heads(rule), _asked(rule), links)))


def rounds(names: Sequence[str]) -> Iterator[int]:
    """The numbers, from 0, of the rounds of a layer in which rules with these names may derive for ever; the loop over them ends where a
    round finds nothing new. Raises Unending where too many have found something."""
    for number in count():
        if names and number > MOST_ROUNDS:
            raise Unending(f"after {MOST_ROUNDS} rounds the rules still derive something new, by {', '.join(names)}: terms that are made "
                           "from what follows from such terms")
        yield number


def _named(rule: Rule) -> str:
    """What a person knows a rule by."""
    return rule.name or f"a rule without a name{f' (line {rule.span.line})' if rule.span is not None else ''}"


def _makes(part: Formula) -> bool:
    return isinstance(part, Assign) and isinstance(part.expression, Call) and part.expression.function != VALUE


def _returns(heads: set[Predicate], asked: set[Predicate], links: Sequence[tuple[set[Predicate], set[Predicate]]]) -> bool:
    """Whether what a rule derives can lead back to what it asks for, by the heads and bodies of the layer."""
    reached, before = set(heads), set[Predicate]()
    while reached != before:
        if _meet(asked, reached):
            return True
        before = set(reached)
        for derived, body in links:
            if _meet(body, before):
                reached |= derived
    return False


def _heads(rule: Rule) -> set[Predicate]:
    return {predicate for atom in atoms(rule.head) for predicate in _about(atom, rule)}


def _asked(rule: Rule) -> set[Predicate]:
    return {predicate for part in rule.body for atom in atoms(part) for predicate in _about(atom, rule)}


def _meet(asked: set[Predicate], known: set[Predicate]) -> bool:
    """Whether one of some predicates is asked for; a property that may be any meets all triples."""
    if not asked.isdisjoint(known):
        return True
    wanted, given = ({property_ for predicate, property_ in some if predicate == TRIPLE} for some in (asked, known))
    return bool(wanted and given) and None in wanted | given


def _about(atom: Atom, rule: Rule) -> set[Predicate]:
    """What an atom of a rule is about: of a triple the properties that the rule's tables allow."""
    tokens = tokens_of(atom.terms[1], rule) if atom.predicate == TRIPLE else None
    return {(TRIPLE, token) for token in tokens} if tokens else {predicate_of(atom)}

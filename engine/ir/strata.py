"""Stratification: rules in layers such that what stands under ``not`` is finished before the rules that ask for it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from engine.ir.rules import TRIPLE, Atom, Formula, Head, Negation, Rule, atoms
from engine.ir.spans import Diagnostic
from engine.ir.terms import Constant

Predicate = tuple[str, str | None]


class Unstratified(ValueError):
    """Predicates that depend on their own negation; `cycle` names them, the first again at the end. `rule` has the negation."""

    def __init__(self, cycle: Sequence[str], rule: Rule) -> None:
        super().__init__("a cycle through negation: " + " -> ".join(cycle))
        self.cycle = tuple(cycle)
        self.rule = rule


def strata(rules: Iterable[Rule]) -> list[list[Rule]]:
    """The rules in the fewest layers, each complete before the next. Raises Unstratified where there is none."""
    waiting = list(rules)
    level = {predicate: 0 for rule in waiting for predicate in heads(rule)}
    while True:
        raised = dict(level)
        for rule in waiting:
            least = max((level[p] + negated for p, negated in needs(rule, level)), default=0)
            for head in heads(rule):
                raised[head] = max(raised[head], least)
        if raised == level:
            break
        if max(raised.values()) > len(level):
            raise Unstratified(*_cycle(waiting, level))
        level = raised
    layers: dict[int, list[Rule]] = {}
    for rule in waiting:
        least = max((level[p] + negated for p, negated in needs(rule, level)), default=0)
        layers.setdefault(max([least, *(level[head] for head in heads(rule))]), []).append(rule)
    return [layers[number] for number in sorted(layers)]


def unstratified(rules: Iterable[Rule]) -> Diagnostic | None:
    """What is wrong with rules that cannot be stratified, at the rule that has the negation."""
    try:
        strata(rules)
    except Unstratified as error:
        return Diagnostic("rules-unsafe", f"The rules cannot be stratified: {error}.", error.rule.span,
                          hint="what stands under 'not' must not follow from what the rule derives")
    return None


def predicate_of(atom: Atom) -> Predicate:
    """What an atom is about: its predicate; for triples with a known property, that property as well."""
    if atom.predicate != TRIPLE:
        return atom.predicate, None
    property_ = atom.terms[1]
    return TRIPLE, property_.token if isinstance(property_, Constant) else None


def heads(rule: Rule) -> list[Predicate]:
    """What a rule derives."""
    return [predicate_of(atom) for atom in atoms(rule.head)]


def needs(rule: Rule, known: Iterable[Predicate]) -> Iterator[tuple[Predicate, bool]]:
    """The predicates of `known` that the body asks for, and whether under ``not``; a variable property meets all triples."""
    for formula in rule.body:
        for atom, negated in _literals(formula, False):
            asked = predicate_of(atom)
            yield from ((p, negated) for p in known
                        if p == asked or p[0] == asked[0] == TRIPLE and None in (p[1], asked[1]))


def _literals(formula: Formula | Head, negated: bool) -> Iterator[tuple[Atom, bool]]:
    if isinstance(formula, Atom):
        yield formula, negated
    elif hasattr(formula, "body"):
        yield from _literals(formula.body, negated or isinstance(formula, Negation))


def _cycle(rules: Sequence[Rule], known: Iterable[Predicate]) -> tuple[list[str], Rule]:
    """A cycle with a negative step: from a head to itself through what its rules need; and the rule of that step."""
    edges = {(head, p, negated): rule for rule in reversed(rules) for head in heads(rule) for p, negated in needs(rule, known)}
    for (start, asked, negated), rule in sorted(edges.items(), key=lambda edge: str(edge[0])):
        path = _path(edges.keys(), asked, start) if negated else None
        if path is not None:
            return [p[1] or p[0] for p in (start, *path)], rule
    raise AssertionError("levels rise without end only along such a cycle")


def _path(edges: Collection[tuple[Predicate, Predicate, bool]], start: Predicate, end: Predicate) -> list[Predicate] | None:
    paths = {start: [start]}
    frontier = [start]
    while frontier:
        here = frontier.pop(0)
        if here == end:
            return paths[here]
        for head, asked, _ in sorted(edges, key=str):
            if head == here and asked not in paths:
                paths[asked] = [*paths[here], asked]
                frontier.append(asked)
    return None

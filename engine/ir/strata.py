"""Stratification: rules in layers such that what stands under ``not`` is finished before the rules that ask for it."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence

from engine.ir.components import components
from engine.ir.rules import TRIPLE, Atom, Formula, Head, Negation, Rule, atoms
from engine.ir.spans import Diagnostic
from engine.ir.terms import RDF_TYPE, Constant

Predicate = tuple[str, str | None]
Edges = dict[Predicate, dict[tuple[Predicate, bool], Rule]]


class Unstratified(ValueError):
    """Predicates that depend on their own negation; `cycle` names them, the first again at the end. `rule` has the negation."""

    def __init__(self, cycle: Sequence[str], rule: Rule) -> None:
        shown = [*cycle[:8], f"... ({len(cycle) - 9} more)", cycle[-1]] if len(cycle) > 12 else cycle
        super().__init__("a cycle through negation: " + " -> ".join(shown))
        self.cycle = tuple(cycle)
        self.rule = rule


def strata(rules: Iterable[Rule]) -> list[list[Rule]]:
    """The rules in the fewest layers, each complete before the next. Raises Unstratified where there is none."""
    ordered = list(rules)
    edges = _edges(ordered)
    level: dict[Predicate, int] = {}
    for members in components({head: [need for need, _ in needs] for head, needs in edges.items()}):
        inside = set(members)
        if any(negated and p in inside for head in members for p, negated in edges[head]):
            raise Unstratified(*_cycle(edges, inside))
        least = max((level[p] + negated for head in members for p, negated in edges[head] if p not in inside), default=0)
        level |= dict.fromkeys(members, least)
    layers: dict[int, list[Rule]] = {}
    known = Known(level)
    for rule in ordered:
        least = max((level[p] + negated for p, negated in known.needs(rule)), default=0)
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
    """What an atom is about: its predicate; for triples with a known property, that property as well, for rdf:type with the class."""
    if atom.predicate != TRIPLE:
        return atom.predicate, None
    _, property_, class_ = atom.terms
    if property_ == Constant(RDF_TYPE) and isinstance(class_, Constant):
        return TRIPLE, f"{RDF_TYPE} {class_.token}"
    return TRIPLE, property_.token if isinstance(property_, Constant) else None


def heads(rule: Rule) -> list[Predicate]:
    """What a rule derives."""
    return [predicate_of(atom) for atom in atoms(rule.head)]


class Known:
    """Some predicates, found by what meets them: a variable property meets all triples, a variable class all with rdf:type."""

    def __init__(self, predicates: Iterable[Predicate]) -> None:
        self._all = set(predicates)
        self._triples = sorted((p for p in self._all if p[0] == TRIPLE), key=str)

    def meeting(self, asked: Predicate) -> Iterable[Predicate]:
        """Those that may be about the same facts."""
        name, property_ = asked
        if name != TRIPLE or property_ is None:
            return self._triples if name == TRIPLE else self._all & {asked}
        if property_ == RDF_TYPE:
            return [p for p in self._triples if p[1] is None or p[1].startswith(RDF_TYPE)]
        return self._all & {asked, (TRIPLE, property_.partition(" ")[0]), (TRIPLE, None)}

    def needs(self, rule: Rule) -> Iterator[tuple[Predicate, bool]]:
        """Those that a body asks for, each with whether it stands under ``not``."""
        for formula in rule.body:
            for atom, negated in _literals(formula, False):
                yield from ((p, negated) for p in self.meeting(predicate_of(atom)))


def _literals(formula: Formula | Head, negated: bool) -> Iterator[tuple[Atom, bool]]:
    if isinstance(formula, Atom):
        yield formula, negated
    elif hasattr(formula, "body"):
        yield from _literals(formula.body, negated or isinstance(formula, Negation))


def _edges(rules: Sequence[Rule]) -> Edges:
    """For each derived predicate what its rules need, with the first rule that does."""
    edges: Edges = {head: {} for rule in rules for head in heads(rule)}
    known = Known(edges)
    for rule in rules:
        for head in heads(rule):
            for need in known.needs(rule):
                edges[head].setdefault(need, rule)
    return edges


def _cycle(edges: Edges, inside: Collection[Predicate]) -> tuple[list[str], Rule]:
    """A cycle with a negative step among predicates that depend on one another; and the rule of that step."""
    start, asked, rule = min(((head, p, rule) for head in inside for (p, negated), rule in edges[head].items() if negated and p in inside),
                             key=lambda step: str(step[:2]))
    reached = {asked: asked}     # each from the one before it
    frontier = deque([asked])
    while start not in reached:
        here = frontier.popleft()
        for need in sorted({p for p, _ in edges[here] if p in inside and p not in reached}, key=str):
            reached[need] = here
            frontier.append(need)
    back = [start]
    while back[-1] != asked:
        back.append(reached[back[-1]])
    return [(p[1] or p[0]).removeprefix(f"{RDF_TYPE} ") for p in (start, *reversed(back))], rule

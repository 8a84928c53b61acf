"""Which rules depend on which: strongly connected components, layers such that what stands under ``not`` is finished before the rules that
ask for it, and rules that may derive for ever.

>>> components({"p": ["q", "e"], "q": ["p"], "r": ["p"], "e": []})
[['e'], ['p', 'q'], ['r']]

The latter make terms, and what they derive from them leads back to them. No static condition tells those that end from those that do not
without refusing useful ones, so what they derive is bounded by rounds.

>>> from engine.ir.terms import Variable
>>> n, m = Variable("n"), Variable("m")
>>> more = Assign(m, Call("+", (n, n)))
>>> endless([Rule(Atom("p", (m,)), (Atom("p", (n,)), more), name="twice"), Rule(Atom("q", (m,)), (Atom("p", (n,)), more), name="once")])
('twice',)
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import TypeVar

from engine.ir.expressions import Call
from engine.ir.rules import TRIPLE, Assign, Atom, Formula, Negation, Rule, atoms, nested, relation_of, tokens_of
from engine.ir.spans import Diagnostic
from engine.ir.terms import RDF_TYPE, Constant

Node = TypeVar("Node", bound=Hashable)


def components(needs: Mapping[Node, Iterable[Node]]) -> list[list[Node]]:
    """The nodes in groups that need each other, in order: what a group needs stands in it or before it. Inside a group the order is that
    of `needs`, which has all nodes (Tarjan 1972, with a stack of its own instead of recursion)."""
    place = {node: number for number, node in enumerate(needs)}
    number: dict[Node, int] = {}
    low: dict[Node, int] = {}
    open_: dict[Node, None] = {}    # visited, and in no group yet; in the order of their numbers
    groups: list[list[Node]] = []
    for root in needs:
        path = [] if root in number else [(root, iter(needs[root]))]
        while path:
            here, rest = path[-1]
            if here not in number:
                number[here] = low[here] = len(number)
                open_[here] = None
            for need in rest:
                if need not in number:
                    path.append((need, iter(needs[need])))
                    break
                if need in open_:
                    low[here] = min(low[here], low[need])
            else:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[here])
                if low[here] == number[here]:
                    group = [here]
                    while (last := open_.popitem()[0]) != here:
                        group.append(last)
                    groups.append(sorted(group, key=place.__getitem__))
    return groups


def reachable(first: Iterable[Node], following: Callable[[Node], Iterable[Node]]) -> set[Node]:
    """The nodes of `first`, and all that lead on from them."""
    waiting = list(first)
    found = set(waiting)
    while waiting:
        new = [node for node in following(waiting.pop()) if node not in found]
        found.update(new)
        waiting += new
    return found


def shortest_way(first: Node, last: Node, following: Callable[[Node], Iterable[Node]]) -> list[Node]:
    """A shortest way from a node to one that it leads to, both included. KeyError where it does not lead there."""
    before, frontier = {first: first}, [first]
    for here in frontier:
        new = [node for node in following(here) if node not in before]
        before |= dict.fromkeys(new, here)
        frontier += new
    way = [last]
    while way[-1] != first:
        way.append(before[way[-1]])
    return way[::-1]


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
        return refused(error)
    return None


def refused(error: Unstratified) -> Diagnostic:
    return Diagnostic("rules-unsafe", f"The rules cannot be stratified: {error}.", error.rule.span,
                      hint="what stands under 'not' must not follow from what the rule derives")


def predicate_of(atom: Atom) -> Predicate:
    """What an atom is about: its predicate; for triples with a known property, that property as well, for rdf:type with the class."""
    if atom.predicate == TRIPLE and atom.terms[1] == Constant(RDF_TYPE) and isinstance(class_ := atom.terms[2], Constant):
        return TRIPLE, f"{RDF_TYPE} {class_.token}"
    return relation_of(atom)


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
            negated = any(isinstance(inner, Negation) for inner in nested(formula))
            yield from ((p, negated) for atom in atoms(formula) for p in self.meeting(predicate_of(atom)))


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
    back = shortest_way(asked, start, lambda here: sorted({p for p, _ in edges[here] if p in inside}, key=str))
    return [(p[1] or p[0]).removeprefix(f"{RDF_TYPE} ") for p in (start, *back)], rule


MOST_ROUNDS = 1_000
VALUE = "<urn:thalweg:value>"     # gives a literal of the same value: of finitely many it makes finitely many


class Unending(ValueError):
    """Rules still find something new after `MOST_ROUNDS` rounds."""


def endless(layer: Sequence[Rule]) -> tuple[str, ...]:
    """The names of those rules of a layer that make a term and stand on what they derive: they may find something new for ever."""
    makers = [rule for rule in layer if any(map(makes, rule.body))]
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


def makes(part: Formula) -> bool:
    """Whether a part of a body makes terms, of which there may be any number."""
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

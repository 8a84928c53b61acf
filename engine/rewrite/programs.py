"""The rules of a query as they are applied to its data: general ones, or partially evaluated against the schema in static graphs.

Partial evaluation needs the whole schema to be in the static graphs. Where it may come with the data, from a stream or from rules of
the user's own, the general rules are applied, which meet it there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from engine.ir import patterns as ir
from engine.ir.expressions import exists_in
from engine.ir.rules import TRIPLE, Atom, Rule, RuleSet, atoms
from engine.ir.terms import RDF_TYPE, Constant
from engine.records import Triple
from engine.rewrite.owl2rl import BUILT_IN
from engine.rewrite.partial import compile_rules
from engine.rewrite.schema import CLASSES, PREDICATES, SAME, schema_vocabulary, words


def united(sets: Iterable[RuleSet]) -> RuleSet:
    """Several rule sets as one, each rule once."""
    listed = list(sets)
    rules = dict.fromkeys(rule for one in listed for rule in one.rules)
    return RuleSet("+".join(one.name for one in listed), tuple(rules), tuple(fact for one in listed for fact in one.facts))


def schema_words(rules: RuleSet, tbox: Iterable[Triple]) -> frozenset[str]:
    """Properties and classes, those that a schema adds included, whose statements are schema to some rule: where a stream has such
    statements, general rules are applied. ``?x a owl:Ontology``, which every document may say of itself, is none to OWL 2 RL."""
    asked = (atom for rule in rules.rules for part in rule.body for atom in atoms(part))
    read = frozenset(term.token for atom in asked for term in atom.terms if isinstance(term, Constant))
    return frozenset().union(*words(tbox, PREDICATES & read, CLASSES & read))


def makes_schema(rules: RuleSet) -> bool:
    """Whether rules of the user's own may derive statements of schema."""
    built_in = {rule for one in BUILT_IN.values() for rule in one.rules}
    heads = [atom for rule in rules.rules if rule not in built_in for atom in atoms(rule.head)]
    return any(map(_may_be_schema, [*heads, *(fact.atom for fact in rules.facts)]))


def _may_match(triple: ir.TriplePattern | None, properties: Collection[str], classes: Collection[str]) -> bool:
    match triple:
        case ir.TriplePattern(predicate=Constant(token=token), object=object_) if token == RDF_TYPE:
            return not isinstance(object_, Constant) or object_.token in classes
        case ir.TriplePattern(predicate=Constant(token=token)):
            return token in properties
    return True


def _triples(pattern: ir.Pattern) -> Iterator[ir.TriplePattern | None]:
    """The triple patterns inside a pattern; None for what asks otherwise: a path, an EXISTS."""
    match pattern:
        case ir.BGP(triples=triples):
            yield from triples
        case ir.PathPattern():
            yield None
        case ir.Filter(condition=expression) | ir.Extend(expression=expression) if any(exists_in(expression)):
            yield None
        case ir.LeftJoin(condition=condition) if condition is not None and any(exists_in(condition)):
            yield None
    for child in ir.children(pattern):
        yield from _triples(child)


class Programs:
    """The rules for data beside static graphs, made once for each choice of graphs; what follows from nothing is a rule without a body."""

    def __init__(self, rules: RuleSet, graphs: Mapping[str, Sequence[Triple]], general: bool) -> None:
        self._rules, self._graphs = rules, graphs
        self._general = general or makes_schema(rules)
        self._made: dict[frozenset[str], tuple[Rule, ...]] = {}

    def __call__(self, iris: Iterable[str]) -> tuple[Rule, ...]:
        chosen = frozenset(iris)
        if chosen not in self._made:
            applied = self._rules if self._general else compile_rules(self._rules, self._content(chosen))
            self._made[chosen] = *applied.rules, *(Rule(fact.atom, (), name="schema") for fact in applied.facts)
        return self._made[chosen]

    def may_show(self, pattern: ir.Pattern, iris: Iterable[str]) -> bool:
        """Whether what some graphs entail by themselves may match a pattern; true where that is not plain to see."""
        chosen = frozenset(iris)
        tbox = self._content(chosen)
        if self._general or len(schema_vocabulary(tbox)) < len(set(tbox)):
            return True
        facts = [rule.head for rule in self(chosen) if not rule.body]
        found = [*tbox, *(tuple(t.token for t in f.terms if isinstance(t, Constant)) for f in facts
                          if isinstance(f, Atom) and f.predicate == TRIPLE)]
        properties = {SAME, *(p for _, p, _ in found if p != RDF_TYPE)}
        classes = CLASSES | {o for _, p, o in found if p == RDF_TYPE}
        return any(_may_match(triple, properties, classes) for triple in _triples(pattern))

    def _content(self, iris: frozenset[str]) -> list[Triple]:
        return [triple for iri in sorted(iris) for triple in self._graphs[iri]]


def _may_be_schema(atom: Atom) -> bool:
    if atom.predicate != TRIPLE:
        return False
    _, property_, object_ = atom.terms
    if not isinstance(property_, Constant) or property_.token in PREDICATES:
        return True
    return property_.token == RDF_TYPE and (not isinstance(object_, Constant) or object_.token in CLASSES)

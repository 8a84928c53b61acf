"""The rules of a query as they are applied to its data: general ones, or partially evaluated against the schema in static graphs.

Partial evaluation needs the whole schema to be in the static graphs. Where it may come with the data, from a stream or from rules of
the user's own, the general rules are applied, which meet it there.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from engine.ir.printer import Pass
from engine.ir.rules import TRIPLE, Atom, Rule, RuleSet, atoms
from engine.ir.terms import RDF_TYPE, Constant
from engine.records import Triple
from engine.rewrite.magic import magic
from engine.rewrite.owl2rl import BUILT_IN
from engine.rewrite.partial import compile_rules
from engine.rewrite.reflexive import without_reflexive
from engine.rewrite.relevance import Goal, relevant
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


@lru_cache(maxsize=2)
def _compiled(rules: RuleSet, places: tuple[object, ...], schema: tuple[Triple, ...]) -> RuleSet:
    """`compile_rules`, once for queries with the same rules, from the same `places` of a text, and the same graphs, that follow each
    other. Of a large schema it takes much memory."""
    return compile_rules(rules, schema)


RULE_PASSES: Mapping[str, Callable[[RuleSet, Sequence[Goal], Sequence[Triple]], RuleSet]] = {
    "partial": lambda rules, goals, schema: _compiled(rules, tuple((rule.span, rule.origin) for rule in rules.rules), tuple(schema)),
    "reflexive": lambda rules, goals, schema: replace(rules, rules=without_reflexive(rules.rules, goals)),
    "relevance": lambda rules, goals, schema: replace(rules, rules=relevant(_rules_of(rules), goals), facts=())}
"""What rules go through before they are unfolded or applied in closures, in this order: each is given what the query asks, and the
triples of the static graphs."""


class Programs:
    """The rules for data beside static graphs, made once for each choice of graphs; what follows from nothing is a rule without a body.
    `goals` are what the query asks, which decides what is relevant. Passes `without` are left out: "partial" where schema may come with the
    data."""

    def __init__(self, rules: RuleSet, graphs: Mapping[str, Sequence[Triple]], goals: Sequence[Goal],
                 without: Collection[str] = ()) -> None:
        self._rules, self._graphs, self._goals = rules, graphs, goals
        self._without = {*without, "partial"} if makes_schema(rules) else set(without)
        self._made: dict[frozenset[str], tuple[Pass, ...]] = {}

    def __call__(self, iris: Iterable[str]) -> tuple[Rule, ...]:
        return self.passes(iris)[-1].rules

    def bound(self, iris: Iterable[str]) -> tuple[Rule, ...]:
        """The same for closures, which need only what leads to the terms that the query names."""
        return self(iris) if "magic" in self._without else magic(self(iris), self._goals)

    def passes(self, iris: Iterable[str]) -> tuple[Pass, ...]:
        """The rules as they are named, and what each pass leaves of them, for the schema in these graphs; without passes that leave them as
        they are."""
        chosen = frozenset(iris)
        if chosen not in self._made:
            rules, schema = self._rules, self.content(chosen)
            steps = [Pass(rules.name, _rules_of(rules))]
            for name, apply in RULE_PASSES.items():
                if name not in self._without:
                    rules = apply(rules, self._goals, schema)
                    made = Pass(name, _rules_of(rules))
                    steps += [made] if made.rules != steps[-1].rules else []
            self._made[chosen] = tuple(steps)
        return self._made[chosen]

    def may_show(self, iris: Iterable[str]) -> bool:
        """Whether what some graphs entail by themselves may be asked for; true where that is not plain to see."""
        chosen = frozenset(iris)
        tbox = self.content(chosen)
        if "partial" in self._without or len(schema_vocabulary(tbox)) < len(set(tbox)):
            return True
        facts = [rule.head for rule in self(chosen) if not rule.body]
        found = [*tbox, *(tuple(t.token for t in f.terms if isinstance(t, Constant)) for f in facts
                          if isinstance(f, Atom) and f.predicate == TRIPLE)]
        properties = {SAME, *(p for _, p, _ in found if p != RDF_TYPE)}
        classes = CLASSES | {o for _, p, o in found if p == RDF_TYPE}
        return any(_may_match(goal, properties, classes) for goal in self._goals)

    def content(self, iris: Iterable[str]) -> list[Triple]:
        """The triples of some static graphs."""
        return [triple for iri in sorted(set(iris)) for triple in self._graphs[iri]]


def _rules_of(rules: RuleSet) -> tuple[Rule, ...]:
    return *rules.rules, *(Rule(fact.atom, (), name="schema", role="built-in") for fact in rules.facts)


def _may_match(goal: Goal, properties: Collection[str], classes: Collection[str]) -> bool:
    _, (_, property_, object_) = goal
    if property_ == RDF_TYPE:
        return object_ is None or object_ in classes
    return property_ is None or property_ in properties


def _may_be_schema(atom: Atom) -> bool:
    if atom.predicate != TRIPLE:
        return False
    _, property_, object_ = atom.terms
    if not isinstance(property_, Constant) or property_.token in PREDICATES:
        return True
    return property_.token == RDF_TYPE and (not isinstance(object_, Constant) or object_.token in CLASSES)

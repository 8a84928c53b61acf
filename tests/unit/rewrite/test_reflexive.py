"""Rules without eq-ref derive what the rules with it do, but that terms are themselves; random small ontologies with data."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.ir.rules import TRIPLE, Atom, Rule, RuleSet
from engine.ir.terms import RDF_TYPE, Constant, Variable
from engine.records import Triple
from engine.reference.closure import closure
from engine.reference.dataset import Graph
from engine.rewrite.owl2rl import OWL2RL
from engine.rewrite.partial import compile_rules
from engine.rewrite.reflexive import without_reflexive
from engine.rewrite.relevance import ANYTHING, Goal
from engine.rewrite.rule_text import iri
from engine.rewrite.schema import SAME
from tests.unit.rewrite.test_owl2rl_random import DATA, PROPERTIES, SCHEMA, THINGS, property_, thing, written

TYPED: Goal = (TRIPLE, (None, PROPERTIES[0], None))
EQUALITY = st.one_of(st.tuples(st.sampled_from([SAME, *PROPERTIES]), st.just(SAME), property_), st.tuples(thing, st.just(SAME), thing))


def closed(data: list[Triple], rules: RuleSet) -> tuple[set[Triple], set[tuple[str, tuple[tuple[str, str], ...]]]]:
    graph, inconsistencies = closure(Graph(data), rules)
    proper = {triple for triple in graph.triples if triple[1] != SAME or triple[0] != triple[2]}
    return proper, {(i.rule, tuple(sorted(i.row.items()))) for i in inconsistencies}


@settings(deadline=None, max_examples=60)
@given(st.lists(SCHEMA, max_size=5), st.lists(st.one_of(DATA, EQUALITY), max_size=6))
def test_the_rest_follows_all_the_same(axioms: list[object], facts: list[object]) -> None:
    data = [*written(axioms), *written(facts)]
    rules = compile_rules(OWL2RL, data)
    less = without_reflexive(rules.rules, [TYPED])
    assert closed(data, RuleSet("less", less, rules.facts)) == closed(data, rules)


def test_a_term_that_differs_from_itself() -> None:
    data = [(THINGS[0], "<http://www.w3.org/2002/07/owl#differentFrom>", THINGS[0])]
    found = closed(data, RuleSet("less", without_reflexive(compile_rules(OWL2RL, data).rules, [TYPED])))[1]
    assert found == {("eq-diff1", (("x", THINGS[0]), ("y", THINGS[0])))}


def test_no_rule_is_left_that_says_so() -> None:
    tbox = [(PROPERTIES[0], RDF_TYPE, iri("TransitiveProperty")), (PROPERTIES[1], RDF_TYPE, iri("FunctionalProperty"))]
    assert not any(rule.name == "eq-ref" for rule in without_reflexive(compile_rules(OWL2RL, tbox).rules, [TYPED]))


def test_where_equality_is_asked_for_nothing_changes() -> None:
    rules = compile_rules(OWL2RL, []).rules
    for goal in (ANYTHING, (TRIPLE, (THINGS[0], SAME, None))):
        assert without_reflexive(rules, [TYPED, goal]) == rules
    x, p, y = map(Variable, "xpy")
    every = Rule(Atom(TRIPLE, (x, Constant("<http://ex.org/linked>"), y)), (Atom(TRIPLE, (x, p, y)),))     # of owl:sameAs too
    assert without_reflexive((*rules, every), [TYPED]) == (*rules, every)

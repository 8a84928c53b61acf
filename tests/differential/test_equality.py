"""owl:sameAs by representatives against its rules applied as they stand, and against the reference evaluator: random schemas, each with the
contents of many windows, which are closed together. A content is a case.
"""

from __future__ import annotations

from random import Random

import duckdb
import pytest

from engine.ir.rules import TRIPLE, Rule, RuleSet
from engine.ir.terms import RDF_TYPE, SAME_AS
from engine.records import Triple
from engine.reference.closure import closure
from engine.reference.dataset import Graph
from engine.rewrite.owl2rl import OWL2RL
from engine.rewrite.partial import compile_rules
from engine.rewrite.reflexive import without_reflexive
from engine.rewrite.rule_text import iri
from tests.unit.rewrite.test_equality import BLANKS, OWN, closures, own_rules
from tests.unit.rewrite.test_owl2rl_random import CLASSES, LITERALS, ONE, PROPERTIES, THINGS, ZERO, written

CASES, FEW, MANY = 50, 4, 200
THING = iri("Thing")
NAMES = [*THINGS, *(f"<http://ex.org/{name}>" for name in "defgh"), *BLANKS]


@pytest.mark.parametrize("seed", range(FEW))
def test_some(database: duckdb.DuckDBPyConnection, seed: int) -> None:
    agree(database, seed)


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_ten_thousand(database: duckdb.DuckDBPyConnection) -> None:
    for seed in range(FEW, FEW + MANY):
        agree(database, seed)


def agree(database: duckdb.DuckDBPyConnection, seed: int) -> None:
    """All cases of a schema have one answer in both ways, and some of them that of the reference evaluator."""
    random = Random(seed)
    background = [*written([axiom(random) for _ in range(random.randrange(7))]), *content(random, 4)]
    made = compile_rules(OWL2RL, background)
    own = own_rules(random.sample(OWN, random.randrange(4)))
    rules = made.rules if random.random() < 0.5 else without_reflexive(made.rules, [(TRIPLE, (None, PROPERTIES[0], None))])
    facts = tuple(Rule(fact.atom, (), name="schema", role="built-in") for fact in made.facts)
    windows = {tick: content(random, 9) for tick in range(1, CASES + 1)}
    behind, _, shown, *findings = by_representatives = closures(database, (*rules, *facts, *own), background, windows, True)
    by_rules = closures(database, (*rules, *facts, *own), background, windows, False)
    for one, other in zip(by_representatives, by_rules):
        assert set(one) - set(other) == set() == set(other) - set(one), seed
        assert len(one) == len(other), seed
    for tick in random.sample(sorted(windows), 2):
        graph, _ = closure(Graph([*background, *windows[tick]]), RuleSet("r", (*rules, *own), made.facts))
        whole = {row[:3] for row in behind} | {row[1:4] for row in shown if row[0] == tick}
        assert {(s, p, o) for s, p, o in whole if s[0] != '"' and p[0] == "<"} == graph.triples, (seed, tick)


def content(random: Random, most: int) -> list[Triple]:
    """Up to so many statements, some of them of owl:sameAs."""
    return list(dict.fromkeys(statement(random) for _ in range(random.randrange(most + 1))))


def statement(random: Random) -> Triple:
    kind = random.random()
    if kind < 0.35:
        return random.choice(NAMES), SAME_AS, random.choice(NAMES)
    if kind < 0.42:
        words = random.choice((CLASSES, PROPERTIES))
        return random.choice(words), SAME_AS, random.choice([*words, random.choice(NAMES)])
    if kind < 0.45:
        return random.choice(NAMES), SAME_AS, random.choice(LITERALS)
    if kind < 0.5:
        return random.choice(NAMES), iri("differentFrom"), random.choice(NAMES)
    if kind < 0.65:
        return random.choice(NAMES), RDF_TYPE, random.choice(CLASSES)
    return random.choice(NAMES), random.choice(PROPERTIES), random.choice([*NAMES, *NAMES, *LITERALS])


def axiom(random: Random) -> tuple[object, ...]:
    """As the strategy of tests/unit/rewrite/test_owl2rl_random.py, with more by which terms become equal."""
    class_, other, property_, second = *random.choices(CLASSES, k=2), *random.choices(PROPERTIES, k=2)
    kinds = "Functional", "InverseFunctional", "Symmetric", "Transitive", "Irreflexive", "Asymmetric"
    return random.choice((
        (property_, RDF_TYPE, iri(f"{random.choice(kinds[:2])}Property")), (property_, RDF_TYPE, iri(f"{random.choice(kinds)}Property")),
        (class_, iri("hasKey"), tuple(random.sample(PROPERTIES, random.randrange(1, 3)))),
        (class_, [(iri("onProperty"), property_), (iri("maxCardinality"), random.choice((ZERO, ONE, ONE)))]),
        (class_, [(iri("onProperty"), property_), (iri("maxQualifiedCardinality"), ONE), (iri("onClass"), random.choice((other, THING)))]),
        (class_, iri("rdfs:subClassOf"), other), (class_, iri("disjointWith"), other),
        (property_, iri(random.choice(("rdfs:subPropertyOf", "equivalentProperty", "inverseOf", "propertyDisjointWith"))), second),
        (property_, iri("rdfs:subPropertyOf"), SAME_AS),
        (property_, iri(random.choice(("rdfs:domain", "rdfs:range"))), random.choice((class_, iri("xsd:byte")))),
        (class_, iri("oneOf"), tuple(random.sample(THINGS, 2))), (class_, iri("intersectionOf"), (other, random.choice(CLASSES))),
        (property_, iri("propertyChainAxiom"), (second, random.choice(PROPERTIES))),
        (class_, [(iri("onProperty"), property_), (iri("hasValue"), random.choice([*THINGS, *LITERALS]))]),
        (class_, [(iri("onProperty"), property_), (iri(random.choice(("someValuesFrom", "allValuesFrom"))), other)]),
        ("", [(RDF_TYPE, iri("AllDifferent")), (iri("members"), tuple(THINGS))]),
        ("", [(iri("sourceIndividual"), THINGS[0]), (iri("assertionProperty"), property_), (iri("targetIndividual"), THINGS[1])])))

"""Random rules, data and queries: what the rewritten plan answers is what the reference evaluator answers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import assume, given, strategies as st

from engine.execution.executor import Executor
from engine.ir.rules import Negation, Rule, RuleSet
from engine.records import Triple
from tests.differential.plans import in_process
from tests.unit.rewrite.test_owl2rl_random import RDFS_DATA, RDFS_SCHEMA, written
from tests.unit.rewrite.under_rules import PLACES, Data, expected, planned, text, written as written_rules
from tests.unit.spark.test_closures import least_model, rules, triples

PATTERNS = (
    "?x :p ?y", "?x :q ?y", ":a :p ?y", "?x :p :b", "?x :p ?y . ?y :q ?z", "?x :p ?x", ":a ?p ?y", "?x ?p ?y",
    "?x :p ?y OPTIONAL { ?y :q ?z }", "?x :p ?y FILTER NOT EXISTS { ?y :q ?x }", "?x :q ?y MINUS { ?x :p ?y }",
    "{ ?x :p ?y } UNION { ?y :q ?x }", "?x :p+ ?y", ":a :p* ?y", "?x (:p|:q) ?y",
    "{ SELECT ?x (COUNT(*) AS ?n) WHERE { ?x :p ?y } GROUP BY ?x }",
    "?x :p ?y BIND(EXISTS { ?x :q ?y } AS ?e)", "VALUES ?x { :a :b } ?x :p/:q ?y", "?x !:p ?y",
)


@pytest.fixture(scope="module")
def executor() -> Iterator[Executor]:
    with in_process() as made:
        yield made


programs = st.lists(rules().filter(lambda rule: not any(isinstance(part, Negation) for part in rule.body)), min_size=1, max_size=4)
several = st.lists(triples, max_size=4)


@given(programs, st.sampled_from(PATTERNS), st.sampled_from(sorted(PLACES)), several, several, several, several)
def test_programs(executor: Executor, program: list[Rule], pattern: str, place: str, one: list[Triple], two: list[Triple],
                  shown: list[Triple], behind: list[Triple]) -> None:
    named = {"own": RuleSet("own", tuple(program))}
    assume(len(least_model(program, [*one, *two, *shown, *behind])) < 200)
    data = Data((tuple(one), tuple(two)), tuple(shown), tuple(behind))
    query = text(place, pattern, ["own"])
    assert planned(executor, query, data, named) == expected(query, data, named)


TYPED = ("?x a ?c", "?x a :C1", ":a ?p ?y", "?x :p1 ?y", "?x :p1 ?y . ?y a :C0", "?x a :C2 OPTIONAL { ?x :p0 ?y }", "?x ?p ?y", ":a a ?c",
         "?c rdfs:subClassOf ?d", "?x :p0+ ?y", "?x a :C0 , :C1", "?x a :C3 FILTER EXISTS { ?x :p2 ?y }", "?x ?p :C1")


@given(st.lists(RDFS_SCHEMA, max_size=5), st.lists(RDFS_DATA, max_size=4), st.lists(RDFS_DATA, max_size=2), st.lists(RDFS_DATA, max_size=2),
       st.sampled_from(TYPED), st.sampled_from(sorted(PLACES)), st.booleans())
def test_rdfs(executor: Executor, schema: list[object], streamed: list[object], shown: list[object], behind: list[object], pattern: str,
              place: str, reasoned: bool) -> None:
    """With the schema in the graph to reason with, or in that which is shown."""
    schemas, *others = (list(written(part)) for part in (schema, streamed, shown, behind))
    data = Data((tuple(others[0]),), (*others[1], *(() if reasoned else schemas)), (*others[2], *(schemas if reasoned else ())))
    query = f"PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#> {text(place, pattern, ['rdfs'])}"
    assert planned(executor, query, data, {}) == expected(query, data, {})


RECURSIVE = ("?x p ?y, ?y p ?z => ?x p ?z", "?x q ?y => ?x p ?y", "?x q ?y, ?y p ?z => ?x p ?z", "?x p ?y, ?y q ?z => ?x p ?z",
             "?x p ?y => r(?y ?x)", "r(?x ?y), ?y q ?z => ?x p ?z", "?x q ?y, ?z q ?y, ?x p ?u, ?z p ?v => ?u p ?v",
             "r(?x ?y), ?y p ?z => r(?x ?z)", "?x ?l ?y, ?l q ?k, ?y p ?z => ?x ?k ?z",
             "r(?x ?y), r(?y ?z), ?x != ?z => ?x r ?z",
             "?x r ?y => ?y p ?x")
BOUND = (":a :p ?y", "?x :p :b", ":a :p ?y . ?y :q ?z", ":a :p :b", ":a :r ?y", ":a :p ?x OPTIONAL { :b :p ?x }",
         "?y :q ?z FILTER EXISTS { :a :p ?z }", ":a :p+ ?y", "?x :p ?y . ?y :p :a", ":b :p ?x MINUS { :a :p ?x }")


@given(st.lists(st.sampled_from(RECURSIVE), min_size=1, max_size=5, unique=True), st.sampled_from(BOUND), st.sampled_from(sorted(PLACES)),
       several, several, several, several)
def test_bound_arguments_of_recursive_rules(executor: Executor, lines: list[str], pattern: str, place: str, one: list[Triple],
                                            two: list[Triple], shown: list[Triple], behind: list[Triple]) -> None:
    named = written_rules(lines)
    data = Data((tuple(one), tuple(two)), tuple(shown), tuple(behind))
    query = text(place, pattern, ["own"])
    assert planned(executor, query, data, named) == expected(query, data, named)

"""Proof trees: of everything that each rule of OWL 2 RL gives, of random ontologies, and of random streams under rules."""

from __future__ import annotations

from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.compiler import BUILT_IN_RULES
from engine.functions.expressions import Context
from engine.ir.rules import TRIPLE, Atom, DiamondMinus, Rule, RuleSet
from engine.ir.terms import RDF_TYPE, Constant, Variable
from engine.records import End, Event, GraphVersion, Record, Register, Triple
from engine.reference import streams
from engine.reference.closure import closure
from engine.reference.dataset import Graph
from engine.reference.formulas import Ground
from engine.why.explain import Case, explain
from engine.why.proofs import Prover
from engine.why.ranks import Ranked
from engine.why.trees import MOST_DEEP, Asserted, Budget, Source, Static, Streamed, TooMuchError
from engine.rewrite.owl2rl import OWL2RL, RULES
from engine.rewrite.rule_text import iri
from engine.timeline import Interval
from grammar import parse
from tests.proofs import check, check_proof, leaves, rules_of, watched
from tests.unit.rewrite.test_owl2rl import CASES, FALSE, triples
from tests.unit.rewrite.test_owl2rl_random import DATA, SCHEMA, written

BASIC = [rule for rule in OWL2RL.rules if len(rule.origin) < 2]
UNDER = "REGISTER QUERY q AS SELECT * FROM STREAM <s> [RANGE 2s STEP 1s] FROM <g> USING RULES owl2rl WHERE { ?s ?p ?o }"
EX = "http://ex.org/"


def static(data: list[Triple]) -> tuple[Prover, Case]:
    """A prover of what follows from a static graph, and the case for the checks."""
    case = Case(parse(UNDER), 0, 0, "q", (), {"g": Graph(data)}, BUILT_IN_RULES)
    return Prover({(TRIPLE, triple): (Static("g"),) for triple in data}, BASIC, Context(0), Budget(10_000_000)), case


@pytest.mark.parametrize("name", [name for name, (_, conclusion) in CASES.items() if conclusion != FALSE])
def test_every_rule_proves_what_it_gives(name: str) -> None:
    premise, conclusion = CASES[name]
    prover, case = static(triples(premise))
    for triple in triples(conclusion):
        proofs = list(islice(prover.proofs((TRIPLE, triple)), 50))
        assert any(name in rules_of(proof) for proof in proofs), f"no proof of {triple} by {name}"
        for proof in proofs:
            check_proof(proof, case, ())


def test_no_rule_was_left_out() -> None:
    assert set(RULES) == set(CASES)


@settings(deadline=None, max_examples=40)
@given(st.lists(SCHEMA, max_size=5), st.lists(DATA, max_size=5))
def test_all_that_follows_is_proved_and_the_shortest_comes_first(axioms: list[object], facts: list[object]) -> None:
    data = list(dict.fromkeys([*written(axioms), *written(facts)]))
    prover, case = static(data)
    assert prover.known.graph().triples == closure(Graph(data), OWL2RL)[0].triples
    for triple in sorted(prover.known.graph().triples):
        found = list(islice(prover.proofs((TRIPLE, triple)), 3))
        depths = [proof.depth for proof in found]
        assert depths and depths == sorted(depths) and depths[0] == prover.known.rank[TRIPLE, triple]
        assert all(one not in found[:number] for number, one in enumerate(found))
        for proof in found:
            check_proof(proof, case, ())


def test_a_fact_is_no_premise_of_itself() -> None:
    same = iri("sameAs")
    data = [("<a>", same, "<b>"), ("<b>", same, "<c>"), ("<c>", same, "<a>"), ("<a>", "<p>", "<x>")]
    prover, case = static(data)
    proofs = list(islice(prover.proofs((TRIPLE, ("<b>", "<p>", "<x>"))), 30))
    assert len(proofs) == 30
    for proof in proofs:
        check_proof(proof, case, ())


# --- streams

X, Y, Z = (Variable(name) for name in "xyz")
LINK, NEAR = f"<{EX}link>", f"<{EX}near>"


def atom(*terms: Variable | str) -> Atom:
    return Atom(TRIPLE, tuple(Constant(term) if isinstance(term, str) else term for term in terms))


REACH = RuleSet("reach", (Rule(atom(X, NEAR, Y), (atom(X, LINK, Y),), "first"),
                          Rule(atom(X, NEAR, Z), (atom(X, LINK, Y), atom(Y, NEAR, Z)), "further")))
TBOX: tuple[Triple, ...] = (
    (f"<{EX}p>", RDF_TYPE, iri("TransitiveProperty")), (f"<{EX}p>", RDF_TYPE, iri("SymmetricProperty")),
    (f"<{EX}q>", iri("rdfs:subPropertyOf"), f"<{EX}p>"), (f"<{EX}p>", iri("rdfs:domain"), f"<{EX}C>"),
    (f"<{EX}C>", iri("rdfs:subClassOf"), f"<{EX}D>"), (f"<{EX}f>", RDF_TYPE, iri("FunctionalProperty")))
HEAD = f"PREFIX : <{EX}> REGISTER QUERY q "
FROM = f"FROM STREAM <{EX}s> [RANGE 3s STEP 1s] FROM NAMED WINDOW :w ON <{EX}s> [RANGE 2s STEP 2s]"
QUERIES = [
    f"{HEAD} AS SELECT * {FROM} USING RULES owl2rl, reach USING GRAPH :t WHERE {{ ?x :p ?y }}",
    f"{HEAD} AS SELECT * {FROM} USING RULES owl2rl USING GRAPH :t WHERE {{ WINDOW :w {{ ?x a :D }} OPTIONAL {{ ?x :near ?y }} }}",
    f"{HEAD} AS SELECT ?x (COUNT(?y) AS ?n) {FROM} USING RULES reach WHERE {{ ?x :near ?y MINUS {{ ?y :q ?x }} }} GROUP BY ?x",
    f"{HEAD} REPORT ON CHANGE AS CONSTRUCT {{ ?y :back ?x }} {FROM} USING RULES reach "
    "WHERE { ?x :link+ ?y FILTER NOT EXISTS { ?y :f ?x } }",
    f"{HEAD} AS SELECT DISTINCT ?x FROM STREAM <{EX}s> [TRIPLES 3] FROM :t USING RULES rdfs WHERE {{ ?x :p ?y }}",
]
node = st.sampled_from([f"<{EX}{name}>" for name in "abcd"])
ITEMS = st.lists(st.tuples(st.integers(0, 6_000), st.lists(
    st.tuples(node, st.sampled_from([LINK, LINK, f"<{EX}p>", f"<{EX}q>", f"<{EX}f>"]), node), min_size=1, max_size=3)), max_size=7)


@pytest.mark.parametrize("text", QUERIES)
@settings(deadline=None, max_examples=12)
@given(items=ITEMS)
def test_random_streams(text: str, items: list[tuple[int, list[Triple]]]) -> None:
    """Each row has proofs; each leaf is in a window of the query at T, or in a static graph."""
    ordered = sorted(items, key=lambda item: item[0])
    events = [Event(10 + n, f"{EX}s", t, None, tuple(found), t) for n, (t, found) in enumerate(ordered)]
    log: list[Record] = [GraphVersion(1, f"{EX}t", TBOX), Register(2, "q", text, 2), *events, End(99)]
    with pytest.MonkeyPatch.context() as patch:
        seen = watched(patch, lambda: streams.run(log, parse, None, {**BUILT_IN_RULES, "reach": REACH}))
    for one in seen[:4]:
        for row in one.evaluation.relation.bag()[:4]:
            found = explain(one.case, row, 3)
            assert found.proofs, f"no proof of {row}"
            for proof in found.proofs:
                check(proof, one.case)
                assert all(leaf.sources for leaf in leaves(proof))


def test_the_checks_can_fail() -> None:
    """A leaf of another time, a step that is none of its rule: what the checks are for."""
    event = Event(1, "s", 500, None, (("<a>", "<p>", "<b>"),), 500)
    case = Case(parse(UNDER), 1_000, 1_000, "q", (event,), {"g": Graph()}, BUILT_IN_RULES)
    fact = TRIPLE, ("<a>", "<p>", "<b>")
    check_proof(Asserted(fact, (Streamed("s", (500,)),)), case, ())
    for wrong in (Streamed("s", (400,)), Streamed("s", ()), Streamed("other", (500,)), Static("g")):
        with pytest.raises(AssertionError):
            check_proof(Asserted(fact, (wrong,)), case, ())
    with pytest.raises(AssertionError):
        check_proof(Asserted(fact, (Streamed("s", (500,)),)), Case(case.statement, 3_000, 3_000, "q", (event,), {}, {}), ())


# --- limits

def chain(length: int) -> list[Triple]:
    return [(f"<{EX}n{n}>", LINK, f"<{EX}n{n + 1}>") for n in range(length)]


def linked(length: int) -> dict[Ground, tuple[Source, ...]]:
    return {(TRIPLE, triple): (Static("g"),) for triple in chain(length)}


def reached(length: int) -> Prover:
    return Prover(linked(length), REACH.rules, Context(0), Budget(1_000_000))


def test_a_proof_that_is_too_deep_is_refused() -> None:
    ends = TRIPLE, (f"<{EX}n0>", NEAR, f"<{EX}n{MOST_DEEP}>")
    assert next(reached(MOST_DEEP).proofs(ends)).depth == MOST_DEEP
    with pytest.raises(TooMuchError, match=f"{MOST_DEEP + 1} steps"):
        next(reached(MOST_DEEP + 1).proofs((TRIPLE, (f"<{EX}n0>", NEAR, f"<{EX}n{MOST_DEEP + 1}>"))))


def test_a_search_that_takes_too_long_is_given_up() -> None:
    with pytest.raises(TooMuchError):
        Prover(linked(50), REACH.rules, Context(0), Budget(100))


def test_rules_that_speak_of_time_are_no_rules_of_a_closure() -> None:
    timed = Rule(atom(X, NEAR, Y), (atom(X, LINK, Y), DiamondMinus(Interval(0, 2), atom(X, LINK, Y))))
    with pytest.raises(ValueError, match="time"):
        Ranked([(TRIPLE, ("<a>", LINK, "<b>"))], [timed], Context(0))

"""Random queries over random datasets: every evaluator of ours gives the same answers, and pyoxigraph's where it follows SPARQL 1.1.

`make test` takes 200 cases, `make test-long` 5,000. Each goes through the reference evaluator, pyoxigraph and the plan of the executor
`local` run in this process, which is quick enough for Hypothesis to shrink a failure. All of them then run on Spark, hundreds in one job.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle, islice
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.reference.sparql import Result
from engine.spark.executor import Executor
from engine.spark.session import Session
from tests.bags import same_bag
from tests.differential import plans
from tests.differential.differences import DIFFERENCES, reasons
from tests.differential.engines import disagreement, ours, oxigraph
from tests.differential.generator import PREFIXES, Case, make_case

FEW, MANY, BATCH = 200, 5000, 250
ON_SQL = 20     # one in so many runs as a job of its own


def generated(count: int) -> list[tuple[Case, str]]:
    """So many cases, each with a reading of its data, on which the evaluators that need no Spark agree."""
    found: list[tuple[Case, str]] = []
    with plans.in_process() as here:
        @settings(max_examples=count)
        @given(st.randoms(use_true_random=False), st.sampled_from(sorted(plans.READINGS)))
        def agree(random: Random, reading: str) -> None:
            case = make_case(random)
            right = ours(case)
            wrong = disagreement(case, right, oxigraph(case))
            assert wrong is None or reasons(case.text), f"{case}\npyoxigraph: {wrong}"
            compare(case, reading, right, plans.answers(here, [(case, reading)])[0])
            found.append((case, reading))

        agree()
    return found


def compare(case: Case, reading: str, right: Result | str, answer: Result | str) -> None:
    """Both give the same bag of terms: the queries are valid, so that none may be refused or fail."""
    assert isinstance(right, Result) and isinstance(answer, Result), f"{case} in {reading}: {right} but {answer}"
    assert same_bag(right.bag(), answer.bag()), f"{case} in {reading}: {right.bag()} but {answer.bag()}"


def on_spark(session: Session, cases: Sequence[tuple[Case, str]]) -> None:
    """All cases on `local`, a batch in one job; some on `sql`, each with its data read the other way."""
    local, sql = (Executor(session, force_executor=name, force_strategy="recompute") for name in ("local", "sql"))  # type: ignore[arg-type]
    other = dict(zip(plans.READINGS, islice(cycle(plans.READINGS), 1, None)))
    batches = [(local, cases[n:n + BATCH]) for n in range(0, len(cases), BATCH)]
    batches += [(sql, [(case, other[reading]) for case, reading in cases[::ON_SQL]])]
    for executor, chosen in batches:
        batch = plans.apart(chosen)
        for (case, reading), answer in zip(batch, plans.answers(executor, batch)):
            compare(case, reading, ours(case), answer)
    local.close()
    sql.close()


def test_random_queries(spark_session: Session) -> None:
    cases = generated(FEW)
    on_spark(spark_session, cases)
    answers = [ours(case) for case, _ in cases]
    assert sum(isinstance(answer, Result) and bool(answer.bag()) for answer in answers) > len(cases) / 4
    assert sum(not reasons(case.text) for case, _ in cases) > len(cases) / 3


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_many_random_queries(spark_session: Session) -> None:
    on_spark(spark_session, generated(MANY))


EXAMPLES = {
    "the new name in GROUP BY (?v AS ?k) is forgotten (section 18.2.4.1)":
        "SELECT ?k (COUNT(*) AS ?n) { ?a :p ?v } GROUP BY (?v AS ?k)",
    "COUNT of an expression that is an error everywhere is no error, but 0 (section 18.5.1.2)":
        "SELECT (COUNT((?a + :a)) AS ?n) { ?a :p ?b }",
    "alternatives inside a path add up, as UNION does (section 18.4)": "SELECT * { ?a ^((:p|:p)) ?b }",
    "floats and doubles lose their lexical form, and are not written as XSD's canonical form (section 17.5)":
        "SELECT (STR(2.50e0) AS ?s) {}",
    "a given end of a path of length zero need not occur in the graph (section 18.4, ZeroLengthPath)":
        "SELECT * { GRAPH <http://e/graphs/1> { :a ((:q)*|(:p)+) ?b . } }",
    "IN () and NOT IN () do not look at the truth of their left side (section 17.4.1.9)": "SELECT * { ?a :p ?b FILTER(?a NOT IN ()) }",
    "an order that is not in the operator table is an error even between equal terms (section 17.3)":
        "SELECT * { ?a :p ?b FILTER(?a <= ?a) }",
    "MINUS inside EXISTS does not share the variables that are substituted (section 18.6)":
        "SELECT * { ?a :p ?b FILTER EXISTS { MINUS { ?a :p ?c } } }",
    "GRAPH ?g binds ?g after the group is evaluated: MINUS in it does not share ?g (section 18.6)":
        "SELECT * { GRAPH ?g { ?a :q ?b MINUS { ?c :q ?d } } }",
    "GRAPH ?g with a group without triples ranges over the named graphs all the same (section 18.6)":
        "SELECT * { ?a :p ?b GRAPH ?a { VALUES ?c { 1 } } }",
    "blank nodes of a pattern are no part of its solutions, which COUNT(DISTINCT *) counts (section 18.3)":
        "SELECT (COUNT(DISTINCT *) AS ?n) { ?a :p [] }",
    "which of several equal terms is the least, and of terms without an order, is open (section 15.1)":
        'SELECT (MAX(?v) AS ?m) { VALUES ?v { true "2021-06-01T00:00:00"^^xsd:dateTime } }',
    "a literal with a language tag has a truth value, an ill-typed number is false (section 17.2.2)":
        'SELECT * { VALUES ?v { "a"@en } FILTER(?v) }',
    "a negated property set has a solution for each triple, between given ends too (section 18.4)": "SELECT * { :a !:r :b }",
}


@pytest.mark.parametrize("reason", DIFFERENCES)
def test_every_known_difference_is_still_one(reason: str) -> None:
    """Each on a query of its own, which its rule finds."""
    case = Case(PREFIXES + EXAMPLES[reason], (":c :p 1, 2 .", ":a :p :b ; :q :b ."), {"http://e/graphs/1": (":d :q :e .",)})
    assert reason in reasons(case.text)
    assert disagreement(case, ours(case), oxigraph(case)) is not None

"""Queries under rules of equality are evaluated with the rules that matter while their names are unique, as long as they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from engine.compiler import BUILT_IN_RULES, Catalog, compile_statement
from engine.execution.choices import StrategyName
from engine.execution.compiled import Compiled
from engine.execution.content import StreamContent
from engine.execution.due import Answer, Due
from engine.execution.executor import Executor
from engine.ir.terms import RDF_TYPE, SAME_AS
from engine.limits import Postponed
from engine.records import Event, Triple
from engine.rewrite.rule_text import iri
from engine.runtime.rows import facts_of, graph_table
from grammar.statement import parse
from tests.differential.plans import in_process
from tests.encoded import encode

E = "http://ex.org/"
S, T = f"{E}s", f"{E}t"
LEFT_OUT = "are left out"


def name(local: str) -> str:
    return f"<{E}{local}>"


SCHEMA = (name("near"), iri("rdfs:subPropertyOf"), name("by")), (name("Clerk"), iri("rdfs:subClassOf"), name("Staff"))
NEAR: Triple = name("ann"), name("near"), name("bob")
AT: Triple = name("cid"), name("at"), name("dan")


@pytest.fixture(params=["recompute", "incremental"])
def executor(request: pytest.FixtureRequest) -> Iterator[Executor]:
    strategy: StrategyName = request.param
    with in_process(strategy) as made:
        yield made


def compiled(query: str, asked: str = "?x :by ?y") -> Compiled:
    text = f"""PREFIX : <{E}> REGISTER QUERY {query} AS SELECT ?x FROM STREAM :s [RANGE 2s STEP 1s] USING RULES owl2rl USING GRAPH :t
               WHERE {{ {asked} }}"""
    return compile_statement(parse(text), Catalog({S: "event"}, {T: graph_table(SCHEMA)}, BUILT_IN_RULES), query)


def evaluate(executor: Executor, queries: dict[str, Compiled], content: StreamContent, tick: int,
             patience_ms: int | None = None) -> list[Answer]:
    graphs = {T: graph_table(SCHEMA)}
    return executor.evaluate([Due(query, made, (tick,), -1, {S: content}, graphs, patience_ms=patience_ms)
                              for query, made in queries.items()])


def push(content: StreamContent, position: int, at: int, triples: Sequence[Triple]) -> None:
    content.append(facts_of(encode([Event(position, S, at, None, tuple(triples), 0)])))


def rows(answer: Answer) -> list[str]:
    assert answer.table is not None, answer.error
    return sorted(answer.table["x"].to_pylist())


def test_all_rules_count_once_a_name_is_equal_to_another_term(executor: Executor) -> None:
    made, content = compiled("q"), StreamContent()
    push(content, 1, 500, (NEAR, AT))
    [answer] = evaluate(executor, {"q": made}, content, 1000)
    assert rows(answer) == [name("ann")] and LEFT_OUT in executor.ran["q"].why
    push(content, 2, 1500, ((name("at"), SAME_AS, name("by")),))
    [answer] = evaluate(executor, {"q": made}, content, 2000)
    assert rows(answer) == [name("ann"), name("cid")] and LEFT_OUT not in executor.ran["q"].why
    assert answer.inconsistencies == (), "what tells that a name is not unique is for the executor"
    push(content, 3, 3700, (NEAR,))
    [answer] = evaluate(executor, {"q": made}, content, 4000)
    assert rows(answer) == [name("ann")] and LEFT_OUT not in executor.ran["q"].why, "it is not tried again"
    executor.forget("q")
    [answer] = evaluate(executor, {"q": made}, content, 4000)
    assert rows(answer) == [name("ann")] and LEFT_OUT in executor.ran["q"].why, "another query of that name is"


def test_where_others_wait_it_is_evaluated_beside(executor: Executor) -> None:
    content = StreamContent()
    push(content, 1, 500, (NEAR, AT, (name("at"), SAME_AS, name("by"))))
    made = compiled("q")
    [answer] = evaluate(executor, {"q": made}, content, 1000, patience_ms=10_000)
    assert isinstance(answer.error, Postponed)
    [answer] = evaluate(executor, {"q": made}, content, 1000)
    assert rows(answer) == [name("ann"), name("cid")]


def test_closures_that_queries_share_have_all_rules() -> None:
    with in_process() as executor:
        content = StreamContent()
        push(content, 1, 500, (NEAR, (name("eve"), RDF_TYPE, name("Clerk"))))
        both = {"q": compiled("q"), "r": compiled("r", "?x a :Staff")}
        assert [rows(answer) for answer in evaluate(executor, both, content, 1000)] == [[name("ann")], [name("eve")]]
        assert not any(LEFT_OUT in executor.ran[query].why for query in both)
        [answer] = evaluate(executor, {"q": both["q"]}, content, 2000)
        assert rows(answer) == [name("ann")] and LEFT_OUT in executor.ran["q"].why

"""What rules with head ``false`` find is told beside the answers, at the evaluations that it concerns."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engine.compiler import Catalog, compile_statement
from engine.execution.content import StreamContent
from engine.execution.due import Due
from engine.ir.terms import RDF_TYPE
from engine.records import Event, Triple
from engine.runtime.rows import facts_of, graph_table
from engine.execution.executor import Executor
from grammar import parse
from tests.differential.plans import in_process
from tests.encoded import encode

E = "http://ex.org/"
DISJOINT = (f"<{E}Open>", "<http://www.w3.org/2002/07/owl#disjointWith>", f"<{E}Closed>")
TEXT = f"""PREFIX : <{E}> SELECT ?x FROM STREAM :s [RANGE 1s STEP 1s] USING RULES owl2rl USING GRAPH :g WHERE {{ ?x a :Open }}"""


@pytest.fixture(scope="module")
def executor() -> Iterator[Executor]:
    with in_process() as made:
        yield made


def typed(door: str, *classes: str) -> list[Triple]:
    return [(f"<{E}{door}>", RDF_TYPE, f"<{E}{name}>") for name in classes]


def found(executor: Executor, graph: list[Triple], *seconds: list[Triple]) -> list[list[str]]:
    """The rules that fire, with the subject, at the end of each second."""
    content = StreamContent()
    content.append(facts_of(encode([Event(n + 1, f"{E}s", n * 1000, None, tuple(item), n * 1000) for n, item in enumerate(seconds)])))
    graphs = {f"{E}g": graph_table(graph)}
    compiled = compile_statement(parse(TEXT), Catalog({f"{E}s": "event"}, graphs), "q")
    answers = executor.evaluate([Due("q", compiled, tuple((n + 1) * 1000 for n in range(len(seconds))), 0, {f"{E}s": content}, graphs)])
    assert [answer.error for answer in answers] == [None] * len(seconds)
    return [sorted({text.partition(":")[0] for text in answer.inconsistencies if "/door" in text}) for answer in answers]


def test_while_it_is_in_the_window(executor: Executor) -> None:
    seconds = [typed("door", "Open"), typed("door", "Open", "Closed"), typed("door", "Closed")]
    assert found(executor, [DISJOINT], *seconds) == [[], ["cax-dw"], []]


def test_in_a_static_graph_at_every_evaluation(executor: Executor) -> None:
    """Also when its closure is found made from an earlier evaluation."""
    for _ in range(2):
        graph = [DISJOINT, *typed("door", "Open", "Closed")]
        assert found(executor, graph, typed("gate", "Open"), typed("gate", "Open")) == [["cax-dw"], ["cax-dw"]]


def test_all_are_counted_however_the_evaluations_are_cut(executor: Executor) -> None:
    """A result lists a hundred at most, the first in the order of their texts, and counts the rest."""
    doors = [triple for number in range(150) for triple in typed(f"door{number}", "Open", "Closed")]
    content = StreamContent()
    content.append(facts_of(encode([Event(n, f"{E}s", n * 1000, None, tuple(doors), n * 1000) for n in (1, 2)])))
    graphs = {f"{E}g": graph_table([DISJOINT])}
    compiled = compile_statement(parse(TEXT), Catalog({f"{E}s": "event"}, graphs), "q")
    together = executor.evaluate([Due("q", compiled, (2_000, 3_000), 0, {f"{E}s": content}, graphs)])
    assert [len(answer.inconsistencies) >= 150 for answer in together] == [True, True]
    alone = [executor.evaluate([Due("q", compiled, (tick,), 0, {f"{E}s": content}, graphs)])[0] for tick in (2_000, 3_000)]
    assert [answer.inconsistencies for answer in alone] == [answer.inconsistencies for answer in together]

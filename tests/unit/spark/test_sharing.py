"""Queries with equal windows and rules share one closure, and the worker that makes it."""

from __future__ import annotations

import pytest

from engine.compiler import Catalog, compile_statement
from engine.execution.content import StreamContent
from engine.execution.due import Due
from engine.ir.terms import RDF_TYPE
from engine.records import Event
from engine.runtime.rows import facts_of, graph_table
from engine.sql.closing import Closing
from engine.worker import bundles, closures as rounds
from engine.worker.bundles import Task
from grammar import parse
from tests.differential.plans import in_process
from tests.encoded import encode

E = "http://ex.org/"
TEXT = f"PREFIX : <{E}> SELECT ?x FROM STREAM :s [RANGE 1s STEP %s] USING RULES owl2rl USING GRAPH :g WHERE {{ ?x a %s }}"
SCHEMA = [(f"<{E}A>", "<http://www.w3.org/2000/01/rdf-schema#subClassOf>", f"<{E}B>")]


def test_equal_closures_are_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The name of a query and what it asks make no difference; its window does."""
    content, graphs = StreamContent(), {f"{E}g": graph_table(SCHEMA)}
    content.append(facts_of(encode([Event(1, f"{E}s", 0, None, ((f"<{E}a>", RDF_TYPE, f"<{E}A>"),), 0)])))
    made: list[str] = []

    def counting(connection: object, closing: Closing, close: object = rounds.close) -> object:
        made.extend([closing.name] * (not closing.static))
        return close(connection, closing)  # type: ignore[operator]

    monkeypatch.setattr(bundles, "close", counting)
    queries = {"one": ("1s", ":A"), "two": ("1s", ":B"), "three": ("1s", ":A , :B"), "four": ("500ms", ":B")}
    with in_process() as executor:
        answers = executor.evaluate([
            Due(name, compile_statement(parse(TEXT % asked), Catalog({f"{E}s": "event"}, graphs), name), (1000,), 0,
                {f"{E}s": content}, graphs) for name, asked in queries.items()])
    assert [answer.table and answer.table.num_rows for answer in answers] == [1, 1, 1, 1]
    assert len(made) == len(set(made)) == 2


@pytest.mark.parametrize(("closures", "cost", "sizes"), [
    (1, 100_000, [14]), (1, 0, [14]), (2, 100_000, [7, 7]), (0, 100_000, [7, 7]),
])
def test_tasks_stay_with_their_closures(closures: int, cost: int, sizes: list[int]) -> None:
    """Unless both workers are better off by making one twice."""
    def task(number: int) -> Task:
        own = (Closing(f"c{number % closures}", "", (), "", ""),) if closures else ()
        return Task("", frozenset(), cost, own)

    assert sorted(map(len, bundles.balanced([task(n) for n in range(14)], 2))) == sizes
    assert sorted(map(len, bundles.balanced([task(n) for n in range(14 * 20)], 2))) == [140, 140]

"""Queries of one shape, evaluated by one statement, against each by itself over its windows."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from engine.compiler import Catalog, compile_statement
from engine.execution import shapes
from engine.execution.content import StreamContent
from engine.execution.due import Answer, Due
from engine.execution.executor import Executor
from engine.execution.own_process import own_process
from engine.records import Event
from engine.runtime.rows import facts_of, graph_table
from engine.worker.bundles import QueryFailed, Task
from grammar.statement import parse
from tests.encoded import encode
from tests.examples import rotated, many

E, S, G = "http://ex.org/", "http://ex.org/s", "http://ex.org/g"
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"
WINDOW = "FROM STREAM :s [RANGE {range}s STEP 2s]"
SHAPES = {
    "subject": "SELECT ?a ?b " + WINDOW + " WHERE {{ :n{k} :p ?a ; :q ?b }}",
    "object": "SELECT ?s ?a " + WINDOW + " WHERE {{ ?s :p ?a ; :q '{k}' }}",
    "filter": "SELECT ?s " + WINDOW + " WHERE {{ ?s :p ?a ; :q ?b FILTER (?a > {k} && ?b != '{k}') }}",
    "iri": "SELECT ?a " + WINDOW + " WHERE {{ ?s :next ?n ; :p ?a FILTER (?n = :n{k} || ?s = :n{k}) }}",
    "one pattern": "SELECT (COUNT(*) AS ?n) " + WINDOW + " WHERE {{ ?s :p ?a FILTER (?a * 2 - {k} >= {k}) }}",
    "having": "SELECT ?b (SUM(?a) AS ?n) " + WINDOW + " WHERE {{ ?s :p ?a ; :q ?b }} GROUP BY ?b HAVING (SUM(?a) > {k})",
    "bind": "SELECT ?s ?c " + WINDOW + " WHERE {{ ?s :p ?a ; :q ?b BIND (IF(?a < {k}, 'low', ?b) AS ?c) }}",
    "optional": "SELECT ?s ?n ?a " + WINDOW + " WHERE {{ ?s :q ?b OPTIONAL {{ ?s :next ?n . ?n :p ?a FILTER (?a >= {k}) }} }}",
    "exists": "SELECT ?s " + WINDOW + " WHERE {{ ?s :p ?a FILTER EXISTS {{ ?s :next ?n . ?n :p ?c FILTER (?c > {k}) }} }}",
    "not exists": "SELECT ?s " + WINDOW + " WHERE {{ ?s :p ?a FILTER NOT EXISTS {{ ?s :next :n{k} }} FILTER (?a > {k}) }}",
    "minus": "SELECT ?s ?a " + WINDOW + " WHERE {{ ?s :p ?a MINUS {{ ?s :q ?b FILTER (?b = '{k}') }} }}",
    "minus of both": "SELECT ?s ?a " + WINDOW + " WHERE {{ ?s :p ?a FILTER (?a > {k}) MINUS {{ ?s :next ?b . ?b :p ?c FILTER(?c>{k}) }} }}",
    "union": "SELECT DISTINCT ?s " + WINDOW + " WHERE {{ {{ ?s :p {k} }} UNION {{ ?s :q '{k}' }} UNION {{ ?s :next :n1 }} }}",
    "values": "SELECT ?s ?a ?x " + WINDOW + " WHERE {{ VALUES (?s ?x) {{ (:n{k} 'x') (:n1 UNDEF) }} ?s :p ?a }}",
    "sub-query": "SELECT ?s ?m " + WINDOW + " WHERE {{ ?s :p ?m {{ SELECT (MAX(?a) AS ?m) WHERE {{ ?s :p ?a FILTER (?a < {k}) }} }} }}",
    "order": "SELECT ?s ?a " + WINDOW + " WHERE {{ ?s :p ?a ; :q ?b FILTER (?a != {k}) }} ORDER BY DESC(?a) ?s LIMIT 3",
    "ask": "ASK " + WINDOW + " WHERE {{ ?s :p ?a FILTER (?a > {k}) }}",
    "construct": "CONSTRUCT {{ ?s :high ?a }} " + WINDOW + " WHERE {{ ?s :p ?a ; :q ?b FILTER (?a > {k}) }}",
    "graph": "SELECT ?s ?l " + WINDOW + " FROM :g WHERE {{ ?s :p ?a . ?s :kind ?l FILTER (?a > {k}) }}",
    "limit": "SELECT ?s ?a " + WINDOW + " WHERE {{ ?s :p ?a ; :q ?b }} ORDER BY ?b DESC(?a) LIMIT {k}",
    "limit alone": "SELECT ?s ?a " + WINDOW + " WHERE {{ ?s :p ?a ; :q ?b }} OFFSET 1 LIMIT {range}",
    "limit of some": "SELECT ?s ?n " + WINDOW + " WHERE {{ {{ SELECT ?s ?a {{ ?s :p ?a }} ORDER BY ?a LIMIT {k} }} ?s :next ?n }}",
    "limit in exists": "SELECT ?s " + WINDOW + " WHERE {{ ?s :p ?a FILTER EXISTS {{ SELECT ?s {{ ?s :q ?b }} ORDER BY ?s LIMIT {k} }} }}",
    "limit of groups": "SELECT ?b (MIN(?a) AS ?n) " + WINDOW + " WHERE {{ ?s :p ?a ; :q ?b }} GROUP BY ?b ORDER BY ?n LIMIT {k} OFFSET 1",
    "moment": "SELECT ?s " + WINDOW + " WHERE {{ ?s :p ?a ; :q ?b FILTER (?a >= '2020-01-0{k}T00:00:00Z'^^xsd:dateTime) }}",
    "text": "SELECT ?s " + WINDOW + " WHERE {{ ?s :p ?a ; :q ?b FILTER (?b >= '{k}' && ?a != 'x{k}') }}",
    "sum": "SELECT ?b (SUM(?c) AS ?n) (AVG(?a) AS ?m) " + WINDOW + " WHERE {{ ?s :p ?a ; :q ?b BIND (?a * 2 + {k} AS ?c) }} GROUP BY ?b",
    "quotient": "SELECT ?s ?c " + WINDOW + " WHERE {{ ?s :p ?a ; :q ?b BIND (?a / {k} AS ?c) FILTER (?a - ?c > -{k}.5) }}",
    "extremes": "SELECT ?b (MIN(?a) AS ?n) (MAX(?a) AS ?m) " + WINDOW + " WHERE {{ ?s :p ?a ; :q ?b FILTER (?b != '{k}') }} GROUP BY ?b",
    "extreme of nothing": "SELECT (MIN(?x) AS ?m) " + WINDOW + " WHERE {{ VALUES (?s ?x) {{ (:n{k} UNDEF) }} ?s :p ?a }} GROUP BY ?s",
    "no group": "SELECT (MAX(?a) AS ?m) " + WINDOW + " WHERE {{ ?s :p ?a ; :q '{k}' }}",
}
COUNT = 6
APART = {"optional", "exists", "minus of both", "graph"}     # their patterns are no stars: each keeps its own constants


XSD = INTEGER.removesuffix("integer")
RARE = (f'"02"^^<{INTEGER}>', f'"2.5"^^<{XSD}decimal>', '"none"', f'"2020-01-03T00:00:00Z"^^<{XSD}dateTime>', f'"0x"^^<{INTEGER}>',
        f'"3"^^<{XSD}double>', f'"2020-01-02T12:00:00"^^<{XSD}dateTime>', '"2"@en', f'"1.5"^^<{XSD}float>', "<http://ex.org/2>", "_:b",
        f'"true"^^<{XSD}boolean>', f'"2020-01-02"^^<{XSD}date>', f'"2.00000000000000001"^^<{XSD}decimal>')
"""Of every kind one, the one that a double does not tell last."""


def literal(chance: random.Random, hard: bool, begin: int) -> str:
    """Numbers, now and then one of another kind: of ever more of them."""
    if hard and chance.random() < 0.2:
        return chance.choice(RARE[:1 + begin // 1_000])
    return f'"{chance.randint(0, 5)}"^^<{INTEGER}>'


def events(chance: random.Random, begin: int, position: int, hard: bool) -> list[Event]:
    """Some seconds of a stream in which little differs."""
    found = []
    for number in range(chance.randint(0, 10)):
        subject = f"<{E}n{chance.randint(0, 4)}>"
        triples = [(subject, f"<{E}p>", literal(chance, hard, begin)), (subject, f"<{E}q>", f'"{chance.randint(0, 4)}"'),
                   (subject, f"<{E}next>", f"<{E}n{chance.randint(0, 4)}>")]
        some = tuple(triple for triple in triples if chance.random() < 0.7) or tuple(triples)
        found.append(Event(position + number, S, begin + chance.randint(0, 1_999), None, some, 0))
    return found


def shown(answer: Answer) -> object:
    assert isinstance(answer.table, pa.Table), answer.error
    return answer.table.schema.types, Counter(tuple(row.values()) for row in answer.table.to_pylist())


@pytest.mark.soak
@pytest.mark.parametrize(("name", "hard"), rotated(SHAPES, [False, True]))
def test_queries_of_one_shape_are_as_each_by_itself(name: str, hard: bool) -> None:
    chance, graphs = random.Random(f"{name} {hard}"), {G: graph_table([(f"<{E}n{n}>", f"<{E}kind>", f'"{n % 2}"') for n in range(4)])}
    catalog = Catalog({S: "event"}, graphs)
    texts = {f"q{k}": SHAPES[name].format(k=k, range=2 * (1 + k % 3)) for k in range(COUNT)}
    content, position, grouped = StreamContent(), 1, 0
    with own_process(1) as together, own_process(1) as alone:
        ways = {"grouped": Executor(together), "alone": Executor(alone, force_strategy="recompute", forgets=False)}
        own = {way: {query: compile_statement(parse(f"PREFIX : <{E}> PREFIX xsd: <{XSD}> REGISTER QUERY {query} AS {text}"), catalog, query)
                     for query, text in texts.items()} for way in ways}
        own_graphs = graphs if ":g " in SHAPES[name] else {}
        for step in range(many(5, 8)):
            made = events(chance, step * 2_000, position, hard)
            position += 20
            content.append(facts_of(encode(made))) if made else None
            content.evict((step - 3) * 2_000)
            ticks = tuple(2_000 * (step + more) for more in range(1, chance.choice((2, 2, 3))))
            found = {way: executor.evaluate([Due(query, own[way][query], ticks, 0, {S: content}, own_graphs) for query in texts])
                     for way, executor in ways.items()}
            grouped += len(ways["grouped"]._shapes._texts)
            for one, other in zip(found["grouped"], found["alone"], strict=True):
                assert (one.query, one.tick, shown(one)) == (other.query, other.tick, shown(other)), (step, one.tick)
        assert grouped or hard or name in APART, "some were evaluated together"
        assert name != "limit alone" or not ways["grouped"]._shapes._alone, "limits are parameters without types, too"
        for executor in ways.values():
            executor.close()


@pytest.mark.parametrize("most", [4, 256])
def test_groups_of_one_shape_have_constants_of_their_own(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What all queries of a group say alike, another group of the same shape says otherwise: in one batch, and in the next one."""
    monkeypatch.setattr(shapes, "MOST_LOTS", most)
    text = "SELECT ?s ?x " + WINDOW + " WHERE {{ VALUES ?x {{ 'v{same}' }} ?s :p ?a ; :q ?b FILTER (?a > {same} && ?b != '{k}') }}"
    texts = {f"q{same}-{k}": text.format(same=same, k=k, range=4) for same in (1, 3) for k in range(4)}
    content, catalog = StreamContent(), Catalog({S: "event"}, {})
    content.append(facts_of(encode([one for seed in range(4) for one in events(random.Random(seed), 0, 1 + 20 * seed, False)])))
    with own_process(1) as together, own_process(1) as alone:
        ways = {"grouped": Executor(together), "alone": Executor(alone, force_strategy="recompute", forgets=False)}
        own = {way: {query: compile_statement(parse(f"PREFIX : <{E}> REGISTER QUERY {query} AS {body}"), catalog, query)
                     for query, body in texts.items()} for way in ways}
        for some in (texts, [q for q in texts if q[1] == "1"], [q for q in texts if q[1] == "3"]):
            found = {way: executor.evaluate([Due(query, own[way][query], (2_000,), 0, {S: content}, {}) for query in some])
                     for way, executor in ways.items()}
            assert list(map(shown, found["grouped"])) == list(map(shown, found["alone"]))
        assert any(shown(answer) for answer in found["alone"]) and ways["grouped"]._shapes._texts
        for executor in ways.values():
            executor.close()


@pytest.mark.parametrize("rows", [0, shapes.MOST_ROWS])
def test_what_several_shapes_see_of_a_relation_is_found_once(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups of other shapes over one kept relation, with windows of several lengths and several evaluation times in one batch."""
    monkeypatch.setattr(shapes, "MOST_ROWS", rows)
    chance, catalog, content, position = random.Random(5), Catalog({S: "event"}, {}), StreamContent(), 1
    texts = {f"{name.replace(' ', '-')}{k}": SHAPES[name].format(k=k, range=2 * (1 + k % 3))
             for name in ("filter", "text", "bind", "order", "construct", "limit", "extremes") for k in range(3)}
    views: set[str] = set()
    with own_process(1) as together, own_process(1) as alone:
        run = together.run

        def noting(given: Sequence[Task], *more: Any, **named: Any) -> list[Any]:
            views.update(view.name for task in given for view in task.views)
            return run(given, *more, **named)

        monkeypatch.setattr(together, "run", noting)
        ways = {"grouped": Executor(together), "alone": Executor(alone, force_strategy="recompute", forgets=False)}
        own = {way: {query: compile_statement(parse(f"PREFIX : <{E}> PREFIX xsd: <{XSD}> REGISTER QUERY {query} AS {text}"), catalog, query)
                     for query, text in texts.items()} for way in ways}
        for step in range(4):
            content.append(facts_of(encode([one for _ in range(3) for one in events(chance, step * 4_000, position, False)])))
            position += 20
            content.evict((step - 2) * 4_000)
            ticks = 4_000 * step + 2_000, 4_000 * (step + 1)
            found = {way: executor.evaluate([Due(query, own[way][query], ticks, 0, {S: content}, {}) for query in texts])
                     for way, executor in ways.items()}
            assert list(map(shown, found["grouped"])) == list(map(shown, found["alone"]))
        assert bool(views) == bool(rows)
        left = {name for name, in together._connections[0].execute("SELECT table_name FROM duckdb_tables()").fetchall()}
        assert left.isdisjoint(views), "a view is there for one batch"
        for executor in ways.values():
            executor.close()


@pytest.mark.parametrize("removed", [0, COUNT - 1])
def test_a_query_that_is_removed_is_ended_alone(removed: int) -> None:
    """The others of its group are evaluated one by one, then, and together later."""
    catalog = Catalog({S: "event"}, {})
    texts = {f"q{k}": SHAPES["filter"].format(k=k, range=4) for k in range(COUNT)}
    content = StreamContent()
    content.append(facts_of(encode(events(random.Random(2), 0, 1, False))))
    with own_process(1) as tasks:
        executor = Executor(tasks)
        own = {query: compile_statement(parse(f"PREFIX : <{E}> REGISTER QUERY {query} AS {text}"), catalog, query)
               for query, text in texts.items()}
        dues = [Due(query, compiled, (2_000,), 0, {S: content}, {}) for query, compiled in own.items()]
        executor.evaluate(dues)
        executor.cancel(f"q{removed}")
        answers = executor.evaluate(dues)
        assert [answer.query for answer in answers if answer.error is not None] == [f"q{removed}"]
        executor.forget(f"q{removed}")
        del dues[removed]
        assert all(answer.error is None for answer in executor.evaluate(dues)) and not executor._shapes._alone
        executor.close()


def test_a_group_that_fails_is_tried_again_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shapes, "ALONE", 2)
    catalog, content = Catalog({S: "event"}, {}), StreamContent()
    content.append(facts_of(encode(events(random.Random(2), 0, 1, False))))
    sizes: list[int] = []
    with own_process(1) as tasks:
        executor, run = Executor(tasks), tasks.run
        own = {f"q{k}": compile_statement(parse(f"PREFIX : <{E}> REGISTER QUERY q{k} AS {SHAPES['filter'].format(k=k, range=4)}"), catalog,
                                          f"q{k}") for k in range(COUNT)}

        def run_some(given: Sequence[Task], *more: Any, **named: Any) -> list[Any]:
            sizes.append(len(given))
            return [QueryFailed("it fails")] * len(given) if len(sizes) == 2 else run(given, *more, **named)

        monkeypatch.setattr(tasks, "run", run_some)
        for _ in range(5):
            answers = executor.evaluate([Due(query, compiled, (2_000,), 0, {S: content}, {}) for query, compiled in own.items()])
            assert all(answer.error is None for answer in answers)
        assert sizes[1:] == [1, COUNT, COUNT, COUNT, 1], "all know of each other from the second evaluation on"
        executor.close()

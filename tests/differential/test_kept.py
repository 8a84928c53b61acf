"""What is kept between evaluations against evaluation of whole windows: random streams, with facts that come twice, late or not at all."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping

import pyarrow as pa
import pytest

from engine.compiler import Catalog, compile_statement
from engine.execution import executor as executor_module
from engine.execution.choices import SHARED_BY
from engine.execution.compiled import Compiled
from engine.execution.content import StreamContent
from engine.execution.due import Answer, Due
from engine.execution.executor import Executor
from engine.execution.own_process import own_process
from engine.limits import LimitExceeded, Postponed
from engine.records import Event
from engine.runtime.rows import facts_of, graph_table
from engine.sql.kept import Delta
from engine.timeline import MIN
from engine.worker import resident, resident as kept
from grammar.statement import parse
from tests.encoded import encode
from tests.examples import rotated, many

E, S, R, G = "http://ex.org/", "http://ex.org/s", "http://ex.org/r", "http://ex.org/g"
WINDOW = "FROM NAMED WINDOW :w ON :s [RANGE 6s STEP 2s]"
TWO = "FROM NAMED WINDOW :w ON :s [RANGE 6s STEP 2s] FROM NAMED WINDOW :v ON :r [RANGE 9s STEP 2s]"
MERGED = "FROM STREAM :s [RANGE 6s STEP 2s] FROM :g"
QUERIES = {
    "graph beside a stream": f"SELECT ?s ?a ?k {MERGED} WHERE {{ ?s :p ?a ; :kind ?k }}",
    "what graph and stream say alike": f"SELECT ?s ?a ?b {MERGED} WHERE {{ ?s :p ?a ; :q ?b }}",
    "path through a graph": f"SELECT ?a ?l (COUNT(*) AS ?n) {MERGED} WHERE {{ ?a :next ?b . ?b :kind ?k . ?k :label ?l }} GROUP BY ?a ?l",
    "named graph": f"SELECT ?s ?k {WINDOW} FROM NAMED :g WHERE {{ WINDOW :w {{ ?s :p ?a ; :q ?b }} GRAPH :g {{ ?s :kind ?k }} }}",
    "two streams as one": "SELECT ?s ?a ?b FROM STREAM :s [RANGE 6s STEP 2s] FROM STREAM :r [RANGE 9s STEP 2s] WHERE { ?s :p ?a ; :q ?b }",
    "all as one": f"SELECT ?s ?a ?k {MERGED} FROM STREAM :r [RANGE 9s STEP 2s] WHERE {{ ?s :p ?a ; :next ?b . ?b :kind ?k }}",
    "star": f"SELECT ?s ?a ?b {WINDOW} WHERE {{ WINDOW :w {{ ?s :p ?a ; :q ?b }} }}",
    "star of one property": f"SELECT ?s ?a ?b {WINDOW} WHERE {{ WINDOW :w {{ ?s :p ?a , ?b }} }}",
    "default graph": "SELECT ?s ?a ?b FROM STREAM :s [RANGE 6s STEP 2s] WHERE { ?s :p ?a ; :q ?b . FILTER(?a < 4) }",
    "chain": f"SELECT ?a ?c {WINDOW} WHERE {{ WINDOW :w {{ ?a :next ?b . ?b :next ?c . ?c :p ?v FILTER(?v > 1) }} }}",
    "cycle": f"SELECT ?a ?b {WINDOW} WHERE {{ WINDOW :w {{ ?a :next ?b . ?b :next ?a }} }}",
    "itself": f"SELECT ?a ?b {WINDOW} WHERE {{ WINDOW :w {{ ?a :next ?a . ?a :p ?b }} }}",
    "free property": f"SELECT ?a ?p ?c {WINDOW} WHERE {{ WINDOW :w {{ ?a ?p ?b . ?b :p ?c }} }}",
    "property as node": f"SELECT ?a ?p ?c {WINDOW} WHERE {{ WINDOW :w {{ ?a ?p ?b . ?p :next ?c }} }}",
    "two windows": f"SELECT ?s ?a ?b {TWO} WHERE {{ WINDOW :w {{ ?s :p ?a . ?s :q ?c }} WINDOW :v {{ ?s :q ?b . ?s :p ?d }} }}",
    "item": f"SELECT ?g ?s ?a {WINDOW} WHERE {{ WINDOW :w {{ GRAPH ?g {{ ?s :p ?a ; :q ?b }} }} }}",
    "count": f"SELECT (COUNT(*) AS ?n) {WINDOW} WHERE {{ WINDOW :w {{ ?s :p ?a ; :q ?b }} }}",
    "average": f"SELECT ?b (AVG(?a) AS ?n) {WINDOW} WHERE {{ WINDOW :w {{ ?s :p ?a ; :q ?b }} }} GROUP BY ?b HAVING(COUNT(*) > 1)",
    "optional": f"SELECT ?s ?a ?c {WINDOW} WHERE {{ WINDOW :w {{ ?s :p ?a ; :q ?b OPTIONAL {{ ?s :next ?c . ?c :p ?d }} }} }}",
    "not exists": f"SELECT ?s {WINDOW} WHERE {{ WINDOW :w {{ ?s :p ?a ; :q ?b FILTER NOT EXISTS {{ ?s :next ?c . ?c :q ?d }} }} }}",
    "minus": f"SELECT ?s {WINDOW} WHERE {{ WINDOW :w {{ ?s :p ?a ; :q ?b MINUS {{ ?s :next ?c . ?c :q ?d }} }} }}",
    "union": f"SELECT ?s ?a {WINDOW} WHERE {{ WINDOW :w {{ {{ ?s :p ?a ; :q ?b }} UNION {{ ?s :next ?c . ?c :p ?a }} }} }}",
    "sub-query": f"SELECT ?s ?m {WINDOW} WHERE {{ WINDOW :w {{ ?s :p ?m {{ SELECT (MAX(?a) AS ?m) WHERE {{ ?s :p ?a ; :q ?b }} }} }} }}",
    "order": f"SELECT ?s ?a {WINDOW} WHERE {{ WINDOW :w {{ ?s :p ?a ; :q ?b }} }} ORDER BY DESC(?a) ?s LIMIT 3",
    "text": f"SELECT ?s {WINDOW} WHERE {{ WINDOW :w {{ ?s :p ?a ; :q ?b FILTER(CONTAINS(STR(?s), '1') || STRLEN(STR(?b)) > 1) }} }}",
}


def events(chance: random.Random, begin: int, position: int, nodes: int = 5) -> Iterator[tuple[str, Event]]:
    """Some seconds of two streams about so many nodes: where these are few, facts come again."""
    for number in range(chance.randint(0, 12)):
        subject, other = (f"<{E}n{chance.randrange(nodes)}>" for _ in range(2))
        triples = [(subject, f"<{E}p>", f'"{chance.randint(0, 5)}"^^<http://www.w3.org/2001/XMLSchema#integer>'),
                   (subject, f"<{E}q>", f'"{chance.choice("ab")}"'), (subject, f"<{E}next>", other),
                   (f"<{E}next>", f"<{E}next>", other)]
        stream = chance.choice((S, S, R))
        time = max(0, begin + chance.randint(-3_000, 2_000))
        graph = chance.choice((None, f"<{E}g{chance.randint(0, 1)}>"))
        some = tuple(triple for triple in triples if chance.random() < 0.6) or (triples[0],)
        yield stream, Event(position + number, stream, time, graph, some, 0)


def graph(chance: random.Random) -> pa.Table:
    """A version of the static graph, some of which the streams say too."""
    triples = [(f"<{E}n{n}>", f"<{E}kind>", f"<{E}k{chance.randint(0, 2)}>") for n in range(5) if chance.random() < 0.8]
    triples += [(f"<{E}k{n}>", f"<{E}label>", f'"{chance.choice("xy")}"') for n in range(3)]
    triples += [(f"<{E}n{n}>", f"<{E}q>", '"a"') for n in range(3)]
    triples += [(f"<{E}n1>", f"<{E}p>", '"1"^^<http://www.w3.org/2001/XMLSchema#integer>')]
    return graph_table(triples)


def compiled(text: str, name: str) -> Compiled:
    catalog = Catalog({S: "event", R: "event"}, {G: graph(random.Random(0))})
    return compile_statement(parse(f"PREFIX : <{E}> REGISTER QUERY q AS {text}"), catalog, name)


def rows(answer: Answer) -> Counter[tuple[str | None, ...]]:
    assert isinstance(answer.table, pa.Table), answer.error
    found = [tuple(row.values()) for row in answer.table.to_pylist()]
    return Counter(found)


@pytest.mark.soak
@pytest.mark.parametrize(("name", "seed"), rotated(QUERIES, range(8)))
def test_what_is_kept_is_what_windows_hold(name: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resident, "_FEW", 5)
    monkeypatch.setattr(executor_module, "AHEAD_ROWS", 1)
    monkeypatch.setattr(executor_module, "AT_ONCE_ROWS", 0)
    chance, nodes = random.Random(f"{name} {seed}"), (5, 30, 300)[seed % 3]
    monkeypatch.setattr(kept, "_MOST_NEW", chance.choice((1, 3)))
    monkeypatch.setattr(kept, "_ASKED", chance.choice((10, 10_000)))
    monkeypatch.setattr(kept, "_BATCHES", chance.choice((4, 1_024)))
    monkeypatch.setattr(kept, "_MANY", chance.choice((0, 10_000)))
    monkeypatch.setattr(kept, "_FEW_FOUND", chance.choice((-1, 2, 5_000)))
    monkeypatch.setattr(kept, "ROW_GROUP", chance.choice((10, 122_880)))
    contents = {S: StreamContent(), R: StreamContent()}
    with (own_process(1) as keeping, own_process(1) as sharing, own_process(1) as plain,
          own_process(1, shards=chance.choice((2, 3, 7))) as shards):
        ways = {"incremental": Executor(keeping, force_strategy="incremental"),
                "shared": Executor(sharing, force_strategy="incremental"),
                "in shards": Executor(shards, force_strategy=chance.choice(("incremental", "recompute")), shard_rows=0),
                "recompute": Executor(plain, force_strategy="recompute", forgets=False)}
        monkeypatch.setattr(ways["shared"]._choices.sharing, "users", lambda *_: SHARED_BY)
        own = {strategy: compiled(QUERIES[name], "q") for strategy in ways}
        assert own["incremental"].sampled is not None, "it keeps something"
        since, position, graphs = chance.choice((-1, 20)), 1, {G: graph(chance)} if ":g" in QUERIES[name] else {}
        for step in range(many(9, 14)):
            for stream, content in contents.items():
                if chance.random() < 0.7:
                    made = [event for to, event in events(chance, step * 2_000, position, nodes) if to == stream]
                    position += 20
                    content.append(facts_of(encode(made))) if made else None
                    if chance.random() < 0.5:
                        for executor in (ways["incremental"], ways["in shards"]):
                            executor.bring_ahead({"q"}, 10_000)
                content.evict((step - 6) * 2_000 if chance.random() < 0.9 else MIN)
            if chance.random() < 0.1:
                for tasks in (keeping, sharing, shards):
                    resident._held(chance.choice(tasks._connections)).clear()      # the worker is another one
            if graphs and chance.random() < 0.2:
                graphs = {G: graph(chance)}
            ticks = tuple(2_000 * (step + more) for more in range(chance.choice((1, 1, 2))))
            given = {iri: content for iri, content in contents.items() if any(s.stream == iri for s in own["recompute"].statement.streams)}
            found = {strategy: executor.evaluate([Due("q", own[strategy], ticks, since, given, graphs)])
                     for strategy, executor in ways.items()}
            for answers in zip(*found.values(), strict=True):
                assert len({frozenset(rows(one).items()) for one in answers}) == 1, (name, seed, step, answers[0].tick)
            assert ways["in shards"].ran["q"].shards == shards.shards
        for executor in ways.values():
            executor.close()


def test_a_new_fact_finds_partners_through_older_ones_about_its_subject(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own object leads nowhere, that of an older one does."""
    monkeypatch.setattr(resident, "_MANY", 0)
    monkeypatch.setattr(resident, "_MOST_NEW", 0)   # never made anew
    said = [(("x", "next", f"<{E}y>"), ("y", "q", '"a"')), (("z", "p", '"1"'),), (("x", "p", '"1"'),)]
    content = StreamContent()
    with own_process(1) as tasks:
        executor = Executor(tasks, force_strategy="incremental")
        query = compiled(f"SELECT ?s ?c {WINDOW} WHERE {{ WINDOW :w {{ ?s :p ?a ; :next ?b . ?b :q ?c }} }}", "q")
        for step, triples in enumerate(said):
            facts = tuple((f"<{E}{s}>", f"<{E}{p}>", o) for s, p, o in triples)
            content.append(facts_of(encode([Event(step + 1, S, 2_000 * step, None, facts, 0)])))
            [answer] = executor.evaluate([Due("q", query, (2_000 * step + 2_000,), -1, {S: content}, {})])
            assert len(list(rows(answer))) == step // 2   # type: ignore[call-overload]


def test_a_star_of_a_new_subject_is_found_among_the_new_facts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resident, "_MANY", 0)
    monkeypatch.setattr(resident, "_MOST_NEW", 0)   # never made anew
    fitting, alone, content = resident._fitting, list[bool](), StreamContent()

    def chosen(delta: Delta, given: Mapping[str, int]) -> Delta:
        found = fitting(delta, given)
        alone.append(found is not delta)
        return found

    monkeypatch.setattr(resident, "_fitting", chosen)
    with own_process(1) as tasks:
        executor = Executor(tasks, force_strategy="incremental")
        query = compiled(f"SELECT ?s ?a ?b {WINDOW} WHERE {{ WINDOW :w {{ ?s :p ?a ; :q ?b }} }}", "q")
        for step, (subject, properties, count) in enumerate((("x", "pq", 1), ("y", "pq", 2), ("z", "p", 2), ("z", "q", 2), ("x", "q", 1))):
            facts = tuple((f"<{E}{subject}>", f"<{E}{name}>", f'"{step}"') for name in properties)
            content.append(facts_of(encode([Event(step + 1, S, 2_000 * step, None, facts, 0)])))
            [answer] = executor.evaluate([Due("q", query, (2_000 * step + 2_000,), -1, {S: content}, {})])
            assert len(list(rows(answer))) == count, step   # type: ignore[call-overload]
        executor.close()
    assert alone == [False, True, False, False], "the hashes are known once y has come; z is new, what comes then is about z and x"


ONE, A = '"1"^^<http://www.w3.org/2001/XMLSchema#integer>', '"a"'


@pytest.mark.parametrize(("name", "said"), [
    ("what graph and stream say alike", [[(S, "x", "p", A)], [(S, "y", "p", A)], [(S, "n1", "p", ONE)]]),
    ("two streams as one", [[(S, "x", "p", A), (R, "n1", "p", ONE), (R, "n1", "q", A)], [(S, "y", "p", A), (R, "z", "p", A)],
                            [(S, "n1", "p", ONE), (R, "zz", "p", A)]])])
def test_a_solution_that_another_table_gave_before_is_given_once(name: str, said: list[list[tuple[str, str, str, str]]],
                                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resident, "_MANY", 0)
    monkeypatch.setattr(resident, "_MOST_NEW", 0)   # never made anew
    contents, query = {S: StreamContent(), R: StreamContent()}, compiled(QUERIES[name], "q")
    graphs = {G: graph_table([(f"<{E}n1>", f"<{E}p>", ONE), (f"<{E}n1>", f"<{E}q>", A)])} if ":g" in QUERIES[name] else {}
    given = {iri: contents[iri] for iri in {source.stream for source in query.statement.streams}}
    with own_process(1) as tasks:
        executor = Executor(tasks, force_strategy="incremental")
        for step, facts in enumerate(said):
            for stream in given:
                triples = tuple((f"<{E}{s}>", f"<{E}{p}>", o) for to, s, p, o in facts if to == stream)
                if triples:
                    contents[stream].append(facts_of(encode([Event(step * 2 + 1, stream, 2_000 * step, None, triples, 0)])))
            [answer] = executor.evaluate([Due("q", query, (2_000 * step + 2_000,), -1, given, graphs)])
            assert rows(answer) == Counter([(f"<{E}n1>", ONE, A)]), step
        executor.close()


def test_what_comes_is_taken_in_before_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor_module, "AHEAD_ROWS", 10)
    monkeypatch.setattr(executor_module, "AT_ONCE_ROWS", 0)
    chance, content, after = random.Random(3), StreamContent(), list[int]()
    whole = kept._advance
    with own_process(1) as tasks:
        executor = Executor(tasks, force_strategy="incremental")

        def come(step: int) -> None:
            content.append(facts_of(encode([event for to, event in events(chance, step * 2_000, step * 20 + 1) if to == S])))

        def due(step: int) -> Due:
            return Due("q", compiled(QUERIES["star"], "q"), (step * 2_000,), -1, {S: content}, {})

        def advance(*given: object) -> None:
            whole(*given)   # type: ignore[arg-type]
            after.append(content.parts)

        monkeypatch.setattr(kept, "_advance", advance)
        come(0)
        executor.bring_ahead({"q"}, 10_000)
        assert not after, "nobody has asked for it"
        executor.evaluate([due(1)])
        come(1)
        monkeypatch.setattr(executor_module, "AHEAD_ROWS", 1_000)
        executor.bring_ahead({"q"}, 10_000)
        assert after == [1], "too little has come"
        monkeypatch.setattr(executor_module, "AHEAD_ROWS", 1)
        monkeypatch.setattr(executor_module, "AT_ONCE_ROWS", 1_000)
        executor.bring_ahead({"q"}, 10_000)
        assert after == [1], "an evaluation takes so little in by itself"
        monkeypatch.setattr(executor_module, "AT_ONCE_ROWS", 0)
        executor.bring_ahead({"q"}, 10_000)
        assert after == [1, 2]
        executor.bring_ahead({"q"}, 10_000)
        assert after == [1, 2], "all that came is there"
        [answer] = executor.evaluate([due(2)])
        with own_process(1) as other:
            [expected] = Executor(other, force_strategy="recompute").evaluate([due(2)])
        assert rows(answer) == rows(expected)
        executor.forget("q")
        come(2)
        executor.bring_ahead({"q"}, 10_000)
        assert len(after) == 3, "nobody asks for it any more"


def test_a_stream_that_was_empty_is_taken_in_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is needed of a stream is what is there now, not what was when the query was evaluated last."""
    monkeypatch.setattr(executor_module, "AHEAD_ROWS", 1)
    monkeypatch.setattr(executor_module, "AT_ONCE_ROWS", 0)
    monkeypatch.setattr(kept, "_MOST_NEW", 1)
    text = TWO.replace("9s", "60s").replace("6s", "60s")
    query = compiled(f"SELECT ?s ?a ?b {text} WHERE {{ WINDOW :w {{ ?s :p ?a }} WINDOW :v {{ ?s :q ?b }} }}", "q")
    contents = {S: StreamContent(), R: StreamContent()}
    position = 0

    def come(stream: str, word: str, first: int, count: int, t_ms: int) -> None:
        nonlocal position
        some = []
        for number in range(first, first + count):
            position += 1
            some.append(Event(position, stream, t_ms, None, ((f"<{E}n{number}>", f"<{E}{word}>", f'"{number}"'),), 0))
        contents[stream].append(facts_of(encode(some)))

    with own_process(1) as tasks:
        executor = Executor(tasks, force_strategy="incremental")

        def count(tick: int) -> int:
            [answer] = executor.evaluate([Due("q", query, (tick,), -1, contents, {})])
            assert answer.table is not None, answer.error
            return answer.table.num_rows

        come(S, "p", 0, 40, 1_000)
        assert count(10_000) == 0
        for first, t_ms in ((0, 11_000), (9, 12_000), (13, 9_000)):     # the last ones come late
            come(R, "q", first, 9 if first == 0 else 4, t_ms)
            executor.bring_ahead({"q"}, 10_000)
        assert count(20_000) == 17


def test_what_others_would_wait_for_is_not_taken_in_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor_module, "AHEAD_ROWS", 1)
    monkeypatch.setattr(executor_module, "AT_ONCE_ROWS", 0)
    whole, tried = kept._advance, list[int]()
    chance, content = random.Random(3), StreamContent()

    def advance(*given: object) -> None:
        tried.append(content.parts)
        if len(tried) == 2:
            raise Postponed("others have waited long enough")
        whole(*given)   # type: ignore[arg-type]

    with own_process(1) as tasks:
        executor = Executor(tasks, force_strategy="incremental")
        monkeypatch.setattr(kept, "_advance", advance)
        for step in range(4):
            content.append(facts_of(encode([event for to, event in events(chance, step * 2_000, step * 20 + 1) if to == S])))
            if step in (0, 3):
                [answer] = executor.evaluate([Due("q", compiled(QUERIES["star"], "q"), (2_000 * (step + 1),), -1, {S: content}, {})])
                assert answer.error is None
            else:
                executor.bring_ahead({"q"}, 10)
        assert tried == [1, 2, 4], "once, and then where it is evaluated"


def test_a_query_whose_patterns_find_more_than_can_be_kept_is_evaluated_over_its_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another query may need much more of the stream, and what patterns find is kept for all of it."""
    content = StreamContent()
    content.append(facts_of(encode([event for to, event in events(random.Random(1), 0, 1) if to == S])))
    for limit, told in (("evaluation_ms", "it took longer"), ("worker_memory", "it needs more memory")):
        begun: list[str] = []

        def fail(*_: object, limit: str = limit, told: str = told) -> None:
            begun.append(limit)
            raise LimitExceeded(limit, told)

        with own_process(1) as tasks, monkeypatch.context() as patched:
            keeping, plain = Executor(tasks, force_strategy="incremental"), Executor(tasks, force_strategy="recompute", forgets=False)
            patched.setattr(kept, "_advance", fail)
            for tick in (2_000, 4_000):
                due = Due("q", compiled(QUERIES["star"], "q"), (tick,), -1, {S: content}, {})
                assert rows(keeping.evaluate([due])[0]) == rows(plain.evaluate([due])[0])
                assert keeping.choices["q"] == ("local", "recompute")
            assert begun == [limit], "tried once"
            keeping.evaluate([Due("p", compiled(QUERIES["count"], "p"), (4_000,), -1, {S: content}, {})])
            assert begun == [limit] * 2, "each query for itself"
            keeping.forget("p")
            keeping.evaluate([due])
            assert not kept._LOCKS, "nothing stays of what failed"


def test_a_query_for_whose_patterns_others_wait_in_vain_again_is_evaluated_over_its_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    content = StreamContent()
    content.append(facts_of(encode([event for to, event in events(random.Random(1), 0, 1) if to == S])))
    whole, waits = kept._advance, iter((True, False, True, True))

    def advance(*given: object) -> None:
        if next(waits):
            raise Postponed("others have waited long enough")
        whole(*given)   # type: ignore[arg-type]

    with own_process(1) as tasks:
        executor = Executor(tasks, force_strategy="incremental")
        monkeypatch.setattr(kept, "_advance", advance)
        due = Due("q", compiled(QUERIES["star"], "q"), (2_000,), -1, {S: content}, {})
        failed = [isinstance(executor.evaluate([due])[0].error, Postponed) for _ in range(6)]
        assert failed == [True, False, True, True, False, False]
        assert executor.choices["q"] == ("local", "recompute")

"""Closures that shards make together: what is found whatever becomes of a worker, and when one makes them instead."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
import pytest

from engine.compiler import BUILT_IN_RULES, Catalog, compile_statement
from engine.execution.content import StreamContent
from engine.execution.due import Answer, Due
from engine.execution.executor import Executor
from engine.execution.own_process import OwnProcess, own_process
from engine.limits import EvaluationLimits, LimitExceeded
from engine.records import Event, Triple
from engine.runtime.rows import facts_of, graph_table
from engine.worker import exchange
from engine.worker.shares import Shares
from grammar.rif.parse import parse_rules
from grammar.statement import parse
from tests.encoded import encode

E, S, G = "http://e.x/", "http://e.x/s", "http://e.x/g"
RDFS, XSD = "http://www.w3.org/2000/01/rdf-schema#", "http://www.w3.org/2001/XMLSchema#"
SCHEMA = graph_table([(f"<{E}next>", f"<{RDFS}subPropertyOf>", f"<{E}near>"), (f"<{E}near>", f"<{RDFS}range>", f"<{E}Place>")])
RULES = parse_rules(f"""Document( Group(
    Forall ?x ?y ?z ( ?x[<{E}next> -> ?z] :- And( ?x[<{E}next> -> ?y] ?y[<{E}next> -> ?z] ) )
    Forall ?x ?y ( ?y[<{E}back> -> ?x] :- ?x[<{E}next> -> ?y] ) ) )""", "text/x-rif-ps", "own")
PAIRS = "SELECT ?x ?y WHERE { ?x :next ?y }"
LENGTH = 12


@dataclass(slots=True)
class Shards:
    """Three shards, each with a database, and an executor that divides whatever can be divided."""

    process: OwnProcess
    executor: Executor

    def answers(self, *queries: str, limits: Sequence[EvaluationLimits] = (), more: Sequence[Triple] = (), rules: str = "own",
                ticks: Sequence[tuple[int, ...]] = (), since: Sequence[int] = (),
                events: Sequence[Event] = ()) -> list[Answer]:
        """What queries over a chain of edges give, and over `more` triples; each within its limits, at its evaluation times, of what came
        since a position."""
        content = StreamContent()
        edges = [(f"<{E}{number}>", f"<{E}next>", f"<{E}{number + 1}>") for number in range(LENGTH)]
        content.append(facts_of(encode([Event(1, S, 500, None, (*edges, *more), 500), *events])))
        catalog = Catalog({S: "event"}, {G: SCHEMA}, {**BUILT_IN_RULES, "own": RULES})
        dues = []
        for number, query in enumerate(queries):
            text = query.replace("WHERE", f"FROM STREAM :s [RANGE 2s STEP 2s] USING RULES {rules} USING GRAPH :g WHERE")
            made = compile_statement(parse(f"PREFIX : <{E}> REGISTER QUERY q{number} AS {text}"), catalog, f"q{number}")
            at, after = ticks[number] if ticks else (2_000,), since[number] if since else -1
            dues.append(Due(f"q{number}", made, at, after, {S: content}, {G: SCHEMA}, limits[number] if limits else EvaluationLimits()))
        return self.executor.evaluate(dues)


@contextmanager
def shards() -> Iterator[Shards]:
    with own_process(1, 3) as process:
        executor = Executor(process, force_strategy="recompute", shard_rows=0)
        yield Shards(process, executor)
        executor.close()


def counts(answers: Sequence[Answer]) -> list[int | None]:
    return [None if answer.table is None else answer.table.num_rows for answer in answers]


def tables(process: OwnProcess) -> list[str]:
    """The tables and views of all shards."""
    text = "SELECT table_name FROM duckdb_tables() UNION ALL SELECT view_name FROM duckdb_views() WHERE NOT internal"
    return [name for connection in process._connections for name, in connection.execute(text).fetchall()]


def tables_left(made: Shards) -> list[str]:
    """The tables of closures that shards made."""
    found = tables(made.process)
    assert found
    return [name for name in found if "_shared_" in name]


ALL = LENGTH * (LENGTH + 1) // 2


def test_queries_share_what_shards_make_and_nothing_stays() -> None:
    with shards() as made:
        answers = made.answers(PAIRS, PAIRS.replace("next", "back"), "SELECT ?x ?z WHERE { ?x :next ?y . ?z :back ?y }")
        assert counts(answers)[:2] == [ALL, ALL]
        assert {made.executor.ran[f"q{number}"].shards for number in range(3)} == {3}
        assert not tables_left(made)


def test_beside_the_pump_other_shards_make_closures() -> None:
    with shards() as made:
        pump, before = made.executor, tables(made.process)
        made.executor = pump.beside()
        beside, = made.process._beside
        newer = Event(2, S, 2_500, None, (*((f"<{E}n{number}>", f"<{E}next>", f"<{E}n>") for number in range(5)),), 2_500)
        for rows, tick in ((ALL, 2_000), (5, 4_000), (ALL, 2_000)):
            answers = made.answers(PAIRS, PAIRS.replace("next", "back"), ticks=[(tick,)] * 2, events=[newer])
            assert counts(answers) == [rows, rows] and {pump.ran[f"q{number}"].shards for number in range(2)} == {3}
        assert tables(made.process) == before and not any(name.startswith(("s_", "g_")) or "_shared_" in name for name in tables(beside))


def test_beside_the_pump_shards_are_brought_a_window_once(monkeypatch: pytest.MonkeyPatch) -> None:
    of, shared_out = Shares.of, list[int]()

    def noted(self: Shares, table: pa.Table, *more: object) -> list[pa.Table]:
        shared_out.append(table.num_rows)
        return of(self, table, *more)   # type: ignore[arg-type]

    monkeypatch.setattr(Shares, "of", noted)
    with shards() as made:
        for executor in (made.executor, made.executor.beside()):
            made.executor = executor
            assert counts(made.answers(PAIRS)) == [ALL]
            assert sum(shared_out) == 2 * LENGTH, "by subject, and by object"
            shared_out.clear()


def test_threads_beside_the_pump_take_turns_at_its_shards_and_leave_others_their_slots() -> None:
    with shards() as made:
        free, found = threading.Semaphore(1), dict[str, list[int | None]]()
        executor, pump = made.executor.beside(free), made.executor

        def evaluate(name: str, text: str) -> None:
            with free:
                found[name] = counts(Shards(made.process, executor).answers(text, text.replace("next", "back")))

        texts = {f"{n}": PAIRS.replace("?x ?y WHERE", f"?x ?y ({n} AS ?n) WHERE") for n in range(6)}
        threads = [threading.Thread(target=evaluate, args=given) for given in texts.items()]
        with executor._turn:
            for thread in threads:
                thread.start()
            for _ in texts:     # all wait for the shards, and the slot is free
                assert free.acquire(timeout=20)
                free.release()
        for thread in threads:
            thread.join(60)
        assert found == dict.fromkeys(texts, [ALL, ALL]) and pump.ran["q0"].shards == 3
        assert free.acquire(blocking=False), "each has given its slot back"


def test_where_no_slots_are_left_beside_the_pump_one_shard_makes_closures_and_says_so() -> None:
    with shards() as made, own_process(1) as alone:
        made.process.beside = lambda: alone     # type: ignore[method-assign]
        made.executor = made.executor.beside()
        [answer] = made.answers(PAIRS)
        assert counts([answer]) == [ALL]
        assert "by one shard, as it is slow, and there are no slots for shards beside" in made.executor.ran["q0"].why


def test_a_worker_that_is_another_between_two_exchanges(monkeypatch: pytest.MonkeyPatch) -> None:
    advance, lost = exchange.advance, iter([False, False, False, False, True])

    def losing(connection: object, closing: object, number: int, received: str) -> object:
        if next(lost, False):
            exchange._notes(connection).clear()  # type: ignore[arg-type]
        return advance(connection, closing, number, received)   # type: ignore[arg-type]

    monkeypatch.setattr(exchange, "advance", losing)
    with shards() as made:
        assert counts(made.answers(PAIRS)) == [ALL]
    assert next(lost, None) is None


def test_a_worker_that_is_another_before_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    findings, lost = exchange.findings, iter([True])

    def losing(connection: object, closing: object, number: int) -> object:
        if next(lost, False):
            exchange._notes(connection).clear()  # type: ignore[arg-type]
        return findings(connection, closing, number)    # type: ignore[arg-type]

    monkeypatch.setattr(exchange, "findings", losing)
    with shards() as made:
        assert counts(made.answers(PAIRS)) == [ALL]
    assert next(lost, None) is None


def test_workers_that_are_lost_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    advance = exchange.advance

    def losing(connection: object, closing: object, number: int, received: str) -> object:
        exchange._notes(connection).clear()  # type: ignore[arg-type]
        return advance(connection, closing, number, received)   # type: ignore[arg-type]

    monkeypatch.setattr(exchange, "advance", losing)
    with shards() as made:
        assert counts(made.answers(PAIRS)) == [ALL], "one shard makes it instead"
        assert made.executor.ran["q0"].shards == 1


def test_what_is_too_much_to_send_is_made_by_one() -> None:
    with shards() as made:
        limits = EvaluationLimits(evaluation_rows=LENGTH + 3)
        assert counts(made.answers("SELECT (COUNT(*) AS ?n) WHERE { ?x :next ?y }", limits=[limits])) == [1]
        assert made.executor.ran["q0"].shards == 1


def test_a_query_that_shards_cannot_divide_keeps_its_closure_whole() -> None:
    """Others that share it read the same one: it would be made twice."""
    with shards() as made:
        assert counts(made.answers(PAIRS.replace("next", "back"), "SELECT ?x ?y WHERE { ?x :back+ ?y }")) == [ALL, ALL]
        first, second = (made.executor.ran[f"q{number}"] for number in range(2))
        assert first.shards == second.shards == 1
        assert "another query that shares them" in first.why and "cannot be divided" in second.why


def test_a_query_that_is_removed_takes_no_closure_from_others() -> None:
    with shards() as made:
        made.process.cancel("q0")
        first, second = made.answers(PAIRS, PAIRS)
        assert first.error is not None and second.table is not None and second.table.num_rows == ALL


PLACES, OF_FIVE = "SELECT DISTINCT ?x WHERE { ?x a :Place ; :size ?n }", "SELECT ?x WHERE { ?x :size 5.0 }"


def sizes(*literals: str) -> list[Triple]:
    """A literal each for the first things of the chain."""
    return [(f"<{E}{number}>", f"<{E}size>", literal) for number, literal in enumerate(literals, 1)]


@pytest.mark.parametrize(("literals", "together", "places", "of_five"), [
    (('"5"', '"6"', '"five"@en'), 3, 3, 0),
    ((f'"5"^^<{XSD}integer>', f'"6"^^<{XSD}integer>'), 3, 2, 0),
    ((f'"5"^^<{XSD}integer>', f'"6"^^<{XSD}integer>', f'"5.0"^^<{XSD}decimal>'), 1, 3, 2),
    (('"5"', f'"5"^^<{XSD}token>'), 1, 2, 0),
])
def test_literals_of_one_value_in_several_shards(literals: Sequence[str], together: int, places: int, of_five: int) -> None:
    """Under owl2rl these are equal; shards leave out what needs that, and tell where it may be so."""
    with shards() as made:
        assert counts(made.answers(PLACES, OF_FIVE, more=sizes(*literals), rules="owl2rl")) == [places, of_five]
        ran = [made.executor.ran[f"q{number}"] for number in range(2)]
        assert {one.shards for one in ran} == {together}
        assert all(("by one shard, as a term was equal" in one.why) == (together == 1) for one in ran)


def test_one_closure_at_other_times_and_from_elsewhere_in_the_log() -> None:
    """It has one name, but other facts."""
    later = [Event(2, S, 2_500, None, ((f"<{E}0>", f"<{E}next>", f"<{E}a>"),), 2_500)]
    with shards() as made:
        answers = made.answers(PAIRS, PAIRS, PAIRS, ticks=[(2_000,), (2_000, 4_000), (4_000,)], events=later)
        assert counts(answers) == [ALL, ALL, 1, 1]
        assert counts(made.answers(PAIRS, PAIRS, PAIRS, since=[-1, 1, -1])) == [ALL, 0, ALL]
        assert {made.executor.ran[f"q{number}"].shards for number in range(3)} == {3}


def test_each_query_has_its_own_limits() -> None:
    with shards() as made:
        few, enough = EvaluationLimits(evaluation_rows=LENGTH + 3), EvaluationLimits()
        first, second = made.answers(PAIRS, PAIRS, limits=[few, enough])
        assert isinstance(first.error, LimitExceeded) and second.table is not None and second.table.num_rows == ALL


def test_a_value_that_sql_does_not_decide() -> None:
    """Such a query is left to Python from then on, in shards too."""
    more = sizes(f'"0.1234567890123456789"^^<{XSD}decimal>', f'"0.1234567890123456788"^^<{XSD}decimal>')
    greater = "SELECT ?x WHERE { ?x a :Place ; :size ?n FILTER(?n > 0.1234567890123456788) }"
    with shards() as made:
        for _ in range(2):
            assert counts(made.answers(greater, more=more, rules="owl2rl")) == [1]


def test_nothing_stays_of_a_closure_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    advance, count = exchange.advance, iter(range(100))

    def failing(connection: object, closing: object, number: int, received: str) -> object:
        if next(count) == 4:
            raise RuntimeError("no more")
        return advance(connection, closing, number, received)   # type: ignore[arg-type]

    monkeypatch.setattr(exchange, "advance", failing)
    with shards() as made:
        [answer] = made.answers(PAIRS)
        assert "no more" in str(answer.error)
        assert counts(made.answers(PAIRS.replace("next", "back"))) == [ALL]
        assert not tables_left(made)

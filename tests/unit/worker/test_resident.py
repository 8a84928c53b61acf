"""Tables that stay in a worker: what is brought, what a worker that lacks something says, what goes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from engine.execution.content import Following, StreamContent
from engine.ipc import unpack_text
from engine.limits import EvaluationLimits, LimitExceeded
from engine.output import select_json
from engine.records import Event
from engine.runtime.rows import facts_of
from engine.worker import bundles, database, resident
from engine.worker.bundles import WRITTEN_ROWS, Found, QueryFailed, Result, Shown, Task, run_bundled, run_bundles
from engine.worker.database import close, connect
from engine.worker.hash_runs import HashRuns
from engine.worker.resident import Behind, Followed, Held, Step, follow, held_of
from tests.encoded import encode

S, TABLE = "http://ex.org/s", "s_1"


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    found = connect()
    yield found
    close(found)


def add(content: StreamContent, *times: int) -> None:
    events = [Event(content.parts * 10 + n + 1, S, time, None, ((f"<n{time}>", "<p>", f'"{time}"'),), 0) for n, time in enumerate(times)]
    content.append(facts_of(encode(events)))


def step(following: Following, content: StreamContent, whole: bool = False) -> Step:
    followed = following.stream(TABLE, content)
    following.brought(TABLE, followed, {0})
    return followed.step(whole)


def times(connection: duckdb.DuckDBPyConnection) -> list[int]:
    return [time for (time,) in connection.execute(f"SELECT t FROM {TABLE} ORDER BY t").fetchall()]


def test_only_what_is_new_is_brought(connection: duckdb.DuckDBPyConnection) -> None:
    content, following = StreamContent(), Following()
    for time in (1, 2, 3):
        add(content, time)
        found = step(following, content)
        assert found.after == time - 1
        follow(connection, {TABLE: found}, None)
        follow(connection, {TABLE: found}, None)    # a task that is run again
    assert times(connection) == [1, 2, 3]
    nothing = step(following, content)
    assert not nothing.data
    follow(connection, {TABLE: nothing}, None)
    assert times(connection) == [1, 2, 3]


def test_views_of_what_is_brought_are_made_once(connection: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch) -> None:
    """That of facts and that of constants, which come with the same bundles."""
    made, register = list[str](), database.register

    def counted(connection: duckdb.DuckDBPyConnection, name: str, rows: pa.Table | database.Given) -> None:
        made.append(name)
        register(connection, name, rows)

    monkeypatch.setattr(database, "register", counted)
    content, following = StreamContent(), Following()
    for number in (1, 2, 3):
        add(content, number)
        constants = Followed("c", (number - 1,), number, number, lambda _, number=number: pa.table({"c0": [f"<{number}>"]}))
        follow(connection, {TABLE: step(following, content), "c_1": constants.step(whole=False)}, None)
    assert times(connection) == [1, 2, 3] and connection.execute("SELECT count(*) FROM c_1").fetchall() == [(3,)]
    assert sorted(made) == ["constants_brought", "facts_brought"]


def test_a_stream_without_facts_is_a_table(connection: duckdb.DuckDBPyConnection) -> None:
    follow(connection, {TABLE: step(Following(), StreamContent())}, None)
    assert times(connection) == []


def test_a_worker_that_lacks_something_says_so_and_is_given_all(connection: duckdb.DuckDBPyConnection) -> None:
    content, following = StreamContent(), Following()
    add(content, 1)
    step(following, content)    # another worker had this
    add(content, 2)
    found = step(following, content)
    with pytest.raises(Behind, match=TABLE):
        follow(connection, {TABLE: found}, None)
    follow(connection, {TABLE: step(following, content, whole=True)}, None)
    assert times(connection) == [1, 2]


def test_a_content_that_was_empty_is_another_one(connection: duckdb.DuckDBPyConnection) -> None:
    """A stream that is removed and made again has nothing of what it had."""
    content, following = StreamContent(), Following()
    add(content, 1, 2)
    follow(connection, {TABLE: step(following, content)}, None)
    content.evict(10)
    add(content, 5)
    follow(connection, {TABLE: step(following, content)}, None)
    assert times(connection) == [5]


def test_what_is_too_old_goes_in_the_end(connection: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resident, "_FEW", 2)
    content, following = StreamContent(), Following()
    for time in range(1, 40):
        add(content, time)
        content.evict(time - 4)
        follow(connection, {TABLE: step(following, content)}, None)
        assert times(connection)[-5:] == list(range(max(1, time - 4), time + 1))
        assert len(times(connection)) <= 2 * content.rows + 2


def test_tables_that_nobody_reads_go(connection: duckdb.DuckDBPyConnection) -> None:
    content, following = StreamContent(), Following()
    add(content, 1)
    follow(connection, {TABLE: step(following, content)}, frozenset((TABLE,)))
    follow(connection, {}, frozenset((TABLE,)))
    assert held_of(connection, TABLE).rows == 1
    follow(connection, {}, frozenset())
    with pytest.raises(duckdb.CatalogException):
        times(connection)


def test_tasks_go_on_with_a_worker_that_has_nothing() -> None:
    content, following = StreamContent(), Following()
    workers = [connect(), connect()]
    bundles = 0

    def run(given: list[bytes]) -> list[Result]:
        nonlocal bundles
        bundles += 1
        return list(run_bundles(given, workers[bundles % 2]))

    for time in (1, 2, 3):
        add(content, time)
        tables = {TABLE: following.stream(TABLE, content)}
        tasks = [Task(f"SELECT count(*) AS n FROM {TABLE}", frozenset(tables), 1), Task("SELECT nothing", frozenset(), 1)]
        counted, wrong = run_bundled(tasks, tables, 2, None, run)
        assert isinstance(counted, Found) and counted.table["n"].to_pylist() == [time]
        assert isinstance(wrong, QueryFailed)
        following.brought(TABLE, tables[TABLE], {0})
    assert bundles == 5, "one bundle for all tasks; the second and the third time another worker had to be given all"
    for worker in workers:
        close(worker)


def test_tasks_go_on_with_another_worker_each_time() -> None:
    """One that lacks what the one before it had."""
    contents, following = {name: StreamContent() for name in ("s_1", "s_2")}, Following()
    first, second, third = workers = [connect(), connect(), connect()]

    def tables() -> dict[str, Followed]:
        return {name: following.stream(name, content) for name, content in contents.items()}

    for content in contents.values():
        add(content, 1)
    follow(first, {"s_1": tables()["s_1"].step(whole=True)}, None)      # it lacks s_2
    follow(second, {"s_2": tables()["s_2"].step(whole=True)}, None)     # it lacks s_1
    for name, table in tables().items():
        following.brought(name, table, {0})
    for content in contents.values():
        add(content, 2)
    tasks = [Task(f"SELECT count(*) AS n FROM {name}", frozenset((name,)), 1) for name in contents]
    turns = iter((first, second, third))
    found = run_bundled(tasks, tables(), 2, None, lambda given: run_bundles(given, next(turns)))
    assert [answer.table["n"].to_pylist() for answer in found if isinstance(answer, Found)] == [[2], [2]]
    for worker in workers:
        close(worker)


@given(st.lists(st.lists(st.integers(0, 9), max_size=4), max_size=12), st.integers(0, 12), st.integers(1, 4), st.integers(0, 10))
def test_the_hashes_of_what_came_are_known_or_not(batches: list[list[int]], seen: int, most: int, asked: int) -> None:
    held = Held("c", 0, 0, 1, {}, {"hs": HashRuns(np.empty(0, np.uint64))})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(resident, "_BATCHES", most)
        patch.setattr(resident, "_ASKED", asked)
        for number, brought in enumerate(batches, 1):
            held.take(number, len(brought), {"hs": np.unique(np.array(brought, np.uint64))})
            assert len(held.brought) <= most and held.new.keys() <= held.brought.keys()
            assert sum(held.brought[known].rows for known in held.new) <= asked
            if seen <= number and (found := held.new_hashes(seen, "hs")) is not None:
                assert set(found.tolist()) == {one for batch in batches[seen:number] for one in batch}
            assert held.new_hashes(seen, "ho") is None or seen == number, "that column is not known"


def test_a_table_that_cannot_be_brought_fails_the_tasks_that_read_it(monkeypatch: pytest.MonkeyPatch) -> None:
    content, following, worker = StreamContent(), Following(), connect()
    add(content, 1)
    tables = {TABLE: following.stream(TABLE, content)}
    tasks = [Task(f"SELECT count(*) AS n FROM {TABLE}", frozenset(tables), 1), Task("SELECT 1 AS n", frozenset(), 1)]
    for failure, told in ((duckdb.OutOfMemoryException("(2 MiB used)"), LimitExceeded), (duckdb.InterruptException("now"), QueryFailed)):
        with monkeypatch.context() as patched:
            def fail(connection: duckdb.DuckDBPyConnection, statement: str, given: dict[str, int], failure: Exception = failure) -> None:
                connection.execute(statement, given)
                raise failure
            patched.setattr(resident, "changed_rows", fail)
            failed, other = run_bundled(tasks, tables, 1, None, lambda bundles: run_bundles(bundles, worker))
        assert isinstance(failed, told) and isinstance(other, Found)
    found, _ = run_bundled(tasks, tables, 1, None, lambda bundles: run_bundles(bundles, worker))
    assert isinstance(found, Found) and found.table["n"].to_pylist() == [1], "what failed is made anew"
    close(worker)


@pytest.mark.parametrize(("select", "shown", "rows"), [
    ("s AS c0, o AS c1", Shown(("x", "y"), 9_000), 5_000), ("s AS c0, o AS c1", Shown(("x", "y"), 100), 5_000),
    ("s AS c0, o AS c1", Shown(("x", "y"), 9_000), 50), ("s AS c0, o AS c1", None, 5_000),
    ("s AS c0, t AS ord", Shown(("x",), 9_000), 5_000), ("s AS c0", Shown((), 9_000), 5_000)])
def test_large_answers_are_written_where_that_will_do(select: str, shown: Shown | None, rows: int) -> None:
    worker, content, following = connect(), StreamContent(), Following()
    add(content, *range(1, rows + 1))
    tables = {TABLE: following.stream(TABLE, content)}
    text = f"SELECT CAST(7 AS BIGINT) AS tick, {select} FROM {TABLE}"
    written, plain = run_bundled([Task(text, frozenset(tables), 1, shown=shown), Task(text, frozenset(tables), 1)], tables, 1, None,
                                 lambda bundles: run_bundles(bundles, worker))
    assert isinstance(written, Found) and isinstance(plain, Found) and plain.written is None
    if shown is None or not shown.variables or rows < WRITTEN_ROWS or "ord" in select:
        assert written.written is None and written.table.sort_by("c0") == plain.table.sort_by("c0")
    else:
        assert written.written is not None and written.written.rows == rows and not written.table.num_rows
        expected = json.loads(select_json(plain.table.select(["c0", "c1"]).rename_columns(["x", "y"])))["results"]["bindings"]
        found = json.loads(unpack_text(written.written.text))["results"]["bindings"]
        assert len(found) == min(rows, shown.most) and not Counter(map(repr, found)) - Counter(map(repr, expected))
    close(worker)


def test_tasks_over_tables_that_stay_run_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a worker with several threads; answers and failures are those of the tasks one after the other."""
    worker = connect(threads=2)
    monkeypatch.setattr(bundles, "database", lambda: worker)
    monkeypatch.setattr(bundles, "own_threads", lambda: 2)
    content, following = StreamContent(), Following()
    add(content, *range(1, 50))
    tables = {TABLE: following.stream(TABLE, content)}
    texts = [f"SELECT count(*) AS n FROM {TABLE} WHERE t > {n}" if n % 5 else "SELECT nothing" for n in range(40)]
    tasks = [Task(text, frozenset(tables), 1) for text in texts]
    tasks.append(Task(f"SELECT count(*) AS n FROM {TABLE}, pairs, pairs p, pairs q, pairs r", frozenset(tables), 1,
                      limits=EvaluationLimits(evaluation_ms=300)))
    worker.execute("CREATE TABLE pairs AS SELECT range FROM range(10000)")
    found = run_bundled(tasks, tables, 2, None, run_bundles)
    for n, answer in enumerate(found[:-1]):
        assert isinstance(answer, Found) and answer.table["n"].to_pylist() == [49 - n] if n % 5 else isinstance(answer, QueryFailed)
    assert isinstance(found[-1], LimitExceeded) and found[-1].limit == "evaluation_ms"
    close(worker)


def test_a_statement_that_comes_again_makes_one_row_beyond_its_limit(connection: duckdb.DuckDBPyConnection) -> None:
    task = Task("SELECT a.range AS n FROM range(8000) a, range(8000) b WHERE a.range >= $t0", frozenset(), 1,
                limits=EvaluationLimits(evaluation_rows=1_000), given={"t0": 0})
    [found] = run_bundled([task], {}, 1, None, lambda bundles: run_bundles(bundles, connection))
    assert isinstance(found, LimitExceeded) and "has 1001 rows" in str(found)


def test_shards_write_their_tables_anew_at_the_same_evaluation() -> None:
    """At a steady rate, with some rows more or fewer than their share: 5,000,000 are needed, so many are new at each evaluation."""
    for new in (250_000, 500_000, 1_000_000, 5_000_000):
        at = [next(turn for turn in range(1, 100) if resident._is_mostly_dead(rows + turn * brought, 5_000_000, brought))
              for rows, brought in ((5_000_000 + odd, new + odd // 100) for odd in (-20_000, 0, 20_000))]
        assert len(set(at)) == 1, (new, at)

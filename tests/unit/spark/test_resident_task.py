"""The task of Spark that does not end: its worker answers bundles one after another, is interrupted, dies, and is there again."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from engine.facts import FACTS
from engine.limits import Cancelled, EvaluationLimits, LimitExceeded
from engine.processors import processors
from engine.spark import jobs as jobs_module
from engine.spark import workers as module
from engine.spark.jobs import MOST_LOST, Jobs
from engine.spark.session import Session
from engine.spark.settings import SparkSettings, configuration
from engine.spark.workers import ExecutorLost, NoWorker, ResidentTask, WorkerDied
from engine.sql.closing import Closing
from engine.worker.bundles import Found, QueryFailed, Result, Task
from engine.worker.resident import Followed
from tests.sparks import jvm_pid, workers
from tests.waiting import wait_until

ENDLESS = "SELECT count(*) AS n FROM range(10_000_000) a, range(10_000_000) b WHERE a.range + b.range = 3"
ROWS = pa.table({name: pa.nulls(3, FACTS.field(name).type) for name in FACTS.names}, FACTS)


class Stream:
    """A table of three rows that stays in the worker; `given` has how the worker was asked to take it."""

    def __init__(self) -> None:
        self.brought = 0
        self.given: list[int] = []

    def tables(self) -> dict[str, pa.Table | Followed]:
        def after(number: int) -> pa.Table:
            self.given.append(number)
            return ROWS if number == 0 else ROWS.slice(0, 0)

        return {"followed": Followed("a token", (self.brought,), 1, 3, after)}


def task(query: str, text: str = "SELECT count(*) AS n FROM followed", **limits: int) -> Task:
    return Task(text, frozenset({"followed"}), 1, query=query, limits=EvaluationLimits(**limits))


def own(closing: str) -> Task:
    """A task over a table that is shipped with it, and over a closure."""
    closed = Closing(closing, "SELECT * FROM own", (), "", "")
    return Task("SELECT * FROM own", frozenset({"own"}), 1_000, (closed,))


def in_pool(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many tasks the jobs of the pool get: each gives `ROWS`."""
    ran = list[int]()

    def run(spark: object, tasks: list[Task], *more: object) -> list[Found]:
        ran.append(len(tasks))
        return [Found(ROWS)] * len(tasks)

    monkeypatch.setattr(jobs_module, "run_local", run)
    return ran


def rows(found: Found | Exception) -> list[dict[str, object]]:
    assert isinstance(found, Found), found
    rows: list[dict[str, object]] = found.table.to_pylist()
    return rows


@pytest.fixture
def resident(spark_session: Session) -> Iterator[ResidentTask]:
    resident = ResidentTask(spark_session.spark, 1)
    spark_session.residents, shared = [resident], spark_session.residents
    shared[0].close()      # there is one slot for such a task
    yield resident
    resident.close()
    spark_session.residents = shared


def test_bundles_are_answered_by_one_worker_that_keeps_its_tables(spark_session: Session, resident: ResidentTask) -> None:
    jobs, stream = Jobs(spark_session), Stream()
    assert [rows(found) for found in jobs.run([task("a"), task("b")], stream.tables(), None, may_stay=True)] == [[{"n": 3}]] * 2
    stream.brought = 1
    assert rows(jobs.run([task("a")], stream.tables(), None, may_stay=True)[0]) == [{"n": 3}]
    assert stream.given == [0], "it was sent once"
    failed, found = jobs.run([task("b", "SELECT missing"), task("a")], stream.tables(), None, may_stay=True)
    assert isinstance(failed, QueryFailed) and rows(found) == [{"n": 3}]


@pytest.mark.parametrize(("closures", "may_stay", "jobs_of_pool"), [
    ("a", True, []), ("a", False, [1]), ("aa", True, []), ("ab", True, [2])],
    ids=["alone", "alone, of another thread", "one closure for two", "a closure for each"])
def test_what_one_worker_can_do_is_done_where_tables_stay(
        spark_session: Session, resident: ResidentTask, closures: str, may_stay: bool, jobs_of_pool: list[int],
        monkeypatch: pytest.MonkeyPatch) -> None:
    ran = in_pool(monkeypatch)
    tasks = [own(closing) for closing in closures]
    found = Jobs(spark_session).run(tasks, {"own": ROWS}, None, may_stay=may_stay)
    assert [len(rows(one)) for one in found] == [3] * len(tasks) and ran == jobs_of_pool


@pytest.mark.parametrize("text", ["SELECT kill() AS n FROM own", "SELECT too_much() AS n FROM own"])
def test_what_ends_the_worker_or_lacks_memory_there_is_run_in_another(
        spark_session: Session, resident: ResidentTask, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(number: int, bundle: bytes) -> list[Result]:
        if "kill" in text:
            raise WorkerDied("the worker ended")
        return [(0, 0.0, b"", None, LimitExceeded("worker_memory", "the evaluation needs more memory than a worker has"))]

    ran = in_pool(monkeypatch)
    monkeypatch.setattr(resident, "run", run)
    [found] = Jobs(spark_session).run([Task(text, frozenset({"own"}), 1)], {"own": ROWS}, None, may_stay=True)
    assert len(rows(found)) == 3 and ran == [1]


def test_a_worker_that_was_killed_between_bundles_is_replaced_and_given_what_it_lacks(
        spark_session: Session, resident: ResidentTask) -> None:
    jobs, stream = Jobs(spark_session), Stream()
    jobs.run([task("a")], stream.tables(), None, may_stay=True)
    stream.brought = 1
    for worker in workers(jvm_pid(spark_session)):
        os.kill(worker, signal.SIGKILL)
    assert rows(jobs.run([task("a")], stream.tables(), None, may_stay=True)[0]) == [{"n": 3}]
    assert stream.given == [0, 0]


def test_what_ends_its_worker_twice_is_given_up_and_the_others_are_answered(spark_session: Session, resident: ResidentTask) -> None:
    deadly = Task("SELECT 1", frozenset({"followed"}), 1, (Deadly(),), "deadly")  # type: ignore[arg-type]
    found = Jobs(spark_session).run([task("a"), deadly, task("b")], Stream().tables(), None, may_stay=True)
    assert [rows(found[0]), rows(found[2])] == [[{"n": 3}]] * 2
    assert isinstance(found[1], LimitExceeded) and found[1].limit == "worker_deaths"


@pytest.mark.parametrize(("closures", "deaths", "runs"), [("aa", 1, 2), ("aa", 2, 4), ("ab", 1, 3)], ids=["shared", "twice", "not shared"])
def test_what_shares_a_closure_is_run_together_again_where_a_worker_ended(
        spark_session: Session, resident: ResidentTask, closures: str, deaths: int, runs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind a second end each is run alone."""
    run, asked = resident.run, list[int]()

    def end(number: int, bundle: bytes) -> list[Result]:
        asked.append(number)
        if len(asked) <= deaths:
            raise WorkerDied("the worker ended")
        return run(number, bundle)

    monkeypatch.setattr(resident, "run", end)
    tasks = [replace(task(name), closings=(Closing(name, "SELECT * FROM followed", (), "", ""),)) for name in closures]
    found = Jobs(spark_session).run(tasks, Stream().tables(), None, may_stay=True)
    assert [rows(one) for one in found] == [[{"n": 3}]] * 2 and len(asked) == runs


@pytest.mark.parametrize(("lost", "given_up"), [(MOST_LOST - 1, False), (1_000, True)])
def test_an_executor_may_end_for_reasons_of_its_own(
        spark_session: Session, resident: ResidentTask, lost: int, given_up: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it had is run again together; only what has ended several is given up."""
    run, left = resident.run, [lost]

    def lose(number: int, bundle: bytes) -> list[Result]:
        left[0] -= 1
        if left[0] >= 0:
            raise ExecutorLost("the executor ended")
        return run(number, bundle)

    monkeypatch.setattr(resident, "run", lose)
    found = Jobs(spark_session).run([task("a"), task("b")], Stream().tables(), None, may_stay=True)
    if given_up:
        assert [isinstance(one, LimitExceeded) and one.limit for one in found] == ["worker_deaths"] * 2
        assert lost - left[0] == 3 * MOST_LOST, "together, then each alone"
    else:
        assert [rows(one) for one in found] == [[{"n": 3}]] * 2 and lost - left[0] == MOST_LOST


def test_tasks_wait_for_executors(spark_session: Session, resident: ResidentTask, monkeypatch: pytest.MonkeyPatch) -> None:
    run, absent = resident.run, [NoWorker("no worker came")] * 5

    def wait(number: int, bundle: bytes) -> list[Result]:
        if absent:
            raise absent.pop()
        return run(number, bundle)

    monkeypatch.setattr(resident, "run", wait)
    assert rows(Jobs(spark_session).run([task("a")], Stream().tables(), None, may_stay=True)[0]) == [{"n": 3}] and not absent


class Deadly:
    """Kills the worker that unpickles it."""

    static = True

    def __reduce__(self) -> tuple[object, ...]:
        return eval, ("__import__('os').kill(__import__('os').getpid(), 9)",)


def test_a_query_that_is_removed_is_interrupted_and_the_worker_keeps_its_tables(spark_session: Session, resident: ResidentTask) -> None:
    jobs, stream = Jobs(spark_session), Stream()
    jobs.run([task("a")], stream.tables(), None, may_stay=True)
    stream.brought = 1
    with ThreadPoolExecutor(1) as pump:
        running = pump.submit(jobs.run, [task("a"), task("endless", ENDLESS, evaluation_ms=120_000)], stream.tables(), None, may_stay=True)
        wait_until(lambda: jobs._running, 30)
        jobs.cancel("endless")
        found = running.result(60)
    assert isinstance(found[1], Cancelled) and rows(found[0]) == [{"n": 3}]
    assert stream.given == [0], "nothing was lost"


def test_what_is_removed_and_forgotten_at_once_ends_nobody_elses_answer(spark_session: Session, resident: ResidentTask) -> None:
    jobs = Jobs(spark_session)
    with ThreadPoolExecutor(1) as pump:
        running = pump.submit(jobs.run, [task("a"), task("endless", ENDLESS, evaluation_ms=3_000)], Stream().tables(), None, may_stay=True)
        wait_until(lambda: jobs._running, 30)
        jobs.cancel("endless")
        jobs.forget("endless")
        assert rows(running.result(60)[0]) == [{"n": 3}]


def test_what_no_interrupt_ends_costs_the_worker(spark_session: Session, resident: ResidentTask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.spark.jobs.GRACE_S", 0.5)
    jobs = Jobs(spark_session)
    jobs.run([task("a")], Stream().tables(), None, may_stay=True)
    before = set(workers(jvm_pid(spark_session)))
    with ThreadPoolExecutor(1) as pump:
        deaf = Task("SELECT 1", frozenset({"followed"}), 1, (Deaf(),), "deaf")  # type: ignore[arg-type]
        running = pump.submit(jobs.run, [task("a"), deaf], Stream().tables(), None, may_stay=True)
        wait_until(lambda: jobs._running, 30)
        jobs.cancel("deaf")
        found = running.result(60)
    assert rows(found[0]) == [{"n": 3}] and isinstance(found[1], Cancelled)
    wait_until(lambda: not before <= set(workers(jvm_pid(spark_session))), 30)


class Deaf:
    """Sleeps where it should be made. Its worker ends with a shorter grace."""

    static, name, first = False, "deaf", ""

    def __setstate__(self, state: object) -> None:
        setattr(module, "GRACE_S", 0.2)

    def __getstate__(self) -> tuple[int]:
        return (1,)

    @property
    def kept(self) -> None:
        threading.Event().wait(600)


def test_answers_that_are_too_much_together_are_asked_for_one_by_one(
        spark_session: Session, resident: ResidentTask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RESULT_BYTES", 100_000)
    some, many = (task(name, f"SELECT hash(range) AS n FROM range({count})") for name, count in (("some", 8_000), ("many", 20_000)))
    found = Jobs(spark_session).run([some, some, many], Stream().tables(), None, may_stay=True)
    assert [len(rows(one)) for one in found[:2]] == [8_000] * 2
    assert isinstance(found[2], LimitExceeded) and found[2].limit == "evaluation_bytes"


def test_a_worker_begins_again_after_close(spark_session: Session, resident: ResidentTask) -> None:
    jobs = Jobs(spark_session)
    for _ in range(2):
        assert rows(jobs.run([task("a")], Stream().tables(), None, may_stay=True)[0]) == [{"n": 3}]
        resident.close()


def test_who_does_not_tell_the_secret_is_not_taken_for_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_HELLO_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        for told, taken in ((b"x" * 32, False), (b"", False), (b"short", False), (b"s" * 32, True)):
            with socket.create_connection(listening.getsockname()) as other, listening.accept()[0] as connection:
                other.sendall(told)
                assert module._says(connection, b"s" * 32) == taken


@pytest.mark.parametrize(("master", "slots"), [
    ("local", "local[2]"), ("local[2]", "local[3]"), ("local[*]", f"local[{processors() + 1}]"), ("local[2,4]", "local[3,4]"),
    ("spark://host:7077", "spark://host:7077")])
def test_there_is_a_slot_for_the_resident_task(master: str, slots: str, tmp_path: Path) -> None:
    assert configuration(SparkSettings(master=master), tmp_path)["spark.master"] == slots

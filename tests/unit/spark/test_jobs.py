"""Spark SQL that is over its time: it is cancelled, and what does not react costs the JVM. Spark is a stand-in here."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError

from engine.limits import Cancelled, EvaluationLimits, LimitExceeded
from engine.spark import jobs as module
from engine.spark.jobs import MOST_LOST, Jobs
from engine.worker.bundles import Found, QueryFailed, Task
from tests.waiting import wait_until

ANSWER = Found(pa.table({"n": [7]}))
SOON = EvaluationLimits(evaluation_ms=1)
FAR = 1e12      # in seconds since 1970


class StandIn:
    """A session and its context, on a cluster where there are `executors`: of each whether it is there, and when it was removed. What runs
    ends when it is cancelled; its task has ended when it was asked for `deaf` times."""

    def __init__(self, deaf: int, executors: Sequence[tuple[bool, float | None]] | None = None) -> None:
        self.deaf, self.asked = deaf, 0
        self.executors = [(True, None), *(executors or ())]     # the driver is one
        self.alive, self.killed = True, False
        self.cancelled = threading.Event()
        self.tags: set[str] = set()
        self.spark = SimpleNamespace(sparkContext=self)
        self.settings, self.residents = SimpleNamespace(partitions=2, local=executors is None), list[Any]()
        self._jsc = SimpleNamespace(sc=lambda: self)

    addJobTag = property(lambda self: self.tags.add)
    removeJobTag = property(lambda self: self.tags.discard)

    def cancelJobsWithTag(self, tag: str) -> None:
        assert tag in self.tags
        self.cancelled.set()

    def statusTracker(self) -> StandIn:
        if not self.alive:
            raise ConnectionRefusedError("the JVM is gone")
        return self

    def statusStore(self) -> StandIn:
        return self

    def executorList(self, active_only: bool) -> Any:
        def executor(number: int) -> Any:
            there, removed = self.executors[number]
            at = SimpleNamespace(getTime=lambda: (removed or 0) * 1000)
            date = SimpleNamespace(isDefined=lambda: removed is not None, get=lambda: at)
            return SimpleNamespace(id=lambda: str(number) if number else "driver", isActive=lambda: there, removeTime=lambda: date)

        assert not active_only
        return SimpleNamespace(size=lambda: len(self.executors), apply=executor)

    def getJobIdsForTag(self, tag: str) -> list[int]:
        assert tag.startswith("evaluation-")
        return [1, 2]

    def getJobInfo(self, job: int) -> Any:
        return SimpleNamespace(stageIds=[5, 6]) if job == 2 else None

    def getStageInfo(self, stage: int) -> Any:
        self.asked += stage == 6
        return SimpleNamespace(numActiveTasks=int(self.asked <= self.deaf)) if stage == 6 else None

    def kill(self) -> None:
        self.alive, self.killed = False, True

    def work(self) -> Found:
        assert self.cancelled.wait(30)
        raise RuntimeError("the job was cancelled")


def limited(session: StandIn, work: Callable[[], Found], limits: EvaluationLimits = SOON) -> Found:
    return Jobs(session).limited("q", limits, work)  # type: ignore[arg-type]


def test_spark_sql_over_its_time_is_cancelled_and_its_task_waited_for() -> None:
    session = StandIn(deaf=3)
    with pytest.raises(LimitExceeded) as caught:
        limited(session, session.work)
    assert (caught.value.limit, str(caught.value)) == ("evaluation_ms", "the evaluation took longer; the limit evaluation_ms is 1")
    assert session.asked == 4 and not session.killed and not session.tags


def test_a_task_of_spark_sql_that_does_not_react_costs_the_jvm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "GRACE_S", 0)
    session = StandIn(deaf=1_000)
    with pytest.raises(LimitExceeded) as caught:
        limited(session, session.work)
    assert caught.value.limit == "evaluation_ms" and session.killed


def test_a_jvm_that_died_of_what_was_over_its_time_has_no_tasks() -> None:
    session = StandIn(deaf=1_000)

    def work() -> Found:
        try:
            return session.work()
        finally:
            session.alive = False

    with pytest.raises(LimitExceeded) as caught:
        limited(session, work)
    assert caught.value.limit == "evaluation_ms"


def test_an_answer_that_comes_after_its_time_is_none() -> None:
    session = StandIn(deaf=0)

    def work() -> Found:
        assert session.cancelled.wait(30)
        return ANSWER

    with pytest.raises(LimitExceeded):
        limited(session, work)
    assert not session.killed


@pytest.mark.parametrize(("lost", "runs"), [([], 1), ([(True, None), (False, 1.0)], 1), ([(True, None), (False, FAR)], MOST_LOST)],
                         ids=["all are there", "one ended before", "one ended meanwhile"])
def test_time_in_which_executors_were_lost_does_not_count(lost: list[tuple[bool, float | None]], runs: int) -> None:
    session, ran = StandIn(0, lost or [(True, None)]), list[int]()

    def work() -> Found:
        ran.append(1)
        session.cancelled.clear()
        return session.work()

    with pytest.raises(LimitExceeded):
        limited(session, work)
    assert len(ran) == runs


def test_a_plan_of_spark_sql_waits_while_there_is_no_executor() -> None:
    session, ran = StandIn(0, [(False, 1.0)]), list[int]()

    def work() -> Found:
        ran.append(1)
        session.cancelled.clear()
        return ANSWER if len(ran) == 3 * MOST_LOST else session.work()

    assert limited(session, work, EvaluationLimits(evaluation_ms=20)) is ANSWER


def test_what_fails_or_ends_in_time_is_not_cancelled() -> None:
    session = StandIn(deaf=0)
    assert limited(session, lambda: ANSWER, EvaluationLimits()) is ANSWER

    def fail() -> Found:
        raise ValueError("its own")

    with pytest.raises(ValueError, match="its own"):
        limited(session, fail, EvaluationLimits())
    with pytest.raises(LimitExceeded) as caught:
        limited(session, lambda: Found(pa.table({"n": [1, 2]})), EvaluationLimits(evaluation_rows=1))
    assert caught.value.limit == "evaluation_rows"
    assert not session.cancelled.is_set() and not session.asked and not session.tags


def test_the_task_of_a_removed_query_that_does_not_react_costs_the_jvm_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "GRACE_S", 0)
    session = StandIn(deaf=1_000)
    jobs = Jobs(session)  # type: ignore[arg-type]
    found: list[BaseException] = []

    def evaluate() -> None:
        try:
            jobs.limited("q", EvaluationLimits(), session.work)
        except BaseException as failure:
            found.append(failure)

    thread = threading.Thread(target=evaluate)
    thread.start()
    wait_until(lambda: session.tags, 30)
    jobs.cancel("q")
    thread.join(30)
    assert isinstance(found[0], Cancelled) and session.killed


@pytest.mark.parametrize(("failure", "told"), [
    ("[SPARK_JOB_CANCELLED] Job 1 cancelled part of cancelled job tags one-shot-2", []), ("[SOME_OTHER] failure", ["ERROR"])])
def test_a_job_that_was_cancelled_is_no_error_in_the_log(
        failure: str, told: list[str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    def run_local(*_: object) -> None:
        raise RuntimeError(f"An error occurred while calling collectAndServe.\n: org.apache.spark.SparkException: {failure}\n\tat x.y(z)")

    monkeypatch.setattr(module, "run_local", run_local)
    [found] = Jobs(StandIn(deaf=0)).run([Task("SELECT 1", frozenset(), 1)], {}, frozenset())  # type: ignore[arg-type]
    assert isinstance(found, QueryFailed)
    assert [record.levelname for record in caplog.records if record.levelname != "DEBUG"] == told


@pytest.mark.parametrize("sign", [
    "Python worker exited unexpectedly (crashed)", "java.io.EOFException",
    "EOFException occurred while reading the port number from engine.spark.daemon's stdout and terminated with code: 137."])
def test_a_task_under_which_a_worker_died_is_run_again(sign: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Died(Py4JJavaError):  # type: ignore[misc]
        def __init__(self) -> None:
            """It has no exception of a JVM."""

        def __str__(self) -> str:
            return f"org.apache.spark.SparkException: {sign}"

    answers: list[Exception | list[Found]] = [Died(), [ANSWER]]

    def run_local(*_: object) -> list[Found]:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(module, "run_local", run_local)
    [found] = Jobs(StandIn(deaf=0)).run([Task("SELECT 1", frozenset(), 1)], {}, frozenset())  # type: ignore[arg-type]
    assert isinstance(found, Found)


def test_memory_that_a_function_in_spark_sql_wants_is_the_limit_of_a_worker() -> None:
    def work() -> Found:
        raise RuntimeError("An exception was thrown from the Python worker:\nTraceback (most recent call last):\n  File x\nMemoryError\n")

    with pytest.raises(LimitExceeded) as caught:
        limited(StandIn(deaf=0), work, EvaluationLimits())
    assert caught.value.limit == "worker_memory"


def test_a_query_that_is_forgotten_while_the_others_of_its_job_run_is_cancelled_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = Jobs(StandIn(deaf=0))  # type: ignore[arg-type]
    jobs.cancel("a")
    found = ANSWER

    def run(spark: object, tasks: list[Task], *more: object) -> list[Found]:
        jobs.forget("a")
        return [found] * len(tasks)

    monkeypatch.setattr(module, "run_local", run)
    answers = jobs.run([Task("", frozenset(), 1, query=query) for query in "abc"], {}, None)
    assert isinstance(answers[0], Cancelled) and answers[1:] == [found, found]

"""The evaluator dies, halts or fails: it is started again within the process, and the answers are those of an undisturbed run."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from engine.runtime.errors import EngineError, plain
from engine.runtime.resources import ResultEvent
from engine.supervision import Backoff
from tests.unit.runtime.test_engine import EVENTS, NOW, TEXT, Running, item

STEPWISE = ("REGISTER ISTREAM changes AS SELECT ?s (COUNT(*) AS ?n) FROM STREAM <http://ex.org/s> [RANGE 3s STEP 1s] "
            "WHERE { ?s <http://ex.org/p> ?o } GROUP BY ?s")


def ready(running: Running) -> None:
    running.engine.put_stream("s", EVENTS)
    running.engine.register(TEXT)
    running.engine.register(STEPWISE)


def push(running: Running, *numbers: int) -> None:
    for number in numbers:
        running.engine.push("s", [item(NOW + number * 500, str(number))])


def logged(running: Running, last: int) -> dict[str, list[ResultEvent]]:
    """The results when all up to the item `last` has been processed."""
    running.engine.put_graph(f"http://ex.org/settled{last}", [])
    return {name: running.results(name) for name in ("q", "changes")}


@pytest.fixture
def undisturbed(tmp_path: Path) -> dict[str, list[ResultEvent]]:
    with Running(tmp_path / "undisturbed") as running:
        ready(running)
        push(running, *range(40))
        return logged(running, 39)


def test_a_death_in_mid_stream_changes_no_result(tmp_path: Path, undisturbed: dict[str, list[ResultEvent]]) -> None:
    with Running(tmp_path / "killed") as running:
        ready(running)
        for death in range(3):
            push(running, *range(death * 10, death * 10 + 10))
            running.backend.die(RuntimeError("the JVM has died"))
            running.until(lambda: running.engine.state == "restarting")
            running.until(lambda: running.engine.state == "running")
        push(running, *range(30, 40))
        assert logged(running, 39) == undisturbed
        assert running.backend.starts == 4


@pytest.mark.parametrize(("failure", "told"), [
    (ConnectionRefusedError(111, "Connection refused"), "Spark's JVM has ended"),
    (RuntimeError("[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: Job aborted\n\tat org.apache.Spark SQLSTATE: X"),
     "A streaming query of Spark's has failed: Job aborted"),
    (RuntimeError("one line\nand a stack"), "one line"), (KeyError(), "KeyError"), (ValueError("x" * 9_000), "x" * 300)])
def test_why_the_evaluator_is_started_again_is_one_plain_line(failure: Exception, told: str) -> None:
    assert plain(failure) == told


def test_pushes_and_reads_go_on_while_the_evaluator_is_started_again(
        tmp_path: Path, undisturbed: dict[str, list[ResultEvent]]) -> None:
    with Running(tmp_path / "killed") as running:
        ready(running)
        push(running, *range(20))
        running.backend.starting.clear()
        running.backend.die(RuntimeError("the JVM has died"))
        running.until(lambda: running.engine.state == "restarting")
        push(running, *range(20, 40))
        assert not running.engine.health()[0] and running.engine.ready
        assert {info.name: info.state for info in running.engine.queries()} == {"q": "restarting", "changes": "restarting"}
        assert running.results() and running.engine.stream("s").state["items"] == 40
        with pytest.raises(EngineError) as error:
            running.engine.sparql("ASK { ?s ?p ?o }")
        assert (error.value.slug, error.value.status) == ("engine-restarting", 503)
        running.backend.starting.set()
        running.until(lambda: running.engine.state == "running")
        assert logged(running, 39) == undisturbed
        states = [(notice.query, notice.data["state"]) for notice in running.notices if notice.kind == "status"]
        for name in ("q", "changes"):
            assert [state for query, state in states if query == name][-2:] == ["restarting", "running"]


def test_the_end_of_the_evaluator_is_never_put_down_to_a_query(tmp_path: Path) -> None:
    """All evaluations fail while it goes down, before its death is noticed."""
    with Running(tmp_path) as running:
        ready(running)
        running.backend.executor.failing |= {"q1c1", "q2c1"}
        running.backend.down = True
        push(running, *range(6))
        running.until(lambda: running.engine.state == "restarting")
        running.backend.executor.failing.clear()
        running.backend.down = False
        running.until(lambda: running.engine.state == "running")
        assert {info.state for info in running.engine.queries()} <= {"running", "idle"}
        assert running.ticks(2)[:2] == [NOW + 1_000, NOW + 2_000]


def test_a_query_that_ends_the_evaluator_twice_fails_alone(tmp_path: Path, undisturbed: dict[str, list[ResultEvent]]) -> None:
    with Running(tmp_path / "killed") as running:
        ready(running)
        running.engine.register(TEXT.replace("QUERY q", "QUERY deadly"))
        running.backend.executor.deadly["q3c1"] = NOW + 5_000
        push(running, *range(40))
        running.until(lambda: running.engine.query("deadly").state == "failed")
        running.until(lambda: running.engine.state == "running")
        results = logged(running, 39)
        assert {name: results[name] for name in undisturbed} == undisturbed
        assert [event.tick for event in running.results("deadly")] == [NOW + 1_000 * n for n in range(1, 5)]
        assert "its evaluation ended the evaluator 2 times" in str(running.engine.query("deadly"))
        assert running.backend.starts == 3 and not running.engine._machine.deaths


def test_failures_in_a_row_are_given_up(tmp_path: Path) -> None:
    running = Running(tmp_path)
    engine = running.start()
    ready(running)
    running.backend.executor.failing.add("q1c1")
    running.backend.down = True
    push(running, 0, 2)
    running.until(lambda: engine.state == "failed")
    assert running.backend.starts == 1 + running.settings.restarts_in_a_row
    engine.stop()


def test_a_start_that_fails_while_starting_again_is_tried_again(tmp_path: Path) -> None:
    with Running(tmp_path) as running:
        ready(running)
        running.backend.refusals = 2
        running.backend.die(RuntimeError("the JVM has died"))
        running.until(lambda: running.backend.starts == 4 and running.engine.state == "running")


def test_a_halted_evaluator_is_noticed_and_then_ended(tmp_path: Path) -> None:
    """As a JVM that was stopped by a signal: every call hangs."""
    with Running(tmp_path) as running:
        ready(running)
        push(running, 0, 1)
        running.ticks(0)
        running.backend.halted.set()
        running.until(lambda: not running.engine.health()[0])
        assert "answer" in running.engine.health()[1]["reason"]
        push(running, 2, 3, 4, 5)
        running.until(lambda: running.engine.state == "restarting")
        running.until(lambda: running.engine.state == "running")
        assert running.ticks(2)[:2] == [NOW + 1_000, NOW + 2_000]
        running.until(lambda: running.engine.health()[0])


def test_an_evaluator_that_answers_late_is_not_ended(tmp_path: Path) -> None:
    with Running(tmp_path, silence_s=3600.0) as running:
        ready(running)
        running.backend.halted.set()
        running.until(lambda: not running.engine.health()[0])
        running.backend.halted.clear()
        running.until(lambda: running.engine.health()[0])
        assert running.backend.starts == 1


def test_an_engine_can_be_stopped_while_its_evaluator_is_started_again(tmp_path: Path) -> None:
    running = Running(tmp_path)
    engine = running.start()
    ready(running)
    running.backend.starting.clear()
    running.backend.die(RuntimeError("the JVM has died"))
    running.until(lambda: engine.state == "restarting")
    threading.Timer(0.05, running.backend.starting.set).start()
    engine.stop()
    with Running(tmp_path) as again:
        push(again, 0, 1, 2)
        assert again.ticks(1) == [NOW + 1_000]


def test_a_file_of_the_log_that_vanishes_while_the_engine_runs_is_a_loss_that_is_told(tmp_path: Path) -> None:
    with Running(tmp_path) as running:
        ready(running)
        push(running, 0)
        logged(running, 0)
        running.without_feed()
        before = set((tmp_path / "log").iterdir())
        push(running, 1)
        lost, = set((tmp_path / "log").iterdir()) - before
        lost.unlink()
        push(running, 2, 3, 4)
        running.backend.die(RuntimeError("the JVM has died"))
        assert running.ticks(2)[:2] == [NOW + 1_000, NOW + 2_000]
        assert any("lost" in entry["reason"] for entry in running.engine.health()[1]["degraded"])


def test_the_waits_grow_and_end() -> None:
    now = [0.0]
    backoff = Backoff(4, 1.0, 60.0, lambda: now[0])
    assert [backoff.failed(0) for _ in range(5)] == [0.0, 1.0, 2.0, 4.0, None]
    backoff = Backoff(2, 1.0, 60.0, lambda: now[0])
    for reached, lasts_s, wait_s in ((1, 100, 0.0), (5, 100, 0.0), (5, 10, 1.0), (9, 10, None)):
        assert backoff.failed(reached) == wait_s, reached
        backoff.began()
        now[0] += lasts_s

"""Threads that fail or hang: reported, run again where that is safe, and named by the readiness."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.runtime.errors import EngineError
from engine.runtime.log import LogFolder
from engine.runtime.log_threads import LogKeeper, LogWriter, Timer
from engine.runtime.settings import Settings
from engine.runtime.threads import Owner, Sight, Watch
from engine.supervision import ANY_NUMBER, Backoff, FatalError, Keeper, Persistent, Worker, troubles
from tests.unit.runtime.test_engine import EVENTS, NOW, TEXT, Running, item
from tests.waiting import wait_until


class Injected(BaseException):
    """What no ``except Exception`` holds up."""


def once(call: Callable[..., Any], failure: BaseException, fatal: int = 1) -> Callable[..., Any]:
    """The same, but the first `fatal` calls fail."""
    left = [failure] * fatal

    def wrapped(*given: Any, **named: Any) -> Any:
        if left:
            raise left.pop()
        return call(*given, **named)
    return wrapped


def test_a_thread_that_fails_is_told_and_run_again(caplog: pytest.LogCaptureFixture) -> None:
    done = threading.Event()
    worker = Worker("one", once(done.set, Injected("injected")))
    with caplog.at_level(logging.ERROR):
        worker.start()
        assert done.wait(10) and worker.join(10)
    assert (worker.state, worker.failures) == ("ended", 1) and worker.trouble(1) is None
    assert "the thread one failed" in caplog.text and "injected" in caplog.text and "Traceback" in caplog.text


def test_a_thread_that_fails_again_and_again_is_given_up() -> None:
    given_up: list[BaseException] = []
    for failure, failures in ((Injected("always"), 3), (FatalError("at once"), 1)):
        worker = Worker("one", once(lambda: None, failure, 100), given_up.append, most=2)
        worker.start()
        assert worker.join(10)
        assert (worker.state, worker.failures) == ("failed", failures) and given_up.pop() is failure
        assert troubles([worker], 1) == ["the thread one has failed"]


def test_a_thread_that_hangs_is_told() -> None:
    hold, begun = threading.Event(), threading.Event()

    def body() -> None:
        with worker.busy():
            begun.set()
            assert hold.wait(10)
    worker = Worker("one", body)
    worker.start()
    assert begun.wait(10)
    assert "at the same work" in (worker.trouble(-1) or "") and worker.trouble(1_000) is None
    hold.set()
    assert worker.join(10) and worker.trouble(0) is None


@pytest.mark.parametrize("victim", ["log-writer", "log-keeper", "timer", "owner", "evaluator-watch"])
def test_each_thread_of_the_engine_survives_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, victim: str) -> None:
    with Running(tmp_path) as running:
        engine, machine = running.engine, running.machine
        engine.put_stream("s", EVENTS)
        engine.register(TEXT)
        thread = next(worker for worker in machine.workers if worker.name == victim)
        match victim:
            case "log-writer":
                monkeypatch.setattr(LogWriter, "_commit", once(LogWriter._commit, Injected(victim)))
                with pytest.raises(EngineError) as error:
                    engine.push("s", [item(NOW)])
                assert error.value.status in (500, 503)
            case "log-keeper":
                monkeypatch.setattr(LogKeeper, "_tidy_up", once(LogKeeper._tidy_up, Injected(victim)))
                machine.keeper.wake()
            case "timer":
                monkeypatch.setattr(Timer, "_tick", once(Timer._tick, Injected(victim)))
                running.clock.advance(10)
            case "owner":
                monkeypatch.setattr(Owner, "_carry_out", once(Owner._carry_out, Injected(victim)))
                engine.push("s", [item(NOW)])
            case _:
                monkeypatch.setattr(machine._watch, "_alive", once(running.backend.alive, Injected(victim)))
        running.until(lambda: thread.failures > 0)
        running.until(lambda: engine.health()[0])
        engine.push("s", [item(NOW + 1_000), item(NOW + 2_000)])
        assert running.ticks(1)[-1] == NOW + 2_000 or running.ticks(2)
        assert {"log-writer", "log-keeper", "timer", "owner", "evaluator-watch", "feed"} <= engine.health()[1]["threads"].keys()


def test_a_thread_that_the_engine_cannot_do_without_fails_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    running = Running(tmp_path)
    engine = running.start()
    monkeypatch.setattr(Timer, "_tick", once(Timer._tick, Injected("always"), 100))
    running.clock.advance(10_000)
    running.until(lambda: engine.state == "failed")
    assert "timer" in " ".join(name for name, thread in engine.health()[1]["threads"].items() if thread["state"] == "failed")
    engine.stop()


@pytest.mark.parametrize("first", [True, False], ids=["start-up", "restart"])
def test_a_start_that_ends_without_a_word_is_a_failure_that_is_told(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: bool) -> None:
    running = Running(tmp_path)
    if first:
        monkeypatch.setattr(running.backend, "start", once(running.backend.start, Injected("no word")))
        running.engine.subscribe(running._notice)
        running.engine.start()
    else:
        running.start()
        monkeypatch.setattr(running.backend, "start", once(running.backend.start, Injected("no word")))
        running.backend.die(RuntimeError("the JVM has died"))
    running.until(lambda: running.engine.state == "failed")
    assert "no word" in running.engine.progress and "failed" in running.engine.health()[1]["reason"]
    running.engine.stop()


def test_a_write_of_the_log_of_which_nobody_knows_whether_it_lasts_fails_the_engine(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is in place, but its name could not be synced: its positions must not be given again."""
    running = Running(tmp_path)
    engine = running.start()
    engine.put_stream("s", EVENTS)

    def unsure(folder: Path) -> None:
        raise OSError(5, "Input/output error")
    with monkeypatch.context() as patched:
        patched.setattr("engine.files.sync", unsure)
        with pytest.raises(EngineError):
            engine.push("s", [item(NOW)])
        running.until(lambda: engine.state == "failed")
    engine.stop()
    with Running(tmp_path) as again:
        assert again.engine.push("s", [item(NOW + 1)]).accepted == 1


def test_a_log_writer_that_hangs_is_told_by_the_readiness(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hold, write = threading.Event(), LogFolder.write

    def slow(self: LogFolder, table: Any) -> Any:
        assert hold.wait(10)
        return write(self, table)
    with Running(tmp_path, stall_s=0.05) as running:
        engine = running.engine
        engine.put_stream("s", EVENTS)
        monkeypatch.setattr(LogFolder, "write", slow)
        pushing = threading.Thread(target=lambda: engine.push("s", [item(NOW)]))
        pushing.start()
        running.until(lambda: "log-writer" in engine.health()[1].get("reason", ""))
        hold.set()
        pushing.join(10)
        running.until(lambda: engine.health()[0])


def test_a_pump_that_does_not_come_back_is_told_by_the_readiness(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hold = threading.Event()
    with Running(tmp_path, stall_s=1.0) as running:
        engine = running.engine
        engine.put_stream("s", EVENTS)
        engine.register(TEXT)
        evaluate = running.backend.executor.evaluate
        monkeypatch.setattr(running.backend.executor, "evaluate", lambda dues: (hold.wait(10), evaluate(dues))[1])
        engine.push("s", [item(NOW), item(NOW + 1_000)])
        running.until(lambda: "owner" in engine.health()[1].get("reason", ""))
        assert not engine.health()[0] and engine.state == "running"
        hold.set()
        running.until(lambda: engine.health()[0])
        assert running.ticks(1) == [NOW + 1_000]


def test_a_feed_that_brings_nothing_is_begun_again(tmp_path: Path) -> None:
    with Running(tmp_path, stall_s=0.1) as running:
        engine = running.engine
        engine.put_stream("s", EVENTS)
        engine.register(TEXT)
        running.without_feed()
        engine.push("s", [item(NOW), item(NOW + 1_000)])
        assert running.ticks(1) == [NOW + 1_000] and running.backend.starts == 2


def test_what_the_watch_takes_for_a_stall() -> None:
    """Records wait, the pump is idle and stays where it is; one that is busy, or moves, or has nothing to do is left alone."""
    now, alive, lacking, broken = [0.0], [True], [""], list[tuple[int, str]]()
    sights = [Sight(True, 1, 5, 0, True)]
    watch = Watch(Settings(silence_s=20.0, stall_s=60.0), lambda: sights[0], lambda: alive[0], lambda: lacking[0],
                  lambda life, failure: broken.append((life, type(failure).__name__)), lambda: now[0])

    def look(after_s: float, sight: Sight) -> list[tuple[int, str]]:
        now[0], sights[0] = now[0] + after_s, sight
        watch._look()
        found = broken.copy()
        broken.clear()
        return found
    assert look(0, Sight(True, 1, 5, 0, True)) == []
    assert look(100, Sight(True, 1, 5, 0, True)) == []
    assert look(50, Sight(True, 1, 5, 3, True)) == [] and look(50, Sight(True, 1, 6, 2, True)) == []
    assert look(61, Sight(True, 1, 6, 2, False)) == [] and "2 records wait" in watch.reasons([])[0]
    assert look(1, Sight(True, 1, 6, 2, True)) == [(1, "StalledError")]
    assert look(100, Sight(False, 2, 6, 2, True)) == [] and watch.reasons([]) == []
    assert look(1, Sight(True, 2, 6, 2, True)) == [] and look(59, Sight(True, 2, 6, 2, True)) == []
    lacking[0] = "the cluster has no executor"
    assert look(0, Sight(True, 2, 7, 0, True)) == [] and watch.reasons([]) == ["the cluster has no executor: evaluations wait"]
    lacking[0] = ""
    assert look(0, Sight(True, 2, 7, 0, True)) == [] and watch.reasons([]) == []
    alive[0] = False
    assert look(0, Sight(True, 2, 7, 0, True)) == [] and look(19, Sight(True, 2, 7, 0, True)) == []
    assert watch.reasons([]) == ["Spark has not answered for 19 s"]
    assert look(1, Sight(True, 2, 7, 0, True)) == [(2, "EvaluatorDownError")]


def test_what_fails_for_days_is_begun_again_after_the_longest_wait() -> None:
    backoff = Backoff(ANY_NUMBER, 1.0)
    assert [backoff.failed(0) for _ in range(2_000)][-1] == 30.0


class Counted:
    """What a keeper keeps; its body fails while `failing`."""

    def __init__(self, given: int) -> None:
        self.given, self.runs, self.failing = given, 0, True
        self.thread = Persistent(f"counted {given}", self._body, lambda failure, wait_s: str(failure), 0.01, lambda: self.runs)

    def stop(self) -> None:
        self.thread.stop()

    def _body(self) -> None:
        self.runs += 1
        if self.failing:
            raise RuntimeError("not yet")
        self.thread.began()
        self.thread.ended.wait()


def test_a_keeper_begins_what_is_wanted_and_ends_what_is_not() -> None:
    wanted, made = {"a": 1}, list[Counted]()

    def make(key: str, given: int) -> Counted:
        made.append(Counted(given))
        return made[-1]

    keeper = Keeper("keeper", lambda: dict(wanted), make, 0.01)
    keeper.worker.start()
    wait_until(lambda: bool(made) and made[0].runs > 2, 5, lambda: "it is not begun again")
    assert made[0].thread.error == "not yet" and keeper.get("a") is made[0] and keeper.get("b") is None
    made[0].failing = False
    wait_until(lambda: made[0].thread.error is None, 5, lambda: "the error stays")
    wanted |= {"a": 2, "b": 3}
    wait_until(lambda: [one.given for one in made] in ([1, 3, 2], [1, 2, 3]), 5, lambda: f"{[one.given for one in made]}")
    assert not made[0].thread.worker.alive, "two are never at one thing"
    assert keeper.stop(5.0) and not any(one.thread.worker.alive for one in made)

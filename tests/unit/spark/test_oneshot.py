"""One-shot queries leave the pump a slot of Spark, however many there are."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from engine.execution.due import Answer
from engine.spark import beside as oneshot
from tests.waiting import wait_until


class Held:
    """An executor whose evaluations last until they are let go; `most` is how many there were at once."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.go, self.running, self.most, self._lock = threading.Event(), 0, 0, threading.Lock()

    def evaluate(self, dues: Any) -> list[Answer]:
        with self._lock:
            self.running += 1
            self.most = max(self.most, self.running)
        assert self.go.wait(60)
        with self._lock:
            self.running -= 1
        return [Answer("one-shot", 1, pa.table({}))]


def one_shots(monkeypatch: pytest.MonkeyPatch, slots: int) -> tuple[oneshot.OneShots, Held]:
    monkeypatch.setattr(oneshot, "Executor", Held)
    nothing = SimpleNamespace(setLocalProperty=lambda *_: None, addJobTag=lambda *_: None, clearJobTags=lambda: None,
                              cancelJobsWithTag=lambda *_: None)
    session = SimpleNamespace(settings=SimpleNamespace(partitions=slots), spark=SimpleNamespace(sparkContext=nothing))
    made = oneshot.OneShots(session)  # type: ignore[arg-type]
    executor: Any = made._executor
    return made, executor


@pytest.mark.parametrize(("slots", "at_once"), [(1, 1), (2, 1), (4, 3)])
def test_one_shots_leave_a_slot_to_the_pump(slots: int, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made, executor = one_shots(monkeypatch, slots)
    due: Any = SimpleNamespace(query="one-shot", ticks=(1,))
    with ThreadPoolExecutor(8) as threads:
        asked = [threads.submit(made.evaluate, due, 60.0) for _ in range(8)]
        wait_until(lambda: executor.running == at_once)
        executor.go.set()
        assert all(reply.result(60).table is not None for reply in asked)
    assert executor.most == at_once


def test_a_one_shot_waits_for_others_within_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    made, executor = one_shots(monkeypatch, 2)
    due: Any = SimpleNamespace(query="one-shot", ticks=(1,))
    with ThreadPoolExecutor(1) as threads:
        first = threads.submit(made.evaluate, due, 60.0)
        wait_until(lambda: executor.running == 1)
        with pytest.raises(TimeoutError, match="others took the 0.05 s"):
            made.evaluate(due, 0.05)
        executor.go.set()
        assert first.result(60).error is None

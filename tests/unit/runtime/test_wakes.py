"""When the pump is woken for what was written, and when that waits for more."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from engine.runtime import evaluator
from engine.runtime.errors import EngineError
from tests.unit.runtime.test_engine import EVENTS, NOW, TEXT, Running, item

TICK = NOW + 1_000 - NOW % 1_000


class Held(Running):
    """Its feed does nothing until it is woken; `woken` counts how often it was."""

    woken = 0

    def hold(self) -> None:
        self.without_feed()
        feed = self.machine._evaluator.feed
        assert feed is not None
        feed.wake = self._wake  # type: ignore[method-assign]

    def _wake(self) -> None:
        self.woken += 1
        threading.Thread(target=self._batch, daemon=True).start()

    def _batch(self) -> None:
        with suppress(EngineError):     # the engine ends
            self.machine._evaluator._batch(None)


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Held]:
    with Held(tmp_path) as found:
        found.engine.put_stream("s", EVENTS)
        found.engine.register(TEXT)
        found.engine.push("s", [item(TICK - 500)])
        found.engine.settle()  # type: ignore[attr-defined]
        found.hold()
        yield found


def test_what_makes_nothing_due_waits(held: Held) -> None:
    held.engine.push("s", [item(TICK - 400)])
    assert held.woken == 0 and held.machine.backlog


def test_what_something_may_be_due_with_does_not(held: Held) -> None:
    held.engine.push("s", [item(TICK - 400)])
    held.engine.push("s", [item(TICK)])
    assert held.woken == 1
    assert held.ticks(1) == [TICK]


def test_nor_do_commands(held: Held) -> None:
    held.engine.put_stream("another", {**EVENTS, "iri": "http://ex.org/another"})
    assert held.woken == 1


def test_nor_do_many_records_or_files(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluator, "_FEW_RECORDS", 2)
    held.engine.push("s", [item(TICK - 400)])
    assert held.woken == 0
    held.engine.push("s", [item(TICK - 300), item(TICK - 300, "2")])
    assert held.woken == 1
    held.until(lambda: not held.machine.backlog)
    monkeypatch.undo()
    for number in range(evaluator._FEW_WAITING):
        held.engine.push("s", [item(TICK - 200, str(number))])
    assert held.woken == 1
    held.engine.push("s", [item(TICK - 200, "last")])
    assert held.woken == 2


def test_who_reads_a_stream_sees_what_waits(held: Held) -> None:
    held.engine.push("s", [item(TICK - 400, "new")])
    assert [event.triples[0][2] for event in held.engine.tail_part("s").events] == ['"1"', '"new"']

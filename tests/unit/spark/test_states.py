"""Lasting closures whose evaluations different workers go on with, in turn, some of them twice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from engine.execution import kept
from engine.execution.executor import Executor
from engine.execution.own_process import OwnProcess
from engine.worker import closures, database
from engine.worker.bundles import Found, Task
from engine.worker.database import connect
from tests.bench import maintenance
from tests.bench.maintenance import Edges, by_executor, by_store


class Workers(OwnProcess):
    """Processes that run bundles, each with a database of its own; `turns(n)` are those that run bundle n, one after the other: only what
    the last of them gives is taken."""

    def __init__(self, turns: Callable[[int], tuple[int, ...]], work: Path) -> None:
        super().__init__(work)
        self._turns, self._bundles, self._workers = turns, 0, [self._connections[0], connect()]

    def run(self, tasks: Sequence[Task], tables: dict[str, pa.Table], alive: frozenset[str] | None,
            **given: bool) -> list[Found | Exception]:
        found: list[Found | Exception] = []
        for worker in self._turns(self._bundles):
            self._connections[0] = self._workers[worker]
            found = super().run(tasks, tables, alive, **given)
        self._bundles += 1
        return found


@pytest.mark.parametrize("turns", [lambda n: (n % 2,), lambda n: (n // 5 % 2,), lambda n: (0, 0) if n % 3 == 1 else (0,),
                                   lambda n: (0, 1) if n % 4 == 2 else (n % 3 % 2,)],
                         ids=["in turn", "now one, now the other", "twice", "begun by one, done by the other"])
@pytest.mark.parametrize("segments", [2, 5])
def test_workers_follow_each_other(
        turns: Callable[[int], tuple[int, ...]], segments: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(kept, "MOST_SEGMENTS", segments)
    monkeypatch.setattr(maintenance, "STEPS_OF_SMALL", 24)
    if segments == 2:   # many rows come at once: they are put in order, on all threads
        monkeypatch.setattr(closures, "ROW_GROUP", 30)
        monkeypatch.setattr(database, "ROW_GROUP", 30)
    edges, changed = Edges(400), 40
    executor = Executor(Workers(turns, tmp_path), force_strategy="incremental")
    found = list(by_executor(executor, edges, changed))
    assert found == list(by_store(edges, changed)) and any(found)

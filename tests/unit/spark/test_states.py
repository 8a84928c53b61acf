"""Lasting closures whose evaluations different workers go on with, in turn, some of them twice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pytest

from engine.execution import kept
from engine.worker import bundles, states
from engine.worker.database import connect
from tests.bench import maintenance
from tests.bench.maintenance import Edges, by_executor, by_store
from tests.differential.plans import here


class Workers:
    """Processes that run bundles, each with a database and states of its own; `turns(n)` are those that run bundle n, one after the
    other: only what the last of them gives is taken."""

    def __init__(self, turns: Callable[[int], tuple[int, ...]], patched: pytest.MonkeyPatch) -> None:
        self._turns, self._bundles, self._worker = turns, 0, 0
        self._connections = [connect() for _ in range(2)]
        self._states: list[dict[str, states._State]] = [{}, {}]
        self._static: list[dict[str, bundles._Made]] = [{}, {}]
        self._run = bundles.run_bundles
        patched.setattr(bundles, "database", lambda: self._connections[self._worker])
        patched.setattr(bundles, "_kept", lambda: self._static[self._worker])
        patched.setattr(states, "_states", lambda: self._states[self._worker])
        patched.setattr(bundles, "run_bundles", self.run)

    def run(self, given: Iterable[bytes]) -> Iterator[bundles.Result]:
        given, found = list(given), list[bundles.Result]()
        for self._worker in self._turns(self._bundles):
            found = list(self._run(given))
        self._bundles += 1
        return iter(found)


@pytest.mark.parametrize("turns", [lambda n: (n % 2,), lambda n: (n // 5 % 2,), lambda n: (0, 0) if n % 3 == 1 else (0,),
                                   lambda n: (0, 1) if n % 4 == 2 else (n % 3 % 2,)],
                         ids=["in turn", "now one, now the other", "twice", "begun by one, done by the other"])
@pytest.mark.parametrize("segments", [2, 5])
def test_workers_follow_each_other(turns: Callable[[int], tuple[int, ...]], segments: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "MOST_SEGMENTS", segments)
    monkeypatch.setattr(maintenance, "STEPS_OF_SMALL", 24)
    edges, changed = Edges(400), 40
    with here() as session:
        Workers(turns, monkeypatch)
        found = list(by_executor(session, edges, changed, "incremental"))
    assert found == list(by_store(edges, changed)) and any(found)

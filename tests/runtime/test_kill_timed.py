"""SIGKILL in the middle of steps of rules with a time of their own, those that a query uses and those of a registered program: the result
log must be the same as without.

A step writes the file of its state before its results are committed; the process is killed as soon as there is such a file. On Spark
no batch waits for the query, so that the lane beside the pump evaluates it, and it is paused and resumed in between.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from engine.runtime.results import ResultLog
from tests.runtime.test_kill import Host, bag
from tests.waiting import DEADLINE_S

pytestmark = pytest.mark.soak

PREFIX = "PREFIX ex: <http://ex.org/>\n"
MIXED = (PREFIX + "REGISTER QUERY mixed AS SELECT ?x ?class FROM STREAM ex:s [RANGE 1s STEP 500ms] USING RULES near, slow, places "
         "WHERE { ?x a ?class }")
NEAR = PREFIX + "ex:Here(X) :- Diamondminus[0.7,3.2]ex:p(X,Y)\nex:Stays(X) :- Boxminus[0,2]ex:Lately(X), not ex:Left(X)\n"
SLOW = PREFIX + "GRANULARITY 1 sec\nex:Lately(X) <- [4 sec] diamond ex:Here(X).\nex:Few(X) <- [3 #] diamond ex:p(X, Y).\n"
PLACES = "Document( Prefix(ex <http://ex.org/>) Window 2500 ms Group( Forall ?x ( ?x[rdf:type -> ex:Left] :- ?x[ex:p -> \"7\"] ) ) )"
PROGRAM = PREFIX + "FROM STREAM ex:s\nGRANULARITY 1 sec\nex:Seen(X) <- [3 sec] diamond ex:p(X, Y).\nex:Long(X) <- [2 sec] box ex:Seen(X).\n"
PUSHES = 16


def commands() -> Iterator[list[Any]]:
    """The recorded run: items in bursts, with silence between them that windows do not bridge."""
    yield ["stream", "s", {"iri": "http://ex.org/s", "time": "event"}]
    yield ["rules", "near", NEAR, "text/x-datalogmtl"]
    yield ["rules", "slow", SLOW, "text/x-lars"]
    yield ["rules", "places", PLACES]
    yield ["register", MIXED]
    yield ["register", PROGRAM, "program", "text/x-lars"]
    for push in range(PUSHES):
        begin = 1_000 * push + 6_000 * (push // 8)
        items = [[begin + 130 * n, [[f"<http://ex.org/x{(push + n) % 5}>", "<http://ex.org/p>", f'"{(push * n) % 9}"']]] for n in range(5)]
        yield ["push", "s", f"push {push}", items]
        if push % 6 == 5:
            yield ["settle"]
    yield ["settle"]


def run(folder: Path, evaluator: str, victims: Sequence[int], more: dict[int, list[Any]] | None = None, **settings: Any) -> int:
    """Send all commands; kill the process once a step that follows on some of them has written its state. How many kills hit. `more` are
    commands that go before the one of that number."""
    host, hit = Host(folder, evaluator, **settings), 0
    assert host.state == "running", host.state
    for number, command in enumerate(commands()):
        if more is not None and number in more:
            assert host.ask(more[number]) == more[number][2]
        before = _files(folder)
        host.ask(command)
        if number in victims:
            killer = threading.Thread(target=_kill_when, args=(host, folder, before))
            killer.start()
            killer.join()
            host.gone()
            host, hit = Host(folder, evaluator, **settings), hit + 1
            assert host.state == "running", host.state
    host.end()
    return hit


def _files(folder: Path) -> set[str]:
    return {path.name for path in (folder / "programs").glob("*")}


def _kill_when(host: Host, folder: Path, before: set[str]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not _files(folder) - before and time.monotonic() < deadline:
        time.sleep(0.0005)
    host.process.kill()


def logged(folder: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Ids, times and bags of the results of both."""
    results = ResultLog(folder / "thalweg.db")
    found = {name: [(event.id, event.at_ms, event.stream, bag(event.payload)) for event in results.read(name, 0, 1 << 30)]
             for name in ("mixed", "program")}
    results.close()
    return found


def test_kills_in_the_middle_of_steps_change_nothing(tmp_path: Path) -> None:
    assert run(tmp_path / "undisturbed", "memory", []) == 0
    assert run(tmp_path / "killed", "memory", [8, 11, 15, 20]) == 4
    undisturbed = logged(tmp_path / "undisturbed")
    assert len(undisturbed["mixed"]) > 30 and len(undisturbed["program"]) > 3
    assert logged(tmp_path / "killed") == undisturbed


@pytest.mark.spark
def test_a_kill_in_the_middle_of_a_step_changes_nothing_with_spark(tmp_path: Path) -> None:
    run(tmp_path / "undisturbed", "memory", [])
    pause = {9: ["state", "mixed", "paused"], 14: ["state", "mixed", "running", "backlog"]}
    assert run(tmp_path / "killed", "spark", [16], pause, batch_patience_ms=1) == 1
    assert logged(tmp_path / "killed") == logged(tmp_path / "undisturbed")

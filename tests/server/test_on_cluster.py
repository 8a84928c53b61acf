"""A server on a cluster whose workers share one folder with it (tests/cluster.py; `make test-cluster`)."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections.abc import Mapping
from itertools import chain
from pathlib import Path

import pytest

from tests.cluster import WORKERS
from tests.live import START_SECONDS, ServerProcess
from tests.server.pusher import Pusher
from tests.server.test_kill import EVENTS, MEDIA, Logged, Taken, finish, logged, pushes, register, send
from tests.sparks import executors_of_cluster as executors
from tests.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.skipif(WORKERS not in os.environ, reason="no cluster: `make test-cluster` starts one")]

__all__ = ["pushes"]    # a fixture
ENDED = (60, 130, 200)
"""The pushes after which executors end: all of them, then one, then the other."""


def run(folder: Path, pushes: list[bytes], environment: Mapping[str, str], ended: tuple[int, ...] = ()) -> tuple[Logged, Taken]:
    """What is logged, and how many items were taken and late; executors are killed behind some of the pushes."""
    with ServerProcess(folder / "data", environment=environment) as server:
        register(server.base)
        pusher = Pusher(server.base, "/streams/readings", pushes, MEDIA, folder / "journal")
        for number in pusher.remaining():
            send(server, pusher, number)
            if number in ended:
                there = executors()
                chosen = set(chain(*there)) if number == ended[0] else set(there[ended.index(number) % 2])
                assert chosen, there
                for process in chosen:
                    os.kill(process, signal.SIGKILL)
                wait_until(lambda: all(executors()) and not chosen.intersection(chain(*executors())), 60,
                           lambda: f"{there} were there, {executors()} came in the place of {chosen}; {server.log.read_text()[-1500:]}")
        taken = finish(server)
        server.stop()
    assert server.starts == 1
    return logged(folder / "data"), taken


@pytest.mark.timeout(900)
def test_executors_that_end_change_nothing(pushes: list[bytes], tmp_path: Path) -> None:
    expected, taken = run(tmp_path / "local", pushes, {"THALWEG_MASTER": "local[2]", "THALWEG_WORKER_PYTHON": sys.executable})
    assert sum(taken) == 2 * EVENTS
    found = run(tmp_path / "cluster", pushes, {"THALWEG_CLUSTER_FOLDER": ""}, ENDED)
    assert found == (expected, taken) and (tmp_path / "cluster" / "data" / "spark").is_dir()


def test_a_folder_that_executors_do_not_see_is_told() -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as hidden:
        server = ServerProcess(Path(hidden) / "data", environment={"THALWEG_CLUSTER_FOLDER": hidden})
        server.start()
        try:
            wait_until(lambda: not server.running, START_SECONDS)
        finally:
            if server.running:
                server.stop()
        assert f"do not see {hidden}/" in server.log.read_text()

"""A server on a cluster whose workers share one folder with it (tests/cluster.py; `make test-cluster`)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from itertools import chain, zip_longest
from pathlib import Path

import pytest

from engine.spark.packages import fits, pack_packages
from tests.broker import running_broker
from tests.cluster import WORKERS
from tests.live import START_SECONDS, ServerProcess
from tests.runtime.test_on_kafka import await_state, item, letters, put_stream
from tests.server.pusher import Pusher
from tests.server.test_kill import MEDIA, PER_PUSH, Logged, Taken, finish, logged, pushes, register, send
from tests.sparks import executors_of_cluster as executors
from tests.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.skipif(WORKERS not in os.environ, reason="no cluster: `make test-cluster` starts one")]

__all__ = ["pushes"]    # a fixture
PUSHES = 150
"""So many of the recorded pushes are sent: enough for some windows between kills, and a change of the rules."""
ENDED = (40, 80, 120)
"""The pushes after which executors end: all of them, then one, then the other."""


def run(folder: Path, pushes: list[bytes], environment: Mapping[str, str], ended: tuple[int, ...] = ()) -> tuple[Logged, Taken]:
    """What is logged, and how many items were taken and late; executors are killed behind some of the pushes."""
    with ServerProcess(folder / "data", environment=environment) as server:
        register(server.base)
        pusher = Pusher(server.base, "/streams/readings", pushes[:PUSHES], MEDIA, folder / "journal")
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


def test_a_topic_is_read_by_executors(tmp_path: Path) -> None:
    """Records are parsed where nothing of the server's is installed; both executors are killed in between."""
    with running_broker(tmp_path / "broker") as broker:
        broker.create("read", partitions=2)
        with ServerProcess(tmp_path / "data", ["--kafka", broker.servers]) as server:
            put_stream(server.base, "read", "read")
            for begin in (0, 100):
                for partition in (0, 1):
                    broker.send("read", [item(1_000 * number, number) for number in range(begin, begin + 100)], partition=partition)
                await_state(server, "read", lambda state: state["items"] == 2 * (begin + 100))
                for process in chain(*executors()) if not begin else ():
                    os.kill(process, signal.SIGKILL)
            assert (server.starts, letters(server.base, "read")) == (1, [])


BASE = str(sys._base_executable)    # type: ignore[attr-defined]
"""The Python that the environment of the tests was made from."""
IS_BARE = BASE.startswith("/usr/") and subprocess.run([BASE, "-c", "import duckdb"], capture_output=True).returncode != 0
"""Whether executors see it, and it has no packages of its own."""


def failure(folder: Path, environment: Mapping[str, str]) -> str:
    """What a server says that ends at its start."""
    server = ServerProcess(folder / "data", environment=environment)
    server.start()
    try:
        wait_until(lambda: not server.running, START_SECONDS)
    finally:
        if server.running:
            server.stop()
    return server.log.read_text()


@pytest.mark.timeout(900)
def test_executors_that_end_change_nothing(pushes: list[bytes], tmp_path: Path) -> None:
    """They have Python and Spark alone, if there is such a Python: their packages come from an archive."""
    expected, taken = run(tmp_path / "local", pushes, {"THALWEG_MASTER": "local[2]", "THALWEG_WORKER_PYTHON": sys.executable})
    assert sum(taken) == 2 * PUSHES * PER_PUSH and len(expected) > 100
    environment = {}
    if IS_BARE:
        (archive := tmp_path / "a name, with #1 %20" / "packages.tar.gz").parent.mkdir()
        pack_packages(archive)
        environment = {"THALWEG_WORKER_PYTHON": BASE, "THALWEG_EXECUTOR_ENV": str(archive)}
    found, taken_there = run(tmp_path / "cluster", pushes, {"THALWEG_CLUSTER_FOLDER": "", **environment}, ENDED)
    for result, other in zip_longest(expected, found):
        assert result == other      # the first one that differs: all of them are too long to be shown
    assert taken_there == taken and (tmp_path / "cluster" / "data" / "spark").is_dir()


@pytest.mark.skipif(not IS_BARE, reason=f"executors do not see {BASE}, or it has packages of its own")
def test_packages_that_executors_lack_are_told(tmp_path: Path) -> None:
    told = failure(tmp_path / "none", {"THALWEG_WORKER_PYTHON": BASE})
    assert "executors lack packages: " in told and "(No module named '" in told and "thalweg executor-env FILE.tar.gz" in told
    with tarfile.open(tmp_path / "empty.tar.gz", "w:gz"):
        pass
    told = failure(tmp_path / "empty", {"THALWEG_WORKER_PYTHON": BASE, "THALWEG_EXECUTOR_ENV": str(tmp_path / "empty.tar.gz")})
    assert "executors cannot import the packages of " in told and f"must be {fits()}" in told


def test_a_folder_that_executors_do_not_see_is_told() -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as hidden:
        assert f"do not see {hidden}/" in failure(Path(hidden), {"THALWEG_CLUSTER_FOLDER": hidden})

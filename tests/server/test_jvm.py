"""Spark's JVM is killed, told to end, or halted under a server that works: the server starts it again, and nothing is lost or doubled."""

from __future__ import annotations

import os
import signal
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
import requests

from tests.live import ServerProcess, ready
from tests.waiting import wait_until
from tests.server.follower import Follower
from tests.server.pusher import Pusher, Unanswered
from tests.server.test_kill import MEDIA, QUERIES, Logged, Taken, finish, logged, pushes, register, send, undisturbed

__all__ = ["pushes", "undisturbed"]
pytestmark = pytest.mark.spark

NOTICED_S = 5.0     # the bound that docs/http-api.md promises
ONCE = {130: signal.SIGKILL}
AGAIN = {60: signal.SIGKILL, 130: signal.SIGTERM, 200: signal.SIGKILL}
"""By the number of the push after which they come."""


def jvm(server: ServerProcess) -> int:
    """The process id of the server's JVM."""
    found = [pid for pid in server.family() if Path(f"/proc/{pid}/comm").read_text().strip() == "java"]
    assert len(found) == 1, found
    return found[0]


def not_ready_in_time(server: ServerProcess, began: float) -> None:
    wait_until(lambda: not ready(server.base), 60, lambda: "the server stays ready without a JVM")
    assert time.monotonic() - began < NOTICED_S * 2


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kills", [pytest.param(ONCE, id="once"), pytest.param(AGAIN, id="again", marks=pytest.mark.long)])
def test_a_jvm_killed_in_mid_stream_changes_nothing(
        pushes: list[bytes], undisturbed: tuple[Logged, Taken], tmp_path: Path, kills: dict[int, signal.Signals]) -> None:
    """Pushes go on while Spark is started again, and clients of the feeds stay connected."""
    expected, taken = undisturbed
    with ExitStack() as ends, ServerProcess(tmp_path / "data") as server:
        followers = [Follower(name, lambda: server.base) for name in QUERIES]
        register(server.base)
        for follower in followers:
            follower.start()
            ends.callback(follower.stop)
        pusher = Pusher(server.base, "/streams/readings", pushes, MEDIA, tmp_path / "journal")
        for number in pusher.remaining():
            try:
                send(server, pusher, number)
            except Unanswered:      # what came before it took longer than the server keeps a connection that is not used
                pusher.connect(server.base)
                send(server, pusher, number)
            if number in kills:
                began = time.monotonic()
                os.kill(jvm(server), kills[number])
                not_ready_in_time(server, began)
                states = {query["state"] for query in requests.get(f"{server.base}/queries", timeout=30).json()["queries"]}
                assert states == {"restarting"}
                if number == max(kills):
                    server.wait_ready()
        server.wait_ready()
        assert finish(server) == taken, "a push was lost, or taken twice"
        final = {query: f"{epoch}-{seq}" for query, epoch, seq, *_ in expected}
        wait_until(lambda: all(follower.last_id == final[follower.name] for follower in followers), 60,
                   lambda: f"seen {[(f.name, f.last_id) for f in followers]} of {final}")
        server.stop()
    assert server.starts == 1
    assert logged(tmp_path / "data") == expected
    for follower in followers:
        assert not follower.surprises
        assert [event.id for event in follower.events] == [f"{epoch}-{seq}" for query, epoch, seq, *_ in expected if query == follower.name]


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_halted_jvm_is_noticed_within_seconds_and_then_replaced(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data") as server:
        register(server.base)
        halted = jvm(server)
        began = time.monotonic()
        os.kill(halted, signal.SIGSTOP)
        not_ready_in_time(server, began)
        assert "answer" in requests.get(f"{server.base}/health/ready", timeout=10).json()["reason"]
        pushed = requests.post(f"{server.base}/streams/readings", data=b"1767225600000\t<http://a> <http://b> <http://c> .\n",
                               headers={"Content-Type": MEDIA}, timeout=30)
        assert pushed.status_code == 202
        wait_until(lambda: not Path(f"/proc/{halted}").exists(), 90, lambda: "the halted JVM is not ended")
        server.wait_ready()
        assert jvm(server) != halted
        server.wait_processed()


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_query_whose_product_the_jvm_does_not_outlive_fails_alone(tmp_path: Path) -> None:
    """Three patterns without a common variable over as many triples as Spark SQL is for: it keeps one row's share of them in memory."""
    rows = 70_000
    product = "?a <http://ex.org/p> ?x . ?b <http://ex.org/p> ?y . ?c <http://ex.org/p> ?z"
    queries = {"quick": "SELECT (COUNT(*) AS ?n) FROM STREAM <http://ex.org/s> [RANGE 1s STEP 1s] WHERE { ?s <http://ex.org/q> ?o }",
               "product": f"SELECT (COUNT(*) AS ?n) FROM STREAM <http://ex.org/s> [RANGE 10s STEP 1s] WHERE {{ {product} }}"}
    with ServerProcess(tmp_path / "data") as server:
        stream = f"{server.base}/streams/s"
        requests.put(stream, json={"iri": "http://ex.org/s", "time": "event"}, timeout=30).raise_for_status()
        for name, text in queries.items():
            requests.put(f"{server.base}/queries/{name}", data=text, headers={"Content-Type": "application/sparql-query"},
                         timeout=30).raise_for_status()

        def push(t: int, subject: str, predicate: str, count: int) -> None:
            lines = "".join(f"{t}\t<http://ex.org/{subject}{n}> <http://ex.org/{predicate}> \"{n}\" .\n" for n in range(count))
            requests.post(stream, data=lines, headers={"Content-Type": MEDIA}, timeout=60).raise_for_status()

        def query(name: str) -> dict[str, object]:
            return dict(requests.get(f"{server.base}/queries/{name}", timeout=30).json())

        push(10_000, "s", "p", rows)
        push(11_000, "s", "q", 3)
        wait_until(lambda: query("product")["state"] == "failed", 300, lambda: f"the product goes on: {query('product')}")
        server.wait_ready()
        push(12_000, "s", "q", 3)
        server.wait_processed()
        assert query("quick")["state"] in ("running", "idle")
        answer = requests.get(f"{server.base}/queries/quick/results", headers={"Accept": "text/csv"}, timeout=30)
        assert answer.text.split() == ["n", "3"]

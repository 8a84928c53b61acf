"""Spark's JVM is halted under a server that works, or ends with a query: the server starts it again. It is killed in test_kill.py."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
import requests

from tests.live import ServerProcess
from tests.waiting import wait_until
from tests.server.test_kill import MEDIA, jvm, not_ready_in_time, register

pytestmark = pytest.mark.spark


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

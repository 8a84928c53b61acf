"""The process around the application: sockets, bodies on their way in, signals, and what may not be."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import requests

from server import guard
from server.cli import main
from server.serving import listen
from tests.server.conftest import PATIENCE_SECONDS, QUICK, TEXT, Live
from tests.waiting import wait_until
from tests.server.fake_engine import FakeEngine, rows
from tests.server.sse import Events
from tests.server.test_feed import answer, hot

ROOT = Path(__file__).resolve().parents[2]


def connect(live: Live) -> http.client.HTTPConnection:
    return http.client.HTTPConnection("127.0.0.1", int(live.base.rpartition(":")[2]), timeout=PATIENCE_SECONDS)


def test_requests_go_through_the_bridge(live: Live) -> None:
    created = requests.put(f"{live.base}/streams/temps", json={"iri": "http://ex.org/temps"}, timeout=10)
    assert created.status_code == 201 and created.headers["content-type"] == "application/json"
    got = requests.get(f"{live.base}/streams/temps", timeout=10)
    assert got.json()["iri"] == "http://ex.org/temps"
    assert requests.get(f"{live.base}/streams/temps", headers={"If-None-Match": got.headers["ETag"]}, timeout=10).status_code == 200
    head = requests.head(f"{live.base}/streams/temps", timeout=10)
    assert head.status_code == 200 and head.content == b"" and int(head.headers["Content-Length"]) == len(got.content)
    options = requests.options(f"{live.base}/streams/temps", timeout=10)
    assert set(options.headers["Allow"].split(", ")) == {"GET", "HEAD", "PUT", "POST", "DELETE", "OPTIONS"}
    assert requests.get(f"{live.base}/streams/a%2Fb", timeout=10).status_code == 404
    refused = requests.put(f"{live.base}/streams/%C3%A4", json={}, timeout=10)
    assert refused.json()["name"] == "ä"


def test_the_query_method_is_served(live: Live) -> None:
    asked = {"data": "SELECT *", "headers": {"Content-Type": "application/sparql-query", "Accept": "text/csv"}, "timeout": 10}
    assert requests.request("QUERY", f"{live.base}/sparql", **asked).text.startswith("s,o\r\n")  # type: ignore[arg-type]


def test_heads_of_feeds_and_mixed_wishes_end_at_once(live: Live) -> None:
    hot(live.engine)
    url = f"{live.base}/queries/hot/results"
    assert requests.head(url, headers={"Accept": "text/event-stream"}, timeout=10).status_code == 406
    mixed = {"Accept": "application/trig, text/event-stream;q=0.5"}
    assert requests.get(url, headers=mixed, timeout=10).status_code == 406
    assert live.application.exchange.total == 0


def test_bodies_arrive_whole_however_they_are_sent(live: Live) -> None:
    live.engine.put_stream("temps", {})
    line = b"<http://ex.org/%06d> <http://ex.org/p> <http://ex.org/o> <http://g/%06d> .\n"
    body = b"".join(line % (number, number) for number in range(50_000))
    post = {"headers": {"Content-Type": "application/n-quads"}, "timeout": 30}
    assert requests.post(f"{live.base}/streams/temps", data=body, **post).json()["accepted"] == 50_000
    pieces: Iterator[bytes] = (body[start:start + 70_000] for start in range(0, len(body), 70_000))
    assert requests.post(f"{live.base}/streams/temps", data=pieces, **post).json()["accepted"] == 50_000


def test_a_body_that_breaks_off_is_not_taken(live: Live) -> None:
    live.engine.put_stream("temps", {})
    for head in (b"Content-Length: 1000\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n1c\r\n"):
        with socket.create_connection(("127.0.0.1", int(live.base.rpartition(":")[2]))) as client:
            client.sendall(b"POST /streams/temps HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/turtle\r\n" + head)
            client.sendall(b"<http://a> <http://b> 1 .   ")
    push = {"headers": {"Content-Type": "text/turtle"}, "timeout": 10}
    whole = requests.post(f"{live.base}/streams/temps", data="<http://a> <http://b> 2 .", **push)
    assert whole.json()["accepted"] == 1
    assert [item.triples[0][2][:3] for _, items, _, _ in live.engine.pushes for item in items] == ['"2"']


def test_a_body_larger_than_any_limit_is_refused_at_once(serve: Callable[..., Live]) -> None:
    live = serve(replace(QUICK, push_body_streamed=1000, graph_upload=1000))
    client = connect(live)
    client.putrequest("POST", "/streams/temps")
    client.putheader("Content-Type", "application/trig")
    client.putheader("Content-Length", str(1 << 40))
    client.endheaders()
    reply = client.getresponse()
    assert (reply.status, json.loads(reply.read())["limit"]) == (413, 1000)
    client.close()


def test_a_body_that_does_not_come_is_given_up(serve: Callable[..., Live]) -> None:
    live = serve(replace(QUICK, upload_seconds=0.05))
    client = connect(live)
    client.putrequest("POST", "/streams/temps")
    client.putheader("Content-Length", "10")
    client.endheaders()
    assert client.getresponse().status == 408
    client.close()


def test_health_is_told_without_the_pool(live: Live) -> None:
    assert requests.get(f"{live.base}/health/live", timeout=10).json() == {"status": "live"}
    live.engine.ready, live.engine.state = False, "starting"
    ready = requests.get(f"{live.base}/health/ready", timeout=10)
    assert (ready.status_code, ready.headers["Retry-After"], ready.json()["status"]) == (503, "2", "starting")
    feed = requests.get(f"{live.base}/queries/hot/results", headers={"Accept": "text/event-stream"}, timeout=10)
    assert (feed.status_code, feed.json()["type"].rpartition("/")[2]) == (503, "engine-starting")
    assert requests.get(f"{live.base}/health/live?x=1", timeout=10).status_code == 400
    assert requests.get(f"{live.base}/health/live", headers={"Host": "x"}, timeout=10).status_code == 421


def test_a_base_path_goes_before_everything(serve: Callable[..., Live]) -> None:
    live = serve(base_path="/thalweg")
    hot(live.engine)
    assert requests.get(f"{live.base}/queries/hot", timeout=10).json()["links"]["results"] == "/thalweg/queries/hot/results"
    assert requests.get(f"{live.base}/health/ready", timeout=10).status_code == 200
    assert requests.get(f"{live.base}/", headers={"Accept": "text/html"}, timeout=10).status_code == 200
    with Events(f"{live.base}/queries/hot/results") as events:
        assert events.next("hello").data["links"]["plan"] == "/thalweg/queries/hot/plan"
    outside = requests.get(live.base.removesuffix("/thalweg") + "/queries", timeout=10)
    assert outside.status_code == 404 and outside.json()["type"].endswith("/thalweg/problems/not-found")


def test_a_client_that_does_not_read_slows_nobody_and_is_told(serve: Callable[..., Live]) -> None:
    live = serve(replace(QUICK, ring_events=8, slow_seconds=0.0))
    hot(live.engine)
    table = rows(s=[f"<http://ex.org/{'x' * 1000}>"] * 500, t=['"1"'] * 500)
    slow = socket.socket()
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    slow.connect(("127.0.0.1", int(live.base.rpartition(":")[2])))
    slow.sendall(b"GET /queries/hot/results HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n")
    wait_until(lambda: live.application.exchange.subscribers("hot") == 1)
    with Events(f"{live.base}/queries/hot/results") as quick:
        quick.next("hello")
        for _ in range(40):
            live.engine.answer("hot", table)
            quick.next("result")
    received = b""
    slow.settimeout(PATIENCE_SECONDS)
    while b"slow-consumer" not in received:
        received += slow.recv(1 << 20)
    slow.close()
    assert b"event: gap" in received
    wait_until(lambda: live.application.exchange.total == 0)


def test_many_clients_get_every_event(live: Live) -> None:
    hot(live.engine)
    clients = [Events(f"{live.base}/queries/hot/results") for _ in range(50)]
    for client in clients:
        client.next("hello")
    ids = [answer(live.engine, number) for number in range(20)]
    for client in clients:
        assert [client.next("result").id for _ in ids] == ids
        client.response.close()
    wait_until(lambda: live.application.exchange.total == 0)


@pytest.mark.parametrize(("host", "name"), [
    ("localhost", "localhost"), ("LOCALHOST:80", "localhost"), ("127.0.0.1:1", "127.0.0.1"), ("[::1]:80", "[::1]"), ("[::1]", "[::1]"),
    ("localhost.", "localhost"), ("a.b:x", "a.b"), ("", "")])
def test_host_names(host: str, name: str) -> None:
    assert guard.host_name(host) == name


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "192.168.1.1", "example.org", "", "10.0.0.1"])
def test_other_addresses_than_loopback_are_refused_with_the_reason(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="loopback"):
        guard.refuse_foreign_address(address)
    assert main(["serve", "--host", address, "--port", "0"]) == 2
    assert "tokens" in capsys.readouterr().err


def test_what_the_command_line_refuses(capsys: pytest.CaptureFixture[str]) -> None:
    for address in ("127.0.0.1", "::1", "localhost", "127.8.8.8"):
        guard.refuse_foreign_address(address)
    assert main(["serve", "--workers", "2"]) == 2 and "one process" in capsys.readouterr().err
    with listen("127.0.0.1", 0) as taken:
        assert main(["serve", "--port", str(taken.getsockname()[1])]) == 1
    assert "cannot listen" in capsys.readouterr().err
    for port in ("99999", "-1", "x"):
        with pytest.raises(SystemExit) as ended:
            main(["serve", f"--port={port}"])
        assert ended.value.code == 2 and "argument --port" in capsys.readouterr().err
    for wrong in (["serve", "--limit", "none=1"], ["run"], ["fly"], []):
        with pytest.raises(SystemExit):
            main(wrong)


CHILD = """
import sys
from server.asgi import Application
from server.serving import Server, listen
from server.web import Site
from tests.server.conftest import QUICK
from tests.server.fake_engine import FakeEngine

engine = FakeEngine()
engine.put_stream("temps", {"iri": "http://ex.org/temps"})
engine.register(sys.argv[1], "hot")
listener = listen("127.0.0.1", 0)
print(listener.getsockname()[1], flush=True)
Server(Application(Site(engine, QUICK), stopping=engine.stop)).run(sockets=[listener])
print("stopped", engine.state, flush=True)
"""


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_process_in_order(sent: signal.Signals) -> None:
    child = subprocess.Popen([sys.executable, "-c", CHILD, TEXT], cwd=ROOT, stdout=subprocess.PIPE, text=True,
                             env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert child.stdout is not None
    try:
        base = f"http://127.0.0.1:{child.stdout.readline().strip()}"
        with Events(f"{base}/queries/hot/results") as events:
            events.next("hello")
            child.send_signal(sent)
            assert events.rest()[-1].data == {"reason": "shutdown", "reconnect": True}
        assert child.wait(PATIENCE_SECONDS) == 0
        assert child.stdout.read() == "stopped stopping\n"
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


def test_the_fake_engine_has_the_surface_of_the_engine() -> None:
    from engine.runtime.service import Engine
    missing = {name for name in vars(Engine) if not name.startswith("_") and name not in ("info",)} - set(dir(FakeEngine()))
    assert missing <= {"backend"}, missing

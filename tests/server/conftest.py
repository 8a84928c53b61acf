"""The server around an engine without Spark: in process, and behind a real uvicorn on a free port."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from engine.runtime.service import Engine
from server.app import create_app
from server.asgi import Application
from server.feeds.exchange import Exchange
from server.limits import Limits
from server.problems import MEDIA, SLUGS
from server.serving import Server, listen
from server.web import Site
from tests.server.fake_engine import FakeEngine
from tests.waiting import wait_until

PATIENCE_SECONDS = 30.0
TEMPS = {"iri": "http://ex.org/temps"}
TEXT = "REGISTER QUERY hot AS SELECT ?s ?t FROM STREAM <http://ex.org/temps> [RANGE 10s STEP 2s] WHERE { ?s <http://p> ?t }"
QUICK = Limits(heartbeat_seconds=30.0, shutdown_seconds=1.0, retry_ms=10)


@dataclass
class Live:
    """A running server."""

    engine: FakeEngine
    application: Application
    server: Server
    base: str


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


@pytest.fixture
def exchange(engine: Engine | FakeEngine) -> Iterator[Exchange]:
    """The feeds of an engine, as long as a test lasts."""
    found = Exchange(engine, Limits())
    found.start()
    yield found
    found.stop()


@pytest.fixture
def client(engine: FakeEngine) -> FlaskClient:
    """Requests straight into Flask."""
    app = create_app(engine, Site(engine, base_url="http://localhost:8175"))
    found = app.test_client()
    return found


@pytest.fixture
def temps(client: FlaskClient) -> FlaskClient:
    """The client, with the stream ``temps`` registered."""
    assert client.put("/streams/temps", json=TEMPS).status_code == 201
    return client


@pytest.fixture
def hot(temps: FlaskClient) -> FlaskClient:
    """The client, with the query ``hot`` registered too."""
    assert temps.put("/queries/hot", data=TEXT, content_type="application/sparql-query").status_code == 201
    return temps


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Live]]:
    """Start servers with limits of the test's choice; they end with the test."""
    running: list[tuple[Live, threading.Thread]] = []

    def start(limits: Limits = QUICK, engine: Any = None, base_path: str = "", origins: frozenset[str] = frozenset()) -> Live:
        own = engine or FakeEngine()
        application = Application(Site(own, limits, origins=origins), base_path, stopping=own.stop)
        listener = listen("127.0.0.1", 0)
        server = Server(application)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        wait_until(lambda: server.started)
        live = Live(own, application, server, f"http://127.0.0.1:{listener.getsockname()[1]}{base_path}")
        running.append((live, thread))
        return live

    yield start
    for live, thread in running:
        if thread.is_alive():
            live.server.end()
        thread.join(PATIENCE_SECONDS)
        assert not thread.is_alive(), "the server did not stop"


@pytest.fixture
def live(serve: Callable[..., Live]) -> Live:
    """A running server with the usual limits."""
    return serve()


def problem(reply: TestResponse, status: int | tuple[int, ...], slug: str | None = None) -> Any:
    """Check that a reply is a problem as documented; its body."""
    statuses = (status,) if isinstance(status, int) else status
    assert reply.status_code in statuses, (reply.status, reply.text)
    assert reply.content_type == MEDIA
    body = reply.get_json()
    found = body["type"].rpartition("/")[2]
    assert body["type"] == f"http://localhost/problems/{found}"
    assert body["status"] == reply.status_code and body["title"] and body["detail"] and body["instance"].startswith("urn:uuid:")
    assert found in SLUGS
    if slug is not None:
        assert found == slug
    return body

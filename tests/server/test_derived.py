"""Streams that queries make, over HTTP, with an engine that evaluates in memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from server.app import create_app
from tests.server.conftest import problem
from tests.unit.runtime.test_derived import CHAINED, HOT, READER
from tests.unit.runtime.test_engine import EVENTS, NOW, Running, item

ITEM = "<http://a> <http://b> <http://c> ."
TEXT = {"content_type": "application/sparql-query"}


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    with Running(tmp_path) as found:
        found.engine.put_stream("s", EVENTS)
        yield found


@pytest.fixture
def client(running: Running) -> FlaskClient:
    """The producer ``hot`` and its ``reader`` are registered."""
    client = create_app(running.engine).test_client()
    for text in (HOT, READER):
        assert client.post("/queries", data=text, **TEXT).status_code == 201
    return client


def test_a_stream_of_a_query_is_a_stream(client: FlaskClient, running: Running) -> None:
    running.engine.push("s", [item(NOW + 100, "5"), item(NOW + 4_500, "1")])
    running.ticks(1, "reader")
    streams = {stream["name"]: stream for stream in client.get("/streams").get_json()["streams"]}
    assert streams["hot"]["source"] == {"type": "query", "query": "hot"} and streams["hot"]["usedBy"] == ["reader"]
    assert streams["hot"] == {**client.get("/streams/hot").get_json()}
    assert client.get("/queries/hot").get_json()["makes"] == {"stream": "http://ex.org/hot", "usedBy": ["reader"]}
    assert client.get("/queries/reader").get_json()["windows"][0]["query"] == "hot"
    assert client.get("/queries/reader/plan").get_json()["streams"] == [{"iri": "http://ex.org/hot", "query": "hot"}]
    assert client.get("/streams/hot/items").text.count("http://ex.org/Hot") == 1
    assert "generatedAtTime" in client.get("/streams/hot/items", headers={"Accept": "application/trig"}).text
    assert "http://ex.org/hot" in client.get("/streams", headers={"Accept": "text/turtle"}).text
    pushed = client.post("/streams/hot", data=ITEM, content_type="text/turtle")
    assert problem(pushed, 405, "method-not-allowed")["query"] == "hot" and pushed.headers["Allow"] == "GET, HEAD"
    problem(client.delete("/streams/hot"), 405, "method-not-allowed")
    problem(client.put("/streams/hot", json={}), 409, "name-exists")


def test_what_others_read_is_changed_only_when_forced(client: FlaskClient) -> None:
    other = HOT.replace('"3"', '"4"')
    assert problem(client.delete("/queries/hot"), 409, "in-use")["usedBy"] == ["reader"]
    problem(client.patch("/queries/hot", json={"state": "paused"}), 409, "in-use")
    problem(client.put("/queries/hot?replace=true", data=other, **TEXT), 409, "in-use")
    problem(client.post("/queries/hot/restart?reset=true"), 409, "in-use")
    assert client.patch("/queries/hot", json={"state": "paused", "force": True}).get_json()["state"] == "paused"
    assert client.get("/queries/reader").get_json()["state"] == "paused"
    problem(client.patch("/queries/reader", json={"state": "running"}), 409, "bad-transition")
    for name in ("hot", "reader"):
        assert client.patch(f"/queries/{name}", json={"state": "running"}).status_code == 200
    assert client.put("/queries/hot?replace=true&force=true", data=other, **TEXT).status_code == 201
    assert client.post("/queries/hot/restart?reset=true&force=true").status_code == 202
    assert client.delete("/queries/hot?force=true").status_code == 204
    problem(client.get("/queries/reader"), 410, "query-removed")


def test_a_cycle_is_refused_with_its_place(client: FlaskClient) -> None:
    assert client.post("/queries", data=CHAINED.replace(":reader", ":chained"), **TEXT).status_code == 201
    cyclic = HOT.replace(":s [", ":chained [")
    refused = problem(client.put("/queries/hot?replace=true&force=true", data=cyclic, **TEXT), 422, "unsupported-in-streaming")
    assert "'hot' reads the stream of 'chained', which reads the stream of 'hot'" in refused["detail"]
    begin = cyclic.splitlines()[1].index(":chained [RANGE 2s]") + 1
    assert refused["errors"][0]["location"] == {"line": 2, "column": begin, "endLine": 2, "endColumn": begin + 19}
    explained = client.post("/explain", data=cyclic, **TEXT).get_json()
    assert not explained["valid"] and explained["errors"][0]["location"]["line"] == 2


@pytest.mark.parametrize(("options", "member"), [
    ({"limits": {"evaluation_ms": -1}}, "limits"), ({"limits": "5"}, "limits"), ({"limits": {"batch_patience_ms": 5}}, "limits"),
    ({"limits": {"evaluation_ms": True}}, "limits"), ({"colour": 1}, "colour"), ({"mixedTime": 5}, "mixedTime"),
    ({"replace": "no"}, "replace"), ({"force": 1}, "force"), ({"since": "yesterday"}, "since"), ({"media": "text/x-none"}, "media")])
def test_members_beside_a_text_that_are_wrong_are_422_and_named(client: FlaskClient, options: dict[str, object], member: str) -> None:
    for answer in (client.post("/queries", json={"text": HOT, "name": "hot", **options}),
                   client.put("/queries/hot", json={"text": HOT, **options})):
        found = problem(answer, 422, "unknown-parameter")
        assert found["parameter"] == member and "member of the body" in found["title"]
    if member == "colour":
        problem(client.post("/explain", json={"text": HOT, **options}), 422, "unknown-parameter")


def test_parameters_of_a_registration_that_are_wrong_are_400(client: FlaskClient) -> None:
    for query in ("since=yesterday", "replace=perhaps", "force=1"):
        found = problem(client.put(f"/queries/hot?{query}", data=HOT, **TEXT), 400, "unknown-parameter")
        assert found["parameter"] == query.partition("=")[0]

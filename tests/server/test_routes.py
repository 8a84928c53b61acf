"""Every route with what it does not take: the status and slug of docs/http-api.md, in one problem body, and nothing half-done."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from flask.testing import FlaskClient

from server.app import create_app
from server.problems import SLUGS
from server.web import Site
from tests.server.conftest import problem
from tests.server.fake_engine import FakeEngine

NAMES = {"name": "none", "id": "none", "file": "none.js", "slug": "none"}
METHODS = ("GET", "PUT", "POST", "DELETE", "PATCH")
TAKES_BODY = ("PUT", "POST", "PATCH")


def rules() -> Iterator[tuple[str, set[str], Any]]:
    """(path with unknown names, methods, endpoint's parameters) of every route."""
    app = create_app(FakeEngine())
    by_path: dict[str, set[str]] = {}
    for rule in app.url_map.iter_rules():
        with app.test_request_context(headers={"Host": "localhost"}):
            path = app.url_map.bind("localhost").build(rule.endpoint, {name: NAMES[name] for name in rule.arguments})
        by_path.setdefault(path, set()).update(rule.methods or ())
    yield from ((path, methods, None) for path, methods in sorted(by_path.items()))


ROUTES = [pytest.param(path, methods, id=path) for path, methods, _ in rules()]


@pytest.mark.parametrize(("path", "methods"), ROUTES)
def test_other_methods_are_405_with_allow(client: FlaskClient, path: str, methods: set[str]) -> None:
    for method in METHODS:
        if method not in methods:
            reply = client.open(path, method=method)
            body = problem(reply, 405, "method-not-allowed")
            assert set(reply.headers["Allow"].split(", ")) == set(body["allowed"]) == methods


@pytest.mark.parametrize(("path", "methods"), [route for route in ROUTES if route.id != "/sparql"])    # it takes what clients send
def test_unknown_parameters_are_400(client: FlaskClient, path: str, methods: set[str]) -> None:
    for method in methods - {"OPTIONS", "HEAD"}:
        body = problem(client.open(path + "?no-such-thing=1", method=method), 400, "unknown-parameter")
        assert body["parameter"] == "no-such-thing"


@pytest.mark.parametrize(("path", "methods"), ROUTES)
def test_unknown_names_types_and_bodies_are_refused(client: FlaskClient, engine: FakeEngine, path: str, methods: set[str]) -> None:
    for method in sorted(methods - {"OPTIONS", "HEAD"}):
        reply = client.open(path, method=method, **({"data": b"\x00", "content_type": "image/png"} if method in TAKES_BODY else {}))
        if "none" in path and method != "PUT":
            problem(reply, (404, 405, 415))
        elif method in TAKES_BODY and path not in ("/queries/none/restart",):
            problem(reply, (400, 404, 415))
            if reply.status_code == 415:
                assert reply.get_json()["supported"]
    assert (engine.streams(), engine.queries(), engine.graphs()) == ([], [], [])


@pytest.mark.parametrize(("path", "methods"), ROUTES)
def test_foreign_hosts_and_sites_are_refused(client: FlaskClient, path: str, methods: set[str]) -> None:
    for method in sorted(methods - {"OPTIONS", "HEAD"}):
        refused = client.open(path, method=method, headers={"Host": "evil.example"})
        assert (refused.status_code, refused.get_json()["type"].rpartition("/")[2]) == (421, "untrusted-host")
        for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site", "Origin": "http://other.localhost"},
                        {"Origin": "http://evil.example"}, {"Origin": "null"}):
            problem(client.open(path, method=method, headers=headers), 403, "cross-site-request")


@pytest.mark.parametrize(("path", "methods"), ROUTES)
def test_nothing_but_health_and_the_console_answers_while_the_engine_starts(client: FlaskClient, engine: FakeEngine, path: str,
                                                                            methods: set[str]) -> None:
    engine.ready, engine.state, engine.progress = False, "starting", "warming up"
    for method in sorted(methods - {"OPTIONS", "HEAD"}):
        reply = client.open(path, method=method)
        if path in ("/", "/info", "/health/live", "/favicon.ico"):
            assert reply.status_code == 200
        elif path == "/health/ready":
            assert reply.status_code == 503 and reply.headers["Retry-After"]
        elif path.startswith(("/static/", "/problems/")):
            problem(reply, 404)
        else:
            problem(reply, 503, "engine-starting")
            assert reply.headers["Retry-After"] == "2"


def test_paths_that_are_none(client: FlaskClient) -> None:
    for path in ("/nothing", "/streams/", "/queries/a/b/c", "/metrics", "/openapi.json"):
        problem(client.get(path), 404, "not-found")


@pytest.mark.parametrize("name", ["1a", "a..b", "a b", "-x", "ä", "x" * 65, "%2e%2e", "a%0d%0ab", "a%00"])
def test_bad_names_are_400(client: FlaskClient, name: str) -> None:
    problem(client.put(f"/streams/{name}", json={}), 400, "bad-name")
    text = "REGISTER QUERY AS SELECT ?s WHERE { ?s ?p ?o }"
    problem(client.put(f"/queries/{name}", data=text, content_type="text/plain"), 400, "bad-name")


@pytest.mark.parametrize("accept", ["image/png", "application/x-unknown, text/x-other"])
def test_types_that_cannot_be_given_are_406(client: FlaskClient, engine: FakeEngine, accept: str) -> None:
    engine.put_stream("temps", {})
    engine.register("SELECT ?s WHERE { ?s ?p ?o }", "hot")
    engine.put_graph("http://g", [("<http://a>", "<http://b>", '"c"')])
    for path in ("/streams", "/streams/temps", "/queries", "/queries/hot", "/queries/hot/results", "/queries/hot/plan",
                 "/queries/hot/stats",
                 "/graphs", "/graphs?graph=http://g", "/rules", "/sparql?query=ASK{}", "/sparql", "/info", "/streams/temps/items"):
        body = problem(client.get(path, headers={"Accept": accept}), 406, "not-acceptable")
        assert body["supported"]


def test_problems_come_as_text_or_page_too(client: FlaskClient) -> None:
    asked = {"data": "SELECT SYNTAX", "content_type": "application/sparql-query"}
    text = client.post("/queries", headers={"Accept": "text/plain"}, **asked)
    assert text.content_type == "text/plain; charset=utf-8"
    assert text.text.splitlines()[2:4] == ["SELECT SYNTAX", "       ^^^^^^"]
    page = client.post("/queries", headers={"Accept": "text/html,*/*;q=0.8"}, **asked)
    assert page.content_type == "text/html; charset=utf-8" and "<h1>" in page.text
    body = problem(client.post("/queries", **asked), 400, "query-syntax")
    error = body["errors"][0]
    assert error["location"] == {"line": 1, "column": 8, "endLine": 1, "endColumn": 14}
    assert error["hint"] == "Write it otherwise."


def test_what_nobody_foresaw_is_500_with_an_id_only(engine: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise RuntimeError("secret /path")

    monkeypatch.setattr(engine, "streams", broken)
    reply = create_app(engine, Site(engine)).test_client().get("/streams", headers={"Host": "localhost"})
    body = problem(reply, 500, "internal")
    assert body["requestId"] and "secret" not in reply.text


def test_every_problem_has_a_page(client: FlaskClient) -> None:
    for slug, (status, title) in SLUGS.items():
        body = client.get(f"/problems/{slug}").get_json()
        assert body == {"slug": slug, "status": status, "title": title}

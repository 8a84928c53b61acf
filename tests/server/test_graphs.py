"""Graphs, one-shot queries and pages used as documented."""

from __future__ import annotations

import io

import pytest
from flask.testing import FlaskClient

from server.limits import Limits
from tests.server.conftest import problem


def test_graphs_are_put_read_extended_and_removed(client: FlaskClient) -> None:
    path = "/graphs?graph=http%3A%2F%2Fex.org%2Ftbox"
    created = client.put(path, data="<http://a> <http://b> 1 .", content_type="text/turtle")
    assert (created.status_code, created.get_json()["triples"]) == (201, 1)
    etag = client.get(path).headers["ETag"]
    assert client.get(path, headers={"If-None-Match": etag}).status_code == 304
    problem(client.put(path, data="", content_type="text/turtle", headers={"If-Match": '"x"'}), 412, "etag-mismatch")
    assert client.post(path, data="<http://a> <http://b> 2 .", content_type="text/turtle").get_json()["triples"] == 2
    assert client.get(path, headers={"Accept": "application/n-triples"}).text.count(" .\n") == 2
    assert client.get(path, headers={"Accept": "application/rdf+xml"}).content_type.startswith("application/rdf+xml")
    assert client.head(path).status_code == 200
    assert [graph["iri"] for graph in client.get("/graphs").get_json()["graphs"]] == ["http://ex.org/tbox"]
    assert client.delete(path).status_code == 204
    problem(client.get(path), 404, "no-such-graph")
    problem(client.put("/graphs", data="", content_type="text/turtle"), 400, "unknown-parameter")
    problem(client.put("/graphs?graph=tbox", data="", content_type="text/turtle"), 400, "bad-name")
    problem(client.put(path, data="<http://a> <http://b>", content_type="text/turtle"), 400, "rdf-syntax")
    problem(client.get(path), 404, "no-such-graph")


def test_graphs_have_addresses_of_their_own_and_a_default(client: FlaskClient) -> None:
    assert client.put("/graphs/tbox", data="<> <http://b> 1 .", content_type="text/turtle").status_code == 201
    assert "<http://localhost:8175/graphs/tbox> <http://b>" in client.get("/graphs/tbox", headers={"Accept": "application/n-triples"}).text
    assert client.put("/graphs?default", data="<http://a> <http://b> 1 .", content_type="text/turtle").status_code == 201
    assert client.get("/graphs?default").status_code == 200
    parts = {"a": (io.BytesIO(b"<http://a> <http://b> 1 ."), "a.ttl", "text/turtle"),
             "b": (io.BytesIO(b"<http://a> <http://b> 2 ."), "b.nt", "text/turtle")}
    assert client.post("/graphs/both", data=parts, content_type="multipart/form-data").get_json()["triples"] == 2
    assert client.delete("/graphs/both").status_code == 204


@pytest.mark.parametrize("ask", [
    {"method": "GET", "query_string": {"query": "SELECT *"}}, {"method": "POST", "data": {"query": "SELECT *"}},
    {"method": "POST", "data": "SELECT *", "content_type": "application/sparql-query"},
    {"method": "QUERY", "data": "SELECT *", "content_type": "application/sparql-query"}])
def test_one_shot_queries_follow_the_protocol(client: FlaskClient, ask: dict[str, object]) -> None:
    assert client.open("/sparql", headers={"Accept": "text/csv"}, **ask).data == b"s,o\r\nhttp://a,1\r\n_:b,\r\n"  # type: ignore[arg-type]


def test_one_shot_queries_of_other_forms_and_what_is_not_there(client: FlaskClient) -> None:
    assert client.get("/sparql?query=ASK{}").get_json() == {"head": {}, "boolean": True}
    graph = client.get("/sparql?query=CONSTRUCT", headers={"Accept": "text/turtle, text/csv;q=0.5"})
    assert graph.text == '<http://a> <http://b> "é" .\n'
    assert "sd:Service" in client.get("/sparql", headers={"Accept": "text/turtle"}).text
    problem(client.get("/sparql?update=DROP"), 501, "update-not-supported")
    problem(client.post("/sparql", data={"update": "DROP"}), 501, "update-not-supported")
    assert client.get("/sparql?query=ASK&default-graph-uri=http://g").get_json()["boolean"] is True
    problem(client.post("/sparql", data="query=ASK&query=ASK", content_type="application/x-www-form-urlencoded"), 400, "two-queries")
    problem(client.get("/sparql?query=ASK&query=ASK"), 400, "two-queries")
    problem(client.get("/sparql?query=SYNTAX"), 400, "query-syntax")


def test_the_console_is_for_browsers(client: FlaskClient) -> None:
    page = client.get("/", headers={"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"})
    assert page.content_type == "text/html; charset=utf-8" and b"<!doctype html>" in page.data.lower()
    assert "script-src" not in page.headers["Content-Security-Policy"] and "default-src 'self'" in page.headers["Content-Security-Policy"]
    assert client.get("/").get_json()["links"]["queries"] == "/queries"
    script = client.get("/static/app.js")
    assert script.content_type == "text/javascript; charset=utf-8"
    assert client.get("/static/app.js", headers={"If-None-Match": script.headers["ETag"]}).status_code == 304
    for path in ("/static/../setup.cfg", "/static/%2e%2e/setup.cfg", "/static//etc/passwd", "/static/none.js", "/static/", "/static/lib"):
        problem(client.get(path), 404, "not-found")


def test_a_browser_that_opens_results_gets_the_console(hot: FlaskClient) -> None:
    reply = hot.get("/queries/hot/results", headers={"Accept": "text/html"})
    assert (reply.status_code, reply.headers["Location"]) == (303, "/#/queries/hot")


def test_info_shows_every_limit(client: FlaskClient) -> None:
    shown = client.get("/info").get_json()
    assert shown["limits"] == Limits().as_json() and shown["limits"]["push_body"] == 8 << 20
    assert {"application/trig", "text/x-timed-ntriples"} <= set(shown["types"]["push"])
    assert client.get("/health/ready").get_json() == {"status": "ready", "progress": "ready", "degraded": []}

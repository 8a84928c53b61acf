"""Queries used as documented: registration, state, plan, and the last result in every format."""

from __future__ import annotations

import pytest
from flask.testing import FlaskClient

from server.app import create_app
from server.limits import Limits
from server.problems import Problem
from server.web import RateLimit, Site
from tests.server.conftest import TEXT, problem
from tests.server.fake_engine import FakeEngine, rows


@pytest.mark.parametrize(("data", "kind"), [
    (TEXT, "application/sparql-query"), (TEXT, "text/plain; charset=utf-8"), (TEXT, "application/x-www-form-urlencoded"),
    (TEXT.replace(" ", "+").replace("?", "%3F"), "application/x-www-form-urlencoded")])
def test_a_query_is_registered_from_any_body(temps: FlaskClient, data: str, kind: str) -> None:
    reply = temps.put("/queries/hot", data=data, content_type=kind)
    assert (reply.status_code, reply.headers["Location"]) == (201, "/queries/hot")
    assert "REGISTER" in reply.get_json()["text"] and reply.get_json()["links"]["results"] == "/queries/hot/results"
    assert temps.put("/queries/hot", data=data, content_type=kind).status_code == 200


def test_a_query_is_registered_from_json_with_options(temps: FlaskClient) -> None:
    reply = temps.post("/queries", json={"text": TEXT, "name": "warm", "mixedTime": True})
    assert (reply.status_code, reply.get_json()["name"], reply.get_json()["options"]) == (201, "warm", {"mixedTime": True})
    problem(temps.post("/queries", json={"name": "x"}), 422, "json-syntax")
    problem(temps.put("/queries/x", json={"text": TEXT, "name": "y"}), 422, "name-mismatch")
    problem(temps.post("/queries", json={"text": TEXT, "name": 5}), 400, "bad-name")


def test_names_are_taken_or_generated(temps: FlaskClient) -> None:
    post = {"content_type": "application/sparql-query"}
    assert temps.post("/queries", data=TEXT, **post).get_json()["name"] == "hot"
    assert temps.post("/queries", data=TEXT.replace("QUERY hot", "QUERY"), **post).headers["Location"].startswith("/queries/query")
    problem(temps.post("/queries", data=TEXT.replace("10s", "20s"), **post), 409, "name-exists")
    problem(temps.put("/queries/x", data="a=b", content_type="application/x-www-form-urlencoded"), 415, "unsupported-media-type")
    problem(temps.post("/queries", data=TEXT, content_type="application/x-www-form-urlencoded"), 415, "unsupported-media-type")
    problem(temps.post("/queries", data=b"\xff", content_type="text/plain"), 400, "bad-request")
    unknown = problem(temps.post("/queries", data=TEXT.replace("temps", "other").replace("hot", "x"), **post), 422, "unknown-stream")
    assert unknown["stream"] == "http://ex.org/other"


def test_a_query_is_shown_paused_and_removed(hot: FlaskClient) -> None:
    assert hot.get("/queries/hot", headers={"Accept": "application/sparql-query"}).text == TEXT
    assert hot.get("/queries?state=running").get_json()["total"] == 1
    assert hot.get("/queries?state=failed").get_json() == {"queries": [], "total": 0}
    etag = hot.get("/queries/hot").headers["ETag"]
    patch = {"content_type": "application/merge-patch+json", "data": '{"state": "paused"}'}
    assert hot.patch("/queries/hot", headers={"If-Match": etag}, **patch).get_json()["state"] == "paused"
    problem(hot.patch("/queries/hot", headers={"If-Match": etag}, **patch), 412, "etag-mismatch")
    for change, member in (({"state": "flying"}, "state"), ({}, "state"), ({"state": "paused", "resume": "later"}, "resume"),
                           ({"state": "paused", "force": "yes"}, "force")):
        assert problem(hot.patch("/queries/hot", json=change), 422, "unknown-parameter")["parameter"] == member
    problem(hot.patch("/queries/hot", json={"text": "x"}), 422, "unknown-parameter")
    for path in ("/explain", "/queries"):
        problem(hot.post(path, json={"text": 5}), 422, "json-syntax")
        problem(hot.post(path, data="{", content_type="application/json"), 400, "json-syntax")
    assert hot.post("/queries/hot/restart?reset=true").status_code == 202
    problem(hot.delete("/streams/temps"), 409, "in-use")
    removed = hot.delete("/queries/hot")
    assert removed.status_code == 204 and "Content-Type" not in removed.headers
    problem(hot.get("/queries/hot"), 410, "query-removed")
    assert hot.delete("/streams/temps").status_code == 204


def test_the_list_of_queries_has_pages(temps: FlaskClient) -> None:
    for number in range(5):
        temps.put(f"/queries/q{number}", data=TEXT.replace("QUERY hot", "QUERY"), content_type="text/plain")
    first = temps.get("/queries?limit=2").get_json()
    assert [query["name"] for query in first["queries"]] == ["q0", "q1"] and first["total"] == 5
    second = temps.get(first["next"]).get_json()
    assert [query["name"] for query in second["queries"]] == ["q2", "q3"]
    assert "next" not in temps.get(second["next"]).get_json()


def test_registrations_have_a_pace(engine: FakeEngine) -> None:
    client = create_app(engine, Site(engine, Limits(registrations_per_minute=2))).test_client()
    for status in (201, 200):
        assert client.put("/queries/a", data="SELECT ?s", content_type="text/plain").status_code == status
    refused = client.put("/queries/a", data="SELECT ?s", content_type="text/plain")
    body = problem(refused, 429, "rate-limited")
    assert (body["limit"], body["current"]) == (2, 2) and 0 < int(refused.headers["Retry-After"]) <= 61
    times = iter([0.0, 59.0, 59.5, 61.0])
    rate = RateLimit(2, lambda: next(times))
    rate.take(), rate.take()
    with pytest.raises(Problem):
        rate.take()
    rate.take()


def test_plans_and_statistics(hot: FlaskClient) -> None:
    assert hot.get("/queries/hot/plan").get_json()["nodes"] == []
    assert hot.get("/queries/hot/plan?level=spark", headers={"Accept": "text/plain"}).text == "spark plan of hot\n"
    assert hot.get("/queries/hot/plan?level=parsed").get_json() == {"query": "hot", "level": "parsed", "text": "parsed plan of hot"}
    problem(hot.get("/queries/hot/plan?level=deep"), 400, "unknown-parameter")
    assert hot.get("/queries/hot/stats").get_json()["batches"] == []


def test_explain_tells_mistakes_without_failing(client: FlaskClient) -> None:
    post = {"content_type": "application/sparql-query"}
    good = client.post("/explain?level=logical", data=TEXT, **post).get_json()
    assert (good["valid"], good["errors"], good["plan"]) == (True, [], "logical plan of a SELECT")
    bad = client.post("/explain", data="SELECT SYNTAX", **post)
    assert (bad.status_code, bad.get_json()["valid"], bad.get_json()["errors"][0]["location"]["column"]) == (200, False, 8)
    assert "^^^^^^" in client.post("/explain", data="SELECT SYNTAX", headers={"Accept": "text/plain"}, **post).text


def test_the_last_result_in_each_format(hot: FlaskClient, engine: FakeEngine) -> None:
    empty = hot.get("/queries/hot/results")
    assert empty.headers["RSP-Event-Id"] == "none"
    assert empty.get_json() == {"head": {"vars": ["s", "t"]}, "results": {"bindings": []}}
    engine.answer("hot", rows(s=["<http://a>", "_:x"], t=['"1,5"@de', None]))
    got = {kind: hot.get("/queries/hot/results", headers={"Accept": kind}) for kind in (
        "application/sparql-results+json", "application/sparql-results+xml", "text/csv", "text/tab-separated-values", "application/json")}
    assert all(reply.content_type.startswith(kind) for kind, reply in got.items())
    assert got["text/csv"].data == b's,t\r\nhttp://a,"1,5"\r\n_:x,\r\n'
    assert got["text/tab-separated-values"].data == b'?s\t?t\n<http://a>\t"1,5"@de\n_:x\t\n'
    assert b'<literal xml:lang="de">1,5</literal>' in got["application/sparql-results+xml"].data
    reply = got["application/sparql-results+json"]
    assert reply.headers["ETag"] == '"q1c1-1"' and reply.headers["Cache-Control"] == "no-cache"
    assert reply.headers["RSP-Window"] == 'open="2025-11-21T05:03:51Z", close="2025-11-21T05:04:01Z"'
    assert reply.headers["Link"] == '</queries/hot/results?since=q1c1-1>; rel="monitor"; type="text/event-stream"'
    assert hot.get("/queries/hot/results", headers={"If-None-Match": '"q1c1-1"'}).status_code == 304
    assert hot.head("/queries/hot/results").headers["RSP-Event-Id"] == "q1c1-1"
    problem(hot.get("/queries/hot/results", headers={"Accept": "application/trig"}), 406, "not-acceptable")


def test_the_last_graph_in_each_format(temps: FlaskClient, engine: FakeEngine) -> None:
    text = TEXT.replace("SELECT ?s ?t", "CONSTRUCT { ?s <http://q> ?t }")
    temps.put("/queries/hot", data=text, content_type="text/plain")
    assert temps.get("/queries/hot/results", headers={"Accept": "text/turtle"}).data == b""
    engine.answer("hot", rows(s=["<http://a>"], p=["<http://q>"], o=['"1"']))
    trig = temps.get("/queries/hot/results", headers={"Accept": "application/trig"}).text
    assert "<http://localhost:8175/queries/hot/results/q1c1-1>" in trig and 'prov:generatedAtTime "2025-11-21T05:04:01Z"' in trig
    assert temps.get("/queries/hot/results", headers={"Accept": "text/turtle"}).text == '<http://a> <http://q> "1" .\n'
    assert '"http://q"' in temps.get("/queries/hot/results", headers={"Accept": "application/ld+json"}).text
    assert temps.get("/queries/hot/results", headers={"Accept": "application/n-quads"}).text.count("\n") == 2
    problem(temps.get("/queries/hot/results", headers={"Accept": "text/csv"}), 406, "not-acceptable")


def test_an_ask_is_a_boolean(temps: FlaskClient, engine: FakeEngine) -> None:
    temps.put("/queries/hot", data=TEXT.replace("SELECT ?s ?t", "ASK"), content_type="text/plain")
    assert temps.get("/queries/hot/results").get_json() == {"head": {}, "boolean": False}
    engine.answer("hot", rows(_=['"1"']))
    assert b"<boolean>true</boolean>" in temps.get("/queries/hot/results", headers={"Accept": "application/sparql-results+xml"}).data


def test_warnings_do_not_refuse_but_are_told(temps: FlaskClient) -> None:
    post = {"content_type": "application/sparql-query"}
    text = TEXT + " # DOUBT"
    found = temps.put("/queries/hot", data=text, **post)
    assert found.status_code == 201
    assert [warning["detail"] for warning in found.get_json()["warnings"]] == ["Nothing has it."]
    assert temps.put("/queries/hot", data=text, **post).get_json()["warnings"][0]["location"]["column"] == text.index("DOUBT") + 1
    body = temps.post("/explain", data=text, **post).get_json()
    assert body["valid"] is True and body["errors"] == [] and body["warnings"][0]["code"] == "unknown-word"
    assert "warning: line 1, column" in temps.post("/explain", data=text, headers={"Accept": "text/plain"}, **post).text
    assert temps.post("/explain", data=TEXT, **post).get_json()["warnings"] == []


def test_explain_fails_where_a_script_asks_for_it(temps: FlaskClient) -> None:
    post = {"content_type": "application/sparql-query"}
    for fail, text, status, slug in (("errors", TEXT, 200, None), ("errors", TEXT + " # DOUBT", 200, None), ("warnings", TEXT, 200, None),
                                     ("errors", "SELECT SYNTAX", 400, "query-syntax"), ("warnings", "SELECT SYNTAX", 400, "query-syntax"),
                                     ("warnings", TEXT + " # DOUBT", 422, "has-warnings"), ("all", TEXT, 400, "unknown-parameter")):
        answer = temps.post(f"/explain?fail={fail}", data=text, **post)
        if slug is None:
            assert answer.status_code == status and answer.get_json()["valid"] is True
        else:
            body = problem(answer, status, slug)
            assert slug == "unknown-parameter" or body["errors"][0]["location"]["line"] == 1

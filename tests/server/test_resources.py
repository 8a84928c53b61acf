"""What each resource does when it is used as documented."""

from __future__ import annotations

import gzip
import io

import pytest
from flask.testing import FlaskClient

from server.app import create_app
from server.limits import Limits
from server.web import Site
from tests.server.fake_engine import FakeEngine, rows
from tests.server.test_routes import problem

TEMPS = {"iri": "http://ex.org/temps"}
TEXT = "REGISTER QUERY hot AS SELECT ?s ?t FROM STREAM <http://ex.org/temps> [RANGE 10s STEP 2s] WHERE { ?s <http://p> ?t }"
ITEM = "<http://g> { <http://a> <http://b> 1 }"
STAMP = '"2026-11-21T05:00:00"^^<http://www.w3.org/2001/XMLSchema#dateTime>'
STAMPED = f"{ITEM} <http://g> <http://www.w3.org/ns/prov#generatedAtTime> {STAMP} ."


@pytest.fixture
def temps(client: FlaskClient) -> FlaskClient:
    assert client.put("/streams/temps", json=TEMPS).status_code == 201
    return client


@pytest.fixture
def hot(temps: FlaskClient) -> FlaskClient:
    assert temps.put("/queries/hot", data=TEXT, content_type="application/sparql-query").status_code == 201
    return temps


# --- streams

def test_a_stream_is_registered_once(client: FlaskClient) -> None:
    created = client.put("/streams/temps", json=TEMPS)
    assert (created.status_code, created.headers["Location"], created.get_json()["iri"]) == (201, "/streams/temps", TEMPS["iri"])
    assert client.put("/streams/temps", json=TEMPS).status_code == 200
    problem(client.put("/streams/temps", json={"iri": "http://ex.org/other"}), 409, "name-exists")
    problem(client.put("/streams/temps", json={"iri": "nonsense"}), 422, "bad-descriptor")
    problem(client.put("/streams/temps", json={**TEMPS, "colour": 1}), 422, "bad-descriptor")
    problem(client.put("/streams/temps", data=b"{", content_type="application/json"), 400, "json-syntax")
    problem(client.put("/streams/temps", data=b"[]", content_type="application/json"), 400, "json-syntax")
    assert client.put("/streams/other").get_json()["iri"] == "http://localhost:8175/streams/other"
    assert [stream["name"] for stream in client.get("/streams").get_json()["streams"]] == ["temps", "other"]


def test_a_stream_is_described_in_vocals(client: FlaskClient) -> None:
    text = "@prefix v: <https://w3id.org/rsp/vocals#> . <http://ex.org/temps> a v:RDFStream ."
    assert client.put("/streams/temps", data=text, content_type="text/turtle").get_json()["iri"] == "http://ex.org/temps"
    problem(client.put("/streams/x", data="<http://a> <http://b> 1 .", content_type="text/turtle"), 422, "rdf-syntax")
    catalogue = client.get("/streams", headers={"Accept": "text/turtle"}).text
    assert "<http://ex.org/temps> a vocals:RDFStream" in catalogue
    assert client.get("/streams/temps", headers={"Accept": "application/ld+json"}).content_type == "application/ld+json"


def test_conditions_of_writes(temps: FlaskClient) -> None:
    etag = temps.get("/streams/temps").headers["ETag"]
    problem(temps.delete("/streams/temps", headers={"If-Match": '"other"'}), 412, "etag-mismatch")
    problem(temps.put("/streams/temps", json=TEMPS, headers={"If-None-Match": "*"}), 412, "etag-mismatch")
    problem(temps.put("/streams/new", json={}, headers={"If-Match": "*"}), 412, "etag-mismatch")
    assert temps.put("/streams/temps", json=TEMPS, headers={"If-Match": etag}).status_code == 200
    assert temps.delete("/streams/temps", headers={"If-Match": etag}).status_code == 204
    problem(temps.get("/streams/temps"), 404, "no-such-stream")


def test_minimal_answers_are_given_where_preferred(temps: FlaskClient) -> None:
    reply = temps.put("/streams/temps", json=TEMPS, headers={"Prefer": "return=minimal"})
    assert (reply.status_code, reply.data, reply.headers["Preference-Applied"]) == (204, b"", "return=minimal")


def test_a_push_is_answered_with_a_receipt(temps: FlaskClient, engine: FakeEngine) -> None:
    reply = temps.post("/streams/temps", data=ITEM, content_type="application/trig")
    assert reply.status_code == 202
    assert reply.get_json() == {"accepted": 1, "late": 0, "duplicate": 0, "rejected": 0, "firstId": "1", "lastId": "1", "watermark": None,
                                "errors": []}
    zipped = temps.post("/streams/temps", data=gzip.compress(ITEM.encode()), content_type="application/trig",
                        headers={"Content-Encoding": "gzip"})
    assert zipped.get_json()["firstId"] == "2"
    assert [len(items) for _, items, _, _ in engine.pushes] == [1, 1]
    problem(temps.post("/streams/none", data=ITEM, content_type="application/trig"), 404, "no-such-stream")
    body = problem(temps.post("/streams/temps", data=ITEM, content_type="text/csv"), 415, "unsupported-media-type")
    assert "application/trig" in body["supported"]


def test_a_push_is_all_or_nothing_unless_asked_otherwise(temps: FlaskClient, engine: FakeEngine) -> None:
    lines = b'{"@id": "http://a", "http://b": 1}\n{"@id": \n'
    refused = problem(temps.post("/streams/temps", data=lines, content_type="application/jsonl"), 400, "rdf-syntax")
    assert refused["errors"][0]["location"]["line"] == 2 and not engine.pushes
    taken = temps.post("/streams/temps?on-error=skip", data=lines, content_type="application/x-ndjson").get_json()
    assert (taken["accepted"], taken["rejected"], taken["errors"][0]["location"]["line"]) == (1, 1, 2)
    assert temps.get("/streams/temps/dead-letters").get_json()["deadLetters"][0]["reason"].startswith("rdf-syntax")


def test_an_idempotency_key_repeats_the_answer(temps: FlaskClient, engine: FakeEngine) -> None:
    first, second = (temps.post("/streams/temps", data=ITEM, content_type="application/trig", headers={"Idempotency-Key": "k"})
                     for _ in range(2))
    assert first.get_json() == second.get_json() and len(engine.pushes) == 1
    assert "Idempotency-Replayed" not in first.headers and second.headers["Idempotency-Replayed"] == "true"
    problem(temps.post("/streams/temps", data=ITEM, content_type="application/trig", headers={"Idempotency-Key": "x" * 300}), 400)


def test_event_streams_take_the_time_of_the_item(client: FlaskClient, engine: FakeEngine) -> None:
    client.put("/streams/temps", json={**TEMPS, "time": "event"})
    problem(client.post("/streams/temps", data=ITEM, content_type="application/trig"), 422, "missing-timestamp")
    for query, text in (("?timestamp=2026-11-21T05:00:00%2B01:00", ITEM), ("", STAMPED)):
        assert client.post(f"/streams/temps{query}", data=text, content_type="application/trig").status_code == 202
    assert [items[0].t_ms for _, items, _, _ in engine.pushes] == [1_795_233_600_000, 1_795_237_200_000]
    assert client.post("/streams/temps?watermark=2026-11-21T06:00:00Z").get_json()["watermark"] == "2026-11-21T06:00:00Z"
    for query in ("watermark=soon", "timestamp=1.5", "on-error=maybe"):
        problem(client.post(f"/streams/temps?{query}", data=ITEM, content_type="application/trig"), 400, "unknown-parameter")


def test_the_tail_of_the_input(temps: FlaskClient) -> None:
    for number in range(3):
        temps.post("/streams/temps", data=f"<http://a> <http://b> {number} .", content_type="text/turtle")
    lines = temps.get("/streams/temps/items?limit=2").text.splitlines()
    assert len(lines) == 2 and '\\"2\\"' in lines[1]
    assert temps.get("/streams/temps/items?since=2").text.count("\n") == 1
    trig = temps.get("/streams/temps/items", headers={"Accept": "application/trig"}).text
    assert trig.count("generatedAtTime") == 3
    problem(temps.get("/streams/temps/items?limit=9999999"), 400, "unknown-parameter")


def test_bodies_are_capped(engine: FakeEngine) -> None:
    engine.put_stream("temps", {})
    small = Limits(push_body=100, push_body_decompressed=1000, push_body_streamed=500, query_text=50, graph_upload=100, json_body=100)
    client = create_app(engine, Site(engine, small)).test_client()
    for path, kind, size in (("/streams/temps", "text/turtle", 101), ("/streams/temps", "application/trig", 501)):
        body = problem(client.post(path, data=b"#" * size, content_type=kind), 413, "body-too-large")
        assert (body["limit"], body["actual"]) == (size - 1, size)
    bomb = gzip.compress(b"#" * 100_000)
    problem(client.post("/streams/temps", data=bomb[:100], content_type="text/turtle", headers={"Content-Encoding": "gzip"}), (400, 413))
    problem(client.post("/streams/temps", data=bomb, content_type="application/trig", headers={"Content-Encoding": "gzip"}), 413)
    problem(client.put("/graphs?graph=http://g", data=b"#" * 101, content_type="text/turtle"), 413, "body-too-large")
    problem(client.post("/queries", data=b"#" * 51, content_type="text/plain"), 413, "body-too-large")
    problem(client.post("/sparql", data=b"#" * 51, content_type="application/sparql-query"), 413, "body-too-large")
    problem(client.put("/streams/x", data=b" " * 101, content_type="application/json"), 413, "body-too-large")
    chunked = client.post("/streams/temps", input_stream=io.BytesIO(b"#" * 5000), content_type="text/turtle",
                          environ_overrides={"wsgi.input_terminated": True, "CONTENT_LENGTH": ""})
    problem(chunked, 413, "body-too-large")


# --- queries

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
    problem(hot.patch("/queries/hot", json={"state": "flying"}), 409, "bad-transition")
    problem(hot.patch("/queries/hot", json={"text": "x"}), 422, "unknown-parameter")
    assert hot.post("/queries/hot/restart?reset=true").status_code == 202
    problem(hot.delete("/streams/temps"), 409, "in-use")
    assert hot.delete("/queries/hot").status_code == 204
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


# --- results

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


# --- graphs, rules, one-shot queries

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


def test_rule_sets_are_listed(client: FlaskClient) -> None:
    assert client.get("/rules").get_json()["rules"][0]["name"] == "rdfs"
    assert client.get("/rules/rdfs").get_json()["builtIn"] is True
    problem(client.get("/rules/none"), 404, "no-such-rules")


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
    problem(client.get("/sparql?query=ASK&default-graph-uri=http://g"), 400, "unknown-parameter")
    problem(client.post("/sparql", data="query=ASK&query=ASK", content_type="application/x-www-form-urlencoded"), 400, "two-queries")
    problem(client.get("/sparql?query=ASK&query=ASK"), 400, "two-queries")
    problem(client.get("/sparql?query=SYNTAX"), 400, "query-syntax")


# --- pages and information

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
    assert client.get("/health/ready").get_json() == {"status": "ready", "progress": "ready"}

"""Streams used as documented: descriptors, pushes, the tail."""

from __future__ import annotations

import gzip
import io

import pytest
from flask.testing import FlaskClient

from server.app import create_app
from server.formats import media
from server.limits import Limits
from server.web import Site
from tests.server.conftest import TEMPS, problem
from tests.server.fake_engine import FakeEngine


ITEM = "<http://g> { <http://a> <http://b> 1 }"
STAMP = '"2026-11-21T05:00:00"^^<http://www.w3.org/2001/XMLSchema#dateTime>'
STAMPED = f"{ITEM} <http://g> <http://www.w3.org/ns/prov#generatedAtTime> {STAMP} ."


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


def test_a_push_of_which_nothing_is_taken_is_no_success(temps: FlaskClient) -> None:
    refused = problem(temps.post("/streams/temps?on-error=skip", data=b'{"@id": \n', content_type="application/jsonl"), 422, "rdf-syntax")
    assert (refused["accepted"], refused["rejected"], refused["errors"][0]["location"]["line"]) == (0, 1, 1)


def test_text_is_utf_8(temps: FlaskClient) -> None:
    for charset, status in (("utf-8", 202), ("UTF-8", 202), ("iso-8859-1", 415)):
        assert temps.post("/streams/temps", data=ITEM, content_type=f"application/trig; charset={charset}").status_code == status
    problem(temps.post("/sparql", data="ASK {}", content_type="application/sparql-query; charset=utf-16"), 415, "unsupported-media-type")


def test_an_idempotency_key_repeats_the_answer(temps: FlaskClient, engine: FakeEngine) -> None:
    first, second = (temps.post("/streams/temps", data=ITEM, content_type="application/trig", headers={"Idempotency-Key": "k"})
                     for _ in range(2))
    assert first.get_json() == second.get_json() and len(engine.pushes) == 1
    again = temps.post("/streams/temps", data=ITEM.replace("1", "2"), content_type="application/trig", headers={"Idempotency-Key": "k"})
    problem(again, 422, "idempotency-key-reused")
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


@pytest.mark.parametrize("data", [b"", b"\n \n", b"# nothing\n"])
def test_an_empty_push_is_refused_unless_it_brings_a_watermark(temps: FlaskClient, data: bytes) -> None:
    refused = temps.post("/streams/temps", data=data, content_type="application/trig")
    assert (refused.status_code, refused.get_json()["type"].rpartition("/")[2]) == (400, "bad-request")
    assert "watermark" in refused.get_json()["hint"]
    assert temps.post("/streams/temps").status_code == 400
    form = {"data": b"", "content_type": "application/x-www-form-urlencoded"}
    for more in ({}, {"data": data, "content_type": "application/trig"}, form):
        moved = temps.post("/streams/temps?watermark=2026-11-21T06:00:00Z", **more)  # type: ignore[arg-type]
        assert (moved.status_code, moved.get_json()["watermark"]) == (202, "2026-11-21T06:00:00Z")


IRIS = "<http://a> <http://b> <http://c>"
LOOKS = [
    ('{"@id": "http://a"}', media.JSONLD), (' [{"@id": "http://a"}]', media.JSONLD),
    ('{"@id": "http://a"}\n{"@id": "http://b"}\n', media.JSONL), ("@prefix : <http://a/> .\n:a :b :c .", media.TURTLE),
    ("PREFIX : <http://a/>\n:a :b '{' .", media.TURTLE), (":a :b [] .", media.TURTLE),
    ("@prefix : <http://a/> .\n:g { :a :b :c }", media.TRIG), ("prefix : <http://a/>\nGRAPH :g { :a :b :c }", media.TRIG),
    (f"<http://g> {{ {IRIS} }}", media.TRIG), (f"# a comment\n{IRIS} .", media.NTRIPLES), ('<http://a> <http://b> "x y" .', media.NTRIPLES),
    (f"{IRIS} <http://g> .", media.NQUADS), ('_:a <http://b> "1"^^<http://d> _:g .', media.NQUADS),
    (f"1700000000000\t{IRIS} .", media.TIMED), (f"{IRIS} ; <http://d> 1 .", media.TURTLE),
    ("<?xml version='1.0'?><rdf:RDF/>", media.RDFXML), ("<rdf:RDF xmlns:rdf='x'/>", media.RDFXML),
    ("time,value\n1,2", None), ("hello", None), ("\x00\x01", None)]


@pytest.mark.parametrize(("text", "kind"), LOOKS)
@pytest.mark.parametrize("header", [None, "application/x-www-form-urlencoded", "text/nonsense"])
def test_a_push_without_a_type_is_told_the_one_that_fits(temps: FlaskClient, text: str, kind: str | None, header: str | None) -> None:
    for data, coding in ((text.encode(), {}), (gzip.compress(text.encode()), {"Content-Encoding": "gzip"})):
        refused = temps.post("/streams/temps", data=data, content_type=header, headers=coding)
        problem = refused.get_json()
        assert refused.status_code == 415 and set(media.PUSH_TYPES) == set(problem["supported"])
        assert problem.get("fits") == kind and (kind is None or kind in problem["hint"])


def test_a_graph_without_a_type_is_told_the_one_that_fits(temps: FlaskClient) -> None:
    refused = temps.put("/graphs?graph=http://g", data="@prefix : <http://a/> .\n:a :b :c .").get_json()
    assert (refused["status"], refused.get("fits")) == (415, media.TURTLE)

"""``/rules`` as documented: on the stand-in for the engine, and on an engine with the parser of RIF."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from server.app import create_app
from server.limits import Limits
from server.web import Site
from tests.server.conftest import problem
from tests.server.fake_engine import FakeEngine
from tests.unit.runtime.test_engine import EVENTS, Running
from tests.unit.runtime.test_rules import RIF, TEXT, alarm

XML = "application/rif+xml"
RULES = alarm("low")


@pytest.fixture
def real(tmp_path: Path) -> Iterator[FlaskClient]:
    """Requests into a site around a real engine, with a stream."""
    with Running(tmp_path) as running:
        running.engine.put_stream("s", EVENTS)
        yield create_app(running.engine, Site(running.engine)).test_client()


def test_built_in_rule_sets_are_listed_and_read_only(client: FlaskClient) -> None:
    assert client.get("/rules").get_json()["rules"][0]["name"] == "rdfs"
    shown = client.get("/rules/rdfs").get_json()
    assert shown == {"name": "rdfs", "builtIn": True, "description": "The RDFS entailment rules.", "type": None, "clauses": None,
                     "etag": "built-in", "usedBy": []}
    for reply in (client.put("/rules/rdfs", data=RULES, content_type=RIF), client.delete("/rules/rdfs")):
        problem(reply, 405, "method-not-allowed")
        assert reply.headers["Allow"] == "GET, HEAD"
    for reply in (client.get("/rules/none"), client.delete("/rules/none")):
        problem(reply, 404, "no-such-rules")


def test_a_rule_set_is_put_read_replaced_and_removed(client: FlaskClient) -> None:
    created = client.put("/rules/alarms", data=RULES, content_type=RIF)
    assert (created.status_code, created.headers["Location"]) == (201, "/rules/alarms")
    body = created.get_json()
    assert (body["name"], body["builtIn"], body["type"], body["usedBy"]) == ("alarms", False, RIF, []) and "text" not in body
    etag = created.headers["ETag"]
    assert client.put("/rules/alarms", data=RULES, content_type=RIF).headers["ETag"] == etag
    read = client.get("/rules/alarms")
    assert read.headers["ETag"] == etag and read.get_json()["text"] == RULES
    assert client.get("/rules/alarms", headers={"If-None-Match": etag}).status_code == 304
    for accept, media in ((RIF, RIF), ("text/plain", "text/plain")):
        text = client.get("/rules/alarms", headers={"Accept": accept})
        assert (text.text, text.content_type) == (RULES, f"{media}; charset=utf-8")
    problem(client.get("/rules/alarms", headers={"Accept": XML}), 406, "not-acceptable")
    replaced = client.put("/rules/alarms", data="<Document/>", content_type=XML, headers={"If-Match": etag})
    assert replaced.status_code == 200 and replaced.get_json()["type"] == XML and replaced.headers["ETag"] != etag
    for reply in (client.put("/rules/alarms", data=RULES, content_type=RIF, headers={"If-Match": etag}),
                  client.put("/rules/alarms", data=RULES, content_type=RIF, headers={"If-None-Match": "*"}),
                  client.delete("/rules/alarms", headers={"If-Match": etag})):
        problem(reply, 412, "etag-mismatch")
    assert [rules["name"] for rules in client.get("/rules").get_json()["rules"]] == ["rdfs", "alarms"]
    assert client.put("/rules/alarms", data=RULES, content_type=RIF, headers={"Prefer": "return=minimal"}).status_code == 204
    assert client.delete("/rules/alarms").status_code == 204
    problem(client.get("/rules/alarms"), 404, "no-such-rules")


def test_what_is_no_rule_set_is_refused(client: FlaskClient, engine: FakeEngine) -> None:
    body = problem(client.put("/rules/alarms", data="<x/>", content_type="application/xml"), 415, "unsupported-media-type")
    assert body["supported"] == [RIF, XML, "text/x-lars", "text/x-datalogmtl"]
    problem(client.put("/rules/a..b", data=RULES, content_type=RIF), 400, "bad-name")
    problem(client.put("/rules/alarms", data=b"\xff", content_type=RIF), 400, "bad-request")
    error = problem(client.put("/rules/alarms", data="one\n  SYNTAX", content_type=RIF), 400, "rule-syntax")["errors"][0]
    assert error["location"] == {"line": 2, "column": 3, "endLine": 2, "endColumn": 9} and error["snippet"] == "  SYNTAX\n  ^^^^^^"
    small = create_app(engine, Site(engine, Limits(rule_text=10))).test_client()
    problem(small.put("/rules/alarms", data=RULES, content_type=RIF, headers={"Host": "localhost"}), 413, "body-too-large")
    assert [info.name for info in engine.rule_sets()] == ["rdfs"]


def test_a_rule_set_in_use_stays(client: FlaskClient, engine: FakeEngine) -> None:
    client.put("/rules/alarms", data=RULES, content_type=RIF)
    engine.use_rules("alarms", "hot")
    assert client.get("/rules/alarms").get_json()["usedBy"] == ["hot"]
    assert problem(client.delete("/rules/alarms"), 409, "in-use")["usedBy"] == ["hot"]


def test_queries_name_rule_sets_that_there_are(real: FlaskClient) -> None:
    query = {"data": TEXT, "content_type": "application/sparql-query"}
    error = problem(real.put("/queries/q", **query), 422, "no-such-rules")["errors"][0]
    assert error["location"]["line"] == 1 and "alarms" in error["detail"]
    assert real.put("/rules/alarms", data=RULES, content_type=RIF).status_code == 201
    assert real.put("/queries/q", **query).get_json()["rules"] == ["alarms"]
    assert real.put("/rules/alarms", data=alarm("high"), content_type=RIF).get_json()["usedBy"] == ["q"]
    problem(real.delete("/rules/alarms"), 409, "in-use")
    assert real.delete("/queries/q").status_code == 204 and real.delete("/rules/alarms").status_code == 204


@pytest.mark.parametrize(("text", "status", "slug", "line"), [
    (RULES.replace(":-", "<-"), 400, "rule-syntax", 2),
    (RULES.replace('?x[ex:alarm -> "low"]', "?x # ex:Alarm"), 422, "rif-feature-not-core", 2),
    (RULES.replace('"low"', "?y").replace("Forall ?x", "Forall ?x ?y"), 422, "rules-unsafe", 2),
    (RULES.replace("Group(", "Import(<http://ex.org/other>)\nGroup("), 422, "unsupported-in-streaming", 2)])
def test_mistakes_in_rif_have_their_places(real: FlaskClient, text: str, status: int, slug: str, line: int) -> None:
    body = problem(real.put("/rules/alarms", data=text, content_type=RIF), status, slug)
    assert body["errors"][0]["location"]["line"] == line
    problem(real.get("/rules/alarms"), 404, "no-such-rules")


@pytest.mark.parametrize("media, text", [("text/x-lars", "q(X) <- [3 sec] diamond p(X)."),
                                         ("text/x-datalogmtl", "Q(X) :- Diamondminus[0,3]P(X)")])
def test_a_rule_set_with_a_time_of_its_own(real: FlaskClient, media: str, text: str) -> None:
    created = real.put("/rules/alarms", data=text, content_type=media)
    assert created.status_code == 201 and created.get_json()["type"] == media and created.get_json()["clauses"] == 1
    assert real.get("/rules/alarms", headers={"Accept": media}).text == text
    wrong = problem(real.put("/rules/other", data=text + " <- :-", content_type=media), 400, "rule-syntax")
    assert wrong["errors"][0]["location"]["line"] == 1

"""Rule programs with a time of their own over HTTP: registered, read, paused, taken up again after a restart, and what goes wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from engine.ir import strata as growth
from engine.runtime.settings import Settings
from grammar.rule_sets import parse_rules
from server.app import create_app
from server.web import Site
from tests.unit.runtime.settled import settle
from tests.unit.runtime.test_engine import NOW, Running

LARS, DMTL = "text/x-lars", "text/x-datalogmtl"
FROM = "PREFIX ex: <http://ex.org/>\nFROM STREAM ex:s\n"
HERE = FROM + "ex:Here(X) :- Diamondminus[0,3]ex:p(X,Y)\nex:Long(X) :- Boxminus[0,4]ex:Here(X)\n"
HOT = FROM + "GRANULARITY 1 sec\nex:Hot(S) <- [2 sec] diamond ex:p(S, V), V > 90.\n"


class Timed(Running):
    """An engine that reads programs, and requests straight into Flask."""

    parse_rules = staticmethod(parse_rules)

    @property
    def client(self) -> FlaskClient:
        found: FlaskClient = create_app(self.engine, Site(self.engine, base_url="http://localhost:8175")).test_client()
        return found

    def put(self, name: str, text: str, media: str, **query: str) -> Any:
        return self.client.put(f"/queries/{name}", data=text, content_type=media, query_string=query)

    def push(self, *items: tuple[float, str, int]) -> None:
        """Items by their time in seconds from `NOW` on: a subject and the value of its property p."""
        body = "".join(f"{NOW + int(t * 1000)}\t<http://ex.org/{s}> <http://ex.org/p> {_integer(v)} .\n" for t, s, v in items)
        answer = self.client.post("/streams/s", data=body, content_type="text/x-timed-ntriples")
        assert answer.status_code == 202, answer.text
        self.settle()

    def settle(self) -> None:
        settle(self.engine)

    def told(self, name: str) -> list[tuple[float, str, str, str]]:
        """Results: seconds, stream, subject and class."""
        found = []
        for event in self.results(name):
            for row in json.loads(event.payload)["results"]["bindings"]:
                found.append(((event.at_ms - NOW) / 1000, str(event.stream), _short(row["s"]["value"]), _short(row["o"]["value"])))
        return found

    @property
    def files(self) -> list[str]:
        return sorted(path.name for path in self.settings.states_folder.glob("*.arrow"))


def _integer(value: int) -> str:
    return f'"{value}"^^<http://www.w3.org/2001/XMLSchema#integer>'


def _short(iri: str) -> str:
    return iri.rpartition("/")[2]


@pytest.fixture
def timed(tmp_path: Path) -> Iterator[Timed]:
    with Timed(tmp_path) as found:
        found.client.put("/streams/s", json={"iri": "http://ex.org/s", "time": "event"})
        yield found


def test_a_program_is_registered_by_its_media_type(timed: Timed) -> None:
    made = timed.put("here", HERE, DMTL)
    assert made.status_code == 201, made.text
    info = made.get_json()
    assert (info["form"], info["dialect"], info["media"], info["report"]) == ("PROGRAM", "datalogmtl", DMTL, "change")
    assert info["vars"] == ["s", "p", "o", "from", "until"] and info["windows"] == [{"stream": "http://ex.org/s", "time": "event"}]
    assert timed.put("here", HERE, DMTL).status_code == 200
    assert timed.put("here", HERE.replace("[0,3]", "[0,2]"), DMTL).status_code == 409
    assert timed.client.post("/queries", json={"text": HOT, "media": LARS, "name": "hot"}).status_code == 201
    text = timed.client.get("/queries/hot", headers={"Accept": LARS})
    assert (text.text, text.mimetype) == (HOT, LARS)
    assert timed.client.post("/queries", json={"text": HOT, "media": "text/x-prolog"}).get_json()["parameter"] == "media"


def test_the_same_text_in_another_language_is_another_program(timed: Timed) -> None:
    text = FROM + "ex:Q(X) :- ex:p(X,Y).\n"
    assert timed.put("q", text, DMTL).status_code == 201
    assert timed.put("q", text, LARS).status_code == 409
    assert timed.put("q", text, LARS, replace="true").get_json()["epoch"] == "q1c2"


def test_results_are_told_as_they_begin_and_cease(timed: Timed) -> None:
    timed.put("here", HERE, DMTL)
    timed.push((0, "a", 1), (2, "a", 1), (4, "a", 1), (4, "b", 1), (20, "c", 1))
    timed.push((30, "d", 1))
    assert sorted(timed.told("here")) == [
        (0, "p", "a", "Here"), (4, "p", "a", "Long"), (4, "p", "b", "Here"), (7, "n", "a", "Here"), (7, "n", "a", "Long"),
        (7, "n", "b", "Here"), (20, "p", "c", "Here"), (23, "n", "c", "Here")]
    latest = timed.client.get("/queries/here/results?stream=n", headers={"Accept": "application/sparql-results+json"})
    [row] = latest.get_json()["results"]["bindings"]
    assert row["until"]["value"].endswith(":43Z") and row["from"]["value"].endswith(":40Z")


def test_explain_shows_all_stages_and_mistakes(timed: Timed) -> None:
    shown = {level: timed.client.post(f"/explain?level={level}", data=HERE, content_type=DMTL).get_json()
             for level in ("parsed", "validated", "rewritten", "logical", "spark")}
    assert all(found["valid"] for found in shown.values()), shown
    assert "Diamondminus[0,3]" in shown["parsed"]["plan"] and "normal form" in shown["rewritten"]["plan"]
    assert "stratum 1" in shown["logical"]["plan"] and "window 4s" in shown["logical"]["plan"] and "WITH new AS (" in shown["spark"]["plan"]
    wrong = timed.client.post("/explain", data=HERE.replace("Boxminus", "Boxplus"), content_type=DMTL).get_json()
    assert [error["code"] for error in wrong["errors"]] == ["rules-not-forward"] and not wrong["valid"]
    unread = timed.client.post("/explain", data=HERE.replace("FROM STREAM ex:s\n", ""), content_type=DMTL).get_json()
    assert unread["errors"][0]["code"] == "window-unbounded" and "FROM STREAM" in unread["errors"][0]["hint"]


def test_a_restart_goes_on_from_the_state(tmp_path: Path) -> None:
    with Timed(tmp_path) as first:
        first.client.put("/streams/s", json={"iri": "http://ex.org/s", "time": "event"})
        first.put("here", HERE, DMTL)
        first.push((0, "a", 1), (2, "a", 1))
        first.push((4, "a", 1))
        before = first.files
        assert len(before) == 1
    with Timed(tmp_path) as second:
        stats = second.client.get("/queries/here/stats").get_json()
        assert stats["factsHeld"] > 0 and stats["windowMs"] == 4_000
        second.push((6, "b", 1))
        assert second.told("here") == [(0, "p", "a", "Here"), (4, "p", "a", "Long")]
        second.push((30, "b", 1))
        assert second.told("here")[2:] == [(6, "p", "b", "Here"), (7, "n", "a", "Here"), (7, "n", "a", "Long"), (9, "n", "b", "Here")]
        assert len(second.files) == 1 and second.files != before


def test_a_lost_file_fails_the_program_and_says_so(tmp_path: Path) -> None:
    with Timed(tmp_path) as first:
        first.client.put("/streams/s", json={"iri": "http://ex.org/s", "time": "event"})
        first.put("here", HERE, DMTL)
        first.put("other", HERE, DMTL)
        first.push((0, "a", 1), (2, "a", 1))
        first.push((3, "a", 1))
        [lost] = [path for path in first.settings.states_folder.glob("q1c1-*.arrow")]
    lost.unlink()
    with Timed(tmp_path) as second:
        second.push((4, "b", 1))
        second.push((5, "b", 1))
        info = second.client.get("/queries/here").get_json()
        assert info["state"] == "failed" and lost.name in info["lastError"] and "restart begins anew" in info["lastError"]
        assert second.client.get("/queries/other").get_json()["state"] == "running"
        assert second.client.post("/queries/here/restart").status_code == 202
        second.settle()
        second.push((6, "c", 1))
        second.push((7, "c", 1))
        assert (6, "p", "c", "Here") in second.told("here")


def test_pause_and_resumption(timed: Timed) -> None:
    timed.put("now", HERE, DMTL)
    timed.put("later", HERE, DMTL)
    timed.push((0, "a", 1), (1, "a", 1))
    for name in ("now", "later"):
        assert timed.client.patch(f"/queries/{name}", json={"state": "paused"}).get_json()["state"] == "paused"
    timed.push((2, "b", 1), (3, "a", 1), (4.5, "a", 1))
    timed.client.patch("/queries/now", json={"state": "running", "resume": "now"})
    timed.client.patch("/queries/later", json={"state": "running", "resume": "backlog"})
    timed.settle()
    timed.push((20, "c", 1), (21, "c", 1))
    assert (0, "p", "a", "Here") in timed.told("now") and (2, "p", "b", "Here") not in timed.told("now")
    assert (5, "n", "b", "Here") not in timed.told("now"), "it was not told to begin"
    assert (7.5, "n", "a", "Here") in timed.told("now")
    assert {(2, "p", "b", "Here"), (4, "p", "a", "Long"), (5, "n", "b", "Here")} <= set(timed.told("later"))


def test_earlier_items_are_seen_and_not_told_of(timed: Timed) -> None:
    timed.put("first", HERE, DMTL)
    timed.push((0, "a", 1), (2, "a", 1), (3, "b", 1))
    assert timed.put("late", HERE, DMTL, since="earliest").status_code == 201
    timed.push((4.5, "a", 1), (20, "c", 1))
    assert timed.told("late") == [(3, "p", "b", "Here"), (4, "p", "a", "Long"), (6, "n", "b", "Here"), (7.5, "n", "a", "Long")], \
        "what began before it was there is not told to cease"


def test_a_graph_that_a_program_uses_stays(timed: Timed) -> None:
    graph = "/graphs?graph=http://ex.org/g"
    timed.client.put(graph, data="<http://ex.org/a> <http://ex.org/q> 1 .", content_type="text/turtle")
    text = FROM + "FROM ex:g\nex:Both(X) :- ex:p(X,Y), ex:q(X,Y)\n"
    assert timed.put("both", text, DMTL).status_code == 201
    refused = timed.client.put(graph, data="<http://ex.org/a> <http://ex.org/q> 2 .", content_type="text/turtle")
    assert (refused.status_code, refused.get_json()["usedBy"]) == (409, ["both"]) and "in-use" in refused.get_json()["type"]
    assert timed.client.delete(graph).status_code == 409
    assert timed.client.put(graph, data="<http://ex.org/a> <http://ex.org/q> 1 .", content_type="text/turtle").status_code == 200
    timed.push((0, "a", 1), (1, "b", 1))
    assert timed.told("both") == [(0, "p", "a", "Both"), (0, "n", "a", "Both")]
    timed.client.delete("/queries/both")
    timed.settle()
    assert timed.client.put(graph, data="<http://ex.org/a> <http://ex.org/q> 2 .", content_type="text/turtle").status_code == 200


def test_a_program_that_holds_too_much_fails_alone(timed: Timed) -> None:
    text = FROM + "ex:Known(X) :- Diamondminus[0,inf)ex:p(X,Y)\n"
    small = {"text": text, "media": DMTL, "name": "small", "limits": {"state_rows": 10}}
    assert timed.client.post("/queries", json=small).status_code == 201
    timed.put("large", text, DMTL)
    for second in range(15):
        timed.push((second, f"x{second}", 1))
    info = timed.client.get("/queries/small").get_json()
    assert info["state"] == "failed" and "the limit state_rows is 10" in info["lastError"]
    assert len(timed.told("large")) == 14
    assert timed.files[0].startswith("q2c1-") and len(timed.files) == 1, "what failed keeps nothing"


def test_a_program_that_derives_for_ever_fails_alone(timed: Timed, monkeypatch: pytest.MonkeyPatch) -> None:
    # as many rounds as are allowed may take longer than the watch waits for a batch, where the machine has much else to do
    monkeypatch.setattr(growth, "MOST_ROUNDS", 40)
    endless = FROM + "n(Y) :- n(X), Y = X + 1\nn(Y) :- ex:p(X,Y)\n"
    assert timed.put("endless", endless, DMTL).status_code == 201
    timed.put("here", HERE, DMTL)
    timed.push((0, "a", 1), (1, "a", 1))
    timed.push((2, "a", 1))
    info = timed.client.get("/queries/endless").get_json()
    assert info["state"] == "failed" and "Unending" in info["lastError"]
    assert "by a rule without a name (line 3):" in info["lastError"]
    assert timed.told("here") == [(0, "p", "a", "Here")]


def test_stats_tell_what_is_held_and_the_bound(timed: Timed) -> None:
    bounded = FROM + "ex:Calm(X) :- Boxminus[1,2]ex:p(X,1)\n"
    for name, text in (("here", HERE), ("bounded", bounded), ("punctual", FROM + "ex:Again(X) :- ex:p(X,Y), Diamondminus[1,1]ex:p(X,Y)\n")):
        timed.put(name, text, DMTL)
    timed.push((0, "a", 1), (1, "b", 1))
    stats = {name: timed.client.get(f"/queries/{name}/stats").get_json() for name in ("here", "bounded", "punctual")}
    assert stats["here"]["factsHeld"] > 0 and stats["bounded"]["bound"]["log10"] > 0 and stats["punctual"]["bound"] is None
    assert timed.client.get("/queries/here").get_json()["progress"]["lastEventId"] == "q1c1-1"


def test_a_result_of_a_program_is_proved(timed: Timed) -> None:
    timed.put("here", HERE, DMTL)
    timed.push((0, "a", 1), (20, "b", 1))
    proof = timed.client.get("/queries/here/results/q1c1-1/why", headers={"Accept": "application/json"})
    assert proof.get_json()["proofs"][0]["premises"][0]["rule"] == {"set": "here", "name": None, "number": 1, "line": 3}


def test_states_lie_beside_the_data(tmp_path: Path) -> None:
    assert Settings(data=tmp_path).states_folder == tmp_path / "programs"


@pytest.mark.parametrize(("media", "good", "bad", "line"), [
    ("text/x-rif-ps",
     "Document(Group(Forall ?x (?x[<http://e.x/p> -> 1] :- ?x[<http://e.x/q> -> 1])))",
     "Document(\n  Group(Forall ?x (?x[?y -> 1] :- )))", 2),
    ("text/x-lars", "hot(X) <- [2 sec] diamond warm(X).", "hot(X) <- warm(X).\ncold(Y) <- not warm(Z).", 2),
    ("text/x-datalogmtl", "hot(X) :- Boxminus[0,2]warm(X)", "hot(X) :- warm(X)\nhot(X) :- Boxplus[0,2]warm(X)", 2)])
def test_a_rule_set_is_checked_and_not_kept(timed: Timed, media: str, good: str, bad: str, line: int) -> None:
    def explained(text: str, **query: str) -> Any:
        return timed.client.post("/explain", data=text, content_type=media, query_string={"as": "rules", **query})

    found = explained(good).get_json()
    assert (found["valid"], found["errors"], found["plan"], found["clauses"]) == (True, [], None, 1)
    wrong = explained(bad)
    assert wrong.status_code == 200 and not wrong.get_json()["valid"]
    assert wrong.get_json()["errors"][0]["location"]["line"] == line
    assert explained(bad, fail="errors").get_json()["errors"] == wrong.get_json()["errors"] == \
        timed.client.put("/rules/r", data=bad, content_type=media).get_json()["errors"], "as it would be refused"
    assert [one["name"] for one in timed.client.get("/rules").get_json()["rules"] if not one["builtIn"]] == []
    assert timed.client.post("/explain?as=rules", data="SELECT * {}", content_type="application/sparql-query").status_code == 415
    assert timed.client.post("/explain?as=sets", data=good, content_type=media).get_json()["parameter"] == "as"

"""Queries that use rule sets with a time of their own, over HTTP: what is told of their rules, proofs, and pauses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.server.test_timed_programs import DMTL, FROM, LARS, Timed
from tests.unit.runtime.test_engine import NOW

PREFIX = "PREFIX ex: <http://ex.org/>\n"
QUERY = (PREFIX + "REGISTER QUERY q AS SELECT ?x ?class FROM STREAM ex:s [RANGE 1s STEP 1s] USING RULES near, slow "
         "WHERE { ?x a ?class }")
NEAR = PREFIX + "ex:Here(X) :- Diamondminus[1,3]ex:p(X,Y)\n"
SLOW = PREFIX + "GRANULARITY 2 sec\nex:Lately(X) <- [4 sec] diamond ex:Here(X).\n"
PUNCTUAL = PREFIX + "ex:Once(X) :- Diamondminus[0,inf)ex:p(X,Y)\nex:Here(X) :- Diamondminus[1,1]ex:Once(X)\n"


@pytest.fixture
def timed(tmp_path: Path) -> Iterator[Timed]:
    running = Timed(tmp_path)
    with running:
        assert running.client.put("/streams/s", json={"iri": "http://ex.org/s", "time": "event"}).status_code == 201
        yield running


def register(timed: Timed, near: str = NEAR) -> None:
    for name, text, media in (("near", near, DMTL), ("slow", SLOW, LARS)):
        assert timed.client.put(f"/rules/{name}", data=text, content_type=media).status_code == 201
    assert timed.client.put("/queries/q", data=QUERY, content_type="application/sparql-query").status_code == 201


def answers(timed: Timed, name: str) -> list[tuple[float, list[str]]]:
    """The results: seconds, and the classes with their members."""
    def short(row: dict[str, Any]) -> str:
        return " ".join(row[name]["value"].rpartition("/")[2] for name in ("x", "class"))
    return [((event.at_ms - NOW) / 1_000, sorted(map(short, json.loads(event.payload)["results"]["bindings"])))
            for event in timed.results(name)]


def test_stats_and_plans_tell_what_each_stage_holds_and_may_hold(timed: Timed) -> None:
    register(timed, NEAR + "ex:Known(X) :- ex:Here(X), Diamondminus[0,inf)ex:p(X,1)\n")
    timed.push((0, "a", 1), (1, "b", 1), (5, "c", 1))
    stats = timed.client.get("/queries/q/stats").get_json()
    first, second = stats["stages"]
    assert (first["timeline"], first["after"], first["windowMs"], first["history"]) == ("dense time", [], 3_000, ["triple"])
    assert first["streamIndependent"] and first["bound"]["log10"] > 0
    assert (second["timeline"], second["after"], second["windowMs"]) == ("granules of 2000 ms", [1], 4_000)
    assert second["streamIndependent"] and second["bound"]["log10"] > 0
    assert 0 < first["factsHeld"] < stats["factsHeld"] == first["factsHeld"] + second["factsHeld"]
    plan = timed.client.get("/queries/q/plan?level=logical", headers={"Accept": "text/plain"}).text
    assert f"-- stage 1 holds {first['factsHeld']} facts now\n-- stage 2 holds {second['factsHeld']} facts now\n" in plan


def test_a_stage_with_a_punctual_operator_has_no_bound(timed: Timed) -> None:
    register(timed, PUNCTUAL)
    timed.push((0, "a", 1), (4, "b", 1))
    first, *_ = timed.client.get("/queries/q/stats").get_json()["stages"]
    assert (first["bound"], first["streamIndependent"], first["history"]) == (None, False, ["triple"])


def pause(timed: Timed, name: str, state: str, resume: str = "backlog") -> None:
    body = {"state": state} if state == "paused" else {"state": state, "resume": resume}
    assert timed.client.patch(f"/queries/{name}", json=body).status_code == 200
    timed.settle()


def test_what_comes_while_a_query_is_paused_is_seen_by_its_rules(timed: Timed) -> None:
    """With its backlog it gives what an undisturbed one does; from now on what that gives later."""
    register(timed)
    for name in ("later", "now"):
        assert timed.client.put(f"/queries/{name}", data=QUERY.replace(" q AS", f" {name} AS"),
                                content_type="application/sparql-query").status_code == 201
    timed.push((0, "a", 1), (1, "b", 1))
    for name in ("later", "now"):
        pause(timed, name, "paused")
    timed.push((2.5, "c", 1), (4, "d", 1), (8, "e", 1))
    assert [at for at, _ in answers(timed, "now")] == [1] and answers(timed, "q")[-1][0] == 8
    pause(timed, "later", "running")
    pause(timed, "now", "running", "now")
    timed.push((20, "f", 1), (20.5, "g", 1), (27, "h", 1))
    whole = answers(timed, "q")
    assert answers(timed, "later") == whole and any("e Here" in rows for _, rows in whole)
    assert answers(timed, "now") == [(at, rows) for at, rows in whole if at <= 1 or at > 8]


@pytest.mark.parametrize("program", [False, True])
def test_a_pause_that_brings_more_than_rules_may_see_at_once_ends_in_a_failure(timed: Timed, program: bool) -> None:
    """With the name of the limit; what came is dropped before, and a restart begins anew."""
    register(timed)
    assert timed.client.delete("/queries/q").status_code == 204
    media: dict[str, Any] = {"media": DMTL} if program else {}
    timed.engine.register(FROM + NEAR.partition("\n")[2] if program else QUERY.replace(" q AS", " p AS"), "p",
                          {"limits": {"state_rows": 50}, **media})
    timed.push((0, "a", 1), (1, "b", 1))
    for few in (30, 60):
        pause(timed, "p", "paused")
        timed.push(*((few / 2 + n * 0.3, "c", n) for n in range(few)))
        kept = timed.machine.snapshot.content("http://ex.org/s").rows
        assert 30 <= kept < 35 if few == 30 else kept < 30
        assert timed.client.patch("/queries/p", json={"state": "running", "resume": "backlog"}).status_code == 200
        timed.settle()
        info = timed.client.get("/queries/p").get_json()
        assert info["state"] == ("running" if few == 30 else "failed")
    assert "the limit state_rows is 50" in info["lastError"] and "while it was paused" in info["lastError"]
    assert timed.client.post("/queries/p/restart").status_code == 202
    timed.settle()
    assert timed.client.get("/queries/p").get_json()["state"] == "running"

"""Rule programs from the request to their feeds, on Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from engine.spark.session import Session
from server.app import create_app
from tests.runtime.test_on_spark import Waiting, start
from tests.server.conftest import problem

STREAM = "http://ex.org/s"
BEGIN_MS = 1_767_225_600_000
PS = {"content_type": "text/x-rif-ps"}
PROGRAM = f"""Document(
  Prefix(ex <http://ex.org/>)
  Import(<{STREAM}> <https://w3id.org/rsp/vocals#RDFStream>)
  Window 3 s
  Group( Forall ?x (?x[ex:c -> ex:yes] :- And(?x[ex:a -> ex:yes] ?x[ex:b -> ex:yes])) )
)"""


@pytest.fixture
def site(tmp_path: Path, spark_session: Session) -> Iterator[tuple[FlaskClient, Waiting]]:
    engine, waiting = start(tmp_path, spark_session, evaluation_ms=60_000)     # a thousand rounds take twelve seconds of an idle machine
    client = create_app(engine).test_client()
    assert client.put("/streams/s", json={"iri": STREAM, "time": "event"}).status_code == 201
    yield client, waiting
    engine.stop()


def push(client: FlaskClient, *events: tuple[int, str]) -> None:
    """Items ``:x p :yes`` at so many seconds of 2026."""
    lines = [f"{BEGIN_MS + second * 1000}\t<http://ex.org/x> <http://ex.org/{p}> <http://ex.org/yes> .\n" for second, p in events]
    assert client.post("/streams/s", data="".join(lines), content_type="text/x-timed-ntriples").status_code == 202


def lines(client: FlaskClient, stream: str) -> list[list[str]]:
    """The last result of a stream of the program, as CSV without its header."""
    text = client.get(f"/queries/q/results?stream={stream}", headers={"Accept": "text/csv"}).text
    return [line.split(",") for line in text.splitlines()[1:]]


@pytest.mark.spark
def test_what_begins_and_what_ceases(site: tuple[FlaskClient, Waiting]) -> None:
    client, waiting = site
    explained = client.post("/explain", data=PROGRAM, **PS).get_json()
    assert explained["valid"] and explained["form"] == "PROGRAM" and "closure of (window 0 by intervals)" in explained["plan"]
    wrong = client.post("/explain", data=PROGRAM.replace("?x[ex:c", "?y[ex:c"), **PS).get_json()
    assert [error["code"] for error in wrong["errors"]] == ["rule-syntax"] and "?y" in str(wrong["errors"]), wrong
    made = client.put("/queries/q", data=PROGRAM, **PS)
    assert made.status_code == 201 and made.get_json()["form"] == "PROGRAM" and made.get_json()["vars"][-2:] == ["from", "until"]
    assert client.put("/queries/q", data=PROGRAM, **PS).status_code == 200
    assert client.get("/queries/q", headers={"Accept": "text/x-rif-ps"}).text == PROGRAM
    assert "closure of (window 0 by intervals)" in client.get("/queries/q/plan?level=logical").get_json()["text"]
    push(client, (1, "a"), (2, "b"), (9, "z"))
    waiting.until(lambda: bool(lines(client, "n")))
    row = ["http://ex.org/x", "http://ex.org/c", "http://ex.org/yes", "2026-01-01T00:00:02Z", "2026-01-01T00:00:04Z"]
    assert lines(client, "p") == lines(client, "n") == [row]

    def feed(stream: str) -> dict[str, Any]:
        live = client.get(f"/queries/q/results?since=earliest&limit=1&stream={stream}", headers={"Accept": "application/jsonl"})
        events = [json.loads(line) for line in live.text.splitlines()]
        return next(event["data"] for event in events if event["event"] == "delta")

    begun, ceased = feed("p"), feed("n")
    assert begun["rsp"]["stream"] == "p" and len(begun["addedResults"]["results"]["bindings"]) == 1
    assert ceased["rsp"]["stream"] == "n" and len(ceased["removedResults"]["results"]["bindings"]) == 1


@pytest.mark.spark
def test_a_program_that_derives_for_ever_fails_alone(site: tuple[FlaskClient, Waiting]) -> None:
    client, waiting = site
    more = "?x[ex:n -> External(func:numeric-add(?n 1))] :- ?x[ex:n -> ?n]"
    endless = PROGRAM[:PROGRAM.index("Group")] + f"Group( Forall ?x ?n ({more}) ) )"
    endless = endless.replace("Import", "Prefix(func <http://www.w3.org/2007/rif-builtin-function#>) Import", 1)
    assert client.put("/queries/endless", data=endless, **PS).status_code == 201
    assert client.put("/queries/q", data=PROGRAM, **PS).status_code == 201
    one = '"1"^^<http://www.w3.org/2001/XMLSchema#integer>'
    event = f"{BEGIN_MS + 500}\t<http://ex.org/x> <http://ex.org/n> {one} .\n"
    assert client.post("/streams/s", data=event, content_type="text/x-timed-ntriples").status_code == 202
    push(client, (1, "a"), (2, "b"), (9, "z"))
    waiting.until(lambda: bool(lines(client, "n")))
    assert client.get("/queries/q").get_json()["state"] == "running"    # it may not have waited for the other
    waiting.until(lambda: bool(client.get("/queries/endless").get_json()["state"] == "failed"))
    failed = client.get("/queries/endless").get_json()
    assert failed["state"] == "failed" and "the rules still derive something new, by " in str(failed)
    assert client.get("/queries/q").get_json()["state"] in ("running", "idle")


@pytest.mark.spark
def test_what_a_program_has_not(site: tuple[FlaskClient, Waiting]) -> None:
    client, _ = site
    problem(client.put("/queries/q", data="SELECT * { ?s ?p ?o }", **PS), 400, "rule-syntax")
    for text, code in ((PROGRAM.replace("Window 3 s", ""), "window-unbounded"),
                       (PROGRAM.replace(STREAM, "http://ex.org/u"), "unknown-stream"),
                       (PROGRAM.replace("<https://w3id.org/rsp/vocals#RDFStream>", ""), "unsupported-in-streaming")):
        problem(client.put("/queries/q", data=text, **PS), 422, code)
    assert client.put("/queries/q", data=PROGRAM, **PS).status_code == 201
    problem(client.get("/queries/q/results?stream=x"), 400, "unknown-parameter")

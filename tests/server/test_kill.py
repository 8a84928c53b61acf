"""SIGKILL at random points of a recorded run: what is logged and what clients see is as if nothing had happened.

2,000 events, four queries with windows of different STEPs over one event-time stream with late and unordered items. The rule set and the
graph of one are replaced between two pushes. The server is killed while it works, started again on the same data folder, and the pusher
goes on, repeating what was not answered. Or Spark's JVM is killed under the server, or told to end, and the server starts it again.
"""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests

from engine.runtime.results import ResultLog
from tests.live import ASKED_S, ServerProcess, ready
from tests.waiting import wait_until
from tests.server.follower import Follower
from tests.server.pusher import Pusher, Unanswered

pytestmark = [pytest.mark.spark, pytest.mark.soak]

EVENTS = 2_000
PER_PUSH = 8
BEGIN_MS = 1_767_225_600_000
SPACING_MS = 40
LATENESS_MS = 1_500
STREAM = "http://test.example/readings"
MEDIA = "text/x-timed-ntriples"
SEED = 20_260_101
NOTICED_S = 5.0     # the bound that docs/http-api.md promises
ONCE = {130: signal.SIGKILL}
AGAIN = {60: signal.SIGKILL, 130: signal.SIGTERM, 200: signal.SIGKILL}
"""Signals to the JVM, by the number of the push after which they come."""
QUERIES = {
    "high": """PREFIX : <http://test.example/> REGISTER QUERY high AS
        SELECT ?o ?s ?v FROM STREAM <http://test.example/readings> [RANGE 10s STEP 2s]
        WHERE { ?o :sensor ?s ; :value ?v FILTER (?v > 70) }""",
    "counts": """PREFIX : <http://test.example/> REGISTER ISTREAM counts AS
        SELECT ?s (COUNT(?o) AS ?n) (AVG(?v) AS ?mean) FROM NAMED WINDOW :w ON <http://test.example/readings> [RANGE PT5S STEP PT1S]
        WHERE { WINDOW :w { ?o :sensor ?s ; :value ?v } } GROUP BY ?s""",
    "alarms": """PREFIX : <http://test.example/> REGISTER QUERY alarms AS
        CONSTRUCT { _:alarm :of ?s ; :because ?o } FROM STREAM <http://test.example/readings> [RANGE 7s STEP 3s]
        WHERE { ?o :sensor ?s ; :value ?v FILTER (?v > 95) }""",
    "trouble": """PREFIX : <http://test.example/> REGISTER QUERY trouble AS
        SELECT ?s FROM STREAM <http://test.example/readings> [RANGE 4s STEP 2s]
        USING RULES trouble, rdfs USING GRAPH <http://test.example/map> WHERE { ?s a :Trouble }""",
}
RULES = """Document(Prefix(t <http://test.example/>) Group(
    Forall ?o ?s ?v (?s[rdf:type -> t:Hot] :- And(?o[t:sensor -> ?s t:value -> ?v] External(pred:numeric-greater-than(?v %d))))
    Forall ?s ?n (?n[rdf:type -> t:Warm] :- And(?s[rdf:type -> t:Hot] ?s[t:beside -> ?n]))))"""
GRAPH = """PREFIX : <http://test.example/> PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
    :Hot rdfs:subClassOf %s . :Warm rdfs:subClassOf %s . :left rdfs:subPropertyOf :beside .
    <http://test.example/s/1> :beside <http://test.example/s/2> . <http://test.example/s/4> :left <http://test.example/s/5> ."""
FIRST = RULES % 97, GRAPH % (":Trouble", ":Trouble")
CHANGES = {90: (RULES % 85, None), 170: (None, GRAPH % (":Fine", ":Trouble"))}
"""By the number of the push before which they come: new versions of the rule set and of the graph."""

Logged = list[tuple[str, str, int, int, str, Counter[str]]]
Taken = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Kill:
    """Kill while the push `number` is under way, so long after it began; `pusher` says whether the pusher dies as well."""

    number: int
    delay_s: float
    pusher: bool


@pytest.fixture(scope="module")
def pushes() -> list[bytes]:
    """The recorded events, some out of order, a few late, in pushes of a few events each. The first is the earliest."""
    made, shuffled = random.Random(SEED), []
    for number in range(EVENTS):
        t = BEGIN_MS + number * SPACING_MS
        o = f"<http://test.example/o/{number}>"
        delay = made.choice([0, 0, 0, made.randrange(LATENESS_MS), LATENESS_MS * 2 if made.random() < 0.1 else 0])
        text = (f"{t}\t{o} <http://test.example/sensor> <http://test.example/s/{made.randrange(7)}> .\n"
                f'{t}\t{o} <http://test.example/value> "{made.randrange(100)}"^^<http://www.w3.org/2001/XMLSchema#integer> .\n')
        shuffled.append((t + delay if number else 0, number, text))
    lines = [text for _, _, text in sorted(shuffled)]
    return ["".join(lines[i:i + PER_PUSH]).encode() for i in range(0, EVENTS, PER_PUSH)]


@pytest.fixture(scope="module")
def undisturbed(pushes: list[bytes], tmp_path_factory: pytest.TempPathFactory) -> tuple[Logged, Taken]:
    """The result log of a run in which nothing goes wrong, and how many items were taken and late."""
    folder = tmp_path_factory.mktemp("undisturbed")
    with ServerProcess(folder / "data") as server:
        register(server.base)
        pusher = Pusher(server.base, "/streams/readings", pushes, MEDIA, folder / "journal")
        send_rest(server, pusher)
        items, late = finish(server)
    found = logged(folder / "data")
    assert items + late == 2 * EVENTS and late > 0
    assert {query for query, *_ in found} == set(QUERIES)
    assert len(found) > EVENTS * SPACING_MS / 1000 * (1 / 2 + 1 + 1 / 3 + 1 / 2) * 0.9
    parts = [sum(len(entry[5]) for entry in found if entry[0] == "trouble" and begin <= entry[3] - BEGIN_MS < end)
             for begin, end in ((0, 28_000), (31_000, 54_000), (58_000, 80_000))]
    assert parts[1] > 1.5 * parts[0] and 0 < parts[2] < parts[1] / 2, parts
    return found, (items, late)


@pytest.mark.timeout(400)
def test_three_kills_change_nothing(pushes: list[bytes], undisturbed: tuple[Logged, Taken], tmp_path: Path) -> None:
    run_with_kills(pushes, undisturbed, tmp_path, kills(3, SEED))


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_ten_kills_change_nothing(pushes: list[bytes], undisturbed: tuple[Logged, Taken], tmp_path: Path) -> None:
    run_with_kills(pushes, undisturbed, tmp_path, kills(10, SEED + 1))


@pytest.mark.timeout(600)
@pytest.mark.parametrize("signals", [pytest.param(ONCE, id="once"), pytest.param(AGAIN, id="again", marks=pytest.mark.long)])
def test_a_jvm_killed_in_mid_stream_changes_nothing(
        pushes: list[bytes], undisturbed: tuple[Logged, Taken], tmp_path: Path, signals: dict[int, signal.Signals]) -> None:
    """Pushes go on while Spark is started again, and clients of the feeds stay connected."""
    expected, taken = undisturbed
    with ExitStack() as ends, ServerProcess(tmp_path / "data") as server:
        followers = [Follower(name, lambda: server.base) for name in QUERIES]
        register(server.base)
        for follower in followers:
            follower.start()
            ends.callback(follower.stop)
        pusher = Pusher(server.base, "/streams/readings", pushes, MEDIA, tmp_path / "journal")
        for number in pusher.remaining():
            try:
                send(server, pusher, number)
            except Unanswered:      # what came before it took longer than the server keeps a connection that is not used
                pusher.connect(server.base)
                send(server, pusher, number)
            if number in signals:
                began = time.monotonic()
                os.kill(jvm(server), signals[number])
                not_ready_in_time(server, began)
                states = {query["state"] for query in requests.get(f"{server.base}/queries", timeout=30).json()["queries"]}
                assert states == {"restarting"}
                if number == max(signals):
                    server.wait_ready()
        server.wait_ready()
        assert finish(server) == taken, "a push was lost, or taken twice"
        final = {query: f"{epoch}-{seq}" for query, epoch, seq, *_ in expected}
        wait_until(lambda: all(follower.last_id == final[follower.name] for follower in followers), 60,
                   lambda: f"seen {[(f.name, f.last_id) for f in followers]} of {final}")
        server.stop()
    assert server.starts == 1
    assert logged(tmp_path / "data") == expected
    for follower in followers:
        assert not follower.surprises
        assert [event.id for event in follower.events] == [f"{epoch}-{seq}" for query, epoch, seq, *_ in expected if query == follower.name]


def run_with_kills(pushes: list[bytes], undisturbed: tuple[Logged, Taken], folder: Path, points: list[Kill]) -> None:
    """The run with kills, and what must hold afterwards."""
    expected, taken = undisturbed
    server = ServerProcess(folder / "data")
    with ExitStack() as ends:
        followers = [Follower(name, lambda: server.base) for name in QUERIES]
        for follower in followers:
            ends.callback(follower.stop)
        with server:
            register(server.base)
            for follower in followers:
                follower.start()
            pusher = Pusher(server.base, "/streams/readings", pushes, MEDIA, folder / "journal")
            for point in points:
                pusher = push_until_killed(server, pusher, point, pushes, folder / "journal")
            send_rest(server, pusher)
            assert finish(server) == taken, "a push was lost, or taken twice"
            final = {query: f"{epoch}-{seq}" for query, epoch, seq, *_ in expected}
            wait_until(lambda: all(follower.last_id == final[follower.name] for follower in followers), 60,
                       lambda: f"seen {[(f.name, f.last_id) for f in followers]} of {final}")
    assert server.starts == len(points) + 1
    found = logged(folder / "data")
    assert [entry[:5] for entry in found] == [entry[:5] for entry in expected]
    assert found == expected
    for follower in followers:
        assert not follower.surprises
        assert follower.connections > 1
        assert [event.id for event in follower.events] == [f"{epoch}-{seq}" for query, epoch, seq, *_ in found if query == follower.name]
    assert_contents(followers, found)


def push_until_killed(server: ServerProcess, pusher: Pusher, point: Kill, pushes: list[bytes], journal: Path) -> Pusher:
    """Push up to the point and beyond, until the server is dead; the pusher that goes on once a new one is ready."""
    killer: threading.Thread | None = None
    for number in pusher.remaining():
        if number >= point.number and killer is None:
            killer = threading.Timer(point.delay_s, server.kill)
            killer.start()
        try:
            send(server, pusher, number)
        except Unanswered:
            break
    assert killer is not None, f"there was nothing left to push at {point}"
    killer.join()
    unanswered = pusher.remaining()
    server.start()
    server.wait_ready()
    if point.pusher:
        pusher = Pusher(server.base, "/streams/readings", pushes, MEDIA, journal)
    else:
        pusher.connect(server.base)
    assert pusher.remaining() == unanswered
    return pusher


def send_rest(server: ServerProcess, pusher: Pusher) -> None:
    """Send everything that remains."""
    for number in pusher.remaining():
        send(server, pusher, number)


def send(server: ServerProcess, pusher: Pusher, number: int) -> None:
    """Send a push, after what changes before it: that may be said twice, when the server did not live to take the push."""
    rules, graph = CHANGES.get(number, (None, None))
    try:
        change(server.base, rules, graph)
    except (requests.ConnectionError, requests.Timeout) as gone:
        raise Unanswered(f"what comes before push {number}") from gone
    pusher.send(number)


def change(base: str, rules: str | None, graph: str | None) -> None:
    """New versions."""
    if rules is not None:
        answer = requests.put(f"{base}/rules/trouble", data=rules, headers={"Content-Type": "text/x-rif-ps"}, timeout=60)
        assert answer.ok, answer.text
    if graph is not None:
        answer = requests.put(f"{base}/graphs", params={"graph": "http://test.example/map"}, data=graph,
                              headers={"Content-Type": "text/turtle"}, timeout=60)
        assert answer.ok, answer.text


def kills(count: int, seed: int) -> list[Kill]:
    """Random points of the run, one in each of `count` equal parts of it."""
    made = random.Random(seed)
    part = EVENTS // PER_PUSH // (count + 1)
    return [Kill(made.randrange(number * part + 5, (number + 1) * part), made.random() ** 2 * 0.6, made.random() < 0.5)
            for number in range(count)]


def jvm(server: ServerProcess) -> int:
    """The process id of the server's JVM."""
    found = [pid for pid in server.family() if Path(f"/proc/{pid}/comm").read_text().strip() == "java"]
    assert len(found) == 1, found
    return found[0]


def not_ready_in_time(server: ServerProcess, began: float) -> None:
    wait_until(lambda: not ready(server.base), 60, lambda: "the server stays ready without a JVM", ASKED_S)
    assert time.monotonic() - began < NOTICED_S * 2


def register(base: str) -> None:
    """The stream and the queries."""
    stream = {"iri": STREAM, "time": "event", "lateness": f"PT{LATENESS_MS / 1000}S", "idle": "PT1H"}
    assert requests.put(f"{base}/streams/readings", json=stream, timeout=60).status_code == 201
    change(base, *FIRST)
    for name, text in QUERIES.items():
        answer = requests.put(f"{base}/queries/{name}", data=text, headers={"Content-Type": "application/sparql-query"}, timeout=60)
        assert answer.status_code == 201, answer.text


def finish(server: ServerProcess) -> Taken:
    """Move the watermark to the end, wait until all is processed; how many items were taken and how many were late."""
    end = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime((BEGIN_MS + EVENTS * SPACING_MS) // 1000 + 20))
    answer = requests.post(f"{server.base}/streams/readings?watermark={end}", timeout=60)
    assert answer.status_code == 202, answer.text
    server.wait_processed()
    state = requests.get(f"{server.base}/streams/readings", timeout=60).json()["state"]
    return state["items"], state["late"]


def logged(data: Path) -> Logged:
    """(query, epoch, seq, T, kind, bag of answers) of every logged result, by query and seq; the server must have ended."""
    log = ResultLog(data / "thalweg.db")
    try:
        return [(event.query, event.epoch, event.seq, event.tick, event.kind, Counter(rows(event.kind, event.payload)))
                for query in sorted(QUERIES) for event in log.read(query, 0, 1_000_000)]
    finally:
        log.close()


def rows(kind: str, payload: bytes) -> Iterator[str]:
    """Answers as text: triples, or bindings."""
    if kind == "graph":
        return iter(payload.decode().splitlines())
    return (json.dumps(row, sort_keys=True) for row in json.loads(payload)["results"]["bindings"])


def assert_contents(followers: list[Follower], found: Logged) -> None:
    """What the clients of the two SELECT queries saw is what is logged."""
    seen: dict[str, Any] = {follower.name: follower.events for follower in followers}
    for name, part in (("high", lambda data: data), ("counts", lambda data: data["addedResults"])):
        bags = [Counter(json.dumps(row, sort_keys=True) for row in part(event.data)["results"]["bindings"]) for event in seen[name]]
        assert bags == [entry[5] for entry in found if entry[0] == name]

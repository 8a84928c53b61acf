"""The clients of the stress run: what each of them does again and again. A role is a function (or object) that takes its Client."""

from __future__ import annotations

import itertools
import time
import uuid
from dataclasses import dataclass, field
from typing import Any

import requests

from tests.server.sse import Event, Events
from tests.stress.site import Client

EX = "http://stress.example/"
EVENTS, ARRIVALS = f"{EX}events", f"{EX}arrivals"
LATENESS_MS = 1_500
TIMED = "text/x-timed-ntriples"
QUERY = {"Content-Type": "application/sparql-query"}
_INTEGER = "<http://www.w3.org/2001/XMLSchema#integer>"

QUERIES = {
    "high": f"PREFIX : <{EX}> REGISTER QUERY high AS SELECT ?o ?s ?v FROM STREAM <{EVENTS}> [RANGE 5s STEP 1s] "
            "WHERE { ?o :sensor ?s ; :value ?v FILTER (?v > 70) }",
    "counts": f"PREFIX : <{EX}> REGISTER ISTREAM counts AS SELECT ?s (COUNT(?o) AS ?n) (AVG(?v) AS ?mean) "
              f"FROM STREAM <{EVENTS}> [RANGE 4s STEP 2s] WHERE {{ ?o :sensor ?s ; :value ?v }} GROUP BY ?s",
    "alarms": f"PREFIX : <{EX}> REGISTER STREAM <{EX}alarms> AS CONSTRUCT {{ ?s :alarm ?o }} FROM STREAM <{EVENTS}> [RANGE 3s STEP 1s] "
              "WHERE { ?o :sensor ?s ; :value ?v FILTER (?v > 90) }",
    "echo": f"PREFIX : <{EX}> REGISTER QUERY echo AS SELECT ?s (COUNT(*) AS ?n) FROM STREAM <{EX}alarms> [RANGE 6s STEP 2s] "
            "WHERE { ?s :alarm ?o } GROUP BY ?s",
    "trouble": f"PREFIX : <{EX}> REGISTER QUERY trouble AS SELECT ?s FROM STREAM <{EVENTS}> [RANGE 4s STEP 2s] "
               f"USING RULES trouble, rdfs USING GRAPH <{EX}map> WHERE {{ ?s a :Trouble }}",
    "last": f"PREFIX : <{EX}> REGISTER QUERY last AS SELECT ?s ?v FROM STREAM <{ARRIVALS}> [TRIPLES 30] "
            f"FROM STREAM <{ARRIVALS}> [RANGE 2s STEP 2s] WHERE {{ ?s :value ?v }}",
}
"""Registered at the beginning, there to the end."""

RULES = """Document(Prefix(t <http://stress.example/>) Group(
    Forall ?o ?s ?v (?s[rdf:type -> t:Hot] :- And(?o[t:sensor -> ?s t:value -> ?v] External(pred:numeric-greater-than(?v %d))))
    Forall ?s ?n (?n[rdf:type -> t:Warm] :- And(?s[rdf:type -> t:Hot] ?s[t:beside -> ?n]))))"""
GRAPH = """PREFIX : <http://stress.example/> PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
    :Hot rdfs:subClassOf :Trouble . :Warm rdfs:subClassOf %s . :s1 :beside :s2 . :s3 :beside :s%d ."""


@dataclass(slots=True)
class Push:
    """Pushes small bodies to one stream, each with a key of its own; `taken` and `late` are what the server said of them."""

    stream: str
    event_time: bool
    taken: int = 0
    late: int = 0
    _numbers: Any = field(default_factory=lambda: itertools.count())

    def __call__(self, client: Client) -> None:
        random, lines = client.random, []
        mark = uuid.uuid4().hex[:12]
        for _ in range(random.randrange(1, 6)):
            o, t = f"<{EX}o-{mark}-{next(self._numbers)}>", int(time.time() * 1000) - random.choice([0, 0, 0, 400, 1_200, 9_000])
            first = f"{t}\t" if self.event_time else ""
            lines += [f"{first}{o} <{EX}sensor> <{EX}s{random.randrange(6)}> .",
                      f'{first}{o} <{EX}value> "{random.randrange(100)}"^^{_INTEGER} .']
        media = TIMED if self.event_time else "application/n-triples"
        answer = client.ask("POST", f"/streams/{self.stream}", (202,), data="\n".join(lines) + "\n",
                            headers={"Content-Type": media, "Idempotency-Key": uuid.uuid4().hex})
        if answer is not None:
            self.taken += answer.json()["accepted"]
            self.late += answer.json()["late"]
        client.site.pause(random.uniform(0.02, 0.15))


def ask_once(client: Client) -> None:
    """One-shot queries: over graphs, over a window that is registered, and one that asks for much."""
    texts = (f"SELECT (COUNT(*) AS ?n) FROM <{EX}map> WHERE {{ ?s ?p ?o }}",
             f"PREFIX : <{EX}> SELECT ?s ?v FROM STREAM <{EVENTS}> [RANGE 5s STEP 1s] WHERE {{ ?o :sensor ?s ; :value ?v }}",
             f"PREFIX : <{EX}> SELECT ?s (SUM(?v) AS ?n) FROM STREAM <{EVENTS}> [RANGE 4s STEP 2s] "
             "WHERE { ?o :sensor ?s ; :value ?v . ?p :sensor ?s } GROUP BY ?s")
    client.ask("GET", "/sparql", (200,), params={"query": client.random.choice(texts)},
               headers={"Accept": "application/sparql-results+json"})
    client.site.pause(client.random.uniform(0.05, 0.4))


def register(client: Client) -> None:
    """A query comes, is read, is replaced, is paused and goes on, and goes."""
    name = f"churn-{uuid.uuid4().hex[:10]}"
    text = (f"PREFIX : <{EX}> REGISTER QUERY {name} AS SELECT ?s ?v FROM STREAM <{EVENTS}> [RANGE {{0}}s STEP 1s] "
            "WHERE {{ ?o :sensor ?s ; :value ?v FILTER (?v > {1}) }}")
    if client.ask("PUT", f"/queries/{name}", (201, 200), data=text.format(2, 95), headers=QUERY) is None:
        return
    look(client, name)
    client.ask("PUT", f"/queries/{name}?replace=true", (200, 201), data=text.format(3, 97), headers=QUERY)
    look(client, name)
    client.ask("PATCH", f"/queries/{name}", (200,), json={"state": "paused"}, headers={"Content-Type": "application/merge-patch+json"})
    client.ask("PATCH", f"/queries/{name}", (200,), json={"state": "running"}, headers={"Content-Type": "application/merge-patch+json"})
    client.ask("POST", f"/queries/{name}/restart?reset=true", (202,))
    look(client, name)
    client.ask("DELETE", f"/queries/{name}", (204, 410))    # 410: the answer to the first attempt was lost
    client.ask("GET", f"/queries/{name}", (410,))
    client.site.pause(client.random.uniform(1.0, 6.0))


def look(client: Client, name: str) -> None:
    """Every page of a query that is there: none may say that it is not."""
    for path in ("", "/results", "/plan", "/stats"):
        client.ask("GET", f"/queries/{name}{path}", (200,), headers={"Accept": "*/*"})


def write_graph(client: Client) -> None:
    """New versions of the graph that a query reasons with, and graphs that come and go."""
    other = f"{EX}g-{uuid.uuid4().hex[:8]}"
    turtle = {"Content-Type": "text/turtle"}
    body = GRAPH % (client.random.choice([":Trouble", ":Fine"]), client.random.randrange(6))
    client.ask("PUT", "/graphs", (200, 201, 204), params={"graph": f"{EX}map"}, data=body, headers=turtle)
    client.ask("PUT", "/graphs", (200, 201, 204), params={"graph": other}, data=body, headers=turtle)
    client.ask("POST", "/graphs", (200, 204), params={"graph": other}, data=f"<{EX}a> <{EX}b> <{EX}c> .", headers=turtle)
    client.ask("GET", "/graphs", (200,), params={"graph": other}, headers={"Accept": "application/n-triples"})
    client.ask("DELETE", "/graphs", (204, 404), params={"graph": other})
    client.site.pause(client.random.uniform(2.0, 8.0))


def write_rules(client: Client) -> None:
    """New versions of the rule set that a query uses."""
    client.ask("PUT", "/rules/trouble", (200, 201), data=RULES % client.random.randrange(80, 99), headers={"Content-Type": "text/x-rif-ps"})
    client.ask("GET", "/rules/trouble", (200,))
    client.site.pause(client.random.uniform(2.0, 8.0))


def read_all(client: Client) -> None:
    """Lists, and what is there from the beginning."""
    for path in ("/queries", "/streams", "/graphs", "/rules", "/info", "/streams/events", "/streams/arrivals",
                 "/streams/events/dead-letters"):
        client.ask("GET", path, (200,))
    look(client, client.random.choice(list(QUERIES)))
    client.site.pause(client.random.uniform(0.05, 0.3))


def be_careless(client: Client) -> None:
    """What is wrong is refused in the client's words, and harms nobody."""
    wrong = (("PUT", "/queries/bad", {"data": "REGISTER QUERY bad AS SELECT", "headers": QUERY}, (400,)),
             ("POST", "/streams/events", {"data": "<a> <b", "headers": {"Content-Type": "text/turtle"}}, (400,)),
             ("POST", "/streams/events", {"data": "x" * 100, "headers": {"Content-Type": TIMED}}, (400,)),
             ("GET", "/sparql", {"params": {"query": "SELECT * WHERE { ?s ?p "}}, (400,)),
             ("GET", "/queries/never-there", {}, (404,)),
             ("PUT", "/rules/bad", {"data": "Document(", "headers": {"Content-Type": "text/x-rif-ps"}}, (400,)))
    method, path, more, good = client.random.choice(wrong)
    client.ask(method, path, good, **more)
    client.site.pause(client.random.uniform(1.0, 3.0))


@dataclass(slots=True)
class Follow:
    """A feed that is cut at random and resumed with the id of its last event: ids go on without a hole, nothing comes twice."""

    query: str
    events: list[Event] = field(default_factory=list)

    def __call__(self, client: Client) -> None:
        last = self.events[-1].id if self.events else None
        url = f"{client.site.server.base}/queries/{self.query}/results" + ("" if last else "?since=earliest")
        until = time.monotonic() + client.random.uniform(2, 20)
        try:
            with Events(url, timeout=60.0, **({"Last-Event-ID": last} if last else {})) as feed:
                if feed.response.status_code != 200:
                    if feed.response.status_code != 503:
                        client.site.complain(f"feed of {self.query}: {feed.response.status_code} {feed.response.text[:300]}")
                    client.site.pause(0.3)
                    return
                for event in feed:
                    self._take(client, event)
                    if client.site.over.is_set() or time.monotonic() > until:
                        break
        except (requests.RequestException, OSError, KeyError):
            pass    # the server went away, within an event or between two: what was whole has been taken
        client.site.pause(0.05)

    def _take(self, client: Client, event: Event) -> None:
        if event.event in ("gap", "snapshot"):
            client.site.complain(f"feed of {self.query}: {event.event} {event.data}")
        if event.event not in ("result", "delta", "graph"):
            return
        before = _sequence(self.events[-1]) if self.events else (_sequence(event)[0], _sequence(event)[1] - 1)
        if _sequence(event) != (before[0], before[1] + 1):
            client.site.complain(f"feed of {self.query}: {event.id} after {before}")
        self.events.append(event)


def _sequence(event: Event) -> tuple[str, int]:
    """Epoch and number of an event's id."""
    epoch, _, number = str(event.id).rpartition("-")
    return epoch, int(number)

"""Fifty registered queries with distinct texts, STEP 1 s, on one arrival-time stream of 1,000 triples a second.

Ten kinds of queries, five of each with other constants and ranges; one client follows them all through ``/events``.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from typing import Any

from tests.bench.client import Client, push_at_pace
from tests.bench.feed import Event, Feed
from tests.bench.figures import Figure, at_most, holds, percentile, plain, spread, trend
from tests.bench.join import milliseconds
from tests.bench.observations import BENCH, TYPE
from tests.bench.settings import Settings, running_server

QUERIES = 50
_STREAM = "http://bench.example/many"
_PUSHES_PER_SECOND = 10
_ITEMS_PER_PUSH = 33
_WARM_UP_S = 10
_INTEGER = "http://www.w3.org/2001/XMLSchema#integer"
_SOURCE = f"FROM STREAM <{_STREAM}> [RANGE {{range}}s STEP 1s]"
KINDS = (
    "SELECT ?o ?n {source} WHERE {{ ?o a b:Observation ; b:sensor b:s{k} ; b:value ?n }}",
    "SELECT ?s (COUNT(?o) AS ?count) {source} WHERE {{ ?o b:sensor ?s ; b:value ?n FILTER (?n > {k}) }} GROUP BY ?s",
    "SELECT ?s (AVG(?n) AS ?mean) (MAX(?n) AS ?most) {source} WHERE {{ ?o b:sensor ?s ; b:value ?n }} GROUP BY ?s HAVING (COUNT(?o) > {k})",
    "SELECT ?o ?s {source} WHERE {{ ?o b:sensor ?s OPTIONAL {{ ?o b:value ?n FILTER (?n > 90) }} FILTER (BOUND(?n) || ?s = b:s{k}) }}",
    "ASK {source} WHERE {{ ?o b:sensor b:s{k} ; b:value ?n FILTER (?n > 98) }}",
    "CONSTRUCT {{ ?s b:high ?n }} {source} WHERE {{ ?o b:sensor ?s ; b:value ?n FILTER (?n > 9{k}) }}",
    "SELECT DISTINCT ?s {source} WHERE {{ {{ ?o b:sensor ?s ; b:value {k} }} UNION {{ ?o b:sensor ?s ; b:value 5{k} }} }}",
    "SELECT ?a ?b {source} WHERE {{ ?a b:sensor b:s{k} ; b:value ?n . ?b b:sensor b:s1{k} ; b:value ?n }}",
    "SELECT ?s ?n {source} WHERE {{ ?o b:sensor ?s ; b:value ?n FILTER (?n < 1{k}) }} ORDER BY DESC(?n) ?s LIMIT {range}",
    "SELECT ?s (SUM(?twice) AS ?sum) {source} WHERE {{ ?o b:sensor ?s ; b:value ?n BIND (?n * 2 + {k} AS ?twice) }} GROUP BY ?s",
)


def texts() -> dict[str, str]:
    """The statements by name, no two alike."""
    found = {}
    for kind, text in enumerate(KINDS):
        for k in range(QUERIES // len(KINDS)):
            name = f"q{kind}{k}"
            body = text.format(source=_SOURCE.format(range=3 + 2 * k), k=k, range=3 + 2 * k)
            found[name] = f"PREFIX b: <{BENCH}>\nREGISTER QUERY {name} AS {body}"
    return found


def items(number: int) -> bytes:
    """One push: N-Quads, a graph for each observation of three triples."""
    lines = []
    for i in range(number * _ITEMS_PER_PUSH, (number + 1) * _ITEMS_PER_PUSH):
        o, g = f"<{BENCH}o/{i}>", f"<{BENCH}g/{i}>"
        lines.append(f"{o} <{TYPE}> <{BENCH}Observation> {g} .\n{o} <{BENCH}sensor> <{BENCH}s{i % 20}> {g} .\n"
                     f'{o} <{BENCH}value> "{i * 7919 % 100}"^^<{_INTEGER}> {g} .\n')
    return "".join(lines).encode()


def run(settings: Settings) -> tuple[list[Figure], dict[str, Any]]:
    """The figures of the benchmark, and details."""
    seconds = settings.duration(60, 16)
    with running_server(settings) as server:
        client = Client(server.base)
        client.put_stream("many", _STREAM)
        registering = time.time()
        for name, text in texts().items():
            client.put_query(name, text)
        registering = time.time() - registering
        feed = Feed(server.base, "/events?snapshot=false&mode=full&" + "&".join(f"query={name}" for name in texts()))
        used, began = server.cpu_seconds(), time.time()
        push_at_pace(server.base, "/streams/many", items, "application/n-quads", begin=began + 0.2, interval_s=1 / _PUSHES_PER_SECOND,
                     count=seconds * _PUSHES_PER_SECOND, connections=2)
        ended = time.time()
        cores = (server.cpu_seconds() - used) / (ended - began)
        server.wait_processed()
        feed.wait_quiet(0.5, 5.0)
        states = {query["name"]: query["lastError"] for query in client.request("GET", "/queries?state=failed")["queries"]}
        batches = client.stats("q00")["batches"]
        feed.close()
    ticks = range((math.ceil(began) + _WARM_UP_S) * 1000, math.floor(ended) * 1000, 1000)
    lags, missing = judge(feed.events(), ticks)
    worst = [max((lags[name, tick] for name in texts() if (name, tick) in lags), default=math.nan) for tick in ticks]
    developed = trend([lag for lag in worst if not math.isnan(lag)])
    all_lags = list(lags.values())
    figures = [at_most("T to event, p95", percentile(all_lags, 95), "ms", 2000), *spread("T to event", all_lags)[::2],
               holds("no growing lag", not developed.growing, "yes"), plain("slope of the worst lag", developed.slope_ms_per_s, "ms/s"),
               holds("every evaluation of every query answered", not missing, "yes"), plain("evaluations", len(all_lags), "events"),
               plain("time to register one", registering / QUERIES * 1000, "ms"), plain("processor of the server", cores, "cores")]
    return figures, {"missing": missing[:20], "failed": states, "worstLagsMs": worst, "batches": batches[-10:]}


def judge(events: Iterable[Event], ticks: range) -> tuple[dict[tuple[str, int], float], list[str]]:
    """ms from T to its event by (query, T), and which of `ticks` have none. A query that has had no answer yet may be silent: its
    window's content may be empty for it only if it was so before, which does not happen here once all ranges have been filled."""
    lags: dict[tuple[str, int], float] = {}
    for event in events:
        if event.event in ("result", "graph"):
            data = event.json()
            tick = milliseconds(data["rsp"]["at"])
            if tick in ticks:
                lags[data["query"], tick] = event.arrived * 1000 - tick
        elif event.event in ("gap", "bye"):
            raise RuntimeError(f"the feed was not complete: {event.event} {event.data.decode()}")
    return lags, [f"{name} at {tick}" for name in texts() for tick in ticks if (name, tick) not in lags]

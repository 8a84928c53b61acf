"""Many registered queries with distinct texts, STEP 1 s, on one arrival-time stream: fifty, a hundred and a thousand at 1,000 triples a
second, and twenty with aggregates at 10,000.

Twenty kinds of queries, each with other constants and ranges; one client follows them all through ``/events``.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any

from tests.bench.client import Client, push_at_pace
from tests.bench.feed import Event, Feed
from tests.bench.figures import Figure, at_most, holds, percentile, plain, spread, trend
from tests.bench.join import milliseconds
from tests.bench.observations import BENCH, TYPE
from tests.bench.settings import Settings, running_server

STREAM = "http://bench.example/many"
PUSHES_PER_SECOND = 10
_WARM_UP_S = 10
_QUERIES_PER_FEED = 100
_TRIPLES_PER_ITEM = 3
_INTEGER = "http://www.w3.org/2001/XMLSchema#integer"
_SOURCE = f"FROM STREAM <{STREAM}> [RANGE {{range}}s STEP 1s]"
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
    "SELECT ?s (MIN(?n) AS ?least) {source} WHERE {{ ?o b:sensor ?s ; b:value ?n FILTER (?n != {k}) }} GROUP BY ?s",
    "SELECT (COUNT(*) AS ?all) {source} WHERE {{ ?o b:value ?n FILTER (?n >= {k}) }}",
    "SELECT ?n (COUNT(?o) AS ?count) {source} WHERE {{ ?o b:sensor b:s{k} ; b:value ?n }} GROUP BY ?n",
    "SELECT ?o {source} WHERE {{ ?o b:sensor b:s{k} FILTER NOT EXISTS {{ ?o b:value ?n FILTER (?n < 50) }} }}",
    "SELECT ?o ?n {source} WHERE {{ ?o b:value ?n MINUS {{ ?o b:sensor b:s{k} }} FILTER (?n > 95) }}",
    "SELECT ?s ?n {source} WHERE {{ ?o b:sensor ?s ; b:value ?n {{ SELECT (MAX(?m) AS ?n) {{ ?x b:value ?m FILTER (?m < 8{k}) }} }} }}",
    "SELECT DISTINCT ?n {source} WHERE {{ ?o b:sensor b:s{k} ; b:value ?n }} ORDER BY ?n",
    "SELECT ?s (COUNT(DISTINCT ?n) AS ?kinds) {source} WHERE {{ ?o b:sensor ?s ; b:value ?n FILTER (?n > {k}) }} GROUP BY ?s",
    "SELECT ?o ?is {source} WHERE {{ ?o b:sensor b:s{k} ; b:value ?n BIND (IF(?n > 5{k}, 'high', 'low') AS ?is) }}",
    "SELECT ?o ?s {source} WHERE {{ VALUES ?s {{ b:s{k} b:s1{k} }} ?o b:sensor ?s ; b:value ?n FILTER (?n > 5{k}) }}",
)


@dataclass(frozen=True, slots=True)
class Load:
    """So many queries of some KINDS, triples a second, and the target (ms) of the 95th percentile from T to the event."""

    queries: int
    rate: int
    kinds: tuple[int, ...]
    target_ms: int

    @property
    def items(self) -> int:
        """The items of a push."""
        return self.rate // (PUSHES_PER_SECOND * _TRIPLES_PER_ITEM)

    def texts(self) -> dict[str, str]:
        """The statements by name, no two alike: of a kind ten constants, with five ranges each."""
        found = {}
        for kind in self.kinds:
            for number in range(self.queries // len(self.kinds)):
                name, seconds = f"q{kind}-{number}", 3 + 2 * ((number // 10 + number) % 5)
                body = KINDS[kind].format(source=_SOURCE.format(range=seconds), k=number % 10, range=seconds)
                found[name] = f"PREFIX b: <{BENCH}>\nREGISTER QUERY {name} AS {body}"
        return found


LOADS = {
    "50": Load(50, 1_000, tuple(range(10)), 2_000),
    "20 aggregates": Load(20, 10_000, (1, 2, 9, 11), 600),
    "100": Load(100, 1_000, tuple(range(20)), 600),
    "1,000": Load(1_000, 1_000, tuple(range(20)), 2_000),
}


def items(count: int, number: int) -> bytes:
    """One push of `count` items: N-Quads, a graph for each observation of three triples."""
    lines = []
    for i in range(number * count, (number + 1) * count):
        o, g = f"<{BENCH}o/{i}>", f"<{BENCH}g/{i}>"
        lines.append(f"{o} <{TYPE}> <{BENCH}Observation> {g} .\n{o} <{BENCH}sensor> <{BENCH}s{i % 20}> {g} .\n"
                     f'{o} <{BENCH}value> "{i * 7919 % 100}"^^<{_INTEGER}> {g} .\n')
    return "".join(lines).encode()


def run(settings: Settings) -> tuple[list[Figure], dict[str, Any]]:
    """The figures of each load, on a server of its own, and details."""
    figures: list[Figure] = []
    details: dict[str, Any] = {}
    for name in settings.shapes or (tuple(LOADS)[:1] if settings.quick else LOADS):
        found, details[name] = _measured(settings, LOADS[name])
        figures += [replace(figure, name=f"{name}: {figure.name}") for figure in found]
    return figures, details


def _measured(settings: Settings, load: Load) -> tuple[list[Figure], dict[str, Any]]:
    seconds, texts = settings.duration(60, 16), load.texts()
    registrations = ("--limit", f"registrations_per_minute={10 * load.queries}")
    with running_server(replace(settings, server=(*settings.server, *registrations))) as server:
        client = Client(server.base)
        client.put_stream("many", STREAM)
        registering = time.time()
        for name, text in texts.items():
            client.put_query(name, text)
        registering = time.time() - registering
        feeds = [Feed(server.base, "/events?snapshot=false&mode=full&" + "&".join(f"query={name}" for name in some))
                 for some in _parts(list(texts), _QUERIES_PER_FEED)]
        used, began = server.cpu_seconds(), time.time()
        push_at_pace(server.base, "/streams/many", partial(items, load.items), "application/n-quads", begin=began + 0.2,
                     interval_s=1 / PUSHES_PER_SECOND, count=seconds * PUSHES_PER_SECOND, connections=2)
        ended = time.time()
        cores = (server.cpu_seconds() - used) / (ended - began)
        server.wait_processed()
        for feed in feeds:
            feed.wait_quiet(0.5, 5.0)
        states = {query["name"]: query["lastError"] for query in client.request("GET", "/queries?state=failed")["queries"]}
        batches = client.stats(next(iter(texts)))["batches"]
        for feed in feeds:
            feed.close()
    ticks = range((math.ceil(began) + _WARM_UP_S) * 1000, math.floor(ended) * 1000, 1000)
    lags, missing = judge(chain.from_iterable(feed.events() for feed in feeds), texts, ticks)
    worst = [max((lags[name, tick] for name in texts if (name, tick) in lags), default=math.nan) for tick in ticks]
    developed = trend([lag for lag in worst if not math.isnan(lag)])
    all_lags = list(lags.values())
    figures = [at_most("T to event, p95", percentile(all_lags, 95), "ms", load.target_ms), *spread("T to event", all_lags)[::2],
               holds("no growing lag", not developed.growing, "yes"), plain("slope of the worst lag", developed.slope_ms_per_s, "ms/s"),
               holds("every evaluation of every query answered", not missing, "yes"), plain("evaluations", len(all_lags), "events"),
               plain("time to register one", registering / load.queries * 1000, "ms"), plain("processor of the server", cores, "cores")]
    return figures, {"missing": missing[:20], "failed": states, "worstLagsMs": worst, "batches": batches[-10:]}


def _parts(names: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    for first in range(0, len(names), size):
        yield names[first:first + size]


def judge(events: Iterable[Event], names: Collection[str], ticks: range) -> tuple[dict[tuple[str, int], float], list[str]]:
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
    return lags, [f"{name} at {tick}" for name in names for tick in ticks if (name, tick) not in lags]

"""From a push to the event that shows it: REPORT ON CHANGE over a window of 10 s, 100 events a second on an arrival-time stream.

`rows`: a three-pattern join whose filter lets every tenth observation through; each push that passes is answered by the first event
with its row. `aggregate`: a count and the greatest number so far; a push is answered by the first event that shows its number or a
greater one.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from tests.bench.client import Client, Push, delays_ms, push_at_pace
from tests.bench.feed import Event, Feed
from tests.bench.figures import Figure, holds, percentile, plain, spread
from tests.bench.observations import BENCH, TYPE
from tests.bench.settings import Settings, running_server
from tests.live import ServerProcess

RATE = 100
_INTEGER = "http://www.w3.org/2001/XMLSchema#integer"
_STREAM = "http://bench.example/latency"
_CONNECTIONS = 12
_WARM_UP_S = 3
_HEAD = f"PREFIX b: <{BENCH}>\nREGISTER QUERY {{name}} REPORT ON CHANGE AS\n"
_TAIL = f"\nFROM STREAM <{_STREAM}> [RANGE 10s STEP 1s]\nWHERE {{{{ ?o a b:Observation ; b:sensor ?s ; b:number ?n {{filter}}}}}}"
VARIANTS = {
    "rows": (_HEAD + "SELECT ?o ?s ?n" + _TAIL).format(name="rows", filter=". FILTER (?s = b:s0) "),
    "aggregate": (_HEAD + "SELECT (COUNT(?n) AS ?count) (MAX(?n) AS ?latest)" + _TAIL).format(name="aggregate", filter=""),
}


def run(settings: Settings) -> tuple[list[Figure], dict[str, Any]]:
    """The figures of both variants, each by itself on the same server."""
    figures: list[Figure] = []
    details: dict[str, Any] = {}
    with running_server(settings) as server:
        Client(server.base).put_stream("latency", _STREAM)
        for variant, text in VARIANTS.items():
            found, details[variant] = _measure(settings, server, variant, text)
            figures += found
    return figures, details


def observation(number: int) -> bytes:
    """One item of three triples; every tenth is of sensor s0."""
    return (f"<{BENCH}o/{number}> <{TYPE}> <{BENCH}Observation> ; <{BENCH}sensor> <{BENCH}s{number % 10}> ; "
            f'<{BENCH}number> "{number}"^^<{_INTEGER}> .').encode()


def _measure(settings: Settings, server: ServerProcess, variant: str, text: str) -> tuple[list[Figure], dict[str, Any]]:
    client = Client(server.base)
    client.put_query(variant, text)
    feed = Feed(server.base, f"/queries/{variant}/results?snapshot=false")
    count = settings.duration(30, 6) * RATE
    used, began = server.cpu_seconds(), time.time()
    pushes = push_at_pace(server.base, "/streams/latency", observation, "text/turtle", begin=began + 0.2, interval_s=1 / RATE, count=count,
                          connections=_CONNECTIONS)
    cores = (server.cpu_seconds() - used) / (time.time() - began)
    server.wait_processed()
    stats = client.stats(variant)
    feed.wait_quiet(1.0)
    feed.close()
    client.request("DELETE", f"/queries/{variant}")
    measured = pushes[_WARM_UP_S * RATE:]
    lags, missing = latencies(measured, shown(feed.events(), variant), exact=variant == "rows")
    events = sum(event.event == "result" for event in feed.events())
    figures = [*spread(f"{variant}: push to event", lags, p50=200), plain(f"{variant}: pushes measured", len(lags), "pushes"),
               holds(f"{variant}: every push answered", not missing, "yes"), plain(f"{variant}: events", events, "events"),
               plain(f"{variant}: client late, p95", percentile(delays_ms(measured), 95), "ms"),
               plain(f"{variant}: processor of the server", cores, "cores")]
    return figures, {"missing": missing, "executor": stats["executor"], "strategy": stats["strategy"], "batches": stats["batches"][-10:]}


def shown(events: Iterator[Event], variant: str) -> Iterator[tuple[list[int], float]]:
    """For each result the numbers that it shows, and when it came."""
    column = "n" if variant == "rows" else "latest"
    for event in events:
        if event.event == "result":
            yield [int(row[column]["value"]) for row in event.json()["results"]["bindings"] if column in row], event.arrived


def latencies(pushes: list[Push], results: Iterator[tuple[list[int], float]], exact: bool) -> tuple[list[float], list[int]]:
    """ms from the beginning of each push to the result that answers it, and the numbers of the pushes that none answers.

    `exact`: every tenth push is answered, by the first result with its number; else each, by the first with a number not less.
    """
    first: dict[int, float] = {}
    greatest = -1
    for numbers, arrived in results:
        if exact:
            for number in numbers:
                first.setdefault(number, arrived)
        elif numbers and numbers[0] > greatest:
            first.update(dict.fromkeys(range(greatest + 1, numbers[0] + 1), arrived))
            greatest = numbers[0]
    wanted = [push for push in pushes if not exact or push.number % 10 == 0]
    lags = [(first[push.number] - push.begun) * 1000 for push in wanted if push.number in first]
    return lags, [push.number for push in wanted if push.number not in first]

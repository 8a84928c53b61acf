"""From an evaluation time T to its event: STEP 1 s, 100 events a second on an arrival-time stream."""

from __future__ import annotations

import time
from typing import Any

from tests.bench.client import Client, push_at_pace
from tests.bench.feed import Feed
from tests.bench.figures import Figure, plain, spread
from tests.bench.join import milliseconds
from tests.bench.latency import RATE, observation
from tests.bench.observations import BENCH
from tests.bench.settings import Settings, running_server

_STREAM = "http://bench.example/step"
_WARM_UP_S = 5
_QUERY = f"""PREFIX b: <{BENCH}>
REGISTER QUERY step AS SELECT ?o ?s ?n
FROM STREAM <{_STREAM}> [RANGE 10s STEP 1s]
WHERE {{ ?o a b:Observation ; b:sensor ?s ; b:number ?n . FILTER (?n > 0) }}"""


def run(settings: Settings) -> tuple[list[Figure], dict[str, Any]]:
    """The figures of the benchmark, and details."""
    seconds = settings.duration(45, 8)
    with running_server(settings) as server:
        client = Client(server.base)
        client.put_stream("step", _STREAM)
        client.put_query("step", _QUERY)
        feed = Feed(server.base, "/queries/step/results?snapshot=false")
        used, began = server.cpu_seconds(), time.time()
        push_at_pace(server.base, "/streams/step", observation, "text/turtle", begin=began + 0.2, interval_s=1 / RATE, count=seconds * RATE,
                     connections=8)
        cores = (server.cpu_seconds() - used) / (time.time() - began)
        stats = client.stats("step")
        server.wait_processed()
        feed.wait_quiet(0.5, 5.0)
        feed.close()
    found = [(milliseconds(event.json()["rsp"]["at"]), event.arrived) for event in feed.events() if event.event == "result"]
    lags = [arrived * 1000 - at for at, arrived in found if began + _WARM_UP_S < at / 1000 <= began + seconds]
    figures = [*spread("T to event", lags, p50=180), plain("evaluations measured", len(lags), "events"),
               plain("processor of the server", cores, "cores")]
    return figures, {"lagsMs": lags, "executor": stats["executor"], "strategy": stats["strategy"], "batches": stats["batches"][-10:]}

"""AVG by sensor over a window of 20,000,000 triples, RANGE 10 min STEP 10 s: exact, and what it takes as the window fills.

Ten minutes of stream are pushed in a quarter of that time.
"""

from __future__ import annotations

import math
import threading
import time
from typing import Any

from tests.bench.client import Client
from tests.bench.feed import Feed
from tests.bench.figures import Figure, holds, plain
from tests.bench.join import answers, await_results, differences, push
from tests.bench.observations import BENCH, TRIPLES, Observations
from tests.bench.questions import Numbers, averages, stream_iri
from tests.bench.settings import Settings, running_server
from tests.live import ServerProcess

RANGE_S, STEP_S = 600, 10
_SPEED = 4
_BEYOND_S = 60      # of the stream, after the window is full
_SPARE = 1.5        # rows that a window may hold, of those that it will
_LOOK_S = 5.0
WORKER_MEMORY = "12GB"
_QUERY = f"""PREFIX b: <{BENCH}>
REGISTER QUERY large AS SELECT ?s (AVG(?v) AS ?mean) FROM STREAM <{stream_iri("large", "one")}> [RANGE {RANGE_S}s STEP {STEP_S}s]
WHERE {{ ?o a b:Observation ; b:sensor ?s ; b:value ?v FILTER (?v > 20) }} GROUP BY ?s HAVING (AVG(?v) > 30)"""


def run(settings: Settings) -> tuple[list[Figure], dict[str, Any]]:
    """A row for each minute of the stream: milliseconds of an evaluation, memory of the server's processes."""
    triples = 200_000 if settings.quick else 20_000_000
    options = ("--limit", f"state_rows={int(triples * _SPARE)}", *settings.server)
    with running_server(Settings(server=options, keep=settings.keep), {"THALWEG_WORKER_MEMORY": WORKER_MEMORY}) as server:
        return _measure(server, triples // RANGE_S)


def _measure(server: ServerProcess, rate: int) -> tuple[list[Figure], dict[str, Any]]:
    client, seconds = Client(server.base), RANGE_S + _BEYOND_S
    client.put_stream("large", stream_iri("large", "one"), "event", idle="PT1H", maxAhead="PT1H", retention="PT1H")
    client.put_query("large", _QUERY)
    feed = Feed(server.base, "/queries/large/results?snapshot=false")
    data = Observations((math.ceil(time.time() / STEP_S) + 1) * STEP_S * 1000, rate // TRIPLES)
    looks, ended = list[dict[str, float]](), threading.Event()
    looker = threading.Thread(target=_look, args=(server, looks, ended))
    looker.start()
    push(server, "large", data.begin_ms, data.body, seconds, speed=_SPEED, begin=time.time())
    await_results(client, "large", feed, seconds // STEP_S)
    ended.set()
    looker.join()
    feed.close()
    got = list(answers(feed.events()))
    found = averages(Numbers(data, seconds), RANGE_S)
    expected = {data.begin_ms + 1000 * at: found[at] for at in range(STEP_S, seconds + 1, STEP_S)}
    wrong = differences(got, expected)
    full = [look for look in looks if look["triples"] >= RANGE_S * rate * 0.95] or looks[-1:]
    figures = [holds("every answer right", not wrong, "yes"), plain("answers", len(got), f"of {len(expected)}"),
               plain("triples of a full window", max(look["triples"] for look in looks), ""),
               plain("an evaluation of a full window", sum(look["ms"] for look in full) / len(full), "ms"),
               holds("memory of the driver, at most", max(look["driverMb"] for look in looks) <= 2048, "yes"),
               plain("memory of the server process, at most", max(look["serverMb"] for look in looks), "MB"),
               plain("memory of the JVM, at most", max(look["jvmMb"] for look in looks), "MB"),
               plain("memory of the workers, at most", max(look["workersMb"] for look in looks), "MB"),
               plain("files that the server process has mapped, at most", max(look["filesMb"] for look in looks), "MB")]
    return figures, {"wrong": wrong[:10], "looks": looks}


def _look(server: ServerProcess, looks: list[dict[str, float]], ended: threading.Event) -> None:
    """Note how it goes, until it has ended."""
    client = Client(server.base)
    while not ended.wait(_LOOK_S):
        stats, memory = client.stats("large"), server.memory_by_kind_mb()
        if stats["ran"] is not None:
            looks.append({"triples": stats["progress"]["stateRows"], "ms": stats["ran"]["ms"], "serverMb": memory["server"],
                          "jvmMb": memory["java"], "workersMb": memory["python"], "driverMb": memory["server"] + memory["java"],
                          "filesMb": memory["files"]})
            print(f"  {looks[-1]} {stats['state']}", flush=True)

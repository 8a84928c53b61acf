"""Ten queries at 1,000 triples a second while one is registered that reasons over 100,000 axioms: from T to the event throughout.

The axioms are sub-class axioms in eight layers; the query asks under `owl2rl` for the instances of a class of the highest.
"""

from __future__ import annotations

import math
import random
import threading
import time
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from tests.bench.client import Client, push_at_pace
from tests.bench.feed import Feed
from tests.bench.figures import Figure, at_most, holds, percentile, plain
from tests.bench.many import PUSHES_PER_SECOND, STREAM, Load, items, judge
from tests.bench.observations import BENCH
from tests.bench.settings import Settings, running_server

_TBOX = f"{BENCH}tbox"
_SUB = "http://www.w3.org/2000/01/rdf-schema#subClassOf"
_LAYERS = 8
_AFTER_S = 10       # before the axioms come; and until the pushes end, once the query is registered
_TARGET_MS = 1_000
_LOAD = Load(10, 1_000, tuple(range(10)), _TARGET_MS)
_QUERY = (f"REGISTER QUERY reasons AS SELECT ?o FROM STREAM <{STREAM}> [RANGE 5s STEP 1s] FROM <{_TBOX}> USING RULES owl2rl "
          f"WHERE {{ ?o a <{BENCH}c7_1> }}")


def axioms(count: int) -> bytes:
    """So many sub-class axioms, each from a class of one layer to one of the next; observations are of a class of the lowest."""
    chance, width = random.Random(1), count // _LAYERS
    found = {f"<{BENCH}Observation> <{_SUB}> <{BENCH}c0_{number}> .\n" for number in range(3)}
    while len(found) < count:
        layer = chance.randrange(_LAYERS - 1)
        found.add(f"<{BENCH}c{layer}_{chance.randrange(width)}> <{_SUB}> <{BENCH}c{layer + 1}_{chance.randrange(width)}> .\n")
    return "".join(sorted(found)).encode()


def run(settings: Settings) -> tuple[list[Figure], dict[str, Any]]:
    """The lags of the ten queries, and what the registration took."""
    count, texts = 5_000 if settings.quick else 100_000, _LOAD.texts()
    graph, done = axioms(count), threading.Event()
    with running_server(replace(settings, server=(*settings.server, "--limit", "registrations_per_minute=1000"))) as server:
        client = Client(server.base)
        client.put_stream("many", STREAM)
        for name, text in texts.items():
            client.put_query(name, text)
        feed = Feed(server.base, "/events?snapshot=false&mode=full&" + "&".join(f"query={name}" for name in texts))
        began = time.time()

        def push() -> None:
            number = 0
            while not done.is_set():
                push_at_pace(server.base, "/streams/many", lambda n, first=number: items(_LOAD.items, first + n), "application/n-quads",
                             begin=began + 0.2 + number / PUSHES_PER_SECOND, interval_s=1 / PUSHES_PER_SECOND, count=PUSHES_PER_SECOND)
                number += PUSHES_PER_SECOND

        pushing = threading.Thread(target=push)
        pushing.start()
        try:
            time.sleep(_AFTER_S)
            from_s = time.time()
            client.request("PUT", f"/graphs?graph={quote(_TBOX, safe='')}", graph, "application/n-triples")
            put_s = time.time()
            client.put_query("reasons", _QUERY)
            registered_s = time.time()
            time.sleep(_AFTER_S)
        finally:
            done.set()
            pushing.join()
        ended = time.time()
        server.wait_processed()
        feed.wait_quiet(0.5, 5.0)
        state = client.request("GET", "/queries/reasons")
        feed.close()
    ticks = range(math.ceil(from_s) * 1000, math.floor(ended) * 1000, 1000)
    lags, missing = judge(feed.events(), texts, ticks)
    figures = [plain("axioms", count, "axioms"), plain("graph taken after", put_s - from_s, "s"),
               plain("query registered after", registered_s - put_s, "s"), holds("it runs", state["state"] == "running", "yes"),
               at_most("T to event of the others, greatest", max(lags.values(), default=math.nan), "ms", _TARGET_MS),
               plain("T to event of the others, p50", percentile(list(lags.values()), 50), "ms"),
               holds("every evaluation of the others answered", not missing, "yes")]
    return figures, {"missing": missing[:20], "state": state, "worstLagsMs": [
        max((lag for (_, at), lag in lags.items() if at == tick), default=math.nan) for tick in ticks]}

"""Commands and reads beside eight threads of one-shot queries and a stream that is pushed: how long each is waited for.

Each round registers a stream and a query on it, reads what there is, and removes both.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from tests.bench.client import Client
from tests.bench.figures import Figure, plain, spread
from tests.bench.observations import BENCH
from tests.bench.settings import Settings, running_server

ASKING = 8
_STREAM = "http://bench.example/{}"
_QUERY = f"""PREFIX b: <{BENCH}>
REGISTER QUERY {{}} AS SELECT ?s (MAX(?n) AS ?most) FROM STREAM <http://bench.example/{{}}> [RANGE 5s STEP 1s]
WHERE {{{{ ?o b:sensor ?s ; b:number ?n }}}} GROUP BY ?s"""
_ASKED = f"""PREFIX b: <{BENCH}>
SELECT ?s (COUNT(*) AS ?count) FROM STREAM <http://bench.example/commands> [RANGE 5s STEP 1s] WHERE {{ ?o b:sensor ?s }} GROUP BY ?s"""
_REGISTERED_TARGET_MS = 200


def run(settings: Settings) -> tuple[list[Figure], dict[str, Any]]:
    """The times of commands and reads, and how many pushes and one-shot queries were answered beside them."""
    with running_server(settings) as server:
        client = Client(server.base)
        client.put_stream("commands", _STREAM.format("commands"))
        client.put_query("beside", _QUERY.format("beside", "commands"))
        return _measure(server.base, settings.duration(40, 10))


def _measure(base: str, seconds: int) -> tuple[list[Figure], dict[str, Any]]:
    times: dict[str, list[float]] = defaultdict(list)
    done, refused = threading.Event(), list[str]()

    def repeat(work: Callable[[Client, int], None]) -> threading.Thread:
        def go_on() -> None:
            client, number = Client(base), 0
            while not done.is_set():
                number += 1
                try:
                    work(client, number)
                except RuntimeError as error:
                    refused.append(str(error)[:200])
            client.close()

        thread = threading.Thread(target=go_on)
        thread.start()
        return thread

    def timed(name: str, work: Callable[[], object]) -> None:
        began = time.monotonic()
        work()
        times[name].append((time.monotonic() - began) * 1000)

    def ask(client: Client, number: int) -> None:
        timed("one-shot", lambda: client.request("GET", f"/sparql?query={quote(_ASKED)}"))

    def push(client: Client, number: int) -> None:
        body = f"<{BENCH}o/{number}> <{BENCH}sensor> <{BENCH}s{number % 10}> ; <{BENCH}number> {number} ."
        timed("push", lambda: client.request("POST", "/streams/commands", body.encode(), "text/turtle"))

    def command(client: Client, number: int) -> None:
        name = f"c{number}"
        timed("PUT stream", lambda: client.put_stream(name, _STREAM.format(name)))
        timed("registration", lambda: client.put_query(name, _QUERY.format(name, name)))
        for path in ("/queries", f"/queries/{name}", "/streams", f"/queries/{name}/results", "/queries/beside/stats"):
            timed("GET", lambda: client.request("GET", path))
        timed("DELETE query", lambda: client.request("DELETE", f"/queries/{name}"))
        timed("DELETE stream", lambda: client.request("DELETE", f"/streams/{name}"))

    threads = [repeat(push)]
    time.sleep(seconds / 4)
    alone = len(times["push"]) * 4 / seconds
    threads += [repeat(ask) for _ in range(ASKING)]
    time.sleep(seconds / 4)
    before, asked = len(times["push"]), len(times["one-shot"])
    threads.append(repeat(command))
    began = time.monotonic()
    time.sleep(seconds)
    passed = time.monotonic() - began
    figures = [plain("pushes alone", alone, "a second"), plain("pushes beside", (len(times["push"]) - before) / passed, "a second"),
               plain("one-shot queries", (len(times["one-shot"]) - asked) / passed, "a second")]
    done.set()
    for thread in threads:
        thread.join()
    for name in ("PUT stream", "registration", "GET", "DELETE query", "DELETE stream"):
        figures += spread(name, times[name], p95=_REGISTERED_TARGET_MS if name == "registration" else None)
    figures += [plain("rounds", len(times["DELETE stream"]), "rounds"), plain("refused", len(refused), "requests")]
    return figures, {"refused": refused[:10]}

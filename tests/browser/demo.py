"""`python -m tests.browser.demo`: the console on the stand-in with a moving weather feed, to look at it without Spark."""

from __future__ import annotations

import threading
import time
from typing import Any

from tests.browser import canned
from tests.browser.standin import Standin

ASK_TEXT = (f"REGISTER QUERY frost AS\nASK FROM STREAM <{canned.STREAM}> [RANGE 10s STEP 2s]\n"
            "WHERE { ?s ?p ?t FILTER (?t < 0) }\n")
GRAPH_TEXT = (f"REGISTER STREAM alarms AS\nCONSTRUCT ISTREAM {{ ?station a <{canned.WEATHER}Freezing> }}\n"
              f"FROM STREAM <{canned.STREAM}> [RANGE 10s STEP 2s]\nWHERE {{ ?station ?p ?t FILTER (?t < 0) }}\n")


def fill(server: Standin) -> None:
    """Streams, graphs and queries in every state."""
    state = {"items": 48211, "late": 3, "deadLetters": 0, "watermark": canned.iso(canned.START_MS), "itemsPerSecond": 9.5}
    users = ["stations", "frost"]
    server.streams["weather"] = canned.stream("weather", canned.STREAM, time="event", state=state, usedBy=users)
    server.streams["alarms"] = canned.stream("alarms", "http://example.org/streams/alarms")
    tbox = "http://example.org/tbox"
    server.graphs[tbox] = {"iri": tbox, "triples": 214, "etag": "v1", "usedBy": ["stations"]}
    progress = {"lastEventId": "q7c1-120", "watermark": canned.iso(canned.START_MS), "watermarkLagMs": 2100,
                "resultLatencyMs": 264, "inputRowsPerSecond": 95.0, "stateRows": 950, "lateItems": 3}
    server.queries["stations"] = canned.query("stations", canned.STATIONS_TEXT, progress=progress, rules=["rdfs"],
                                              graphs=[tbox])
    server.queries["frost"] = canned.query("frost", ASK_TEXT, "ASK")
    server.queries["freezing"] = canned.query("freezing", GRAPH_TEXT, "CONSTRUCT", output="istream", state="paused")
    error = "Spark gave up after 3 attempts: the window of 250 000 rows does not fit into memory. Shorten RANGE, or add a FILTER."
    server.queries["wind"] = canned.query("wind", canned.STATIONS_TEXT, state="failed", lastError=error)


def fill_programs(server: Standin) -> None:
    """A rule program with a feed."""
    server.queries["hot"] = canned.query("hot", canned.LARS_TEXT, "PROGRAM", dialect="lars", output="istream", report="change")


def step(server: Standin, seq: int, close_ms: int) -> None:
    """One evaluation of each running query."""
    server.emit("stations", "result", canned.stations(seq, close_ms), f"q7c1-{seq}")
    truth: dict[str, Any] = {"head": {}, "boolean": seq % 9 < 4, "rsp": canned.rsp(seq, close_ms)}
    server.emit("frost", "result", truth, f"q8c1-{seq}")
    sensor = f"sensor{seq % 3}"
    server.emit("hot", "delta", canned.reported("p", seq, close_ms, (sensor, close_ms, close_ms + 5000)), f"qac1-{seq}")
    server.emit("hot", "progress", {"watermark": canned.iso(close_ms)})
    text = f"<{canned.SYSTEM}System_KSEA> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <{canned.WEATHER}Freezing> .\n"
    graph = {"rsp": canned.rsp(seq, close_ms), "format": "nquads", "text": text}
    server.emit("freezing", "graph", graph, f"q9c1-{seq}")


def main() -> None:
    with Standin() as server:
        fill(server)
        fill_programs(server)
        print(server.base, flush=True)
        stop = threading.Event()
        try:
            for seq in range(1, 10**6):
                step(server, seq, int(time.time()) * 1000)
                stop.wait(0 if seq < 100 else 2)
        except KeyboardInterrupt:
            pass


if __name__ == "__main__":
    main()

"""The offer rule of BSBM over 1.1 million triples with fixed event times, pushed as fast as they are taken; windows of 1, 5, 10, 60 s.

A hundred seconds of event time in pushes of a second each, on one connection; measured from the first push to the last result at a
client. Every result is held against what the generator expects. Memory is the most that server, JVM and Python workers had together.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from tests.bench.client import TIMED, Client
from tests.bench.data import BEGIN_MS, DECIMAL, stamp, timed
from tests.bench.feed import Event, Feed
from tests.bench.figures import Figure, at_most, holds, plain
from tests.bench.join import milliseconds
from tests.bench.offers import OFFER_PRICE, TRIPLES, Offers, Row
from tests.bench.settings import Settings, running_server
from tests.live import ServerProcess
from tests.waiting import wait_until

EXAMPLE = Path(__file__).parents[2] / "static" / "examples" / "offers.rifps"
WINDOWS_S = (1, 5, 10, 60)
TARGET_S = 6
_STREAM = "http://example.org/streams/offers"
_PATIENCE_S = 900.0
_DELIVERY_S = 60.0


@dataclass(frozen=True, slots=True)
class Measured:
    """One run: until when pushes were taken and results had come (s after the first push; nan if some are wrong), the memory (MB)."""

    window_s: int
    pushed_s: float
    seconds: float
    memory_mb: float
    rows: int
    wrong: list[str]


def run(settings: Settings) -> tuple[list[Figure], dict[str, Any]]:
    """The figures of the benchmark, and details."""
    data = Offers(size=5_000, seconds=20) if settings.quick else Offers()
    pushes = [b"".join(timed(second)) for _, second in groupby(data.items(), lambda item: (item[0] - BEGIN_MS) // 1000)]
    figures, details = [plain("triples", data.size * TRIPLES, "triples")], []
    for window_s in (1, 10) if settings.quick else WINDOWS_S:
        m = _measure(settings, data, pushes, window_s)
        details.append({"windowS": window_s, "pushedS": m.pushed_s, "seconds": m.seconds, "memoryMb": m.memory_mb, "rows": m.rows,
                        "wrong": m.wrong[:10]})
        name = f"window {window_s} s"
        figures += [at_most(f"{name}, first push to last result", m.seconds, "s", TARGET_S),
                    plain(f"{name}, pushes taken", m.pushed_s, "s"),
                    plain(f"{name}, greatest memory", m.memory_mb, "MB"), plain(f"{name}, rows", m.rows, "rows"),
                    holds(f"{name}, rows as expected", not m.wrong, "yes")]
    return figures, {"runs": details}


def program(window_s: int) -> str:
    """The rule of the example under another window."""
    return EXAMPLE.read_text("utf-8").replace("Window 10 s", f"Window {window_s} s")


def _measure(settings: Settings, data: Offers, pushes: Sequence[bytes], window_s: int) -> Measured:
    with running_server(settings) as server, _Memory(server) as memory:
        client = Client(server.base)
        client.put_stream("offers", _STREAM, "event", idle="PT1H")
        client.request("PUT", "/queries/offers", program(window_s).encode(), "text/x-rif-ps")
        feed = Feed(server.base, "/queries/offers/results?snapshot=false")
        began = time.time()
        for body in pushes:
            client.request("POST", "/streams/offers", body, TIMED, _PATIENCE_S)
        end_ms = BEGIN_MS + (data.seconds + window_s + 1) * 1000
        client.request("POST", f"/streams/offers?watermark={stamp(end_ms)}")
        pushed = time.time() - began
        wait_until(lambda: _watermark_ms(client) >= end_ms, _PATIENCE_S)
        expected = data.expected(window_s * 1000)
        _await_events(feed, len({begin for _, _, begin, _ in expected}))
        feed.close()
    events = list(feed.events())
    wrong = wrong_rows(events, expected)
    last = max((event.arrived for event in events if event.event == "delta"), default=time.time())
    count = sum(1 for event in events for _ in rows(event))
    return Measured(window_s, pushed, float("nan") if wrong else last - began, memory.most_mb, count, wrong)


def _watermark_ms(client: Client) -> int:
    """Up to when the program has been evaluated."""
    reached = client.stats("offers")["progress"]["watermark"]
    return milliseconds(reached) if reached else 0


def _await_events(feed: Feed, expected: int) -> None:
    """Wait until the feed has brought so many results, or ends, or no more come."""
    def all_here() -> bool:
        return feed.ended.is_set() or (
            feed.quiet_for(0.3) and sum(event.event == "delta" and event.id is not None for event in feed.events()) >= expected)
    try:
        wait_until(all_here, _DELIVERY_S)
    except AssertionError:
        print(f"  not all results came within {_DELIVERY_S:g} s after they were logged", flush=True)


def rows(event: Event) -> Iterator[tuple[int, Row]]:
    """The rows of an event: the instant (ms) at which each is reported, and the row."""
    if event.event in ("gap", "bye"):
        raise RuntimeError(f"the feed was not complete: {event.event} {event.data.decode()}")
    if event.event != "delta":
        return
    data = event.json()
    at = milliseconds(data["rsp"]["at"])
    for row in data["addedResults"]["results"]["bindings"]:
        product, property_, price, begin, end = (row[name] for name in ("s", "p", "o", "from", "until"))
        assert property_["value"] == OFFER_PRICE and price["datatype"] == DECIMAL
        yield at, (product["value"], price["value"], milliseconds(begin["value"]), milliseconds(end["value"]))


def wrong_rows(events: Iterable[Event], expected: set[Row]) -> list[str]:
    """What is not as expected: rows too many, twice, missing, or at another instant than they begin."""
    found = [pair for event in events for pair in rows(event)]
    told = {row for _, row in found}
    wrong = [f"not expected: {row}" for row in sorted(told - expected)] + [f"missing: {row}" for row in sorted(expected - told)]
    if len(found) > len(told):
        wrong.append(f"{len(found) - len(told)} rows came twice")
    return wrong + [f"reported at {at}: {row}" for at, row in found if at != row[2]]


class _Memory:
    """Looks at a server's memory five times a second."""

    def __init__(self, server: ServerProcess) -> None:
        self.most_mb = 0.0
        self._server = server
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._look, name="memory", daemon=True)

    def __enter__(self) -> _Memory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._end.wait(0.2):
            self.most_mb = max(self.most_mb, self._server.memory_mb())

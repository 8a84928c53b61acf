"""W1: a three-pattern window join with a filter, each row of each answer compared with an oracle.

100 sensors; an item is an observation of three triples, about half of them pass; RANGE 10 s, STEP 1 s. Event times follow the wall
clock: four times a second the observations of the last 250 ms are pushed, with the watermark that ends them. The lag of an answer is
counted from its T, and from the beginning of the push that moved the watermark to T.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from tests.bench.client import TIMED, Client, Push, delays_ms, push_at_pace
from tests.bench.feed import Event, Feed
from tests.bench.figures import Figure, Trend, holds, percentile, plain, spread, trend
from tests.bench.hashing import Bag, bag_of_bindings
from tests.bench.observations import QUERY, TRIPLES, Observations, Oracle
from tests.bench.settings import Settings, running_server
from tests.live import ServerProcess
from tests.waiting import wait_until

SLICE_MS = 250
_STREAM = "http://bench.example/join"
_RATES = (10_000, 20_000, 30_000, 45_000, 60_000, 80_000, 100_000, 130_000, 160_000)
_DELIVERY_S = 60.0
_QUIET_S = 3.0      # a large result of a busy server can take seconds from the log to the client


@dataclass(frozen=True, slots=True)
class Answer:
    """A result as the client received it."""

    at_ms: int
    bag: Bag
    arrived: float
    truncated: bool


@dataclass(slots=True)
class Measured:
    """One run at one rate."""

    rate: int
    expected: int
    right: int
    wrong: list[str]
    rows: int
    lags_ms: list[float]
    push_lags_ms: list[float]
    pushes: list[Push]
    cores: float
    memory_mb: float
    stats: Any

    @property
    def trend(self) -> Trend:
        return trend(self.lags_ms)

    @property
    def sustained(self) -> bool:
        """Every answer right, and no growing lag."""
        return not self.wrong and self.right == self.expected and not self.trend.growing


def run(settings: Settings) -> tuple[list[Figure], dict[str, Any]]:
    """The figures of the benchmark, and details."""
    measured = _measure(settings, settings.rate)
    figures = _figures(measured)
    details: dict[str, Any] = {"rate": measured.rate, "wrong": measured.wrong[:10], "lagsMs": measured.lags_ms,
                               "executor": measured.stats["executor"], "strategy": measured.stats["strategy"],
                               "batches": measured.stats["batches"][-10:]}
    if settings.find:
        best, tried = _find(settings)
        figures.append(plain("greatest rate tried that was sustained", best, "triples/s"))
        details["tried"] = tried
    return figures, details


def _figures(m: Measured) -> list[Figure]:
    settled = slice(len(m.lags_ms) // 6, None)
    return [plain("rate pushed", m.rate, "triples/s"),
            holds("rows equal to the oracle's", not m.wrong and m.right == m.expected, "yes"),
            plain("answers right", m.right, f"of {m.expected}"),
            plain("rows received", m.rows, "rows"),
            *spread("behind T", m.lags_ms[settled]),
            *spread("behind the push that reached T", m.push_lags_ms[settled]),
            holds("no growing lag", not m.trend.growing, "yes"),
            plain("slope of the lag", m.trend.slope_ms_per_s, "ms/s"),
            plain("push answered, p95", percentile([(p.answered - p.begun) * 1000 for p in m.pushes], 95), "ms"),
            plain("client late, p95", percentile(delays_ms(m.pushes), 95), "ms"),
            plain("processor of the server", m.cores, "cores"), plain("memory of the server", m.memory_mb, "MB")]


def _find(settings: Settings) -> tuple[int, list[dict[str, Any]]]:
    """Go up the rates until one is not sustained."""
    best, tried = 0, []
    for rate in _RATES:
        m = _measure(settings, rate)
        tried.append({"rate": rate, "sustained": m.sustained, "right": m.right, "expected": m.expected, "cores": m.cores,
                      "slopeMsPerS": m.trend.slope_ms_per_s, "lagP50Ms": percentile(m.lags_ms, 50)})
        print(f"  {rate} triples/s: {'sustained' if m.sustained else 'not sustained'}", flush=True)
        if not m.sustained:
            break
        best = rate
    return best, tried


def _measure(settings: Settings, rate: int) -> Measured:
    seconds = settings.duration(60, 12)
    with running_server(settings) as server:
        client = Client(server.base)
        client.put_stream("join", _STREAM, "event", idle="PT1H")
        client.put_query("w1", QUERY.format(name="w1", stream=_STREAM))
        feed = Feed(server.base, "/queries/w1/results?snapshot=false&mode=full")
        data = begun(rate)
        used, began = server.cpu_seconds(), time.time()
        pushes = push(server, "join", data.begin_ms, data.body, seconds)
        await_results(client, "w1", feed, seconds)
        cores = (server.cpu_seconds() - used) / (time.time() - began)
        memory, stats = server.memory_mb(), client.stats("w1")
        feed.close()
    return _judge(rate, data, seconds, list(answers(feed.events())), pushes, cores, memory, stats)


def begun(rate: int) -> Observations:
    """Observations of so many triples a second, from a second on that has yet to come."""
    return Observations((math.ceil(time.time()) + 1) * 1000, rate // TRIPLES)


def push(server: ServerProcess, stream: str, begin_ms: int, body: Callable[[int, int], bytes], seconds: int, *, after: int = 0,
         speed: int = 1, begin: float | None = None) -> list[Push]:
    """Push what is between two times (ms from the beginning), slice by slice as these pass, each with the watermark that ends it.

    `after` seconds of the stream have been pushed before; `speed` of them are pushed in one, from the wall time `begin` (s) on.
    """
    first = after * 1000 // SLICE_MS
    return push_at_pace(server.base, f"/streams/{stream}", lambda k: body((k + first) * SLICE_MS, (k + first + 1) * SLICE_MS), TIMED,
                        begin=begin or (begin_ms + SLICE_MS) / 1000, interval_s=SLICE_MS / 1000 / speed,
                        count=seconds * 1000 // SLICE_MS, query=lambda k: f"?watermark={_iso(begin_ms + (k + first + 1) * SLICE_MS)}")


def await_results(client: Client, name: str, feed: Feed, expected: int) -> None:
    """Wait until all results are logged and have come to the client, or nothing comes any more."""
    def all_here() -> bool:
        logged = client.stats(name)["results"]["logged"] >= expected
        return feed.ended.is_set() or (logged and feed.quiet_for(_QUIET_S))
    try:
        wait_until(all_here, _DELIVERY_S)
    except AssertionError:
        print(f"  not all results came within {_DELIVERY_S:g} s of the last push", flush=True)


def _judge(rate: int, data: Observations, seconds: int, got: list[Answer], pushes: list[Push], cores: float, memory: float,
           stats: Any) -> Measured:
    oracle = Oracle(data, seconds * 1000)
    expected = {data.begin_ms + 1000 * k: oracle.at(data.begin_ms + 1000 * k) for k in range(1, seconds + 1)}
    wrong = differences(got, expected)
    reached = {data.begin_ms + (push.number + 1) * SLICE_MS: push.begun for push in pushes}
    known = [answer for answer in got if answer.at_ms in expected]
    return Measured(rate, seconds, sum(a.bag == expected[a.at_ms] for a in known), wrong, sum(a.bag.rows for a in got),
                    [a.arrived * 1000 - a.at_ms for a in known], [(a.arrived - reached[a.at_ms]) * 1000 for a in known], pushes, cores,
                    memory, stats)


def differences(got: list[Answer], expected: Mapping[int, Bag]) -> list[str]:
    """What is wrong, missing, or there twice, of the answers by T."""
    wrong = [f"{answer.at_ms}: {answer.bag.rows} rows instead of {expected.get(answer.at_ms, Bag()).rows}, truncated: {answer.truncated}"
             for answer in got if answer.bag != expected.get(answer.at_ms)]
    missing = sorted(set(expected) - {answer.at_ms for answer in got})
    wrong += [f"{at}: no result" for at in missing]
    if len({answer.at_ms for answer in got}) < len(got):
        wrong.append("a result came twice")
    return wrong


def answers(events: Iterator[Event], *, ranked: bool = False) -> Iterator[Answer]:
    """The results of a feed, or what deltas add, those in chunks put together.

    `ranked`: the order of rows counts (of answers in one piece). RuntimeError where the feed says that something is missing.
    """
    bag = Bag()
    for event in events:
        if event.event in ("gap", "bye"):
            raise RuntimeError(f"the feed was not complete: {event.event} {event.data.decode()}")
        if event.event not in ("result", "delta"):
            continue
        data = event.json()
        shown = data if event.event == "result" else data["addedResults"]
        bag += bag_of_bindings(shown["head"]["vars"], shown["results"]["bindings"], ranked=ranked)
        if data.get("last", True):
            yield Answer(milliseconds(data["rsp"]["at"]), bag, event.arrived, data["rsp"]["truncated"])
            bag = Bag()


def milliseconds(moment: str) -> int:
    """ms since the epoch of an ISO 8601 time."""
    return round(datetime.fromisoformat(moment.replace("Z", "+00:00")).timestamp() * 1000)


def _iso(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")

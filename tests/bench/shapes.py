"""W1's stream with one query of each shape (tests/bench/questions.py), every answer compared with an oracle; and rates from low to high.

Each shape has a server of its own; with ``--quick`` all share one. Processor time is that of the last two thirds of the stream: before, the
JVM compiles; behind it is what the benchmark asks for. `cliff` ends with too much for some time: the lag must come back, and every answer
be right.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from threading import Timer
from typing import Any
from urllib.parse import quote

from tests.bench.client import Client
from tests.bench.feed import Feed
from tests.bench.figures import Figure, holds, percentile, plain, trend
from tests.bench.join import SLICE_MS, answers, await_results, begun, differences, push
from tests.bench.observations import Observations
from tests.bench.questions import GRAPH, RANGE_S, Numbers, Shape, shapes, stream_iri
from tests.bench.settings import Settings, running_server
from tests.live import ServerProcess

CLIFF_RATES = (1_000, 3_000, 10_000, 30_000, 60_000, 100_000, 150_000, 200_000)
CLIFF_SHAPES = ("rows", "avg")
_MEMORY_RATES = (10_000, 150_000)
_AFTER_WARM_UP = 6      # the lags of the first part of so many are left out
_COMPILING = 3          # the same of processor time
_OVERLOAD_RATE, _OVERLOAD_SPEED = 60_000, 10    # triples in a second of stream, seconds of stream in one while it is too much
_BACK_MS = 1_000        # the lag that it must come back to


@dataclass(slots=True)
class Measured:
    """One shape at one rate. Processor: seconds per second of stream; memory: MB."""

    right: int
    expected: int
    wrong: list[str]
    lags_ms: list[float]
    own_cores: float
    worker_cores: float
    own_mb: float
    worker_mb: float
    stats: Any

    def figures(self, name: str) -> list[Figure]:
        settled = self.lags_ms[len(self.lags_ms) // _AFTER_WARM_UP:]
        return [holds(f"{name}: every answer right", not self.wrong and self.right == self.expected, "yes"),
                plain(f"{name}: answers right", self.right, f"of {self.expected}"),
                *(plain(f"{name}: behind T, p{percent}", percentile(settled, percent), "ms") for percent in (50, 95)),
                plain(f"{name}: slope of the lag", trend(self.lags_ms).slope_ms_per_s, "ms/s"),
                plain(f"{name}: processor of the server process", self.own_cores, "cores"),
                plain(f"{name}: processor of its children", self.worker_cores, "cores"),
                plain(f"{name}: memory of the server process", self.own_mb, "MB"),
                plain(f"{name}: memory of its children", self.worker_mb, "MB")]

    def details(self) -> dict[str, Any]:
        return {"wrong": self.wrong[:10], "executor": self.stats["executor"], "strategy": self.stats["strategy"], "lagsMs": self.lags_ms,
                "cores": [self.own_cores, self.worker_cores], "memoryMb": [self.own_mb, self.worker_mb],
                "batches": self.stats["batches"][-5:]}


def run(settings: Settings) -> tuple[list[Figure], dict[str, Any]]:
    """The figures of every shape, and details. A shape that fails stops no other."""
    known = shapes(settings.static or (10_000 if settings.quick else 1_000_000))
    figures: list[Figure] = []
    details: dict[str, Any] = {"rate": settings.rate}
    with _servers(settings) as server_for_each:
        for name in settings.shapes or known:
            found, details[name] = _tried(settings, server_for_each, name, known[name])
            figures += found
    return figures, details


def cliff(settings: Settings) -> tuple[list[Figure], dict[str, Any]]:
    """Processor milliseconds per 1,000 triples at each rate."""
    known = shapes(0)
    figures: list[Figure] = []
    details: dict[str, Any] = {}
    with _servers(settings) as server_for_each:
        for name in settings.shapes or CLIFF_SHAPES:
            for rate in CLIFF_RATES[1:3] if settings.quick else CLIFF_RATES:
                label = f"{name}{rate}"
                found, details[label] = _tried(replace(settings, rate=rate), server_for_each, label, known[name])
                figures += found
                if "cores" in details[label]:
                    figures.append(plain(f"{label}: processor per 1,000 triples", sum(details[label]["cores"]) * 1e6 / rate, "ms"))
                    print(f"  {label}: {sum(details[label]['cores']) * 1e6 / rate:.2f} ms of processor per 1,000 triples", flush=True)
            figures += _memory(name, {rate: one.get("memoryMb") for rate in _MEMORY_RATES if (one := details.get(f"{name}{rate}"))})
        with server_for_each() as server:
            found, details["overload"] = _overload(server, known["avg"], settings.duration(30, 4))
    return figures + found, details


def _memory(name: str, found: dict[int, list[float] | None]) -> list[Figure]:
    """By how many bytes the processes are larger for each further triple of the window."""
    (low, few), (high, many) = [*found.items()] if len(found) == 2 else [(0, None)] * 2
    if few is None or many is None:
        return []
    more = (high - low) * RANGE_S
    return [plain(f"{name}: memory per triple of the window, {who}", (last - first) * 1e6 / more, "bytes")
            for who, first, last in zip(("server process", "its children"), few, many)]


def _overload(server: ServerProcess, shape: Shape, seconds: int) -> tuple[list[Figure], dict[str, Any]]:
    """For `seconds` more than the machine can do, then as long again and 10 s the usual. Lags are counted from when a push was due."""
    client, (stream, body) = Client(server.base), next(iter(shape.bodies.items()))
    client.put_stream("overload", stream_iri("overload", stream), "event", idle="PT1H", maxAhead="PT1H")
    client.put_query("overload", shape.text("overload"))
    feed = Feed(server.base, f"/queries/overload/results?snapshot=false&mode={shape.mode}")
    data, much, usual = begun(_OVERLOAD_RATE), seconds * _OVERLOAD_SPEED, seconds + 10
    pushes = push(server, "overload", data.begin_ms, partial(body, data), much, speed=_OVERLOAD_SPEED)
    pushes += push(server, "overload", data.begin_ms, partial(body, data), usual, after=much, begin=time.time())
    await_results(client, "overload", feed, much + usual)
    feed.close()
    got = list(answers(feed.events(), ranked=shape.ranked))
    expected = {data.begin_ms + 1000 * at: bag for at, bag in shape.answers(Numbers(data, much + usual)).items()}
    due = {data.begin_ms + SLICE_MS * number: one.due for number, one in enumerate(pushes, 1)}
    lags = [(answer.arrived - due[answer.at_ms]) * 1000 for answer in got if answer.at_ms in due]
    figures = [holds("overload: every answer right", not differences(got, expected), "yes"),
               plain("overload: greatest lag", max(lags, default=0), "ms"),
               plain("overload: lag when it ended", lags[much - 1] if len(lags) >= much else -1, "ms"),
               plain("overload: seconds until the lag was back", sum(lag > _BACK_MS for lag in lags[much:]), "s"),
               holds("overload: the lag has come back", bool(lags) and percentile(lags[-5:], 50) <= _BACK_MS, "yes")]
    return figures, {"lagsMs": lags, "wrong": differences(got, expected)[:10]}


@contextmanager
def _servers(settings: Settings) -> Iterator[Any]:
    """What gives a server for each measurement."""
    if not settings.quick:
        yield lambda: running_server(settings)
        return
    with running_server(settings) as server:
        yield lambda: nullcontext(server)


def _tried(settings: Settings, server_for_each: Any, name: str, shape: Shape) -> tuple[list[Figure], dict[str, Any]]:
    try:
        with server_for_each() as server:
            found = measure(server, name, shape, settings.rate, settings.duration(60, 14))
    except (RuntimeError, AssertionError, OSError) as error:
        print(f"  {name}: {error}", flush=True)
        return [holds(f"{name}: every answer right", False, "yes")], {"error": str(error)}
    print(f"  {name}: {found.right} of {found.expected} right, {percentile(found.lags_ms, 50):.0f} ms behind T, "
          f"{found.stats['executor']} {found.stats['strategy']} {found.wrong[:2] or ''}", flush=True)
    return found.figures(name), found.details()


def measure(server: ServerProcess, name: str, shape: Shape, rate: int, seconds: int,
            deliver: Callable[[str, Observations, int], object] | None = None, **descriptor: Any) -> Measured:
    """The figures of a shape. `deliver` brings the stream of a name in some seconds, by default by pushes; `descriptor` are further members
    of its streams."""
    client = Client(server.base)
    streams = {stream: f"{name}-{stream}" for stream in shape.bodies}
    for stream, own in streams.items():
        client.put_stream(own, stream_iri(name, stream), "event", idle="PT1H", **descriptor)
    if shape.graph is not None:
        client.request("PUT", f"/graphs?graph={quote(GRAPH, safe='')}", shape.graph, "application/n-triples")
    client.put_query(name, shape.text(name))
    feed = Feed(server.base, f"/queries/{name}/results?snapshot=false&mode={shape.mode}")
    data = begun(rate)
    used: list[tuple[float, float]] = []
    looks = [Timer(data.begin_ms / 1000 + at - time.time(), lambda: used.append((server.own_cpu_seconds(), server.cpu_seconds())))
             for at in (seconds / _COMPILING, seconds)]     # what is asked until all results are here is not part of it
    for look in looks:
        look.start()
    with ThreadPoolExecutor(len(streams)) as pushers:
        waiting = [pushers.submit(deliver, streams[stream], data, seconds) if deliver is not None else
                   pushers.submit(push, server, streams[stream], data.begin_ms, partial(body, data), seconds)
                   for stream, body in shape.bodies.items()]
        for one in waiting:
            one.result()
    await_results(client, name, feed, seconds)
    for look in looks:
        look.join()
    own, whole = ((last - first) / (seconds - seconds / _COMPILING) for first, last in zip(*used))
    own_mb, all_mb, stats = server.own_memory_mb(), server.memory_mb(), client.stats(name)
    feed.close()
    client.request("DELETE", f"/queries/{name}")
    for path in streams.values():
        client.request("DELETE", f"/streams/{path}")
    got = list(answers(feed.events(), ranked=shape.ranked))
    expected = {data.begin_ms + 1000 * at: bag for at, bag in shape.answers(Numbers(data, seconds)).items()}
    known = [answer for answer in got if answer.at_ms in expected]
    return Measured(sum(a.bag == expected[a.at_ms] for a in known), seconds, differences(got, expected),
                    [a.arrived * 1000 - a.at_ms for a in known], own, whole - own, own_mb, all_mb - own_mb, stats)

"""Much at once: 1.1 million triples in one push, LUBM(1) in one window, and `thalweg run` over ten million triples.

The push has BSBM's offers, which a star of ten patterns with a filter asks for; measured from its first byte to the answer at a client,
as the first work of a fresh server and once more. LUBM(1) is from the log to the answers of its fourteen queries under owl2rl, in one
process. `thalweg run` averages W1's values by sensor, from the shell to its end. Every answer is held against what is expected.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.client import TIMED, Client
from tests.bench.data import BEGIN_MS, DECIMAL, TYPE, stamp, timed
from tests.bench.feed import Feed
from tests.bench.figures import Figure, at_least, at_most, holds, plain
from tests.bench.hashing import bag_of, bag_of_bindings, iri_text, literal_text, row_hash
from tests.bench.join import answers, milliseconds
from tests.bench.observations import Observations
from tests.bench.offers import BSBM, DC, INSTANCES, LIMIT, TRIPLES, Offers
from tests.bench.questions import Numbers, shapes
from tests.bench.settings import Settings, running_server
from tests.conformance import lubm
from tests.conformance.executors import in_this_process
from tests.conformance.outcomes import Verdict
from tests.live import ROOT, ServerProcess
from tests.shared import shared
from tests.waiting import wait_until

OFFERS = "http://example.org/streams/offers"
STAR = f"""PREFIX b: <{BSBM}> PREFIX dc: <{DC}>
REGISTER QUERY star AS SELECT ?offer ?product ?price FROM STREAM <{OFFERS}> [RANGE {{0}}s STEP {{0}}s]
WHERE {{{{ ?offer <{TYPE}> b:Offer ; b:product ?product ; b:vendor ?vendor ; b:price ?price ; b:validFrom ?from ; b:validTo ?to ;
    b:deliveryDays ?days ; b:offerWebpage ?page ; dc:publisher ?publisher ; dc:date ?date . FILTER (?price < {LIMIT}) }}}}"""
_RATE = 100_000
_PATIENCE_S = 120.0


def run(settings: Settings) -> tuple[list[Figure], dict[str, Any]]:
    """The figures of the benchmark, and details."""
    details: dict[str, Any] = {}
    found = [*_push(settings, details), *_lubm(details), *_replay(settings, details)]
    return found, details


@dataclass(frozen=True, slots=True)
class Pushed:
    """One push: seconds until its answer, until its receipt, and of the server's processors; whether the answer is right."""

    name: str
    limit_s: float
    triples: int
    took_s: float
    receipt_s: float
    cpu_s: float
    right: bool


def _push(settings: Settings, details: dict[str, Any]) -> Iterator[Figure]:
    with running_server(settings) as server:
        for one in _star_push(server, settings):
            yield at_most(f"one push of {one.triples:,} triples, {one.name}: begin to answer", one.took_s, "s", one.limit_s)
            yield plain(f"{one.name}: begin to receipt", one.receipt_s, "s")
            yield plain(f"{one.name}: processor of the server", one.cpu_s, "s")
            yield holds(f"{one.name}: answer as expected", one.right, "yes")
        details["stats"] = Client(server.base).stats("star")


def _star_push(server: ServerProcess, settings: Settings) -> Iterator[Pushed]:
    """Push the offers twice."""
    data = Offers(size=10_000) if settings.quick else Offers()
    expected = bag_of(row_hash((iri_text(_offer(n)), iri_text(data.product(n)), literal_text(data.price(n), DECIMAL)))
                      for n in range(data.size) if float(data.price(n)) < LIMIT)
    client = Client(server.base)
    client.put_stream("offers", OFFERS, "event", idle="PT1H")
    client.put_query("star", STAR.format(data.seconds))
    feed = Feed(server.base, "/queries/star/results?snapshot=false")
    for turn, (name, limit_s) in enumerate((("a fresh server's first work", 8), ("once more", 6))):
        shift = turn * data.seconds * 1000
        body = b"".join(timed((t + shift, triples) for t, triples in data.items()))
        end, used, began = stamp(BEGIN_MS + shift + data.seconds * 1000), server.cpu_seconds(), time.time()
        client.request("POST", f"/streams/offers?watermark={end}", body, TIMED)
        pushed = time.time() - began
        wait_until(lambda: feed.quiet_for(0.3) and len(list(answers(feed.events()))) > turn, _PATIENCE_S)
        answer = list(answers(feed.events()))[turn]
        yield Pushed(name, limit_s, data.size * TRIPLES, answer.arrived - began, pushed, server.cpu_seconds() - used,
                     answer.bag == expected and answer.at_ms == milliseconds(end))
    feed.close()


def _offer(number: int) -> str:
    return f"{INSTANCES}dataFromVendor{number // 2000}/Offer{number}"


def _lubm(details: dict[str, Any]) -> Iterator[Figure]:
    folder = shared("lubm")
    with in_this_process() as answer:
        outcomes = list(lubm.over_all(folder, answer, lubm.texts(folder)))
    details["lubm"] = outcomes[-1].reason
    yield at_most("LUBM(1), fourteen queries under owl2rl: log to answers", float(outcomes[-1].reason.split()[0]), "s", 4)
    yield holds("LUBM(1): published answers", all(outcome.verdict is Verdict.PASSED for outcome in outcomes), "yes")


def _replay(settings: Settings, details: dict[str, Any]) -> Iterator[Figure]:
    seconds, shape = 20 if settings.quick else 100, shapes(0)["avg"]
    data = Observations(BEGIN_MS, _RATE // 3)
    triples, expected = 3 * data.per_second * seconds, shape.answers(Numbers(data, seconds))
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        query, stream, out = (Path(folder, name) for name in ("mean.rq", "stream.nt", "out.jsonl"))
        query.write_text(shape.text("avg"))
        with stream.open("wb") as file:
            file.writelines(data.body(second * 1000, (second + 1) * 1000) for second in range(seconds))
        began = time.monotonic()
        with out.open("wb") as file:
            command = [sys.executable, "-m", "server", "run", str(query), "--stream", str(stream)]
            subprocess.run(command, cwd=ROOT, stdout=file, check=True)
        took = time.monotonic() - began
        told = {(answer["at"] - BEGIN_MS) // 1000: bag_of_bindings(["s", "mean"], answer["results"]["results"]["bindings"])
                for answer in map(json.loads, out.read_text("utf-8").splitlines())}
    details["run"] = {"triples": triples, "seconds": took}
    yield at_least(f"thalweg run over {triples:,} triples", triples / took, "triples/s", 200_000)
    yield holds("thalweg run: answers as expected", all(told[at] == bag for at, bag in expected.items()), "yes")

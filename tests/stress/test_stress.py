"""Sixteen clients against one server whose JVM, workers and own process are killed at random: nothing lost, nothing doubled, nothing else.

Half an hour in `make test-long` (``THALWEG_STRESS_MINUTES`` says otherwise). At the end the input log of the run is given to a fresh
server, which nobody disturbs: its result log must be the same.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import requests

from engine.runtime.log import LogFolder
from engine.runtime.results import ResultLog
from tests.live import ServerProcess
from tests.stress.roles import (ARRIVALS, EVENTS, EX, GRAPH, LATENESS_MS, QUERIES, QUERY, RULES, Follow, Push, ask_once, be_careless,
                                read_all, register, write_graph, write_rules)
from tests.stress.site import Client, Site, start

pytestmark = pytest.mark.spark
MINUTES = float(os.environ.get("THALWEG_STRESS_MINUTES", "30"))
KILL_EVERY_S = float(os.environ.get("THALWEG_STRESS_KILL_EVERY_S", "120"))
ADDRESS = "http://stress.example/server"
Logged = dict[str, list[tuple[Any, ...]]]


@pytest.mark.long
@pytest.mark.timeout(2 * MINUTES * 60 + 2_400)
def test_clients_and_kills_change_nothing(tmp_path: Path) -> None:
    run(tmp_path, MINUTES * 60, KILL_EVERY_S)


def run(folder: Path, seconds: float, kill_every_s: float) -> None:
    """The run, and what must hold at its end."""
    server = ServerProcess(folder / "data", ["--base-url", ADDRESS])
    pushers = [Push("events", True), Push("events", True), Push("arrivals", False), Push("arrivals", False)]
    followers = [Follow(name) for name in ("high", "alarms", "last")]
    with server:
        site = Site(server)
        prepare(Client(site, 0))
        roles = [*pushers, *followers, ask_once, ask_once, ask_once, register, register, write_graph, write_rules,
                 read_all, be_careless]
        assert len(roles) == 16
        threads = [start(site, f"{getattr(role, '__name__', type(role).__name__)}-{n}", role, n) for n, role in enumerate(roles, 1)]
        done = kill_at_random(site, seconds, kill_every_s)
        site.over.set()
        for thread in threads:
            thread.join(300)
            assert not thread.is_alive(), f"{thread.name} hangs"
        taken = finish(server)
    told = "\n".join([f"kills: {dict(done)}", *(f"{count:7} {what}" for what, count in sorted(site.counts.items()))])
    print(told)
    if site.wrong:
        pytest.fail(f"{len(site.wrong)} things went wrong:\n" + "\n".join(site.wrong[:60]), pytrace=False)
    assert taken == {name: (sum(p.taken for p in pushers if p.stream == name), sum(p.late for p in pushers if p.stream == name))
                     for name in ("events", "arrivals")}, "a push was lost, or taken twice"
    found = logged(folder / "data")
    assert all(len(found.get(name, ())) > seconds / 6 for name in QUERIES), {name: len(results) for name, results in found.items()}
    for follower in followers:
        ids = [entry[0] for entry in found[follower.query]]
        seen = [event.id for event in follower.events]
        assert len(seen) > seconds / 8 and ids[ids.index(str(seen[0])):][:len(seen)] == seen
    again, end = undisturbed(folder), last_mark(folder / "data")
    assert set(again) == set(found)
    for name in found:
        differs = [(a, b) for a, b in zip(found[name], again[name]) if a != b]
        assert not differs, f"{name}: {differs[:2]}"
        assert len(found[name]) <= len(again[name])
        assert all(result[1] > end for result in again[name][len(found[name]):])


def prepare(client: Client) -> None:
    """Streams, graph, rules, and the queries that stay."""
    streams = {"events": {"iri": EVENTS, "time": "event", "lateness": f"PT{LATENESS_MS / 1000}S", "retention": "PT24H"},
               "arrivals": {"iri": ARRIVALS, "time": "arrival", "retention": "PT24H"}}
    for name, descriptor in streams.items():
        assert client.ask("PUT", f"/streams/{name}", (201,), json=descriptor)
    assert client.ask("PUT", "/graphs", (201,), params={"graph": f"{EX}map"}, data=GRAPH % (":Trouble", 4),
                      headers={"Content-Type": "text/turtle"})
    assert client.ask("PUT", "/rules/trouble", (201,), data=RULES % 90, headers={"Content-Type": "text/x-rif-ps"})
    for name, text in QUERIES.items():
        assert client.ask("PUT", f"/queries/{name}", (201,), data=text, headers=QUERY), client.site.wrong


def kill_at_random(site: Site, seconds: float, every_s: float) -> Counter[str]:
    """Kill one of the JVM, a worker, the server, each `every_s` or so, until `seconds` have passed; how many of each."""
    chosen, done = random.Random(20_261_122), Counter[str]()
    end, waiting = time.monotonic() + seconds, list[str]()
    while (left := end - time.monotonic()) > 0:
        if site.over.wait(min(left, every_s * chosen.uniform(0.6, 1.4))):
            break
        if end - time.monotonic() < every_s / 2:
            continue
        if not waiting:
            waiting = chosen.sample(["jvm", "worker", "server"], 3)
        kind = waiting.pop()
        if not site.server.running:
            site.complain(f"the server has ended by itself: {site.server.log.read_text(errors='replace')[-3000:]}")
            break
        if kind == "server":
            restart(site)
        else:
            victims = [pid for pid in site.server.family() if is_kind(pid, kind)]
            if not victims:
                continue
            os.kill(chosen.choice(victims), signal.SIGKILL)
        done[kind] += 1
    return done


def restart(site: Site) -> None:
    """Kill the server and start it again."""
    site.down.set()
    site.server.kill()
    site.lives += 1
    site.server.start()
    site.server.wait_ready()
    site.lives += 1
    site.down.clear()


def is_kind(pid: int, kind: str) -> bool:
    """Whether a process is the JVM, or a Python worker of Spark (a child of the daemon, not the daemon)."""
    command, parent = _command(pid), _command(_parent(pid))
    if kind == "jvm":
        return "java" in command.split("\0")[0]
    return "daemon" in command and "daemon" in parent


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
    except OSError:
        return ""


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def finish(server: ServerProcess) -> dict[str, tuple[int, int]]:
    """Wait until all that was pushed is processed; how many items each stream has taken, and how many were late."""
    server.wait_ready()
    server.wait_caught_up(300)
    states = {name: requests.get(f"{server.base}/streams/{name}", timeout=60).json()["state"] for name in ("events", "arrivals")}
    return {name: (state["items"], state["late"]) for name, state in states.items()}


def undisturbed(folder: Path) -> Logged:
    """The result log of a fresh server that is given the same input log, and nothing else."""
    fresh = folder / "fresh"
    log = LogFolder(fresh / "log", fresh / "archive")
    for table in LogFolder(folder / "data" / "log", folder / "data" / "archive").read(0):
        log.write(table)
    server = ServerProcess(fresh, ["--base-url", ADDRESS])
    try:
        server.start()
        server.wait_ready(MINUTES * 60 + 600)
        server.wait_caught_up(MINUTES * 60 + 600)
        server.stop()
    finally:
        if server.running:
            server.kill()
    return logged(fresh)


def last_mark(data: Path) -> int:
    """Up to where the arrival stream's clock had come. A server that is given the log later goes on with the clock from there."""
    log = ResultLog(data / "thalweg.db")
    try:
        return int(log.stream_states()[ARRIVALS]["watermark"])
    finally:
        log.close()


def logged(data: Path) -> Logged:
    """(id, T, time, output, bag of answers, bag of the whole relation) of every logged result by query; the server must have ended."""
    found: Logged = {}
    with closing(sqlite3.connect(data / "thalweg.db")) as db:
        for query, epoch, seq, tick, at, output, payload, relation in db.execute(
                "select query, epoch, seq, tick, at, output, payload, relation from results order by query, seq"):
            found.setdefault(query, []).append((f"{epoch}-{seq}", tick, at, output, bag(payload), relation and bag(relation)))
    return found


def bag(payload: bytes) -> tuple[str, ...]:
    """The rows, or the triples of a graph, in order of their text."""
    if not payload.startswith(b"{"):
        return tuple(sorted(payload.decode().splitlines()))
    return tuple(sorted(json.dumps(row, sort_keys=True) for row in json.loads(payload)["results"]["bindings"]))

"""SIGKILL at random points of a run: the result log must be the same as without, ids included.

The pusher retries what was not answered with the same idempotency key, as a client would.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest

from engine.runtime.results import ResultLog

pytestmark = pytest.mark.soak

EVENTS = 2_000
QUERIES = ("REGISTER QUERY joined AS SELECT ?s ?a ?b FROM STREAM <http://ex.org/s> [RANGE 4s STEP 1s] "
           "WHERE { ?s <http://ex.org/a> ?a ; <http://ex.org/b> ?b }",
           "REGISTER QUERY changes REPORT ON CHANGE AS ISTREAM SELECT ?s ?a FROM STREAM <http://ex.org/s> [RANGE 1s STEP 1s] "
           "FROM <http://ex.org/g> WHERE { ?s <http://ex.org/a> ?a ; <http://ex.org/kind> ?k }",
           "REGISTER QUERY counts AS SELECT ?s (COUNT(*) AS ?n) FROM STREAM <http://ex.org/s> [TRIPLES 20] "
           "FROM STREAM <http://ex.org/s> [RANGE 3s STEP 3s] WHERE { ?s ?p ?o } GROUP BY ?s",
           "REGISTER STREAM <http://ex.org/made> AS CONSTRUCT { ?s <http://ex.org/c> ?a . _:n <http://ex.org/of> ?s } "
           "FROM STREAM <http://ex.org/s> [RANGE 2s STEP 1s] WHERE { ?s <http://ex.org/a> ?a }",
           "REGISTER ISTREAM <http://ex.org/news> REPORT ON CHANGE AS CONSTRUCT { ?s <http://ex.org/d> ?a } "
           "FROM STREAM <http://ex.org/made> [RANGE 5s] WHERE { ?s <http://ex.org/c> ?a }",
           "REGISTER QUERY readers AS SELECT ?s ?a ?b (COUNT(?n) AS ?notes) FROM STREAM <http://ex.org/made> [RANGE 6s STEP 2s] "
           "FROM STREAM <http://ex.org/news> [ITEMS 2] FROM STREAM <http://ex.org/s> [RANGE 2s] "
           "WHERE { ?s <http://ex.org/c> ?a ; <http://ex.org/d> ?b . ?n <http://ex.org/of> ?s } GROUP BY ?s ?a ?b",
           "REGISTER QUERY alike AS SELECT ?s ?o FROM STREAM <http://ex.org/s> [RANGE 1s STEP 1s] USING RULES like "
           "WHERE { ?s <http://ex.org/like> ?o }")
NAMES = ("joined", "changes", "counts", "made", "news", "readers", "alike")
RULES = """Document( Prefix(ex <http://ex.org/>)
  Group( Forall ?x ?y ( ?x[ex:like -> ?y] :- And(?x[ex:a -> "%s"] ?y[ex:a -> "%s"]) ) ) )"""


def commands() -> Iterator[list[Any]]:
    """The recorded run: two versions of a graph and of a rule set, seven queries of which two make streams, 2,000 events of two triples
    each in pushes of ten."""
    rng = random.Random(7)
    yield ["stream", "s", {"iri": "http://ex.org/s", "time": "event", "lateness": "PT0.2S"}]
    yield ["graph", "http://ex.org/g", [[f"<http://ex.org/s{i}>", "<http://ex.org/kind>", '"x"'] for i in range(3)]]
    yield ["rules", "like", RULES % (1, 2)]
    yield from (["register", text] for text in QUERIES)
    for push in range(EVENTS // 10):
        if push == EVENTS // 20:
            yield ["graph", "http://ex.org/g", [["<http://ex.org/s4>", "<http://ex.org/kind>", '"y"']]]
            yield ["rules", "like", RULES % (3, 4)]
        items = []
        for i in range(10):
            t = (push * 10 + i) * 20 - rng.choice([0, 0, 100])
            s = f"<http://ex.org/s{rng.randrange(5)}>"
            items.append([max(t, 0), [[s, "<http://ex.org/a>", f'"{rng.randrange(9)}"'], [s, "<http://ex.org/b>", "_:b"]]])
        yield ["push", "s", f"push {push}", items]
    yield ["settle"]


class Host:
    """The process with the engine."""

    def __init__(self, folder: Path, evaluator: str, **settings: Any) -> None:
        self.process = subprocess.Popen([sys.executable, "-m", "tests.runtime.host", str(folder), evaluator, json.dumps(settings)],
                                        text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.state = self._answer()

    def ask(self, command: list[Any]) -> Any:
        """The answer, or None where the process died before it gave one."""
        assert self.process.stdin
        try:
            self.process.stdin.write(json.dumps(command) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return None
        return self._answer()

    def _answer(self) -> Any:
        assert self.process.stdout
        line = self.process.stdout.readline()
        return json.loads(line) if line.endswith("\n") else None

    def end(self) -> None:
        """Close its input and let it stop by itself."""
        with self.process:
            assert self.process.stdin
            self.process.stdin.close()
            assert self.process.wait(60) == 0

    def gone(self) -> None:
        """Tidy up after a kill."""
        with self.process:
            self.process.kill()


def run(folder: Path, evaluator: str, kills: int, seed: int = 1) -> int:
    """Send all commands, with so many kills spread over them at random moments; how many hit."""
    rng = random.Random(seed)
    everything = list(commands())
    victims = set(rng.sample(range(len(everything)), kills))
    host, hit = Host(folder, evaluator), 0
    for number, command in enumerate(everything):
        killer = None
        if number in victims:
            killer = threading.Timer(rng.uniform(0, 0.03), host.process.kill)
            killer.start()
        answer = host.ask(command)
        if killer is not None:
            killer.join()
        while answer is None or killer is not None:
            host.gone()
            hit += 1
            host, killer = Host(folder, evaluator), None
            assert host.state == "running", host.state
            answer = host.ask(command)
    host.end()
    return hit


def logged(folder: Path) -> dict[str, list[tuple[Any, ...]]]:
    """What the result log holds of each query: ids, ticks and bags."""
    results = ResultLog(folder / "thalweg.db")
    found = {}
    for name in NAMES:
        found[name] = [(event.id, event.tick, event.at_ms, bag(event.payload), (whole := event.relation) and bag(whole))
                       for event in results.read(name, 0, 1 << 30)]
    results.close()
    return found


def bag(payload: bytes) -> list[str]:
    """The rows, or the triples of a graph: blank nodes too must be the same."""
    if not payload.startswith(b"{"):
        return sorted(payload.decode().splitlines())
    return sorted(json.dumps(row, sort_keys=True) for row in json.loads(payload)["results"]["bindings"])


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long)])
def test_ten_kills_change_nothing(tmp_path: Path, seed: int) -> None:
    assert run(tmp_path / "undisturbed", "memory", 0) == 0
    assert run(tmp_path / "killed", "memory", 10, seed) == 10
    undisturbed, killed = logged(tmp_path / "undisturbed"), logged(tmp_path / "killed")
    for name in NAMES:
        assert len(undisturbed[name]) > 10
        for result, other in zip_longest(undisturbed[name], killed[name]):
            assert result == other, name    # one of them: the whole log is too long to be shown


@pytest.mark.long
@pytest.mark.spark
def test_ten_kills_change_nothing_with_spark(tmp_path: Path) -> None:
    run(tmp_path / "undisturbed", "spark", 0)
    assert run(tmp_path / "killed", "spark", 10) == 10
    assert logged(tmp_path / "killed") == logged(tmp_path / "undisturbed")

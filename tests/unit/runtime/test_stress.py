"""Eight threads read, ask, register, remove and write beside pushes, on an engine that evaluates in memory: nothing fails that is there."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine.execution.content import StreamContent
from engine.runtime.errors import EngineError
from engine.runtime.service import Engine
from tests.unit.runtime.test_catalogue import G, Unsettled
from tests.unit.runtime.test_derived import HOT, READER
from tests.unit.runtime.test_engine import EVENTS, NOW, P, S, TEXT, item
from tests.unit.runtime.test_rules import RIF, alarm

pytestmark = pytest.mark.soak

ALARMED = TEXT.replace("QUERY q", "QUERY alarmed").replace("WHERE", "USING RULES alarms WHERE")
ASKED = "SELECT ?o FROM STREAM <http://ex.org/{}> [RANGE 2s STEP 1s] WHERE {{ ?s <http://ex.org/p> ?o }}"
ROUNDS, THREADS, PUSHES = 12, 8, 60


def reads(engine: Engine) -> list[Callable[[], object]]:
    """Every read, of things that are always there."""
    names = ("q", "swapped", "hot", "reader", "alarmed")
    found: list[Callable[[], object]] = [engine.streams, engine.queries, engine.graphs, engine.rule_sets, engine.info, engine.health]
    for name in names:
        found += [lambda name=name, read=read: read(name) for read in (engine.query, engine.plan, engine.plan_nodes, engine.stats)]
        found.append(lambda name=name: engine.results.latest(name))
    found += [lambda name=name, read=read: read(name) for name in ("s", "unread", "hot")
              for read in (engine.stream, engine.tail_part, engine.dead_letters)]
    found += [lambda: engine.graph(G), lambda: engine.rule_set("alarms"), lambda: engine.explain(READER.replace("reader", "new"))]
    found += [lambda stream=stream: engine.sparql(ASKED.format(stream)) for stream in ("s", "unread")]
    found.append(lambda: engine.sparql("SELECT ?o { ?s ?p ?o }"))
    return found


def why(engine: Engine) -> None:
    """The last result explained, unless what it was made from has gone meanwhile."""
    event = engine.results.latest("q")
    if event is not None:
        try:
            engine.evidence("q", event.id)
        except EngineError as error:
            assert error.slug == "no-longer-kept", error.slug


def writes(engine: Engine, number: int, turn: int) -> None:
    """What one thread alone does with names of its own, and with what all replace; what was written is read at once."""
    mine, iri = f"own{number}", f"http://ex.org/own{number}"
    text = TEXT.replace("QUERY q", f"QUERY {mine}").replace("http://ex.org/s", iri)
    assert engine.put_stream(mine, {"iri": iri, "time": "event"})[1] and engine.stream(mine).iri == iri
    engine.sparql(ASKED.format(mine))
    assert engine.register(text)[1] and mine in {info.name for info in engine.queries()}
    engine.push(mine, [item(NOW + turn * 1_000)])
    assert engine.patch_query(mine, "paused").state == "paused"
    engine.patch_query(mine, "running", "backlog")
    engine.register(TEXT.replace("QUERY q", "QUERY swapped").replace("2s", f"{2 + number + turn}s"), options={"replace": True})
    engine.restart_query("swapped", reset=True)
    engine.put_graph(G, [(S, P, f'"{number} {turn}"')], replace=turn % 3 == 0)
    engine.put_rules("alarms", RIF, alarm(f"{number} {turn}"))
    engine.put_graph(f"{G}{number}", [(S, P, f'"{turn}"')])
    assert engine.graph(f"{G}{number}")[1] == [(S, P, f'"{turn}"')]
    engine.delete_graph(f"{G}{number}")
    engine.delete_stream(mine, force=True)
    for read, slug in ((engine.query, "query-removed"), (engine.stream, "no-such-stream")):
        with pytest.raises(EngineError) as gone:
            read(mine)
        assert gone.value.slug == slug


@pytest.fixture
def busy(tmp_path: Path) -> Iterator[Unsettled]:
    with Unsettled(tmp_path) as found:
        engine = found.engine
        for name in ("s", "unread"):
            engine.put_stream(name, {**EVENTS, "iri": f"http://ex.org/{name}"})
        engine.put_graph(G, [(S, P, '"0"')])
        engine.put_rules("alarms", RIF, alarm("low"))
        for text in (TEXT, TEXT.replace("QUERY q", "QUERY swapped"), ALARMED, HOT, READER):
            engine.register(text)
        found.catch_up()
        yield found


def test_eight_threads_beside_pushes_fail_in_nothing_that_is_there(busy: Unsettled) -> None:
    engine, failures = busy.engine, list[str]()
    done = threading.Event()

    def work(number: int) -> None:
        choice, calls = random.Random(number), reads(engine)
        for turn in range(ROUNDS):
            try:
                writes(engine, number, turn)
                why(engine)
                for read in choice.sample(calls, len(calls) // 2):
                    read()
            except BaseException as failure:  # told below, with all the others
                failures.append(f"{type(failure).__name__}: {failure}")

    def push() -> None:
        for number in range(PUSHES):
            engine.push("s", [item(NOW + number * 250, str(number % 7))])
            if done.wait(0.005):
                return

    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    pushing = threading.Thread(target=push)
    for thread in (pushing, *threads):
        thread.start()
    for thread in threads:
        thread.join(120)
    done.set()
    pushing.join(30)
    assert not failures and engine.state == "running", (engine.progress, failures[:5])
    busy.catch_up()
    assert [info.name for info in engine.queries()] == ["alarmed", "hot", "q", "reader", "swapped"]
    assert {info.state for info in engine.queries()} <= {"running", "idle"} and len(engine.graphs()) == 1


def test_a_one_shot_query_leaves_alone_what_the_pump_goes_through(busy: Unsettled, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked, on a stream that nobody reads, while the pump is in the midst of its contents."""
    engine, evict, asked = busy.engine, StreamContent.evict, list[threading.Thread]()

    def asking(content: StreamContent, before_ms: int) -> None:
        if not asked:
            asked.append(threading.Thread(target=lambda: engine.sparql(ASKED.format("unread"))))
            asked[0].start()
            asked[0].join(10)
        evict(content, before_ms)

    monkeypatch.setattr(StreamContent, "evict", asking)
    engine.push("s", [item(NOW)])
    busy.until(lambda: bool(asked) and not asked[0].is_alive())
    busy.catch_up()
    assert engine.state == "running", engine.progress


def test_commands_do_not_wait_for_a_pump_that_evaluates(busy: Unsettled, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pump is held in an evaluation while each kind of command is answered."""
    engine, begun, go_on = busy.engine, threading.Event(), threading.Event()
    evaluate = busy.backend.executor.evaluate

    def held(dues):  # type: ignore[no-untyped-def]
        begun.set()
        assert go_on.wait(60)
        return evaluate(dues)

    monkeypatch.setattr(busy.backend.executor, "evaluate", held)
    engine.push("s", [item(NOW), item(NOW + 1_500)])
    assert begun.wait(10)
    began = time.monotonic()
    writes(engine, 0, 0)
    for read in reads(engine):
        read()
    assert time.monotonic() - began < 30 and not go_on.is_set()
    go_on.set()
    busy.catch_up()
    assert engine.query("q").state == "running"

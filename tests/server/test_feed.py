"""Live feeds through a real server: what is sent, in which order, each result exactly once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import requests

from engine.runtime.resources import Notice
from server.app import create_app
from server.feeds.channel import Channel
from server.limits import Limits
from server.web import Site
from tests.server.conftest import QUICK, TEXT, Live
from tests.waiting import wait_until
from tests.server.fake_engine import FakeEngine, rows
from tests.server.sse import Events


def hot(engine: FakeEngine, text: str = TEXT) -> None:
    engine.put_stream("temps", {"iri": "http://ex.org/temps"})
    engine.register(text, "hot")


def answer(engine: FakeEngine, number: int) -> str:
    return engine.answer("hot", rows(s=[f"<http://ex.org/{number}>"], t=[f'"{number}"'])).id


def test_a_feed_begins_with_hello_and_a_snapshot_and_goes_on_with_results(live: Live) -> None:
    hot(live.engine)
    answer(live.engine, 1)
    with Events(f"{live.base}/queries/hot/results") as events:
        assert events.response.headers["Content-Type"] == "text/event-stream; charset=utf-8"
        assert events.response.headers["Cache-Control"] == "no-cache, no-transform"
        assert events.response.headers["RSP-Last-Event-ID"] == "q1c1-1"
        assert events.next().event == "retry"
        hello = events.next()
        assert (hello.event, hello.data["query"], hello.data["mode"], hello.data["resumed"]) == ("hello", "hot", "full", False)
        snapshot = events.next()
        assert (snapshot.event, snapshot.id, snapshot.data["last"]) == ("snapshot", "q1c1-1", True)
        wait_until(lambda: live.engine._listeners)
        answer(live.engine, 2)
        result = events.next()
    assert (result.event, result.id) == ("result", "q1c1-2")
    assert result.data["results"]["bindings"][0]["t"] == {"type": "literal", "value": "2"}
    assert result.data["rsp"]["seq"] == 2
    assert result.data["rsp"]["window"][0]["stream"] == "http://ex.org/temps"


def test_every_result_is_seen_once_over_reconnections(live: Live) -> None:
    hot(live.engine)
    ids = [answer(live.engine, number) for number in range(5)]
    last, seen = None, []
    done = threading.Event()

    def produce() -> None:
        for number in range(5, 200):
            ids.append(answer(live.engine, number))
        done.set()

    thread = threading.Thread(target=produce)
    thread.start()
    while not (done.is_set() and last == ids[-1]):
        headers = {"Last_Event_ID": last} if last else {}
        query = "?limit=17" if last else "?limit=17&since=earliest"
        with Events(f"{live.base}/queries/hot/results{query}", **headers) as events:
            for event in events:
                if event.event == "result":
                    seen.append(event.id)
                    last = event.id
                if done.is_set() and last == ids[-1]:
                    break
    thread.join()
    assert seen == ids


def test_jsonl_carries_the_same_objects_and_ends_at_the_limit(live: Live) -> None:
    hot(live.engine)
    for number in range(3):
        answer(live.engine, number)
    with Events(f"{live.base}/queries/hot/results?since=earliest&limit=2", accept="application/jsonl") as events:
        found = events.rest()
    assert [event.event for event in found] == ["hello", "result", "result", "bye"]
    assert found[-1].data == {"reason": "limit", "reconnect": False}


def test_a_foreign_or_lost_place_is_a_gap_and_a_snapshot(live: Live) -> None:
    hot(live.engine)
    answer(live.engine, 1)
    with Events(f"{live.base}/queries/hot/results", Last_Event_ID="q9c9-5") as events:
        gap = events.next("gap", "result")
        assert gap.data["reason"] == "new-run"
        assert events.next().event == "snapshot"
        live.engine.new_epoch("hot")
        assert events.next().data["reason"] == "new-run"
        answer(live.engine, 7)
        assert events.next("result").id == "q1c2-1"


def test_delta_feeds_carry_what_came_and_went(live: Live) -> None:
    hot(live.engine)
    live.engine.answer("hot", rows(s=["<http://a>", "<http://a>"], t=['"1"', '"1"']))
    with Events(f"{live.base}/queries/hot/results?mode=delta") as events:
        assert events.next("snapshot").data["results"]["bindings"]
        live.engine.answer("hot", rows(s=["<http://a>", "<http://b>"], t=['"1"', '"2"']))
        delta = events.next("delta")
    assert [row["s"]["value"] for row in delta.data["addedResults"]["results"]["bindings"]] == ["http://b"]
    assert [row["s"]["value"] for row in delta.data["removedResults"]["results"]["bindings"]] == ["http://a"]


def test_graphs_come_as_json_ld_or_as_text(live: Live) -> None:
    hot(live.engine, TEXT.replace("SELECT ?s ?t", "CONSTRUCT { ?s <http://q> ?t }"))
    with Events(f"{live.base}/queries/hot/results") as plain, \
            Events(f"{live.base}/queries/hot/results?graph-format=nquads") as quads:
        plain.next("hello"), quads.next("hello")
        live.engine.answer("hot", rows(s=["<http://a>"], p=["<http://q>"], o=['"1\\n2"']))
        graph = plain.next("graph").data
        assert graph["@graph"] == [{"@id": "http://a", "http://q": [{"@value": "1\n2"}]}]
        assert graph["@id"].endswith("/queries/hot/results/q1c1-1")
        text = quads.next("graph").data["text"]
    assert '<http://a> <http://q> "1\\n2" <' in text and "generatedAtTime" in text


def test_large_results_come_in_chunks_with_the_id_on_the_last(serve: Callable[..., Live]) -> None:
    live = serve(replace(QUICK, result_event=300))
    hot(live.engine)
    with Events(f"{live.base}/queries/hot/results") as events:
        events.next("hello")
        live.engine.answer("hot", rows(s=[f"<http://ex.org/{n}>" for n in range(20)], t=['"1"'] * 20))
        chunks = [events.next("result")]
        while not chunks[-1].data["last"]:
            chunks.append(events.next("result"))
    assert len(chunks) > 3
    assert [chunk.id for chunk in chunks] == [None] * (len(chunks) - 1) + ["q1c1-1"]
    assert [chunk.data["chunk"] for chunk in chunks] == list(range(len(chunks)))
    assert sum(len(chunk.data["results"]["bindings"]) for chunk in chunks) == 20


def test_progress_status_and_removal_are_told(live: Live) -> None:
    hot(live.engine)
    with Events(f"{live.base}/queries/hot/results") as events:
        events.next("hello")
        live.engine.tell(Notice("progress", "hot", data={"watermark": "2025-11-21T05:04:00Z"}))
        assert events.next("progress").data["watermark"] == "2025-11-21T05:04:00Z"
        live.engine.patch_query("hot", "paused")
        assert events.next("status").data["state"] == "paused"
        live.engine.delete_query("hot")
        assert events.next("bye").data == {"reason": "dropped", "reconnect": False}
        assert events.rest() == []
    assert requests.get(f"{live.base}/queries/hot/results", headers={"Accept": "text/event-stream"}, timeout=10).status_code == 204
    assert requests.get(f"{live.base}/queries/hot/results", headers={"Accept": "text/csv"}, timeout=10).status_code == 410


def test_heartbeats_and_rotation(serve: Callable[..., Live]) -> None:
    live = serve(replace(QUICK, heartbeat_seconds=0.02, feed_seconds=0.3))
    hot(live.engine)
    with Events(f"{live.base}/queries/hot/results") as events:
        found = events.rest()
    assert "hb" in [event.data for event in found if event.event == ":"]
    assert found[-1].data == {"reason": "rotate", "reconnect": True}


def test_shutdown_says_goodbye(live: Live) -> None:
    hot(live.engine)
    with Events(f"{live.base}/queries/hot/results") as events:
        events.next("hello")
        live.server.end()
        assert events.rest()[-1].data == {"reason": "shutdown", "reconnect": True}


def test_too_many_subscribers_are_told_to_come_later(serve: Callable[..., Live]) -> None:
    live = serve(replace(QUICK, subscribers_per_query=1))
    hot(live.engine)
    url = f"{live.base}/queries/hot/results"
    with Events(url) as events:
        events.next("hello")
        assert live.engine and requests.get(f"{live.base}/queries/hot", timeout=10).json()["subscribers"] == 1
        with Events(url) as second:
            assert [event.event for event in second.rest()] == ["retry", "bye"]
        refused = requests.get(url, headers={"Accept": "application/jsonl"}, timeout=10)
        assert refused.status_code == 503 and "Retry-After" in refused.headers
    wait_until(lambda: live.application.exchange.total == 0)


def test_a_client_behind_the_ring_is_told_of_the_gap(serve: Callable[..., Live]) -> None:
    live = serve(replace(QUICK, ring_events=4))
    hot(live.engine)
    ids = [answer(live.engine, number) for number in range(40)]
    with Events(f"{live.base}/queries/hot/results?since=earliest&limit=40") as events:
        assert [event.id for event in events.rest() if event.event == "result"] == ids


def test_rate_leaves_out_all_but_the_latest(live: Live) -> None:
    hot(live.engine)
    for number in range(10):
        answer(live.engine, number)
    with Events(f"{live.base}/queries/hot/results?since=earliest&rate=PT1H") as events:
        assert events.next("gap").data["reason"] == "rate"
        assert events.next("result").id == "q1c1-10"


def test_empty_results_can_be_omitted(live: Live) -> None:
    hot(live.engine)
    live.engine.answer("hot", rows(s=[], t=[]))
    answer(live.engine, 2)
    with Events(f"{live.base}/queries/hot/results?since=earliest&empty=omit&limit=1") as events:
        assert [event.id for event in events.rest() if event.event == "result"] == ["q1c1-2"]


def test_until_ends_the_feed(live: Live) -> None:
    hot(live.engine)
    times = [live.engine.answer("hot", rows(s=[], t=[])).at_ms for _ in range(3)]
    assert times[1] == 1_763_701_442_000
    with Events(f"{live.base}/queries/hot/results?since=earliest&until=2025-11-21T05:04:02Z") as events:
        found = events.rest()
    assert [event.id for event in found if event.event == "result"] == ["q1c1-1", "q1c1-2"]
    assert found[-1].data["reason"] == "until"


def test_until_ends_a_feed_of_which_the_time_is_over(live: Live) -> None:
    """Nobody will tell: the last evaluations were empty, or nothing comes any more."""
    hot(live.engine)
    for number in range(100):
        answer(live.engine, number)
    live.engine.progress_of("hot", watermark="2025-11-21T05:10:00Z")
    for until, results in (("2025-11-21T05:08:00Z", 100), ("2025-11-21T05:10:00Z", 100), ("2025-11-21T05:05:00Z", 60)):
        with Events(f"{live.base}/queries/hot/results?since=earliest&until={until}") as events:
            found = events.rest()
        assert [event.event for event in found].count("result") == results and found[-1].data["reason"] == "until"


def test_one_feed_of_several_queries(live: Live) -> None:
    hot(live.engine)
    live.engine.register(TEXT.replace("hot", "cold"), "cold")
    answer(live.engine, 1)
    with Events(f"{live.base}/events?query=hot&query=cold") as events:
        assert [query["query"] for query in events.next("hello").data["queries"]] == ["hot", "cold"]
        assert events.next("snapshot").data["query"] == "hot"
        live.engine.answer("cold", rows(s=[], t=[]))
        result = events.next("result")
        assert (result.data["query"], result.id) == ("cold", "hot:q1c1-1,cold:q2c1-1")
        live.engine.patch_query("cold", "paused")
        assert events.next("status").data["query"] == "cold"
    answer(live.engine, 2)
    with Events(f"{live.base}/events?query=hot&query=cold", Last_Event_ID=result.id or "") as events:
        assert events.next("result", "snapshot").id == "hot:q1c1-2,cold:q2c1-1"


def test_feeds_refuse_what_they_do_not_know(live: Live) -> None:
    hot(live.engine)
    url = f"{live.base}/queries/hot/results"
    for query, status in (("?x=1", 400), ("?mode=half", 400), ("?limit=0", 400), ("?rate=PT1S&mode=delta", 400), ("?since=yesterday", 400)):
        reply = requests.get(url + query, headers={"Accept": "text/event-stream"}, timeout=10)
        assert (query, reply.status_code, reply.json()["type"].rpartition("/")[2]) == (query, status, "unknown-parameter")
    assert requests.get(url, headers={"Accept": "text/event-stream", "Host": "evil.example"}, timeout=10).status_code == 421
    assert requests.get(f"{live.base}/queries/none/results", headers={"Accept": "text/event-stream"}, timeout=10).status_code == 404


def test_the_input_can_be_followed(live: Live) -> None:
    hot(live.engine)
    url = f"{live.base}/streams/temps/items"
    push = {"headers": {"Content-Type": "text/turtle"}, "timeout": 10}
    requests.post(f"{live.base}/streams/temps", data="<http://a> <http://b> 1 .", **push)
    with Events(f"{url}?limit=2") as events:
        assert events.next("hello").data["iri"] == "http://ex.org/temps"
        first = events.next("item")
        requests.post(f"{live.base}/streams/temps", data="<http://a> <http://b> 2 .", **push)
        second, end = events.rest()
    assert '"2"' in second.data["text"] and end.data["reason"] == "limit"
    with Events(f"{url}?limit=1", Last_Event_ID=first.id or "") as events:
        assert events.next("item") == second
    for query in ("?limit=0", "?since=x", "?x=1"):
        assert requests.get(url + query, headers={"Accept": "text/event-stream"}, timeout=10).status_code == 400
    assert requests.get(url, headers={"Accept": "text/turtle"}, timeout=10).status_code == 406
    assert requests.get(f"{live.base}/streams/no/items", headers={"Accept": "text/event-stream"}, timeout=10).status_code == 404


def test_a_plain_wsgi_host_serves_a_few_feeds_too() -> None:
    engine = FakeEngine()
    hot(engine)
    answer(engine, 1)
    client = create_app(engine, Site(engine, replace(QUICK, plain_wsgi_feeds=1))).test_client()
    headers = {"Host": "localhost", "Accept": "text/event-stream"}
    with client.get("/queries/hot/results?limit=2", headers=headers) as reply:
        assert reply.headers["RSP-Last-Event-ID"] == "q1c1-1"
        pieces = iter(reply.response)
        assert b"event: snapshot" in next(pieces)  # type: ignore[operator]
        assert client.get("/queries/hot/results", headers=headers).status_code == 503
        answer(engine, 2)
        rest = b"".join(pieces)  # type: ignore[arg-type]
        assert b"id: q1c1-2" in rest and b'"reason":"limit"' in rest
    lines = client.get("/queries/hot/results?since=earliest&limit=2", headers={**headers, "Accept": "application/jsonl"})
    assert len(lines.text.splitlines()) == 4
    client.application.extensions["thalweg-exchange"].stop()


def test_limits_default() -> None:
    assert (Limits().heartbeat_seconds, Limits().feed_seconds) == (15.0, 600.0)


def test_the_thread_of_the_feeds_survives_a_failure_and_is_named_by_the_readiness(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    exchange, add = live.application.exchange, Channel.add_status
    failures = [SystemExit("injected")]

    def once(self: Channel, data: Any) -> None:
        if failures:
            raise failures.pop()
        add(self, data)
    monkeypatch.setattr(Channel, "add_status", once)
    for _ in range(2):
        live.engine.tell(Notice("status", "hot", data={"state": "running"}))
    wait_until(lambda: exchange.worker.failures == 1 and not failures)
    hot(live.engine)
    assert requests.get(f"{live.base}/health/ready", timeout=10).status_code == 200
    exchange.worker.state = "failed"
    body = requests.get(f"{live.base}/health/ready", timeout=10)
    assert body.status_code == 503 and "feeds" in body.json()["reason"]

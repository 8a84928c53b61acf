"""What clients may hold of the server: connections, time, threads, memory. Each bound with a small limit, by plain sockets."""

from __future__ import annotations

import gzip
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
import requests

from server import serving
from server.feeds.channel import Entry
from server.feeds.exchange import Exchange
from server.feeds.feed import Feed
from server.feeds.options import Options
from server.formats.columns import read_columns
from server.formats.items import Reader
from server.formats.reading import read_graph, read_items
from server.limits import Limits
from server.problems import Problem
from tests.server.conftest import PATIENCE_SECONDS, QUICK, Live
from tests.waiting import wait_until
from tests.server.fake_engine import FakeEngine, rows
from tests.server.sse import Events
from tests.server.test_feed import answer, hot

Serve = Callable[..., Live]
HEAD = b"GET /queries HTTP/1.1\r\nHost: localhost\r\n"


@contextmanager
def client(live: Live, receive_buffer: int | None = None) -> Iterator[socket.socket]:
    with socket.socket() as found:
        if receive_buffer:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        found.settimeout(PATIENCE_SECONDS)
        found.connect(("127.0.0.1", int(live.base.rpartition(":")[2])))
        yield found


def until_closed(found: socket.socket, drip: bytes = b"") -> bytes:
    """All that the server says until it closes the connection; meanwhile `drip` goes on and on."""
    received = b""
    found.settimeout(0.01 if drip else PATIENCE_SECONDS)
    for _ in range(int(PATIENCE_SECONDS / 0.01)):
        try:
            if drip:
                found.sendall(drip)
            data = found.recv(1 << 16)
        except TimeoutError:
            continue
        except (ConnectionResetError, BrokenPipeError):
            return received
        if not data:
            return received
        received += data
    raise AssertionError("the server did not close the connection")


def slug(reply: requests.Response) -> Any:
    return reply.json()["type"].rpartition("/")[2]


# --- time and connections

@pytest.mark.parametrize(("begin", "drip", "said"), [
    (b"", b"", b""), (HEAD, b"", b"HTTP/1.1 408 "), (HEAD, b"x", b"HTTP/1.1 408 "), (b"", b"\r\n", b""),
    (HEAD + b"\r\n", b"\r\n", b"HTTP/1.1 200 "), (HEAD + b"\r\n" + HEAD, b"", b"HTTP/1.1 408 ")])
def test_a_head_that_does_not_come_in_time_ends_the_connection(serve: Serve, begin: bytes, drip: bytes, said: bytes) -> None:
    live = serve(replace(QUICK, header_seconds=0.2))
    with client(live) as found:
        found.sendall(begin)
        received = until_closed(found, drip)
    assert said in received and b"\r\ndate: " in received if said else not received
    assert requests.get(f"{live.base}/queries", timeout=10).status_code == 200


def test_a_body_that_does_not_come_in_time_ends_the_connection_though_nobody_reads_it(
        serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "_GRACE_SECONDS", 0.05)
    live = serve(replace(QUICK, upload_seconds=0.1))
    with client(live) as found:
        found.sendall(b"GET /health/live HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n")
        assert b"200 OK" in until_closed(found, b"x")


def test_a_feed_outlives_the_deadlines_of_its_request(serve: Serve) -> None:
    live = serve(replace(QUICK, header_seconds=0.05, upload_seconds=0.05))
    hot(live.engine)
    with Events(f"{live.base}/queries/hot/results") as events:
        events.next("hello")
        with client(live) as other:      # gone by its deadline: so the feed's is over too
            other.sendall(HEAD)
            until_closed(other)
        sent = answer(live.engine, 1)
        assert events.next("result").id == sent


def test_a_head_without_end_is_refused(serve: Serve) -> None:
    live = serve(replace(QUICK, header_bytes=10_000))
    with client(live) as found:
        found.sendall(HEAD + b"X-Long: ")
        received = until_closed(found, b"x" * 1_000)
    head, _, body = received.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 431 ") and json.loads(body)["limit"] == 10_000


@pytest.mark.parametrize("more", [b"X-Long: " + b"x" * 10_000 + b"\r\n", b"X: 1\r\n" * 1_700])
@pytest.mark.parametrize("path", [b"/queries", b"/health/live", b"/events", b"/none?" + b"x" * 9_900])
def test_a_large_head_that_comes_whole_is_refused(serve: Serve, path: bytes, more: bytes) -> None:
    live = serve(replace(QUICK, header_bytes=10_000))
    with client(live) as found:
        found.sendall(b"GET " + path + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + more + b"\r\n")
        head, _, body = until_closed(found).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 431 ") and json.loads(body)["limit"] == 10_000


def test_connections_are_counted(serve: Serve) -> None:
    live = serve(replace(QUICK, connections=2))
    with client(live) as first, client(live), client(live) as third:
        received = until_closed(third)
        assert received.startswith(b"HTTP/1.1 503 ") and b"Retry-After: 2\r\n" in received and b"engine-overloaded" in received
        first.sendall(HEAD + b"\r\n")
        assert first.recv(1 << 16).startswith(b"HTTP/1.1 200 ")


# --- threads

class SlowEngine(FakeEngine):
    """Does nothing of what is slow until it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.go = threading.Event()
        self.begun = 0

    def wait(self) -> None:
        self.begun += 1
        assert self.go.wait(PATIENCE_SECONDS)

    def sparql(self, *given: Any, **named: Any) -> Any:
        self.wait()
        return super().sparql(*given, **named)

    def explain(self, *given: Any, **named: Any) -> Any:
        self.wait()
        return super().explain(*given, **named)

    def register(self, *given: Any, **named: Any) -> Any:
        self.wait()
        return super().register(*given, **named)

    def evidence(self, *given: Any) -> None:
        self.wait()
        super().evidence(*given)

    def put_graph(self, *given: Any, **named: Any) -> Any:
        self.wait()
        return super().put_graph(*given, **named)


TURTLE = {"Content-Type": "text/turtle"}
QUERY = {"Content-Type": "application/sparql-query"}
SLOW: dict[str, dict[str, Any]] = {
    "one-shot": {"method": "GET", "url": "/sparql?query=ASK{}"},
    "explain": {"method": "POST", "url": "/explain", "data": "ASK{}", "headers": QUERY},
    "registration": {"method": "POST", "url": "/queries", "data": "SELECT * WHERE { ?s ?p ?o }", "headers": QUERY},
    "graph": {"method": "PUT", "url": "/graphs?default", "data": "<http://a> <http://b> 1 .", "headers": TURTLE},
    "large graph": {"method": "PUT", "url": "/graphs?default", "data": "<http://a> <http://b> 1 ." + " " * 3_000, "headers": TURTLE},
    "proof": {"method": "GET", "url": "/queries/hot/results/x/why"}}


@contextmanager
def calls(live: Live, count: int, wanted: dict[str, Any]) -> Iterator[list[int]]:
    """Several such calls at once, under way; their statuses once they are through."""
    statuses: list[int] = []

    def call() -> None:
        statuses.append(requests.request(**{**wanted, "url": live.base + wanted["url"]}, timeout=PATIENCE_SECONDS).status_code)

    threads = [threading.Thread(target=call) for _ in range(count)]
    for thread in threads:
        thread.start()
    try:
        yield statuses
    finally:
        live.engine.go.set()  # type: ignore[attr-defined]
        for thread in threads:
            thread.join()


@pytest.mark.parametrize("slow", SLOW)
def test_sixteen_slow_calls_do_not_hold_up_the_rest(serve: Serve, slow: str) -> None:
    engine = SlowEngine()
    engine.go.set()
    live = serve(replace(QUICK, large_upload=2_000), engine)
    hot(engine)
    engine.go.clear()
    engine.begun = 0
    with calls(live, 16, SLOW[slow]):
        wait_until(lambda: engine.begun)
        for path in ("/queries", "/queries/hot", "/queries/hot/results", "/streams/temps", "/rules", "/info", "/"):
            assert requests.get(live.base + path, timeout=10).status_code == 200
        pushed = requests.post(f"{live.base}/streams/temps", data="<http://a> <http://b> 1 .", headers=TURTLE, timeout=10)
        assert pushed.status_code == 202
        assert not engine.go.is_set()


def test_what_waits_for_threads_is_bounded(serve: Serve) -> None:
    engine = SlowEngine()
    live = serve(replace(QUICK, one_shots_at_once=1, waiting_requests=2), engine)
    with calls(live, 3, SLOW["one-shot"]) as statuses:
        bridge = live.application._bridge
        assert bridge is not None
        wait_until(lambda: bridge.pools["one-shot"].busy == 3)
        refused = requests.get(f"{live.base}/sparql?query=ASK{{}}", timeout=10)
        assert (refused.status_code, slug(refused), refused.headers["Retry-After"]) == (503, "engine-overloaded", "2")
        assert (refused.json()["limit"], refused.json()["current"]) == (3, 3)
    assert statuses == [200, 200, 200]
    assert requests.get(f"{live.base}/sparql?query=ASK{{}}", timeout=10).status_code == 200


def test_a_body_is_large_by_what_it_is_decompressed(serve: Serve) -> None:
    engine = SlowEngine()
    live = serve(replace(QUICK, large_upload=2_000, large_uploads_at_once=1, waiting_requests=0), engine)
    engine.put_stream("temps", {})
    text = b"<http://a> <http://b> 1 ." + b" " * 3_000

    def push(body: bytes, **more: str) -> requests.Response:
        return requests.post(f"{live.base}/streams/temps", data=body, headers={**TURTLE, **more}, timeout=10)

    with calls(live, 1, SLOW["large graph"]):
        wait_until(lambda: engine.begun)
        assert slug(push(text)) == "engine-overloaded"
        small = gzip.compress(text)
        assert len(small) < 2_000 and slug(push(small, **{"Content-Encoding": "gzip"})) == "engine-overloaded"
        assert push(gzip.compress(text[:1_000]), **{"Content-Encoding": "gzip"}).status_code == 202
        assert slug(push(b"no gzip", **{"Content-Encoding": "gzip"})) == "bad-request"
    assert push(small, **{"Content-Encoding": "gzip"}).status_code == 202


# --- memory

def test_bodies_that_arrive_are_counted_together(serve: Serve) -> None:
    live = serve(replace(QUICK, spooled_bytes=10_000))
    live.engine.put_stream("temps", {})
    head = b"POST /streams/temps HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/turtle\r\nContent-Length: 9000\r\n\r\n"
    with client(live) as slow:
        slow.sendall(head + b" " * 8_000)
        bridge = live.application._bridge
        assert bridge is not None
        wait_until(lambda: bridge.spooled == 8_000)
        refused = requests.post(f"{live.base}/streams/temps", data=b" " * 4_000, headers=TURTLE, timeout=10)
        assert (refused.status_code, slug(refused), refused.json()["limit"]) == (503, "engine-overloaded", 10_000)
    wait_until(lambda: bridge.spooled == 0)
    taken = requests.post(f"{live.base}/streams/temps", data=b"<http://a> <http://b> 1 ." + b" " * 4_000, headers=TURTLE, timeout=10)
    assert taken.status_code == 202


LARGE = rows(s=[f"<http://ex.org/{'x' * 1000}>"] * 4_000, t=['"1"'] * 4_000)


@pytest.mark.parametrize("accept", ["text/event-stream", "application/sparql-results+json"])
def test_a_client_that_takes_nothing_is_cut_off_in_feeds_and_documents(serve: Serve, accept: str) -> None:
    live = serve(replace(QUICK, send_seconds=0.2))
    hot(live.engine)
    live.engine.answer("hot", LARGE)
    with client(live, 4_096) as slow:
        slow.sendall(b"GET /queries/hot/results HTTP/1.1\r\nHost: localhost\r\nAccept: " + accept.encode() + b"\r\n\r\n")
        outbox = live.application._hub.outbox if live.application._hub else None
        assert outbox is not None
        wait_until(lambda: outbox.cut_off == 1)
        wait_until(lambda: outbox.pending == 0)
        assert len(until_closed(slow)) < 4_000_000
    wait_until(lambda: live.application.exchange.total == 0)


@pytest.mark.parametrize("accept", ["text/event-stream", "application/sparql-results+json"])
def test_the_slowest_are_cut_off_where_too_much_waits(serve: Serve, accept: str) -> None:
    live = serve(replace(QUICK, pending_bytes=9_000_000))
    hot(live.engine)
    live.engine.answer("hot", LARGE)      # about 4 MB
    hub = live.application._hub
    assert hub is not None
    request = b"GET /queries/hot/results HTTP/1.1\r\nHost: localhost\r\nAccept: " + accept.encode() + b"\r\n\r\n"
    with client(live, 4_096) as first, client(live, 4_096) as second, client(live, 4_096) as third:
        for number, slow in enumerate((first, second), 1):
            slow.sendall(request)
            wait_until(lambda: len(hub.outbox._sending) == number)
        assert 4_000_000 < hub.outbox.pending < 9_000_000 and hub.outbox.cut_off == 0
        third.sendall(request)
        wait_until(lambda: hub.outbox.cut_off == 1)
        assert len(until_closed(first)) < 4_000_000
        quick = requests.get(f"{live.base}/queries/hot/results", headers={"Accept": "text/csv"}, timeout=PATIENCE_SECONDS)
        assert len(quick.content) > 4_000_000
    wait_until(lambda: hub.outbox.pending == 0)


def test_what_clients_share_counts_once(serve: Serve) -> None:
    live = serve(replace(QUICK, pending_bytes=9_000_000))
    hot(live.engine)
    hub = live.application._hub
    assert hub is not None
    request = b"GET /queries/hot/results?snapshot=false HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n"
    with client(live, 4_096) as first, client(live, 4_096) as second, client(live, 4_096) as third:
        for slow in (first, second, third):
            slow.sendall(request)
        wait_until(lambda: live.application.exchange.subscribers("hot") == 3)
        live.engine.answer("hot", LARGE)
        wait_until(lambda: len(hub.outbox._sending) == 3)
        assert hub.outbox.pending < 9_000_000 and hub.outbox.cut_off == 0


def test_what_feeds_have_not_been_told_is_bounded_and_nothing_is_lost() -> None:
    engine = FakeEngine()
    hot(engine)
    exchange = Exchange(engine, replace(QUICK, notices_waiting=3, notices_bytes=1_000))
    engine.subscribe(exchange._notices.put)
    feed = Feed(exchange, "hot", Options(), lambda: None)
    feed.open(0)
    ids = [answer(engine, number) for number in range(50)]
    engine.patch_query("hot", "paused")
    assert len(exchange._notices) <= 3 + 5      # one of each kind beyond the bound
    exchange.start()
    try:
        wait_until(lambda: feed.channel.newest == 50 and feed.channel.statuses)
        sent = feed.poll(0.0, blocking=True) or []
        sent += feed.poll(0.0, blocking=True) or []
        assert [frame.id for frame in sent if frame.event == "result"] == ids
        assert [frame.event for frame in sent if frame.event not in ("result", "status")] == []
    finally:
        exchange.stop()


def test_results_of_a_new_epoch_that_were_left_out_are_read_from_the_log() -> None:
    engine = FakeEngine()
    hot(engine)
    exchange = Exchange(engine, replace(QUICK, notices_waiting=0))
    engine.subscribe(exchange._notices.put)
    feed = Feed(exchange, "hot", Options(), lambda: None)
    answer(engine, 1)
    engine.restart_query("hot", reset=True)
    last = answer(engine, 2)
    exchange.start()
    try:
        wait_until(lambda: feed.channel.epoch == "q1c2" and feed.channel.newest == 1)
        entries = feed.channel.after("q1c2", 0)
        assert entries is not None and [entry.event.id for entry in entries] == [last]
    finally:
        exchange.stop()


def test_with_rate_only_the_latest_result_is_held() -> None:
    engine = FakeEngine()
    hot(engine)
    exchange = Exchange(engine, QUICK)
    feed = Feed(exchange, "hot", Options(rate_ms=60_000), lambda: None)
    feed.open(0)
    for number in range(20):
        answer(engine, number)
        feed.channel.catch_up()
        feed.poll(0.0, blocking=True)
    assert isinstance(feed._rated, Entry) and feed._rated.event.seq == 20
    sent = feed.poll(60.0, blocking=True) or []
    assert [(frame.event, frame.id) for frame in sent] == [("gap", None), ("result", feed._id(20))]
    assert b'"dropped":18' in sent[0].data


def test_a_client_behind_takes_pages_of_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = FakeEngine()
    hot(engine)
    for limits in (replace(QUICK, page_bytes=20_000), replace(QUICK, page_bytes=20_000, ring_events=1)):
        exchange = Exchange(engine, limits)
        feed = Feed(exchange, "hot", Options(since="earliest"), lambda: None)
        feed.open(0)
        before = feed._seq
        for number in range(20):
            engine.answer("hot", rows(s=[f'"{"x" * 9_000}"'], t=['"1"']))
        feed.channel.catch_up()
        first = feed.poll(0.0, blocking=True) or []
        assert 1 <= len(first) <= 2 and feed._seq - before == len(first)
        pages = 1
        while (feed.poll(0.0, blocking=True) or []):
            pages += 1
        assert pages >= 10 and feed._seq == feed.channel.newest
        feed.close()


def _live_feed(engine: FakeEngine, limits: Limits) -> Feed:
    """A feed that has had all there is at the time 0."""
    feed = Feed(Exchange(engine, limits), "hot", Options(), lambda: None)
    feed.open(0)
    assert feed.poll(0.0, blocking=True) == []
    return feed


def test_many_results_at_once_make_no_client_slow() -> None:
    engine = FakeEngine()
    hot(engine)
    feed = _live_feed(engine, replace(QUICK, ring_events=4, slow_seconds=10.0))
    ids = [answer(engine, number) for number in range(300)]
    feed.channel.catch_up()
    sent = [frame for page in range(10) for frame in feed.poll(5.0 + page * 9.0, blocking=True) or []]
    assert [frame.id for frame in sent if frame.event == "result"] == ids
    assert "gap" not in [frame.event for frame in sent]


def test_a_client_that_comes_no_nearer_is_told_of_the_gap() -> None:
    engine = FakeEngine()
    hot(engine)
    feed = _live_feed(engine, replace(QUICK, ring_events=4, slow_seconds=10.0))
    for at in (5.0, 9.0, 14.0, 21.0):
        last = [answer(engine, number) for number in range(100)][-1]
        feed.channel.catch_up()
        sent = feed.poll(at, blocking=True) or []
        if sent[0].event == "gap":
            break
    assert at == 21.0 and b'"reason":"slow-consumer"' in sent[0].data and sent[1].id == last


def test_rings_are_bounded_with_the_bytes_that_are_made_of_results() -> None:
    engine = FakeEngine()
    hot(engine)
    exchange = Exchange(engine, replace(QUICK, ring_bytes=100_000))
    feeds = [Feed(exchange, "hot", Options(mode=mode, graph_format=form), lambda: None)
             for mode in ("full", "delta") for form in ("jsonld", "trig", "nquads")]
    channel = feeds[0].channel
    for _ in range(20):
        engine.answer("hot", rows(s=[f'"{"x" * 9_000}"'], t=['"1"']))
        channel.catch_up()
    assert channel.size == sum(entry.size for entry in channel._ring) <= 100_000
    assert 1 <= len(channel._ring) <= 3     # each is written in six ways
    small = Exchange(engine, replace(QUICK, rings_bytes=50_000))
    other = Feed(small, "hot", Options(), lambda: None).channel
    for _ in range(20):
        engine.answer("hot", rows(s=[f'"{"x" * 9_000}"'], t=['"1"']))
        other.catch_up()
        small._make_room()
    assert other.size <= 50_000


# --- parsing

ONE = "<http://ex.org/s> <http://ex.org/p> <http://ex.org/{}> .\n"
GRAPH = "<http://ex.org/g> { <http://ex.org/s> <http://ex.org/p> <http://ex.org/{}> . }\n"


@pytest.mark.parametrize(("media", "line"), [
    ("text/turtle", ONE), ("application/n-triples", ONE), ("application/trig", GRAPH),
    ("application/n-quads", "<http://ex.org/s> <http://ex.org/p> <http://ex.org/{}> <http://ex.org/g> .\n")])
@pytest.mark.parametrize("skip", [False, True])
def test_reading_an_item_stops_at_the_cap(media: str, line: str, skip: bool) -> None:
    limits = replace(QUICK, item_triples=10)
    body = "".join(line.replace("{}", str(number)) for number in range(1_000)) + ("" if skip else "this is no RDF")
    reader = Reader(skip=skip, limits=limits)
    if skip:
        reading = read_items(body.encode(), media, reader)
        assert [problem.slug for problem in reading.problems] == ["too-many-triples"] and not reading.items
        return
    with pytest.raises(Problem) as refused:     # what is wrong behind the cap is not seen
        read_items(body.encode(), media, reader)
    assert (refused.value.slug, refused.value.extra["limit"]) == ("too-many-triples", 10)


@pytest.mark.parametrize(("media", "line"), [
    ("application/n-quads", "<http://a> <http://b> <http://c> <http://g{}> .\n"),
    ("application/trig", "<http://g{}> { <http://a> <http://b> 1 }\n"),
    ("text/x-timed-ntriples", "{}\t<http://a> <http://b> <http://c> .\n"), ("application/jsonl", '{{"@id":"http://a/{}","http://b":1}}\n'),
    ("application/n-quads", "\n"), ("application/jsonl", "\r")])
@pytest.mark.parametrize("skip", [False, True])
def test_reading_a_push_stops_at_the_cap(media: str, line: str, skip: bool) -> None:
    body = "".join(line.replace("{}", str(number)).replace("{{", "{").replace("}}", "}") for number in range(2_000)).encode()
    reader = Reader(skip=skip, limits=replace(QUICK, push_triples=1_000))
    with pytest.raises(Problem) as refused:
        read_columns(body * 40, media, reader)
        read_items(body, media, reader)
    assert (refused.value.slug, refused.value.extra["limit"]) == ("too-many-triples", 1_000)


def test_reading_a_graph_stops_at_the_cap() -> None:
    body = "".join(ONE.replace("{}", str(number)) for number in range(100)) + "this is no RDF"
    with pytest.raises(Problem) as refused:
        read_graph(body.encode(), "text/turtle", replace(QUICK, graph_triples=10))
    assert (refused.value.slug, refused.value.extra["limit"]) == ("too-many-triples", 10)


def test_more_bad_items_than_can_be_told_are_refused() -> None:
    body = b"no triple\n" * 100
    assert len(read_items(body, "application/n-quads", Reader(skip=True)).problems) == 100
    with pytest.raises(Problem) as refused:
        read_items(body, "application/n-quads", Reader(skip=True, limits=replace(QUICK, push_errors=99)))
    assert (refused.value.slug, refused.value.extra["limit"]) == ("quota-errors", 99)

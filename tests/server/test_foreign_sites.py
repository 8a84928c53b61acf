"""Requests of pages of other sites: every route and method refuses them; what ``--allow-origin`` names may read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import requests
from flask.testing import FlaskClient

from server import guard
from server.app import create_app
from server.web import Site
from tests.server.conftest import Live, problem
from tests.server.fake_engine import FakeEngine
from tests.server.sse import Events
from tests.server.test_feed import answer, hot
from tests.server.test_routes import ROUTES

BOARD = "https://board.example.org"
CROSS = {"Sec-Fetch-Site": "cross-site"}
# What pages of other sites can make a browser send, by the way they do it.
FOREIGN = {
    "fetch": {**CROSS, "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty", "Origin": "https://evil.example"},
    "image": {**CROSS, "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"},
    "script": {**CROSS, "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "script"},
    "frame": {**CROSS, "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"},
    "another port": {"Sec-Fetch-Site": "same-site", "Origin": "http://localhost:3000"},
    "a claim to be ours": {**CROSS, "Origin": "http://localhost"},
    "an old browser": {"Origin": "http://evil.example"},
    "a file": {"Origin": "null"},
    "another scheme": {"Origin": "https://localhost"},
    "no origin": {"Origin": "http://["},
}
LINK = {**CROSS, "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document", "Accept": "text/html,*/*;q=0.8"}
OWN: tuple[dict[str, str], ...] = ({}, {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"}, {"Origin": "http://localhost"},
                                   {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"})
PAGES = ("/", "/queries/none/results", "/problems/none")
NATIVE = (("/queries/hot/results", "text/event-stream"), ("/queries/hot/results", "application/jsonl"), ("/events", "text/event-stream"),
          ("/streams/temps/items", "text/event-stream"), ("/health/live", "*/*"), ("/health/ready", "*/*"))


@pytest.mark.parametrize(("path", "methods"), ROUTES)
def test_reads_and_writes_of_foreign_pages_are_refused(client: FlaskClient, path: str, methods: set[str]) -> None:
    for method in sorted(methods):
        for headers in FOREIGN.values():
            refused = client.open(path, method=method, headers=headers)
            if method == "HEAD":
                assert refused.status_code == 403
            else:
                problem(refused, 403, "cross-site-request")


@pytest.mark.parametrize(("path", "methods"), ROUTES)
def test_links_lead_to_pages_only(client: FlaskClient, path: str, methods: set[str]) -> None:
    for method in sorted(methods - {"OPTIONS"}):
        followed = client.open(path, method=method, headers=LINK)
        assert (followed.status_code == 403) == (path not in PAGES or method not in ("GET", "HEAD"))


@pytest.mark.parametrize(("path", "methods"), ROUTES)
def test_own_pages_and_other_programs_are_not_asked_where_they_come_from(client: FlaskClient, path: str, methods: set[str]) -> None:
    for method in sorted(methods):
        statuses = {client.open(path, method=method, headers=headers).status_code for headers in OWN}
        assert 403 not in statuses and (len(statuses) == 1 or method == "PUT")


@pytest.mark.parametrize(("base_url", "host", "status"), [
    ("http://localhost", "localhost", 403), ("https://localhost", "localhost", 200), ("http://localhost", "rsp.example", 200)])
def test_https_is_the_servers_own_where_its_name_says_so_or_a_proxy_may_end_it(engine: FakeEngine, base_url: str, host: str,
                                                                               status: int) -> None:
    client = create_app(engine, Site(engine, hosts=frozenset({"localhost", "rsp.example"}), base_url=base_url)).test_client()
    for scheme, wanted in (("https", status), ("http", 200)):
        assert client.get("/streams", headers={"Host": host, "Origin": f"{scheme}://{host}"}).status_code == wanted


def test_a_link_to_a_query_of_another_site_is_refused_and_one_to_the_console_is_followed(client: FlaskClient) -> None:
    refused = client.get("/sparql?query=ASK{}", headers=LINK)
    assert refused.status_code == 403
    assert client.get("/sparql?query=ASK{}").status_code == 200
    assert client.get("/", headers=LINK).content_type.startswith("text/html")


@pytest.mark.parametrize(("path", "accept"), NATIVE)
def test_feeds_of_foreign_pages_are_refused(live: Live, path: str, accept: str) -> None:
    hot(live.engine)
    for headers in (*FOREIGN.values(), LINK):
        refused = requests.get(live.base + path, headers={**headers, "Accept": accept}, timeout=10)
        assert refused.status_code == 403
        assert "access-control-allow-origin" not in refused.headers
    assert live.application.exchange.total == 0


# --- origins that may read

@pytest.fixture
def shared(serve: Callable[..., Live]) -> Live:
    """A server whose results a board shows."""
    found = serve(origins=frozenset({BOARD}))
    hot(found.engine)
    return found


def board(**more: str) -> dict[str, str]:
    return {**FOREIGN["fetch"], "Origin": BOARD, **more}


def check_cors(headers: Any, origin: str = BOARD) -> None:
    assert headers["Access-Control-Allow-Origin"] == origin
    assert "Origin" in ", ".join(value for name, value in headers.items() if name.lower() == "vary")
    assert {"ETag", "RSP-Event-Id", "RSP-Last-Event-ID", "Retry-After"} <= set(headers["Access-Control-Expose-Headers"].split(", "))


@pytest.mark.parametrize(("path", "accept", "status"), [
    *((path, accept, 200) for path, accept in NATIVE),
    ("/queries", "*/*", 200), ("/queries/hot/results", "text/csv", 200), ("/queries/none", "*/*", 404),
    ("/queries/none/results", "text/event-stream", 404), ("/events?x=1", "text/event-stream", 400), ("/", "text/html", 200)])
def test_pages_of_an_allowed_origin_read_answers_feeds_and_errors(shared: Live, path: str, accept: str, status: int) -> None:
    answer(shared.engine, 1)
    with requests.get(shared.base + path, headers=board(Accept=accept), timeout=10, stream=True) as found:
        assert found.status_code == status
        check_cors(found.headers)
        assert found.headers["Access-Control-Allow-Origin"].count(BOARD) == 1
    for headers in (FOREIGN["fetch"], FOREIGN["image"], board(Origin=BOARD.upper()), board(Origin=BOARD + ":8443")):
        refused = requests.get(shared.base + path, headers={**headers, "Accept": accept}, timeout=10)
        assert refused.status_code == 403
        assert "Origin" in refused.headers["Vary"] and "Access-Control-Allow-Origin" not in refused.headers


def test_an_allowed_origin_follows_a_feed_and_comes_back_to_its_place(shared: Live) -> None:
    answer(shared.engine, 1)
    with Events(f"{shared.base}/queries/hot/results", **board()) as events:
        events.next("hello")
        place = events.next("snapshot").id or ""
    answer(shared.engine, 2)
    with Events(f"{shared.base}/queries/hot/results", **board(Last_Event_ID=place)) as events:
        check_cors(events.response.headers)
        assert events.next("hello").data["resumed"] and events.next("result").data["rsp"]["seq"] == 2


@pytest.mark.parametrize("path", ["/queries/hot/results", "/events", "/sparql", "/health/ready", "/nothing"])
def test_preflights_of_an_allowed_origin_are_answered(shared: Live, path: str) -> None:
    asked = board(**{"Access-Control-Request-Method": "GET", "Access-Control-Request-Headers": "last-event-id"})
    found = requests.options(shared.base + path, headers=asked, timeout=10)
    assert (found.status_code, found.content) == (204, b"")
    check_cors(found.headers)
    assert found.headers["Access-Control-Allow-Methods"] == "GET, HEAD"
    assert "Last-Event-ID" in found.headers["Access-Control-Allow-Headers"]
    for wrong in ({"Origin": "https://evil.example"}, {"Access-Control-Request-Method": "PUT"}, {"Host": "evil.example"}):
        refused = requests.options(shared.base + path, headers={**asked, **wrong}, timeout=10)
        assert refused.status_code in (403, 421) and "Access-Control-Allow-Methods" not in refused.headers


def test_an_allowed_origin_cannot_write(shared: Live) -> None:
    for method, path in (("DELETE", "/queries/hot"), ("PUT", "/streams/x"), ("POST", "/sparql"), ("POST", "/explain")):
        refused = requests.request(method, shared.base + path, headers=board(), timeout=10)
        assert refused.status_code == 403
        check_cors(refused.headers)
    assert [info.name for info in shared.engine.queries()] == ["hot"]


def test_what_flask_answers_allowed_origins_may_read(engine: FakeEngine) -> None:
    client = create_app(engine, Site(engine, origins=frozenset({BOARD}))).test_client()
    for path, status in (("/queries", 200), ("/queries/none", 404)):
        found = client.get(path, headers=board())
        assert found.status_code == status
        check_cors(found.headers)


def test_without_the_option_no_origin_is_told_anything(live: Live) -> None:
    hot(live.engine)
    for path, accept in NATIVE:
        with requests.get(live.base + path, headers={"Accept": accept, "Origin": live.base}, timeout=10, stream=True) as found:
            assert found.status_code == 200
            assert not [name for name in found.headers if name.lower().startswith("access-control-")]
    asked = requests.options(f"{live.base}/queries", headers={**board(), "Access-Control-Request-Method": "GET"}, timeout=10)
    assert asked.status_code == 403


@pytest.mark.parametrize(("given", "origin"), [
    ("https://board.example.org", BOARD), ("HTTPS://Board.Example.ORG/", BOARD), ("https://board.example.org:443", BOARD),
    ("http://localhost:3000", "http://localhost:3000"), ("http://[::1]:3000", "http://[::1]:3000"), ("http://a:80", "http://a")])
def test_origins_are_written_as_browsers_do(given: str, origin: str) -> None:
    assert guard.origin_of(given) == origin


@pytest.mark.parametrize("given", ["*", "null", "", "board.example.org", "https://*.example.org", "https://a/path", "file://",
                                   "https://a b", "https://a,https://b", "https://a\r\nx: y"])
def test_anything_but_one_origin_is_refused(given: str) -> None:
    with pytest.raises(ValueError, match="not an origin"):
        guard.origin_of(given)

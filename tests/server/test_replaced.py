"""Replacing, resetting, and registering again under a name: whoever follows or asks meanwhile never hears that there is no query."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from engine.runtime.service import Engine
from server.app import create_app
from server.feeds.exchange import Exchange
from server.feeds.feed import Feed
from server.feeds.frames import Frame
from server.feeds.options import Options
from tests.unit.runtime.test_catalogue import Unsettled
from tests.unit.runtime.test_engine import EVENTS, NOW, TEXT, item

OTHER = TEXT.replace("2s", "3s")
READS = ("", "/results", "/plan", "/plan?level=spark", "/stats")
BODY = {"content_type": "application/sparql-query"}


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Unsettled]:
    """A query with a result."""
    with Unsettled(tmp_path) as found:
        found.engine.put_stream("s", EVENTS)
        found.engine.register(TEXT)
        found.engine.push("s", [item(NOW + 100), item(NOW + 1_100)])
        found.ticks(1)
        yield found
        found.backend.fed.set()


@pytest.fixture
def client(running: Unsettled) -> FlaskClient:
    return create_app(running.engine).test_client()


@pytest.fixture
def engine(running: Unsettled) -> Engine:
    return running.engine


class Client:
    """One feed of ``q``: `frames` has the names of all that it was told."""

    def __init__(self, exchange: Exchange, last: str | None = None) -> None:
        self._news = threading.Event()
        self.feed = Feed(exchange, "q", Options(last_event_id=last), self._news.set)
        self.frames = names(self.feed.open(NOW))

    def until(self, *wanted: str) -> None:
        """Go on until something of this name comes."""
        while not set(wanted) & set(self.frames):
            self._news.clear()
            found = names(self.feed.poll(0, True))
            self.frames += found
            assert found or self._news.wait(10), self.frames


def names(frames: list[Frame] | None) -> list[str]:
    return [frame.event for frame in frames or []]


def statuses(client: FlaskClient) -> set[int]:
    return {client.get(f"/queries/q{path}").status_code for path in READS}


@pytest.mark.parametrize("change", ["replace", "reset", "again"])
def test_a_query_that_is_replaced_is_there_all_the_time(running: Unsettled, client: FlaskClient, exchange: Exchange, change: str) -> None:
    old = Client(exchange)
    epoch = {"replace": "q1c2", "reset": "q1c2", "again": "q2c1"}[change]
    running.catch_up()
    running.backend.fed.clear()     # the pump stands still in the middle of it
    if change == "again":
        assert client.delete("/queries/q").status_code == 204
        assert {client.get(f"/queries/q{path}").status_code for path in READS} == {410}
        assert client.put("/queries/q", data=OTHER, **BODY).status_code == 201
    elif change == "reset":
        assert client.post("/queries/q/restart?reset=true").status_code == 202
    else:
        assert client.put("/queries/q?replace=true", data=OTHER, **BODY).status_code == 201
    assert statuses(client) == {200}
    assert client.get("/queries/q").get_json()["state"] == "starting" and client.get("/queries/q").get_json()["epoch"] == epoch
    results = client.get("/queries/q/results")
    assert results.headers["RSP-Event-Id"] == "none" and results.get_json()["results"]["bindings"] == []
    early = Client(exchange, "q1c1-1")      # an EventSource that came back just now
    assert early.frames == ["hello", "gap"] and early.feed.position == "none" and early.feed.poll(0, True) == []
    early.frames.clear()
    running.catch_up()
    assert statuses(client) == {200}
    running.engine.push("s", [item(NOW + 2_500), item(NOW + 3_500)])
    running.until(lambda: any(event.epoch == epoch for event in running.results()))
    early.until("result")
    assert not {"gap", "bye"} & set(early.frames) and early.feed.position.startswith(f"{epoch}-")
    old.until("gap", "bye")
    assert old.frames[-1] == "bye" if change == "again" else "gap" in old.frames and not old.feed.done
    for one in (old, early):
        one.feed.close()


@pytest.mark.parametrize("order", ["removal first", "result first"])
def test_a_feed_does_not_go_over_to_another_query_of_its_name_unsaid(running: Unsettled, client: FlaskClient, exchange: Exchange,
                                                                     order: str) -> None:
    """Removed, registered again and answered within one batch: the results of a batch are told before its other notices."""
    old = Client(exchange)
    running.catch_up()
    running.backend.fed.clear()
    assert client.delete("/queries/q").status_code == 204
    assert client.put("/queries/q", data=OTHER, **BODY).status_code == 201
    running.engine.push("s", [item(NOW + 2_500), item(NOW + 3_500)])
    if order == "result first":
        old.feed.channel.begin("q2c1")
    running.catch_up()
    running.until(lambda: any(event.epoch == "q2c1" for event in running.results()))
    old.until("gap", "bye")
    assert not {"snapshot", "result"} & set(old.frames[2:old.frames.index("gap" if "gap" in old.frames else "bye")])
    old.feed.close()


def test_a_version_is_the_same_before_and_after_the_pump_comes_to_it(running: Unsettled, client: FlaskClient) -> None:
    running.catch_up()
    running.backend.fed.clear()
    made = client.put("/queries/q?replace=true", data=OTHER, **BODY)
    assert made.get_json()["state"] == "starting"
    running.catch_up()
    assert client.get("/queries/q").headers["ETag"] == made.headers["ETag"]
    paused = client.patch("/queries/q", json={"state": "paused"}, headers={"If-Match": made.headers["ETag"]})
    assert paused.status_code == 200 and paused.headers["ETag"] != made.headers["ETag"]
    assert client.delete("/queries/q", headers={"If-Match": made.headers["ETag"]}).status_code == 412
    assert client.delete("/queries/q", headers={"If-Match": paused.headers["ETag"]}).status_code == 204

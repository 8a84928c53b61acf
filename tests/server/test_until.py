"""``until`` on streams that are stamped by the server: it is over when the clock is past it, whether anything comes or not."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.runtime.service import Engine
from server.feeds.exchange import Exchange
from server.feeds.feed import Feed
from server.feeds.options import Options
from tests.clocks import ManualClock
from tests.unit.runtime.test_derived import HOT, READER
from tests.unit.runtime.test_engine import NOW, TEXT, Running, item
from tests.waiting import DEADLINE_S


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    with Running(tmp_path) as found:
        found.engine.put_stream("s", {"iri": "http://ex.org/s"})
        yield found


@pytest.fixture
def engine(running: Running) -> Engine:
    return running.engine


class Client:
    """The frames of a feed that has an end."""

    def __init__(self, exchange: Exchange, clock: ManualClock, name: str, until_ms: int) -> None:
        self._clock = clock
        self._news = threading.Event()
        self.feed = Feed(exchange, name, Options(until_ms=until_ms), self._news.set)
        self.frames = self.feed.open(NOW)

    def rest(self) -> list[str]:
        until = time.monotonic() + DEADLINE_S
        while not self.feed.done:
            self._news.clear()
            self.frames += self.feed.poll(0, True) or []
            assert time.monotonic() < until, [frame.event for frame in self.frames]
            if not self.feed.done and not self._news.wait(0.2):
                self._clock.advance(10_000)
        self.feed.close()
        return [frame.event for frame in self.frames if frame.event not in ("status", "progress")]


@pytest.mark.parametrize("text", [TEXT, TEXT.replace("q AS", "q REPORT ON CHANGE AS")])
@pytest.mark.parametrize("items", [0, 1])
def test_silence_ends_a_feed(running: Running, exchange: Exchange, text: str, items: int) -> None:
    running.engine.register(text)
    client = Client(exchange, running.clock, "q", NOW + 20_000)
    if items:
        running.engine.push("s", [item(None)])
        running.clock.advance(5_000)
        running.until(lambda: len(running.results()) > 0)
    running.clock.advance(14_999)
    client.frames += client.feed.poll(0, True) or []
    assert not client.feed.done
    running.clock.advance(10_000)
    found = client.rest()
    assert found[0] == "hello" and found[-1] == "bye" and ("result" in found) == bool(items)
    assert not running.engine._machine.timer._asked, "nobody asks any more"


def test_silence_ends_a_feed_of_what_a_query_makes(running: Running, exchange: Exchange) -> None:
    for text in (HOT, READER):
        running.engine.register(text)
    client = Client(exchange, running.clock, "reader", NOW + 20_000)
    running.clock.advance(30_000)
    assert client.rest() == ["hello", "bye"]


def test_a_time_that_is_over_ends_a_feed_at_once(running: Running, exchange: Exchange) -> None:
    running.engine.register(TEXT)
    assert Client(exchange, running.clock, "q", NOW - 1_000).rest() == ["hello", "bye"]

"""When a feed's connection sends what, by a clock that is moved by hand."""

from __future__ import annotations

from typing import cast

import pytest

from server.feeds.driver import AnyFeed, Driver
from server.feeds.frames import Frame, bye, message
from server.formats.media import JSONL, SSE
from server.limits import Limits

LIMITS = Limits(heartbeat_seconds=15, feed_seconds=100, feed_seconds_spread=0, retry_ms=3_000)


class Still:
    """A feed of which nothing is heard; due at `soon` if that is set."""

    position = "q1c1-7"

    def __init__(self, fails: bool = False) -> None:
        self.done = self.closed = False
        self.soon: float | None = None
        self.told: list[Frame] = []
        self._fails = fails

    def open(self, now_ms: int) -> list[Frame]:
        if self._fails:
            raise ValueError("no such query")
        return [message("hello")]

    def close(self) -> None:
        self.closed = True

    def due_in(self, now_s: float) -> float | None:
        return self.soon

    def progress(self) -> list[Frame]:
        return self.told

    def end(self, reason: str, reconnect: bool) -> list[Frame]:
        self.done = True
        return [bye(reason, reconnect)]


def begun(media: str = SSE) -> tuple[Still, Driver]:
    feed = Still()
    driver = Driver(cast(AnyFeed, feed), media, LIMITS)
    first = b"".join(driver.opening(0.0))
    assert first.startswith(b"retry: 3000\n") == (media == SSE) and b"hello" in first
    return feed, driver


@pytest.mark.parametrize(("media", "beat"), [(SSE, b": hb\n\n"), (JSONL, b"\n")])
def test_a_sign_of_life_after_a_silence(media: str, beat: bytes) -> None:
    feed, driver = begun(media)
    assert b"".join(driver.news([], 14.0)) == b"" and driver.patience(14.0) == 1.0
    assert b"".join(driver.news([], 15.0)) == beat and driver.patience(15.0) == 15.0
    feed.told = [message("progress")]
    assert b"progress" in b"".join(driver.news([], 30.0))


def test_news_put_the_sign_of_life_off() -> None:
    feed, driver = begun()
    assert b"event: result" in b"".join(driver.news([message("result")], 10.0))
    assert b"".join(driver.news([], 20.0)) == b"" and driver.patience(20.0) == 5.0
    feed.soon = 0.0
    assert driver.patience(20.0) == 0.0


@pytest.mark.parametrize(("now", "closing", "reason"), [(100.0, False, b"rotate"), (1.0, True, b"shutdown")])
def test_a_goodbye_comes_after_the_news(now: float, closing: bool, reason: bytes) -> None:
    feed, driver = begun()
    sent = b"".join(driver.news([message("result")], now, closing))
    assert sent.index(b"result") < sent.index(b"bye") and reason in sent and feed.done
    assert b"bye" not in b"".join(driver.news([message("result")], now, closing))


def test_a_feed_that_cannot_be_opened_is_closed() -> None:
    feed = Still(fails=True)
    with pytest.raises(ValueError, match="no such query"):
        Driver(cast(AnyFeed, feed), SSE, LIMITS)
    assert feed.closed


def test_the_headers_say_where_the_feed_begins() -> None:
    assert begun()[1].headers["RSP-Last-Event-ID"] == "q1c1-7"

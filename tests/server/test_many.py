"""Feeds of many queries: each looks at those that have news, and at all that they have."""

from __future__ import annotations

import time

import pytest

from server.feeds.exchange import Exchange
from server.feeds.driver import ManyFeeds
from server.feeds.options import Options
from tests.server.conftest import TEXT
from tests.server.fake_engine import FakeEngine, rows
from tests.waiting import wait_until

NAMES = ("hot", "cold", "mild")


@pytest.fixture
def engine() -> FakeEngine:
    made = FakeEngine()
    made.put_stream("temps", {"iri": "http://ex.org/temps"})
    for name in NAMES:
        made.register(TEXT.replace("hot", name), name)
    return made


def polled(feed: ManyFeeds, now: float) -> list[tuple[str, str | None]]:
    """What a host sends until it would fall asleep."""
    found: list[tuple[str, str | None]] = []
    while True:
        frames = feed.poll(now, blocking=False)
        frames = feed.poll(now, blocking=True) if frames is None else frames
        found += [(frame.event, frame.id) for frame in frames or [] if frame.event != "progress"]
        if not frames and feed.due_in(now) != 0:
            return found


def places(engine: FakeEngine, **ids: str) -> str:
    """The id of a feed of all queries; those without one have had no result."""
    return ",".join(f"{name}:{ids.get(name) or engine.query(name).epoch + '-0'}" for name in NAMES)


def caught_up(exchange: Exchange, name: str, newest: int) -> None:
    wait_until(lambda: exchange._channels[name].newest >= newest, 10)


def test_a_client_far_behind_comes_to_what_is_not_empty(engine: FakeEngine, exchange: Exchange) -> None:
    first = engine.answer("hot", rows(s=["<http://ex.org/0>"], t=['"0"'])).id
    for _ in range(150):
        engine.answer("hot", rows(s=[], t=[]))
    last = engine.answer("hot", rows(s=["<http://ex.org/1>"], t=['"1"'])).id
    feed = ManyFeeds(exchange, NAMES, Options(keep_empty=False, last_event_id=f"hot:{first}"), lambda: None)
    feed.open(0)
    assert polled(feed, time.monotonic()) == [("result", places(engine, hot=last))]
    feed.close()


def test_only_queries_with_news_are_looked_at(engine: FakeEngine, exchange: Exchange) -> None:
    rung = list[None]()
    feed = ManyFeeds(exchange, NAMES, Options(snapshot=False), lambda: rung.append(None))
    feed.open(0)
    assert polled(feed, time.monotonic()) == []
    looked = list[str]()
    for name, one in feed._feeds.items():
        poll = one.poll
        one.poll = lambda now, blocking, name=name, poll=poll: (looked.append(name), poll(now, blocking))[1]  # type: ignore
    assert polled(feed, time.monotonic()) == [] and looked == []
    rung.clear()
    first = engine.answer("cold", rows(s=["<http://ex.org/0>"], t=['"0"'])).id
    caught_up(exchange, "cold", 1)
    wait_until(lambda: bool(rung), 10)
    assert polled(feed, time.monotonic()) == [("result", places(engine, cold=first))] and set(looked) == {"cold"}
    second = engine.answer("mild", rows(s=["<http://ex.org/1>"], t=['"1"'])).id
    caught_up(exchange, "mild", 1)
    wait_until(lambda: bool(feed._news), 10)
    assert polled(feed, time.monotonic()) == [("result", places(engine, cold=first, mild=second))] and set(looked) == {"cold", "mild"}
    feed.close()


def test_what_rate_holds_back_comes_without_news(engine: FakeEngine, exchange: Exchange) -> None:
    feed = ManyFeeds(exchange, NAMES, Options(snapshot=False, rate_ms=1_000), lambda: None)
    feed.open(0)
    now = time.monotonic()
    assert polled(feed, now) == []
    for number in range(3):
        engine.answer("hot", rows(s=[f"<http://ex.org/{number}>"], t=['"0"']))
        caught_up(exchange, "hot", number + 1)
        wait_until(lambda: bool(feed._news), 10)
        found = polled(feed, now)
        assert len(found) == (1 if number == 0 else 0)
    assert feed.due_in(now) == pytest.approx(1.0)
    assert [event for event, _ in polled(feed, now + 1.0)] == ["gap", "result"]
    feed.close()


def test_whoever_comes_back_after_any_event_misses_none(engine: FakeEngine, exchange: Exchange) -> None:
    def go_on(place: str | None) -> list[tuple[str, str | None]]:
        feed = ManyFeeds(exchange, NAMES, Options(last_event_id=place), lambda: None)
        began = [(frame.event, frame.id) for frame in feed.open(0) if frame.event not in ("hello", "progress")]
        found = [*began, *polled(feed, time.monotonic())]
        feed.close()
        return found

    first = [engine.answer(name, rows(s=["<http://ex.org/0>"], t=['"0"'])).id for name in NAMES]
    place = ",".join(f"{name}:{event}" for name, event in zip(NAMES, first, strict=True))
    for number in range(1, 4):
        for name in NAMES:
            engine.answer(name, rows(s=[f"<http://ex.org/{number}>"], t=['"0"']))
    whole = go_on(place)
    assert len(whole) == 9 and len({event for _, event in whole}) == 9
    for seen, (_, event) in enumerate(whole, 1):
        assert len(go_on(event)) == 9 - seen        # in whatever order
    snapshots = go_on(None)
    assert [event for event, _ in snapshots] == ["snapshot"] * 3
    assert [len(go_on(event)) for _, event in snapshots] == [2, 1, 0]


def test_whoever_comes_back_before_some_queries_had_a_result_misses_none(engine: FakeEngine, exchange: Exchange) -> None:
    feed = ManyFeeds(exchange, NAMES, Options(), lambda: None)
    feed.open(0)
    engine.answer("cold", rows(s=["<http://ex.org/0>"], t=['"0"']))
    caught_up(exchange, "cold", 1)
    wait_until(lambda: bool(feed._news), 10)
    [(_, place)] = polled(feed, time.monotonic())
    feed.close()
    for number in range(3):
        for name in NAMES:
            engine.answer(name, rows(s=[f"<http://ex.org/{number}>"], t=['"0"']))
    back = ManyFeeds(exchange, NAMES, Options(last_event_id=place), lambda: None)
    assert [frame.event for frame in back.open(0)] == ["hello"]
    assert [event for event, _ in polled(back, time.monotonic())] == ["result"] * 9
    back.close()

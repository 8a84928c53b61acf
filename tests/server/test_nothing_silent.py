"""What is left out is said: tails, dead letters, errors of a push, changes of state, inconsistencies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from flask.testing import FlaskClient

from engine.runtime.resources import DeadLetter, Item, TailEvent, TailPart
from server.feeds.channel import Channel
from server.feeds.frames import rsp
from server.feeds.driver import Tail
from tests.server.conftest import QUICK, Live
from tests.waiting import wait_until
from tests.server.fake_engine import NOW, FakeEngine, rows
from tests.server.sse import Events
from tests.server.test_feed import hot

ITEM = (("<http://a>", "<http://b>", '"1"'),)


def test_items_that_a_tail_no_longer_has_are_a_gap() -> None:
    engine = FakeEngine()
    engine.put_stream("temps", {})
    limits = replace(QUICK, page=3)
    tails = [Tail(engine, limits, "temps", since, None) for since in (None, 1)]
    engine.push("temps", [Item(NOW, None, ITEM)] * 2)
    assert [[frame.event for frame in tail.poll(0.0, True) or []] for tail in tails] == [["item"] * 2, ["item"]]
    engine.push("temps", [Item(NOW, None, ITEM)] * 5)
    for tail in tails:
        gap, *items = tail.poll(1.0, True) or []
        assert gap.event == "gap" and gap.data == b'{"requested":"2","oldestId":"5","reason":"tail","dropped":null}'
        assert [item.id for item in items] == ["5", "6", "7"]
        assert tail.poll(2.0, True) == []
    first = Tail(engine, limits, "temps", None, None).poll(0.0, True) or []
    assert [frame.event for frame in first] == ["item"] * 3    # nothing was asked for before them


def test_a_tail_as_document_says_what_is_missing(temps: FlaskClient, engine: FakeEngine) -> None:
    engine.push("temps", [Item(NOW, None, ITEM)] * 5)
    for query, truncated in (("since=0&limit=3", True), ("since=1&limit=4", False), ("limit=3", False)):
        for accept in ("application/jsonl", "application/trig"):
            reply = temps.get(f"/streams/temps/items?{query}", headers={"Accept": accept})
            assert reply.headers.get("RSP-Truncated") == ("true" if truncated else None)


def test_dead_letters_say_what_is_not_shown(temps: FlaskClient, engine: FakeEngine) -> None:
    engine._letters["temps"] = [DeadLetter("temps", 1, "rdf-syntax", None, "x", 900), DeadLetter("temps", 1, "omitted", None, "", 7)]
    engine._streams["temps"].state["deadLetters"] = 9
    shown = temps.get("/streams/temps/dead-letters").get_json()
    assert [letter.get("more") for letter in shown["deadLetters"]] == [900, 7]
    assert [letter["truncated"] for letter in shown["deadLetters"]] == [True, True]
    assert (shown["total"], shown["truncated"]) == (9, True)


def test_changes_of_state_that_are_no_longer_kept_are_a_gap(serve: Callable[..., Live]) -> None:
    live = serve(replace(QUICK, statuses_kept=3))
    hot(live.engine)
    for url in (f"{live.base}/queries/hot/results", f"{live.base}/events"):
        with Events(url) as events:
            events.next("hello")
            hub = live.application._hub
            assert hub is not None
            channel: Channel = live.application.exchange._channels.get("hot", live.application.exchange.everything)
            wake, channel.wake = channel.wake, lambda: None  # type: ignore[method-assign]
            before = channel.news
            for number in range(5):
                live.engine.patch_query("hot", ("paused", "running")[number % 2])
            wait_until(lambda: channel.news == before + 5)
            channel.wake = wake  # type: ignore[method-assign]
            channel.wake()
            gap = events.next("gap", "status")
            assert (gap.event, gap.data["reason"]) == ("gap", "status")
            assert [events.next("gap", "status").event for _ in range(3)] == ["status"] * 3


def test_a_result_counts_the_inconsistencies_that_it_does_not_list() -> None:
    engine = FakeEngine()
    hot(engine)
    engine.answer("hot", rows(s=[], t=[]))
    event = engine.results.read("hot", 0)[0]
    shown: dict[str, Any] = rsp(replace(event, meta={"inconsistencies": ["a"], "inconsistent": 250}))
    assert (shown["inconsistencies"], shown["inconsistenciesFound"]) == (["a"], 250)
    assert "inconsistenciesFound" not in rsp(event) and "late" not in rsp(event)


def test_a_part_of_a_tail_is_whole_unless_said() -> None:
    assert TailPart([TailEvent(1, NOW, None, ITEM)]).whole

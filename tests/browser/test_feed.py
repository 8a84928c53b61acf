"""The state of a query page in words, and the life of its feed: lost, refused, resumed, ended."""

from __future__ import annotations

from tests.browser import canned
from tests.browser.canned import START_MS, stations
from tests.browser.page import Page
from tests.browser.standin import Standin
from tests.browser.test_answers import follow
from tests.browser.wire import Refused


def test_live_then_paused_then_resumed(page: Page, standin: Standin) -> None:
    follow(page, standin)
    standin.emit("q", "result", stations(1, START_MS), "e1-1")
    page.state("live")
    assert page.text(".why") == "answers arrive as they are evaluated"
    page.press("Pause")
    page.state("paused")
    assert standin.queries["q"]["state"] == "paused"
    page.press("Resume from now")
    page.state("live")
    change = [request for request in standin.requests if request.method == "PATCH"][-1]
    assert change.headers["Content-Type"] == "application/merge-patch+json"
    assert change.body == '{"state":"running","resume":"now"}'


def test_idle_says_how_far_events_are_complete(page: Page, standin: Standin) -> None:
    follow(page, standin, state="idle")
    progress = {"watermark": canned.iso(START_MS), "watermarkLagMs": 2100, "resultLatencyMs": 640, "lateItems": 3}
    standin.emit("q", "progress", progress)
    page.state("idle")
    page.shows(".why", "events are complete up to 2025-03-20 05:04:00")
    assert dict(zip(page.texts(".facts dt"), page.texts(".facts dd")))["Latency"] == "640 ms"


def test_failed_shows_the_reason_and_can_be_restarted(page: Page, standin: Standin) -> None:
    follow(page, standin)
    standin.queries["q"].update(state="failed", lastError="The window does not fit into memory.")
    standin.emit("q", "status", {"state": "failed", "previous": "running", "reason": "error"})
    page.state("failed")
    page.shows(".notice.bad", "The window does not fit into memory.")
    page.press("Restart")
    page.until(lambda: page.text(".pill .word") in ("live", "idle"), "the restarted query")
    page.gone(".notice.bad")


def test_a_lost_connection_is_resumed_from_the_last_answer(page: Page, standin: Standin) -> None:
    follow(page, standin)
    page.press("History")
    standin.emit("q", "result", stations(1, START_MS), "e1-1")
    page.shows(".evaluation .seq", "#1")
    standin.feed("q").refuse = 503
    standin.cut("q")
    page.state("reconnecting")
    standin.emit("q", "result", stations(2, START_MS + 2000), "e1-2")
    standin.feed("q").refuse = None
    page.until(lambda: page.texts(".evaluation .seq") == ["#2", "#1"], "what was missed, once")
    page.state("live")
    last = standin.feed("q").connections[-1]
    assert "e1-1" in (last.get("last_event_id"), last["Last-Event-ID"])


def test_bye_gives_the_reason(page: Page, standin: Standin) -> None:
    follow(page, standin)
    standin.feed("q").refuse = 503
    standin.emit("q", "bye", {"reason": "shutdown", "reconnect": True})
    standin.cut("q")
    page.state("reconnecting")
    assert "the server is shutting down" in page.text(".why") or "Too many subscribers" in page.text(".why")


def test_a_removed_query_ends_the_feed(page: Page, standin: Standin) -> None:
    follow(page, standin)
    standin.emit("q", "result", stations(1, START_MS), "e1-1")
    page.shows(".evaluation .seq", "#1")
    del standin.queries["q"]
    standin.emit("q", "bye", {"reason": "dropped", "reconnect": False})
    standin.cut("q")
    page.state("closed")
    page.shows(".notice", "The feed has ended: the query was removed.")
    assert page.texts(".evaluation .seq") == ["#1"], "the last answers stay"


def test_connecting_before_the_feed_says_hello(page: Page, standin: Standin) -> None:
    standin.queries["q"] = canned.query("q", canned.STATIONS_TEXT)
    standin.silent = True
    page.open("#/queries/q")
    page.state("connecting")


def test_unreadable_events_do_not_stop_the_page(page: Page, standin: Standin) -> None:
    follow(page, standin)
    for listener in standin.feed("q").listeners:
        listener.put(b"event: result\ndata: {broken\n\n")
    page.shows(".toast", "The feed sent something unreadable")
    standin.emit("q", "result", stations(1, START_MS), "e1-1")
    page.shows(".evaluation .seq", "#1")


def test_an_unknown_query_says_what_to_do(page: Page) -> None:
    page.open("#/queries/none")
    page.shows(".notice.bad", "There is nothing called “none” here.")
    assert page.find(".notice.bad a").get_attribute("href").endswith("#/new")


def test_a_starting_engine_and_a_dead_server_are_told_and_forgotten(page: Page, standin: Standin) -> None:
    standin.trouble = Refused(503, "engine-starting", "Spark is warming up: 2 of 5 batches.")
    page.driver.get(page.base)
    page.shows("#trouble", "The engine is starting. Spark is warming up: 2 of 5 batches.")
    standin.trouble = None
    page.gone("#trouble")
    page.shows("#server", "Thalweg 0.1.0")


def test_the_feed_is_closed_when_the_page_is_left(page: Page, standin: Standin) -> None:
    follow(page, standin)
    page.click(".brand")
    page.shows("main h1", "Overview")
    page.until(lambda: not standin.feed("q").listeners, "no follower of the feed")


def test_a_feed_that_falls_silent_is_opened_anew(page: Page, standin: Standin) -> None:
    standin.heartbeat_s = 0.3
    follow(page, standin)
    standin.emit("q", "result", stations(1, START_MS), "e1-1")
    standin.emit("q", "progress", {"watermark": canned.iso(START_MS)})
    page.until(lambda: len(standin.feed("q").connections) > 1, "a second connection")
    assert standin.feed("q").connections[1]["last_event_id"] == "e1-1"
    page.state("live")


def test_a_page_waits_for_an_engine_that_starts(page: Page, standin: Standin) -> None:
    standin.queries["q"] = canned.query("q", canned.STATIONS_TEXT)
    standin.trouble = Refused(503, "engine-starting", "Spark is warming up.")
    page.open("#/queries/q")
    page.shows("main .notice", "This page tries again by itself.")
    standin.trouble = None
    page.state("live")

"""What the console says while something is wrong: no server, an engine that starts, refusals; what it says of silence."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.browser import canned
from tests.browser.canned import START_MS, stations
from tests.browser.demo import fill
from tests.browser.page import Page
from tests.browser.standin import Standin
from tests.browser.test_answers import follow
from tests.browser.wire import Refused, Reply

GREEN = "return document.querySelectorAll('#sidebar .dot.good, .with-dot.good, .pill.good, .server.good').length"


@pytest.fixture
def cuttable(page: Page) -> Iterator[Page]:
    """A page whose network a test cuts; it is whole again afterwards."""
    yield page
    page.offline(False)


def figures(page: Page) -> dict[str, str]:
    return dict(zip(page.texts(".facts dt"), page.texts(".facts dd"), strict=True))


def test_no_green_while_the_server_is_down(cuttable: Page, standin: Standin) -> None:
    page = cuttable
    fill(standin)
    page.open("#/")
    page.until(lambda: page.texts("#sidebar a[data-name=stations] .side") == ["running"], "the states")
    assert page.js(GREEN) > 2
    page.offline(True)
    page.shows("#trouble", "does not answer. If it has stopped, start it again. This page goes on by itself. What is shown is from ")
    assert page.js(GREEN) == 0
    assert page.texts("#sidebar a[href^='#/queries/'] .side") == ["unknown"] * 4
    assert page.texts("#sidebar a[href^='#/streams/'] .side") == ["–"] * 2, "nobody knows the rate"
    assert page.find("#sidebar a[data-name=stations]").get_attribute("title").startswith("it was running at ")
    cells = page.js("return [...document.querySelectorAll('section[aria-label=Queries] tbody tr:first-child td')].map(e => e.textContent)")
    assert (cells[0], cells[4]) == ("unknown", "–"), "neither state nor lag"
    page.offline(False)
    page.gone("#trouble")
    assert page.texts("#sidebar a[data-name=stations] .side") == ["running"] and page.js(GREEN) > 2


def test_a_query_page_says_from_when_it_is(cuttable: Page, standin: Standin) -> None:
    page = cuttable
    follow(page, standin)
    standin.queries["q"]["progress"].update(inputRowsPerSecond=95.0, watermarkLagMs=2100)
    standin.emit("q", "progress", {"inputRowsPerSecond": 95.0, "watermarkLagMs": 2100})
    page.until(lambda: figures(page)["Input"] == "95/s", "the rate")
    page.offline(True)
    standin.cut("q")
    page.state("reconnecting")
    page.shows(".why", "; what is shown is from ")
    assert (figures(page)["Input"], figures(page)["Lag"]) == ("–", "–")


@pytest.mark.parametrize(("slug", "word", "tone"), [
    ("engine-starting", "starting", "wait"), ("engine-restarting", "restarting", "wait"), ("shutting-down", "shutting down", "warn"),
    ("engine-failed", "trouble", "bad")])
def test_starting_is_not_red(page: Page, standin: Standin, slug: str, word: str, tone: str) -> None:
    standin.trouble = Refused(503, slug, "The server says why.")
    page.driver.get(page.base)
    page.shows("#server", word)
    page.shows("#trouble", "The server says why.")
    assert [page.find(part).get_attribute("class").split()[-1] for part in ("#server", "#trouble")] == [tone, tone]


@pytest.mark.parametrize("state", ["starting", "restarting"])
def test_a_query_that_starts_is_not_red(page: Page, standin: Standin, state: str) -> None:
    follow(page, standin, state=state)
    page.state(state)
    assert page.find(".pill").get_attribute("class") == "pill wait" and page.text(".why")
    assert page.find("#sidebar a[data-name=q] .dot").get_attribute("class") == "dot wait"


def test_silence_counts_from_the_answer(page: Page, standin: Standin) -> None:
    """Neither a reconnection, nor another feed, nor the opening of the page is an answer."""
    shown = """
        const page = {connection: 'open', query: {state: 'running'}, reason: '', watermark: null, quietMs: 10000, lostMs: null};
        const at = 1e12;
        return [{lastResultMs: at - 60000, openedMs: at - 1000, heard: true}, {lastResultMs: null, openedMs: at - 30000, heard: false},
                {lastResultMs: at - 5000, openedMs: at - 60000, heard: true}]
            .map(given => m.pageState({...page, ...given}, at)).map(({word, reason}) => `${word}: ${reason}`);"""
    page.open("#/")
    assert page.module("lib/words.js", shown) == [
        "idle: no new answer for 1 min: no event has been seen yet",
        "idle: no answer in the 30 s since this page was opened: no event has been seen yet",
        "live: answers arrive as they are evaluated"]


def test_silence_goes_on_over_a_reconnection_and_another_feed(page: Page, standin: Standin) -> None:
    progress = {**canned.query("q", "")["progress"], "lastResultAt": canned.iso(START_MS)}
    follow(page, standin, progress=progress)
    page.shows(".why", "no new answer for ")
    assert page.text(".why").split(":")[0].endswith(" d"), "the last answer is as old as the server says"
    standin.emit("q", "result", stations(1, START_MS), "e1-1")
    page.state("live")
    standin.feed("q").refuse = 503
    standin.cut("q")
    page.state("reconnecting")
    standin.feed("q").refuse = None
    page.state("live")
    page.press("Changes")
    page.until(lambda: standin.feed("q").connections[-1].get("mode") == "delta", "another feed")
    page.state("live")
    assert page.text(".why") == "answers arrive as they are evaluated", "it came a moment ago"


def test_an_idle_query_has_no_lag(page: Page, standin: Standin) -> None:
    follow(page, standin, state="idle")
    standin.emit("q", "progress", {"watermark": canned.iso(START_MS), "watermarkLagMs": 0})
    page.until(lambda: figures(page)["Complete up to"] == "2025-03-20 05:04:00", "the progress")
    assert figures(page)["Lag"] == "–"
    page.click(".brand")
    page.until(lambda: page.texts("section[aria-label=Queries] tbody td.number")[:1] == ["–"], "the same in the overview")


def test_the_clock_of_the_browser_may_be_wrong(page: Page, standin: Standin) -> None:
    """The time of the server decides what is today's, how long it has been silent, and how a sample is stamped."""
    added = page.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {
        "source": "{ const right = Date.now.bind(Date); Date.now = () => right() + 3 * 86400000; }"})
    try:
        standin.streams["s"] = canned.stream("s", "http://example.org/s", time="event")
        page.open("#/streams/s")
        page.until(lambda: page.text("#server").startswith("Thalweg"), "an answer with the server's time")
        ahead = page.module("lib/now.js", "return Date.now() - m.now()")
        assert abs(ahead - 3 * 86_400_000) < 10_000
        page.press("New sample")
        stamp = page.js("return document.querySelector('.editor textarea').value.match(/\"(.*?)\"\\^\\^xsd:dateTime/)[1]")
        assert page.js("return Date.now() - Date.parse(arguments[0])", stamp) > 2.9 * 86_400_000
        assert " " not in page.module("lib/format.js", "return m.clock(a[0])", stamp), "it is today's"
    finally:
        page.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", {"identifier": added["identifier"]})


REFUSALS = [(503, "engine-overloaded", "The engine is 40 s behind."), (507, "disk-full", "The log cannot grow: 0 bytes are free."),
            (429, "rate-limited", "More than 300 registrations in a minute.")]


@pytest.mark.parametrize(("status", "slug", "detail"), REFUSALS)
def test_refusals_are_shown_in_the_server_s_words(page: Page, standin: Standin, status: int, slug: str, detail: str) -> None:
    standin.streams["s"] = canned.stream("s", "http://example.org/s")
    page.open("#/streams/s")
    page.until(lambda: page.texts("#sidebar .name"), "the lists")
    refusal = Refused(status, slug, detail)
    standin.refusal = Reply(status, refusal.body, "application/problem+json", {"Retry-After": "7"})
    page.press("Push")
    page.shows("main .notice.bad", detail)
    page.shows("main .notice.bad", "The server asks to wait 7 s before the next try.")
    page.shows("main .notice.bad", "Nothing of this push was taken.")
    page.open("#/new").paste("REGISTER QUERY a AS SELECT * { ?s ?p ?o }")
    page.shows(".verdict.warn", f"Not checked: {detail}")
    page.press("Register")
    page.shows("main .notice.bad", detail)
    page.open("#/sparql").press("Run")
    page.shows("main .notice.bad", detail)


def test_a_push_without_an_answer_may_have_been_taken(cuttable: Page, standin: Standin) -> None:
    page = cuttable
    standin.streams["s"] = canned.stream("s", "http://example.org/s")
    page.open("#/streams/s")
    page.button("Push")
    page.offline(True)
    page.press("Push")
    page.shows("main .notice.bad", "Whether the server has taken it is not known: look before you try again.")


def test_a_refused_feed_is_told_in_the_server_s_words(page: Page, standin: Standin) -> None:
    follow(page, standin)
    standin.feed("q").refuse = 503
    standin.cut("q")
    page.shows(".why", "Too many subscribers follow this query")
    standin.feed("q").refuse = None
    page.until(lambda: page.text(".pill .word") in ("live", "idle"), "the feed")


@pytest.mark.parametrize(("status", "word", "tone"), [("restarting", "restarting", "wait"), ("running", "not ready", "bad")])
def test_an_engine_that_is_not_ready_is_told(page: Page, standin: Standin, status: str, word: str, tone: str) -> None:
    standin.queries["q"] = canned.query("q", canned.STATIONS_TEXT, state="restarting")
    standin.readiness = Reply(503, {"status": status, "progress": "", "reason": "the evaluator has failed", "degraded": []})
    page.open("#/")
    page.shows("#trouble", f"The engine is {word}: the evaluator has failed.")
    assert (page.text("#server"), page.find("#server").get_attribute("class")) == (word, f"server {tone}")
    page.until(lambda: page.texts("#sidebar a[data-name=q] .side") == ["restarting"], "the states, which are known")
    standin.readiness = Reply(200, {"status": "ready", "progress": "", "degraded": []})
    page.gone("#trouble")


def test_what_the_server_has_set_aside_is_named(page: Page, standin: Standin) -> None:
    degraded = [{"kind": "file", "name": "archive/17.arrow", "reason": "It ends too early."}]
    standin.readiness = Reply(200, {"status": "ready", "progress": "", "degraded": degraded})
    page.open("#/")
    page.shows("section[aria-label='What does not work'] tbody", "filearchive/17.arrowIt ends too early.")
    assert (page.text("#server"), page.find("#server").get_attribute("class")) == ("Thalweg 0.1.0: 1 trouble", "server warn")


def test_a_failed_query_is_complete_up_to_no_time_and_found_from_the_troubles(page: Page, standin: Standin) -> None:
    """Its watermark goes on with its streams, and it is not evaluated."""
    standin.queries["q"] = canned.query("q", canned.STATIONS_TEXT, state="failed", lastError="It took longer.")
    standin.queries["q"]["progress"]["watermark"] = canned.iso(START_MS)
    standin.readiness = Reply(200, {"status": "ready", "progress": "", "degraded": [{"kind": "query", "name": "q", "reason": "It took."}]})
    page.open("#/")
    page.shows("section[aria-label='Queries'] tbody", "failed")
    assert not any("05:04:00" in text for text in page.texts("section[aria-label='Queries'] tbody"))
    page.click("section[aria-label='What does not work'] a")
    page.state("failed")
    facts = dict(zip(page.texts("#main .facts dt"), page.texts("#main .facts dd")))
    assert facts["Complete up to"] == "–"


def test_a_query_that_waits_for_a_watermark_says_so(page: Page, standin: Standin) -> None:
    waits = {"at": canned.iso(START_MS), "for": [{"stream": canned.STREAM, "stamped": canned.iso(START_MS + 2000)}]}
    text = ("the answer at 2025-03-20 05:04:00 waits for an item stamped 2025-03-20 05:04:02 or later on weather, "
            f"or a push with ?watermark={canned.iso(START_MS)}")
    follow(page, standin, progress={**canned.query("q", "")["progress"], "waits": waits}, state="idle")
    page.state("waiting")
    page.shows(".why", text)
    page.shows(".live .empty", f"No answer yet: {text}.")
    standin.emit("q", "progress", {"waits": None, "watermark": canned.iso(START_MS)})
    page.state("idle")


def test_a_lost_change_of_state_is_no_lost_answer(page: Page, standin: Standin) -> None:
    follow(page, standin)
    standin.emit("q", "result", stations(1, START_MS), "e1-1")
    standin.emit("q", "gap", {"requested": None, "oldestId": None, "reason": "status", "dropped": 3})
    standin.emit("q", "result", stations(2, START_MS + 2000), "e1-2")
    page.press("History")
    page.until(lambda: page.texts(".evaluation .seq") == ["#2", "#1"], "both answers")
    assert page.all(".gap") == []


def test_what_the_server_did_not_list_is_counted(page: Page, standin: Standin) -> None:
    """Inconsistencies, dead letters and queries beyond what an answer lists."""
    standin.queries["q"] = canned.query("q", canned.STATIONS_TEXT)
    standin.answers["queries"] = Reply(200, {"queries": [standin.queries["q"]], "total": 1500, "next": "/queries?offset=1000"})
    follow(page, standin)
    data = stations(1, START_MS)
    data["rsp"].update(inconsistencies=["disjoint: ex:a"], inconsistenciesFound=250)
    standin.emit("q", "result", data, "e1-1")
    page.shows(".evaluation .badge", "250 inconsistencies")
    assert page.find(".evaluation .badge").get_attribute("title") == "The first 1:\ndisjoint: ex:a"
    page.shows("#sidebar .size", "1 of 1,500")
    state = {"items": 0, "late": 0, "deadLetters": 900, "watermark": None, "itemsPerSecond": 0.0}
    standin.streams["s"] = canned.stream("s", "http://example.org/s", state=state)
    letter = {"reason": "ahead", "time": canned.iso(START_MS), "text": "<a>", "truncated": True, "more": 5000}
    standin.answers["dead"] = Reply(200, {"deadLetters": [letter] * 100, "total": 900, "truncated": True})
    page.open("#/streams/s")
    page.shows("section[aria-label='Dead letters'] .note", "the newest 20 of 900.")
    assert page.texts("section[aria-label='Dead letters'] td")[2] == "<a> … 5,000 more"

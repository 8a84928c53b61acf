"""The other pages: streams with the push form, one-shot SPARQL, graphs, the overview, the plan."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from selenium.webdriver.common.keys import Keys

from tests.browser import canned
from tests.browser.page import Page
from tests.browser.standin import Standin
from tests.browser.wire import Refused, Reply


def test_push_by_control_enter_and_the_last_items(page: Page, standin: Standin) -> None:
    standin.streams["temps"] = canned.stream("temps", "http://example.org/temps")
    page.open("#/streams/temps").paste("PREFIX ex: <http://example.org/>\nex:s1 ex:temperature 3.5 .")
    page.shows(".tail, section .empty", "No item yet: push one above.")
    page.keys(Keys.CONTROL, Keys.ENTER)
    page.shows("main .verdict", "1 item accepted · complete up to 2025-03-20 05:04:00")
    page.shows(".tail", "ex:s1 ex:temperature 3.5 .")
    sent = next(request for request in standin.requests if request.method == "POST")
    assert sent.headers["Content-Type"] == "application/trig"
    page.until(lambda: page.text(".facts dd") == "1", "the count of items to follow")


def test_a_stream_from_a_topic_shows_how_it_is_read_and_has_no_form(page: Page, standin: Standin) -> None:
    source = {"type": "kafka", "topic": "readings", "bootstrapServers": "broker:9092"}
    standin.streams["temps"] = stream = canned.stream("temps", "http://example.org/temps", time="event", source=source)
    stream["state"] |= {"topic": "waiting", "behind": None, "error": "TimeoutException", "lost": 3, "partitions": {
        "0": {"offset": 1200, "watermark": "2025-03-20T05:04:00Z", "silent": False}, "1": {"offset": 7, "watermark": None, "silent": True}}}
    page.open("#/streams/temps")
    page.shows("main", "The records of the topic readings at broker:9092 are its items; nothing can be pushed to it.")
    page.shows("main .verdict", "It is not read now: TimeoutException")
    page.shows("[aria-label=Partitions] tbody", "1,200")
    page.shows("[aria-label=Partitions] tbody", "silent: it holds the others back no more")
    assert "No item yet." in page.texts("section .empty") and not page.texts("main textarea") and "Push" not in page.texts("main button")
    stream["state"] |= {"topic": "reading", "behind": 12, "error": None}
    page.until(lambda: "12" in page.texts(".facts dd") and not page.texts("main .verdict"), "the state to follow")


def test_the_sample_of_an_event_stream_carries_its_time_stamp(page: Page, standin: Standin) -> None:
    standin.streams["temps"] = canned.stream("temps", "http://example.org/temps", time="event")
    page.open("#/streams/temps")
    page.shows(".copy", "http://www.w3.org/ns/prov#generatedAtTime")
    page.choose("main select", "JSON-LD")
    page.shows(".copy", "@graph")
    page.press("Push")
    page.shows("main .verdict", "1 item accepted")
    sent = next(request for request in standin.requests if request.method == "POST")
    assert sent.headers["Content-Type"] == "application/ld+json"
    item = json.loads(sent.body)
    assert "http://www.w3.org/ns/prov#generatedAtTime" in item and len(item["@graph"]) == 1


def test_a_refused_push_marks_its_place_and_says_that_nothing_was_taken(page: Page, standin: Standin) -> None:
    standin.streams["temps"] = canned.stream("temps", "http://example.org/temps")
    page.open("#/streams/temps").paste("a broken text")
    page.press("Push")
    page.shows(".notice.bad", "Expected '.' after the triple.")
    page.shows(".notice.bad", "Nothing of this push was taken.")
    assert "".join(page.texts(".copy .wrong")) == "broken"


def test_a_stream_in_use_is_not_deleted(page: Page, standin: Standin) -> None:
    standin.streams["weather"] = canned.stream("weather", canned.STREAM, usedBy=["q"])
    standin.queries["q"] = canned.query("q", canned.STATIONS_TEXT)
    page.open("#/streams/weather")
    page.press("Delete")
    page.shows("dialog", "It is used by q: delete these queries first.")
    page.press("Delete", "dialog")
    page.shows(".toast.bad", "The stream is used by q.")
    assert "weather" in standin.streams


def test_dead_letters_are_listed(page: Page, standin: Standin) -> None:
    standin.streams["temps"] = canned.stream("temps", "http://example.org/temps")
    standin.streams["temps"]["state"]["deadLetters"] = 1
    letter = {"position": 7, "reason": "ahead", "time": canned.iso(canned.START_MS), "text": "<a> <b> <c> ."}
    standin.answers["dead"] = Reply(200, {"deadLetters": [letter]})
    page.open("#/streams/temps")
    page.until(lambda: page.texts("main td") == ["2025-03-20 05:04:00", "ahead", "<a> <b> <c> ."], "the dead letter")


def test_a_name_that_cannot_be_used_is_told_before_it_is_sent(page: Page, standin: Standin) -> None:
    page.open("#/streams")
    page.write("input[name=name]", "1 bad name")
    page.press("Add the stream")
    assert page.js("return document.querySelector('input[name=name]').validity.patternMismatch") is True
    assert not [request for request in standin.requests if request.method == "PUT"]


def test_one_shot_sparql_shows_a_table(page: Page, standin: Standin) -> None:
    standin.graphs["http://example.org/tbox"] = {"iri": "http://example.org/tbox", "triples": 214, "etag": "v1", "usedBy": []}
    page.open("#/sparql")
    page.press("Run")
    page.shows("main td", "<http://example.org/tbox>")
    assert page.find("main td.number").text == "214"
    page.shows(".verdict", "1 row · ")


def test_one_shot_sparql_shows_booleans_graphs_and_errors(page: Page, standin: Standin) -> None:
    page.open("#/sparql")
    standin.answers["sparql"] = Reply(200, {"head": {}, "boolean": True}, "application/sparql-results+json")
    page.press("Run")
    page.shows(".answer.truth", "true")
    standin.answers["sparql"] = Reply(200, "<http://e.x/a> <http://e.x/b> \"<img src=x onerror=alert(1)>\" .", "text/turtle")
    page.press("Run")
    page.shows(".code .t-string", "<img src=x onerror=alert(1)>")
    problem = canned.syntax_problem("SELECT\nWHERE", "WHERE", "Expected a variable.", "SELECT ?s")
    standin.answers["sparql"] = Reply(400, problem, "application/problem+json")
    page.paste("SELECT\nWHERE")
    page.keys(Keys.CONTROL, Keys.ENTER)
    page.shows(".notice.bad", "Expected a variable.")
    assert "".join(page.texts(".copy .wrong")) == "WHERE"


def test_a_graph_is_loaded_from_a_file_and_deleted(page: Page, standin: Standin, tmp_path: Path) -> None:
    file = tmp_path / "tbox.ttl"
    file.write_text("<http://e.x/Hot> a <http://www.w3.org/2002/07/owl#Class> .\n")
    page.open("#/graphs")
    page.shows("main .empty", "No graph yet.")
    page.shows("main", "The RDFS entailment rules.")
    page.shows("main", "alarms 3 rules and facts (text/x-rif-ps) used by hot")
    page.write("main form input[type=url]", "http://example.org/tbox")
    page.find("input[type=file]").send_keys(str(file))
    page.shows(".copy", "http://e.x/Hot")
    page.press("Load the graph")
    page.shows(".toast", "1 triple")
    page.shows("main tbody th", "http://example.org/tbox")
    page.press("Delete", "main table")
    page.press("Delete", "dialog")
    page.until(lambda: not standin.graphs, "the graph is gone")
    page.shows("main .empty", "No graph yet.")


def test_the_overview_shows_how_to_begin_and_then_the_queries(page: Page, standin: Standin) -> None:
    page.open("#/")
    page.shows(".guide", "Register a query")
    standin.queries["q"] = canned.query("q", canned.STATIONS_TEXT, state="paused")
    standin.streams["weather"] = canned.stream("weather", canned.STREAM)
    page.shows("main table", "weather 10 s every 2 s")
    page.shows("main table td", "paused")
    page.gone(".guide")


def test_the_plan_has_a_tab_for_each_stage(page: Page, standin: Standin) -> None:
    standin.queries["q"] = canned.query("q", canned.STATIONS_TEXT)
    standin.answers["plan spark"] = Reply(200, "SELECT <b>not bold</b> FROM star1", "text/plain; charset=utf-8")
    page.open("#/queries/q").click("[data-tab=plan]")
    page.shows(".plan", "the logical form of q")
    assert page.texts(".tabs.small [role=tab]") == ["parsed", "validated", "rewritten", "logical", "spark"]
    page.click("[data-tab=spark]")
    page.shows(".plan", "SELECT <b>not bold</b> FROM star1")


def test_a_failed_action_says_why(page: Page, standin: Standin) -> None:
    standin.queries["q"] = canned.query("q", canned.STATIONS_TEXT)
    page.open("#/queries/q")
    page.button("Pause")
    standin.trouble = Refused(409, "bad-transition", "The query is restarting: wait until it runs.")
    page.press("Pause")
    page.shows(".toast.bad", "The query is restarting: wait until it runs.")


@pytest.mark.parametrize("text, media", [
    ("Document(Group(<http://e.x/p>(1)))", "text/x-rif-ps"), ("q(X) <- [3] diamond p(X).", "text/x-lars"),
    ("q(X) :- Boxminus[0,3]p(X)", "text/x-datalogmtl"), ('<Document xmlns="http://www.w3.org/2007/rif#"/>', "application/rif+xml"),
])
def test_a_rule_set_is_written_in_each_language(page: Page, standin: Standin, text: str, media: str) -> None:
    page.open("#/rules")
    page.shows("main td", "The RDFS entailment rules.")
    page.write("main form input", "mine")
    page.paste(text + "\nbroken")
    page.press("Save the rule set")
    page.shows(".notice.bad", "Expected an atom.")
    page.shows(".notice.bad", "The rule set is unchanged.")
    assert "".join(page.texts(".copy .wrong")) == "broken" and page.texts(".gutter .wrong") == ["2"]
    page.paste(text)
    assert page.texts(".copy .wrong") == []
    page.press("Save the rule set")
    page.shows(".toast", "The rule set mine is there: 2 rules and facts.")
    assert standin.rules["mine"]["type"] == media
    page.shows("main th", "mine")


def test_a_rule_set_is_checked_while_it_is_written(page: Page, standin: Standin) -> None:
    text = "hot(X) <- warm(X).\ncold(Y) <- not warm(Z)."
    problem = canned.syntax_problem(text, "cold(Y)", "Y stands in no atom of the body.", "cold(Y) <- place(Y)")
    standin.explain = lambda body: Reply(200, {"valid": body != text, "errors": problem["errors"] if body == text else [], "plan": None})
    page.open("#/rules")
    page.shows(".verdict", "Write rules, or take a file.")
    page.paste(text)
    page.shows(".verdict", "1 error")
    assert "".join(page.texts(".copy .wrong")) == "cold(Y)" and page.texts(".gutter .wrong") == ["2"]
    assert page.text(".errors .place") == "Line 2, column 1"
    asked = [request for request in standin.requests if request.path == "/explain"][-1]
    assert (asked.parameters, asked.headers["Content-Type"], asked.body) == ({"as": "rules"}, "text/x-lars", text)
    page.paste(text.replace("cold(Y) <-", "cold(Z) <- place(Z),"))
    page.shows(".verdict", "This text is valid.")
    assert page.texts(".copy .wrong") == page.texts(".errors .place") == []
    page.choose("main .choice select", "DatalogMTL")
    page.until(lambda: standin.requests[-1].headers.get("Content-Type") == "text/x-datalogmtl", "checked anew")
    assert not [request for request in standin.requests if request.method == "PUT"], "nothing is saved"


def test_a_rule_set_is_opened_changed_and_deleted(page: Page, standin: Standin) -> None:
    page.open("#/graphs").click("main a[href='#/rules']")
    page.shows("main td", "3 rules and facts")
    assert page.texts("main tbody td:nth-child(2)") == ["built in", "RIF"]
    page.click("main a[href='#/rules/alarms']")
    page.shows(".copy", "Document(Group(")
    assert page.find("main form input").get_attribute("value") == "alarms"
    page.press("Delete", "main table")
    page.shows("dialog", "It is used by hot.")
    page.press("Delete", "dialog")
    page.until(lambda: "alarms" not in standin.rules and page.texts("main tbody th") == ["rdfs"], "the rule set is gone")

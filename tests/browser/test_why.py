"""Why a row is there: a button beside it, and the proofs in a dialog."""

from __future__ import annotations

import pytest

from tests.browser import canned
from tests.browser.canned import START_MS, iri, literal, select
from tests.browser.page import Page
from tests.browser.standin import Standin
from tests.browser.test_answers import follow
from tests.browser.wire import Reply


def answered(page: Page, standin: Standin) -> None:
    """Three rows are on the page."""
    follow(page, standin)
    rows = [[iri(f"http://example.org/s{n}"), literal(20 + n, "integer")] for n in range(3)]
    standin.emit("q", "result", select(7, START_MS, ["s", "t"], rows), "e1-7")
    page.shows(".evaluation .seq", "#7")


def ask(page: Page, row: int) -> None:
    """Press the button of a row as the keyboard does: the pointer need not be there."""
    page.js("document.querySelectorAll('.answers th.why button')[arguments[0]].click()", row)
    page.until(lambda: page.all("dialog .tree"), "a proof")


def test_the_tree_of_a_row(page: Page, standin: Standin) -> None:
    answered(page, standin)
    assert len(page.all(".answers th.why button")) == 3
    ask(page, 1)
    assert page.text("dialog .bindings") == "?s = <http://example.org/s1>"
    assert page.texts("dialog summary .fact") == ["<http://example.org/s1> a weather:Sensor"]
    assert page.texts("dialog summary .badge") == ["rdfs9 · rdfs"]
    assert page.texts("dialog .source") == ["graph http://example.org/tbox",
                                            "stream http://example.org/streams/weather at 2025-03-20 05:04:00"]
    assert page.text("dialog .absent") == "nothing matches MINUS { ?x a weather:Broken }"
    page.click("dialog summary")
    page.until(lambda: not any(e.is_displayed() for e in page.all("dialog .source")), "the branch folded")
    page.press("Other proofs", "dialog")
    page.until(lambda: page.texts("dialog h3") == ["Proof 1", "Proof 2"], "both proofs")
    assert page.texts("dialog summary .badge")[1] == "rule 2 · alarms, line 7"
    assert [r for r in standin.requests if "/why" in r.path][-1].parameters == {"row": "1", "max": "5"}
    page.press("Close", "dialog")
    page.until(lambda: not page.all("dialog"), "the dialog closed")


def test_proofs_of_rules_with_time_say_when(page: Page, standin: Standin) -> None:
    answered(page, standin)
    span = {"from": "2025-03-20T05:04:00Z", "to": "2025-03-20T05:04:03Z", "fromIncluded": True, "toIncluded": False}
    point = {**span, "to": span["from"], "toIncluded": True}
    triple = {"subject": iri("http://example.org/s1"), "predicate": iri("http://example.org/on"), "object": literal("yes")}
    leaf = {"kind": "asserted", "triple": triple, "during": point,
            "sources": [{"stream": "http://example.org/s", "at": [span["from"]]}]}
    window = {"kind": "operator", "operator": "window", "text": "window 3s", "during": span, "over": point, "premises": [leaf]}
    proof = {"kind": "derived", "triple": triple, "during": span, "bindings": {},
             "rule": {"set": "q", "name": None, "number": 1, "line": 4},
             "premises": [window, {"kind": "to come", "premises": [{"kind": "absent", "text": "<a> <b> <c>", "during": span}]}]}
    standin.answers["why"] = Reply(200, {"answer": {}, "more": False, "proofs": [{"kind": "match", "bindings": {}, "premises": [proof]}]})
    ask(page, 1)
    assert page.texts("dialog summary code") == ["window 3s", "to come"]
    held = "during [2025-03-20 05:04:00, 2025-03-20 05:04:03)"
    assert page.texts("dialog .source") == [held, held, "at 2025-03-20 05:04:00",
                                            "stream http://example.org/s at 2025-03-20 05:04:00", held]


def test_a_proof_is_no_wider_than_its_dialog(page: Page, standin: Standin) -> None:
    page.size(360, 800)
    answered(page, standin)
    ask(page, 1)
    assert page.js("const d = document.querySelector('dialog.why'); return d.scrollWidth - d.clientWidth") <= 0


def test_what_cannot_be_explained_is_said(page: Page, standin: Standin) -> None:
    answered(page, standin)
    detail = "What the result was made from is no longer kept. The graph <http://example.org/tbox> has been replaced since."
    standin.answers["why"] = Reply(410, {"type": "/problems/no-longer-kept", "title": "It is gone", "status": 410, "detail": detail},
                                   "application/problem+json")
    page.js("document.querySelector('.answers th.why button').click()")
    page.until(lambda: page.texts("dialog .notice p")[-1:] == [detail], "the problem")
    page.errors()
    page.press("Close", "dialog")


@pytest.mark.parametrize(("output", "buttons"), [("rstream", 0), ("istream", 1)])
def test_of_changes_what_istream_adds_is_explained(page: Page, standin: Standin, output: str, buttons: int) -> None:
    follow(page, standin, output=output)
    if output == "rstream":
        page.press("Changes")
        page.until(lambda: any(r.parameters.get("mode") == "delta" for r in standin.requests), "the feed of changes")
    added, removed = (select(8, START_MS, ["s"], [[iri(f"http://example.org/{name}")]]) for name in ("new", "old"))
    change = {"rsp": canned.rsp(8, START_MS), "addedResults": added, "removedResults": removed}
    page.until(lambda: standin.feed("q").listeners, "a follower of the feed")
    standin.emit("q", "delta", change, "e1-8")
    page.until(lambda: page.all(".answers tr.added") and page.all(".answers tr.removed"), "the change")
    assert len(page.all(".answers th.why button")) == len(page.all(".answers tr.added button")) == buttons
    if buttons:
        ask(page, 0)
        assert [r for r in standin.requests if "/why" in r.path][-1].parameters == {"row": "0", "mode": "delta", "max": "1"}


def test_an_ask_that_is_true(page: Page, standin: Standin) -> None:
    follow(page, standin, form="ASK")
    for seq, value in ((1, False), (2, True)):
        standin.emit("q", "result", {"head": {}, "boolean": value, "rsp": canned.rsp(seq, START_MS + seq)}, f"e1-{seq}")
    page.shows(".evaluation .count", "true")
    page.press("Why?", ".evaluation")
    page.until(lambda: page.all("dialog .tree"), "a proof")
    page.press("Close", "dialog")


def dialogs(page: Page) -> int:
    return len(page.all("dialog[open]"))


def test_back_closes_the_proofs_and_forward_opens_them_again(page: Page, standin: Standin) -> None:
    answered(page, standin)
    feeds = len(standin.feed("q").connections)
    ask(page, 1)
    page.driver.back()
    page.until(lambda: dialogs(page) == 0, "the dialog closed")
    assert page.text("main h1") == "q" and page.texts(".evaluation .seq") == ["#7"]
    page.driver.forward()
    page.until(lambda: page.text("dialog .bindings") == "?s = <http://example.org/s1>", "the proof again")
    page.keys("\ue00c")
    page.until(lambda: dialogs(page) == 0, "Escape closed it")
    page.until(lambda: page.driver.current_url.endswith("#/queries/q"), "the place of the page alone")
    assert len(standin.feed("q").connections) == feeds, "the page was not made anew"
    assert page.find("#sidebar a[data-name=q]").get_attribute("aria-current") == "page"
    page.driver.forward()
    page.until(lambda: dialogs(page) == 1, "the proof once more")
    page.press("Close", "dialog")
    page.until(lambda: dialogs(page) == 0 and page.driver.current_url.endswith("#/queries/q"), "the page alone")


def test_a_proof_has_an_address(page: Page, standin: Standin) -> None:
    answered(page, standin)
    page.open("#/queries/q/why/e1-7/2")
    page.until(lambda: page.text("dialog .bindings") == "?s = <http://example.org/s2>", "the proof")
    page.press("Close", "dialog")
    page.until(lambda: dialogs(page) == 0 and page.driver.current_url.endswith("#/queries/q"), "the page alone")
    page.open("#/queries/q/why/e1-7/2")
    page.until(lambda: dialogs(page) == 1, "the proof")
    page.js("location.hash = '#/graphs'")
    page.shows("main h1", "Background")
    page.until(lambda: dialogs(page) == 0, "no dialog over another page")


def test_back_closes_a_question(page: Page, standin: Standin) -> None:
    answered(page, standin)
    page.js("location.hash = '#/graphs'")
    page.shows("main h1", "Background")
    page.driver.back()
    page.press("Delete")
    page.shows("dialog h2", "Delete this query?")
    page.driver.back()
    page.until(lambda: dialogs(page) == 0, "no question about another page")
    assert "q" in standin.queries


def test_an_address_that_cannot_be_read(page: Page) -> None:
    page.open("#/queries/%E0%A4%A")
    assert page.text("main h1") == "No such page"


def of_program(standin: Standin) -> None:
    standin.queries["q"] = canned.query("q", canned.LARS_TEXT, "PROGRAM", dialect="lars", output="istream", report="change")


def facts_asked(page: Page, standin: Standin) -> list[tuple[str, str, str]]:
    """By fact of the list: its subject, and the result and row that its button asks about."""
    found = []
    for number, name in enumerate(page.texts(".facts-list .fact")):
        page.js("document.querySelectorAll('.facts-list th.why button')[arguments[0]].click()", number)
        page.until(lambda: page.all("dialog .tree"), "a proof")
        request = [r for r in standin.requests if "/why" in r.path][-1]
        found.append((name.split()[0], request.path.split("/")[-2], request.parameters["row"]))
        page.press("Close", "dialog")
        page.until(lambda: not page.all("dialog"), "the dialog closed")
    return sorted(found)


def test_each_fact_of_a_program_has_a_proof(page: Page, standin: Standin) -> None:
    """Of the report that it began; of its end, where the page has not seen that one."""
    of_program(standin)
    t = START_MS
    standin.emit("q", "delta", canned.reported("p", 1, t, ("a", t, None), ("b", t, None)), "e1-1")
    standin.emit("q", "delta", canned.reported("n", 2, t + 2000, ("z", t - 9000, t + 2000), ("a", t, t + 2000)), "e1-2")
    page.open("#/queries/q")
    page.until(lambda: len(page.texts(".facts-list .fact")) == 3, "three facts")
    standin.emit("q", "delta", canned.reported("p", 3, t + 3000, ("c", t + 3000, None)), "e1-3")
    page.until(lambda: len(page.texts(".facts-list .fact")) == 4, "a new one")
    assert facts_asked(page, standin) == [("ex:a", "e1-1", "0"), ("ex:b", "e1-1", "1"), ("ex:c", "e1-3", "0"), ("ex:z", "e1-2", "0")]
    page.press("History")
    assert page.texts(".evaluation .seq") == ["#3", "#2", "#1"] and len(page.all(".answers th.why button")) == 5


def test_facts_of_a_result_in_chunks_have_its_id_and_their_rows(page: Page, standin: Standin) -> None:
    of_program(standin)
    page.open("#/queries/q")
    page.state("live")
    for number, name in enumerate(("a", "b")):
        chunk = {**canned.reported("p", 1, START_MS, (name, START_MS, None)), "chunk": number, "last": number == 1}
        standin.emit("q", "delta", chunk, "e1-1" if number else None)
    page.until(lambda: len(page.texts(".facts-list .fact")) == 2, "both")
    assert facts_asked(page, standin) == [("ex:a", "e1-1", "0"), ("ex:b", "e1-1", "1")]


def test_a_fact_that_was_prolonged_is_proved_by_the_last_report(page: Page, standin: Standin) -> None:
    of_program(standin)
    t = START_MS
    standin.emit("q", "delta", canned.reported("p", 1, t, ("a", t, t + 3000)), "e1-1")
    standin.emit("q", "delta", canned.reported("p", 2, t + 1000, ("a", t + 1000, t + 4000)), "e1-2")
    standin.emit("q", "delta", canned.reported("n", 3, t + 3000, ("a", t, t + 3000)), "e1-3")
    page.open("#/queries/q")
    page.until(lambda: page.texts(".facts-list .fact") == ["ex:a a ex:Hot"], "one fact")
    assert facts_asked(page, standin) == [("ex:a", "e1-2", "0")]

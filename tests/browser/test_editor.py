"""The editor: checked while typing, errors at their place, registered under a name."""

from __future__ import annotations

import pytest
from selenium.webdriver.common.keys import Keys

from tests.browser import canned
from tests.browser.page import Page
from tests.browser.standin import Standin
from tests.browser.wire import Reply

PROBLEM = "application/problem+json"
WRONG = canned.STATIONS_TEXT.replace("[RANGE", "RANGE")


def test_an_error_is_underlined_at_its_place_and_goes_when_corrected(page: Page) -> None:
    page.open("#/new").paste(WRONG)
    page.shows(".copy .wrong", "RANGE")
    assert page.texts(".gutter .wrong") == ["7"]
    assert page.text(".errors .place") == "Line 7, column 50"
    assert page.text(".errors .detail") == "Expected '[' after the stream IRI."
    row, caret = page.text(".errors .snippet").split("\n")
    assert row[caret.index("^"):].startswith("RANGE") and caret.strip() == "^^^^^"
    assert "FROM STREAM <iri> [RANGE 10s STEP 2s]" in page.text(".errors .hint")
    underlined = page.js("const box = selector => document.querySelector(selector).getBoundingClientRect();"
                         "const wrong = box('.copy .wrong'), area = box('.editor textarea');"
                         "return [wrong.left - area.left, wrong.top - area.top]")
    width = page.js("const c = document.createElement('canvas').getContext('2d');"
                    "c.font = getComputedStyle(document.querySelector('.editor textarea')).font;"
                    "return c.measureText('x').width")
    assert abs(underlined[0] - (12 + 49 * width)) < 2 and abs(underlined[1] - (10 + 6 * 20)) < 6

    page.click(".errors .place")
    assert page.js("const t = document.activeElement; return t.value.slice(t.selectionStart, t.selectionEnd)") == "RANGE"
    page.keys("[RANGE")
    page.shows(".verdict", "This text is valid.")
    assert page.texts(".copy .wrong") == []
    page.gone(".errors")


def test_typing_is_checked_once_it_pauses(page: Page, standin: Standin) -> None:
    page.open("#/new").paste("SELECT * ")
    page.keys("WHERE { ?s ?p ?o }")
    page.shows(".verdict", "valid")
    checked = [request.body for request in standin.requests if request.path == "/explain"]
    assert checked[-1] == "SELECT * WHERE { ?s ?p ?o }" and len(checked) < 8
    page.click(".plan-preview summary")
    assert "Star ?observation" in page.text(".plan-preview")


def test_columns_count_characters_not_utf16_units(page: Page, standin: Standin) -> None:
    text = 'SELECT * # 🌡️🌡️ warm\nWHERE { ?s ?p "🌡🌡" . ?bad }'
    problem = canned.syntax_problem(text, "?bad", "Expected a predicate.", "?s ?p ?o")
    standin.explain = lambda _: Reply(400, problem, PROBLEM)
    page.open("#/new").paste(text)
    page.shows(".copy .wrong", "?bad")
    assert "".join(page.texts(".copy .wrong")) == "?bad"


def test_several_errors_and_an_error_at_the_end(page: Page, standin: Standin) -> None:
    text = "SELECT ?a\nWHERE { ?a ?b"
    errors = [{"detail": "A triple needs an object.", "location": {"line": 2, "column": 14}},
              {"detail": "?c is not bound.", "location": {"line": 1, "column": 8, "endLine": 1, "endColumn": 10}},
              {"detail": "No stream."}]
    standin.explain = lambda _: Reply(200, {"valid": False, "errors": errors, "plan": None})
    page.open("#/new").paste(text)
    page.shows(".verdict", "3 errors")
    assert page.texts(".gutter .wrong") == ["1", "2"]
    assert page.texts(".copy .wrong") == ["?a", "b"]
    assert page.texts(".errors .detail")[2] == "No stream."


def test_registers_by_control_enter_under_the_name_of_the_text(page: Page, standin: Standin) -> None:
    page.open("#/new").paste(canned.STATIONS_TEXT)
    assert page.find("main input").get_attribute("placeholder") == "stations"
    page.find(".editor textarea").send_keys(Keys.CONTROL, Keys.ENTER)
    page.shows("main h1", "stations")
    assert standin.queries["stations"]["text"] == canned.STATIONS_TEXT
    page.shows("#sidebar .name", "stations")


def test_a_taken_name_can_be_replaced(page: Page, standin: Standin) -> None:
    standin.queries["stations"] = canned.query("stations", "old text")
    page.open("#/new").paste(canned.STATIONS_TEXT)
    page.press("Register")
    page.shows(".notice.bad", "There is a query “stations” already.")
    page.press("Replace it")
    page.shows("main h1", "stations")
    assert standin.queries["stations"]["text"] == canned.STATIONS_TEXT


def test_the_draft_survives_a_look_at_another_page(page: Page) -> None:
    page.open("#/new").paste("SELECT ?kept WHERE { ?kept ?p ?o }")
    page.click("a[data-page=graphs]")
    page.shows("main h1", "Background")
    page.click("a[data-page=new]")
    page.shows(".copy", "?kept")


def test_an_example_can_be_loaded(page: Page) -> None:
    page.open("#/new")
    labels = page.until(lambda: [o for o in page.texts("main .actions option") if not o.startswith("Load")], "the examples")
    page.choose("main .actions select", labels[0])
    page.shows(".copy", "REGISTER")


def test_lines_are_indented_like_the_one_before(page: Page) -> None:
    page.open("#/new").paste("")
    page.keys("WHERE {", Keys.ENTER, "?s ?p ?o .", Keys.ENTER, "?x")
    assert page.js("return document.querySelector('.editor textarea').value") == "WHERE {\n  ?s ?p ?o .\n  ?x"


def test_a_text_is_not_called_wrong_when_the_server_cannot_check_it(page: Page, standin: Standin) -> None:
    standin.explain = lambda _: Reply(503, {"type": "/problems/engine-starting", "detail": "Spark is warming up."}, PROBLEM)
    page.open("#/new").paste("SELECT * WHERE { ?s ?p ?o }")
    page.shows(".verdict", "Not checked: Spark is warming up.")
    assert page.texts(".copy .wrong") == []


def test_a_warning_is_underlined_as_one(page: Page, standin: Standin) -> None:
    """The text can be registered, and may never answer."""
    text = "SELECT ?a ?b\nWHERE { ?a ?p ?o }"
    found = canned.syntax_problem(text, "?b", "No pattern binds ?b.", "SELECT ?a")["errors"]
    standin.explain = lambda _: Reply(200, {"valid": True, "errors": [], "warnings": found, "plan": "Scan", "estimate": None})
    page.open("#/new").paste(text)
    page.shows(".verdict.warn", "This text is valid, with 1 warning.")
    assert page.texts(".copy .doubtful") == ["?b"] and page.texts(".gutter .doubtful") == ["1"] and not page.all(".copy .wrong")
    assert page.text(".errors li.warning .detail") == "No pattern binds ?b."
    assert page.find(".editor textarea").get_attribute("aria-invalid") == "false"
    page.write(".choice input", "odd")
    page.press("Register")
    page.shows("main h1", "odd")
    assert page.texts("main .errors li.warning .detail") == ["No pattern binds ?b."], "told where the answers would be"


TEXTS = {"SPARQL / C-SPARQL": (canned.STATIONS_TEXT, "application/sparql-query"),
         "RIF": ("Document(Group(<http://e.x/p>(1)))", "text/x-rif-ps"),
         "RIF/XML": ('<Document xmlns="http://www.w3.org/2007/rif#"/>', "application/rif+xml"),
         "LARS": (canned.LARS_TEXT, "text/x-lars"),
         "DatalogMTL": ("Hot(S) :- Boxminus[0,2]Warm(S)", "text/x-datalogmtl")}


def types(standin: Standin) -> list[str]:
    return [request.headers["Content-Type"] for request in standin.requests if request.path == "/explain"]


@pytest.mark.parametrize("language", TEXTS)
def test_the_language_follows_the_text_and_its_type_is_sent(page: Page, standin: Standin, language: str) -> None:
    text, media = TEXTS[language]
    page.open("#/new").paste(text)
    page.shows("main .row option", f"As the text: {language}")
    page.shows(".verdict", "This text is valid.")
    assert types(standin)[-1] == media
    page.write("main input", "it")
    page.press("Register")
    page.shows("main h1", "it")
    sent = standin.requests[[request.method for request in standin.requests].index("PUT")]
    assert (sent.headers["Content-Type"], sent.body) == (media, text)
    page.click("[data-tab=text]")
    page.press("Edit as a new query")
    page.shows("main .row option", f"As the text: {language}")
    page.shows(".copy", text.splitlines()[0])


def test_the_language_can_be_chosen_by_hand(page: Page, standin: Standin) -> None:
    """What is written the same in both is DatalogMTL where nobody says otherwise."""
    page.open("#/new").paste("q(X) :- p(X).")
    page.shows("main .row option", "As the text: DatalogMTL")
    page.shows(".verdict", "This text is valid.")
    page.choose("main .choice select", "LARS")
    page.until(lambda: types(standin)[-1] == "text/x-lars", "the text checked as LARS")
    page.click("a[data-page=graphs]")
    page.shows("main h1", "Background")
    page.click("a[data-page=new]")
    assert page.find("main .choice select").get_attribute("value") == "lars", "the choice survives like the text"


def test_an_error_in_a_program_is_underlined(page: Page, standin: Standin) -> None:
    problem = canned.syntax_problem(canned.LARS_TEXT, "celsius", "Nested windows are not plain LARS.", "a rule of its own")
    standin.explain = lambda _: Reply(200, {"valid": False, "errors": problem["errors"], "plan": None})
    page.open("#/new").paste(canned.LARS_TEXT)
    page.shows(".copy .wrong", "celsius")
    assert page.texts(".gutter .wrong") == ["6"] and page.text(".errors .place") == "Line 6, column 33"
    assert {"% A sensor is hot for two seconds after a reading above 90."} == set(page.texts(".copy .t-comment"))
    assert {"diamond", "GRANULARITY"} <= set(page.texts(".copy .t-keyword")) and page.texts(".copy .t-variable") == ["S", "S", "V", "V"]


@pytest.mark.parametrize("label, language", [("Weather: watched, stormy, calm (LARS)", "LARS"), ("BSBM: prices of offers (RIF)", "RIF"),
                                             ("Weather: where fog may rise (DatalogMTL)", "DatalogMTL")])
def test_an_example_program_comes_with_its_language(page: Page, standin: Standin, label: str, language: str) -> None:
    page.open("#/new")
    page.choose("main .choice select", "RIF/XML")
    page.choose("main .actions select", label)
    page.shows("main .row option", f"As the text: {language}")
    assert page.find("main .choice select").get_attribute("value") == "", "a choice by hand was for the text before"
    page.until(lambda: types(standin) and types(standin)[-1] == TEXTS[language][1], "the example to be checked")

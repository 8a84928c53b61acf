"""The console on the real server (without Spark): what its feeds write is what the console reads."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from selenium.webdriver.chrome.webdriver import WebDriver

from tests.browser.answering import AnsweringEngine
from tests.browser.conftest import opened
from tests.browser.page import Page
from tests.server.fake_engine import rows

INTEGER = "^^<http://www.w3.org/2001/XMLSchema#integer>"


@pytest.fixture
def engine(without_spark: tuple[AnsweringEngine, str]) -> AnsweringEngine:
    without_spark[0].put_stream("temps", {"iri": "http://ex.org/temps"})
    return without_spark[0]


@pytest.fixture
def served(browser: WebDriver, without_spark: tuple[AnsweringEngine, str]) -> Iterator[Page]:
    yield from opened(browser, without_spark[1])


def numbers(*values: int) -> dict[str, list[str]]:
    return {"s": [f"<http://e.x/{value}>" for value in values], "n": [f'"{value}"{INTEGER}' for value in values]}


def test_past_snapshot_and_live_answers_follow_each_other(engine: AnsweringEngine, served: Page) -> None:
    engine.register("PREFIX e: <http://e.x/> REGISTER QUERY q AS SELECT ?s ?n FROM STREAM <http://ex.org/temps> [RANGE 10s] {}")
    for value in range(1, 6):
        engine.answer("q", rows(**numbers(value)))
    served.open("#/queries/q").press("History")
    served.until(lambda: served.texts(".evaluation .seq") == ["#5", "#4", "#3", "#2", "#1"], "the snapshot and its past")
    engine.answer("q", rows(**numbers(6)))
    served.until(lambda: served.texts(".answers td.iri")[:2] == ["e:6", "e:5"], "the new answer")
    served.press("Changes")
    served.press("History")
    served.until(lambda: served.texts(".evaluation .badge") == ["snapshot"], "the new feed")
    engine.answer("q", rows(**numbers(6, 7)))
    served.shows(".evaluation .count", "1 added, 0 removed")
    engine.delete_query("q")
    served.state("closed")


def test_graphs_and_truths(engine: AnsweringEngine, served: Page) -> None:
    engine.register("REGISTER QUERY g AS CONSTRUCT { ?s ?p ?o } FROM STREAM <http://ex.org/temps> [RANGE 10s] WHERE { ?s ?p ?o }")
    engine.answer("g", rows(s=["<http://e.x/a>"], p=["<http://e.x/b>"], o=['"ä <b>"@de']))
    served.open("#/queries/g")
    served.until(lambda: served.texts(".answers td") == ["<http://e.x/a>", "<http://e.x/b>", "ä <b>@de"], "the triple")
    engine.register("REGISTER QUERY t AS ASK FROM STREAM <http://ex.org/temps> [RANGE 10s] WHERE { ?s ?p ?o }")
    served.open("#/queries/t")
    served.state("live")
    engine.answer("t", rows(_=["x"]))
    served.shows(".evaluation .truth", "true")


def test_a_syntax_error_has_its_place(engine: AnsweringEngine, served: Page) -> None:
    served.open("#/new").paste("SELECT ?s\nWHERE SYNTAX { ?s ?p ?o }")
    served.shows(".copy .wrong", "SYNTAX")
    assert served.text(".errors .place") == "Line 2, column 7"
    served.press("Register")
    served.shows(".verdict", "Not registered")


@pytest.mark.parametrize("text, line", [
    ("Document(\n  SYNTAX\n)", 2), ('<Document xmlns="http://www.w3.org/2007/rif#">\n\nSYNTAX</Document>', 3),
])
def test_an_error_in_a_rule_program_has_its_place(engine: AnsweringEngine, served: Page, text: str, line: int) -> None:
    """As a program and as a rule set: the server takes the type that the console sends."""
    served.open("#/new").paste(text)
    served.shows(".copy .wrong", "SYNTAX")
    assert served.texts(".gutter .wrong") == [str(line)]
    served.open("#/rules").write("main form input", "mine")
    served.paste(text)
    served.shows(".verdict", "1 error")
    assert served.texts(".gutter .wrong") == [str(line)]
    served.press("Save the rule set")
    served.shows(".copy .wrong", "SYNTAX")
    served.shows(".notice.bad", "The rule set is unchanged.")
    served.paste(text.replace("SYNTAX", ""))
    served.press("Save the rule set")
    served.shows("main tbody th", "mine")


def test_a_page_of_results_leads_to_the_console(engine: AnsweringEngine, served: Page) -> None:
    engine.register("REGISTER QUERY q AS SELECT ?s FROM STREAM <http://ex.org/temps> [RANGE 10s] {}")
    served.driver.get(f"{served.base}queries/q/results")
    served.shows("main h1", "q")

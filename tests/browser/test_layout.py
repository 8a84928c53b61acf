"""Readable at every size, usable by keyboard, named for screen readers."""

from __future__ import annotations

import pytest
from selenium.webdriver.common.keys import Keys

from tests.browser import canned
from tests.browser.demo import fill, fill_programs, step
from tests.browser.page import Page
from tests.browser.standin import Standin
from tests.browser.wire import Reply

PLACES = ["#/", "#/new", "#/sparql", "#/graphs", "#/rules", "#/streams", "#/streams/weather",
          "#/queries/stations", "#/queries/frost", "#/queries/hot", "#/queries/wind"]
UNNAMED = """
return [...document.querySelectorAll('button, a[href], input, select, textarea, [role=region], [role=img], [tabindex="0"]')]
  .filter(e => e.checkVisibility())
  .filter(e => !(e.labels && e.labels.length) && !e.getAttribute('aria-label') && !e.getAttribute('aria-labelledby')
               && !e.textContent.trim())
  .map(e => e.outerHTML.slice(0, 120));
"""


@pytest.mark.parametrize("place", PLACES)
def test_pages_fit_and_name_what_they_hold(page: Page, standin: Standin, place: str) -> None:
    fill(standin)
    fill_programs(standin)
    for seq in range(1, 8):
        step(standin, seq, canned.START_MS + 2000 * seq)
    for width in (1280, 400):
        page.size(width, 800)
        page.open(place)
        page.until(lambda: page.texts("#sidebar .name"), "the lists at the side")
        if place.startswith("#/queries") and place != "#/queries/wind":
            page.until(lambda: page.all(".evaluation, .facts-list .holds"), "answers")
        assert page.js("return document.documentElement.scrollWidth") <= width
        assert page.js("const m = document.getElementById('main'); return m.scrollWidth - m.clientWidth") <= 0
        assert page.js(UNNAMED) == []
        assert len(page.all("h1")) == 1


def test_the_menu_of_a_narrow_page(page: Page, standin: Standin) -> None:
    fill(standin)
    page.size(400, 800)
    page.open("#/")
    assert not page.all("#sidebar")[0].is_displayed()
    page.press("Menu")
    page.find("#sidebar a[data-name=wind]")
    page.keys(Keys.ESCAPE)
    page.gone("#sidebar")
    page.press("Menu")
    page.click("#sidebar a[data-name=wind]")
    page.shows("main h1", "wind")
    page.gone("#sidebar")


def test_light_and_dark_follow_the_system(page: Page, standin: Standin) -> None:
    colours = []
    for scheme in ("light", "dark"):
        page.scheme(scheme)
        page.open("#/")
        colours.append(page.js("return getComputedStyle(document.body).backgroundColor"))
    light, dark = (sum(map(int, colour[4:-1].split(","))) for colour in colours)
    assert light > 700 and dark < 120


def test_tabs_and_dialogs_work_by_keyboard(page: Page, standin: Standin) -> None:
    fill(standin)
    page.open("#/queries/stations")
    page.find("[data-tab=answers]").send_keys(Keys.ARROW_RIGHT)
    page.until(lambda: page.find("[data-tab=plan]").get_attribute("aria-selected") == "true", "the next tab")
    page.keys(Keys.END)
    page.until(lambda: page.find("[data-tab=use]").get_attribute("aria-selected") == "true", "the last tab")
    page.button("Delete").send_keys(Keys.ENTER)
    page.shows("dialog h2", "Delete this query?")
    assert page.driver.switch_to.active_element.text == "Cancel"
    page.keys(Keys.ESCAPE)
    page.gone("dialog")
    assert "stations" in standin.queries


def test_the_first_stop_of_the_tab_key_skips_to_the_content(page: Page) -> None:
    page.open("#/graphs")
    page.js("document.activeElement.blur()")
    page.find("body").send_keys(Keys.TAB)
    assert page.driver.switch_to.active_element.text == "Skip to the content"
    page.keys(Keys.ENTER)
    assert page.js("return document.activeElement.id") == "main"
    page.shows("main h1", "Background")


def test_the_focus_stays_when_lists_are_refreshed(page: Page, standin: Standin) -> None:
    fill(standin)
    page.open("#/")
    page.find("#sidebar a[data-name=stations]")
    page.js("document.querySelector('#sidebar a[data-name=stations]').focus()")
    standin.queries["stations"]["state"] = "paused"
    page.shows("#sidebar .side", "paused")
    page.until(lambda: page.texts("#sidebar a[data-name=stations] .side") == ["paused"], "the new state")
    assert page.js("return document.activeElement.dataset.name") == "stations"


def test_errors_and_warnings_fit_into_a_narrow_page(page: Page, standin: Standin) -> None:
    """A long line of the text scrolls in its place."""
    text = f"SELECT ?a ?b # {'long ' * 60}\nWHERE {{ ?a ?p ?o }}"
    found = canned.syntax_problem(text, "?b", "No pattern binds ?b, in a text that is longer than the page is wide.", "SELECT ?a")
    standin.explain = lambda _: Reply(200, {"valid": True, "warnings": found["errors"], "plan": None, "estimate": None})
    page.size(400, 800)
    page.open("#/new").paste(text)
    page.shows(".errors li.warning", "No pattern binds ?b")
    assert page.js("const m = document.getElementById('main'); return m.scrollWidth - m.clientWidth") <= 0


def test_the_console_asks_nobody_but_its_server(page: Page, standin: Standin) -> None:
    fill(standin)
    for place in PLACES:
        page.open(place)
        page.until(lambda: page.texts("#sidebar .name"), "the lists at the side")
        asked = page.js("return performance.getEntriesByType('resource').map(e => e.name)")
        assert asked and [name for name in asked if not name.startswith(page.base)] == []


def test_a_proof_is_asked_for_by_keyboard(page: Page, standin: Standin) -> None:
    """Tab reaches the button of a row, which then can be seen; the focus comes back to it."""
    fill(standin)
    step(standin, 1, canned.START_MS)
    page.open("#/queries/stations")
    page.until(lambda: page.all(".answers th.why button"), "answers")
    page.find(".scroll.table").send_keys(Keys.TAB)
    assert page.driver.switch_to.active_element.text == "Why?"
    assert page.driver.switch_to.active_element.value_of_css_property("opacity") == "1"
    page.keys(Keys.ENTER)
    page.until(lambda: page.all("dialog .tree"), "a proof")
    page.keys(Keys.ESCAPE)
    page.gone("dialog")
    page.until(lambda: page.driver.switch_to.active_element.text == "Why?", "the focus where it was")

"""The console on the real server and engine (without Spark) with a rule program: its facts, their proofs, all that holds."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.webdriver.chrome.webdriver import WebDriver

from server.asgi import Application
from server.limits import Limits
from server.serving import Server, listen
from server.web import Site
from tests.browser.conftest import opened
from tests.browser.page import Page
from tests.server.test_program_relations import Programs, stay
from tests.server.test_timed_programs import HERE

PATIENCE_SECONDS = 20.0


@pytest.fixture
def programs(tmp_path: Path) -> Iterator[Programs]:
    with Programs(tmp_path) as found:
        yield found


@pytest.fixture
def served(browser: WebDriver, programs: Programs) -> Iterator[Page]:
    server = Server(Application(Site(programs.engine, Limits(shutdown_seconds=1.0, retry_ms=100)), "", stopping=lambda: None))
    listener = listen("127.0.0.1", 0)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield from opened(browser, f"http://127.0.0.1:{listener.getsockname()[1]}/")
    finally:
        server.end()
        thread.join(PATIENCE_SECONDS)
        assert not thread.is_alive(), "the server did not stop"


def test_facts_have_proofs(programs: Programs, served: Page) -> None:
    """Also where nothing comes any more, so that the watermark stays where it is."""
    stay(programs)
    served.open("#/queries/here")
    served.until(lambda: sorted(served.texts(".facts-list .fact")) == ["ex:a a ex:Here", "ex:a a ex:Long", "ex:b a ex:Here"], "all facts")
    place = served.texts(".facts-list .fact").index("ex:a a ex:Long")
    served.js("document.querySelectorAll('.facts-list th.why button')[arguments[0]].click()", place)
    served.until(lambda: served.all("dialog .tree"), "a proof")
    assert served.texts("dialog summary .badge")[0] == f"rule 2 · here, line {HERE[:HERE.index('ex:Long')].count(chr(10)) + 1}"
    assert "stream http://ex.org/s at 2023-11-14 22:13:20" in served.texts("dialog .source")


def test_a_feed_of_all_that_holds(programs: Programs, served: Page) -> None:
    stay(programs)
    served.open("#/queries/here").press("History")
    served.press("Holds")
    served.until(lambda: served.texts(".evaluation .badge") == ["snapshot"], "what holds now")
    assert served.text(".answers td.empty") == "Nothing holds."
    programs.push((21, "d", 1))
    programs.push((22, "e", 1))
    served.until(lambda: served.texts(".evaluation .count")[:2] == ["2 rows", "1 row"], "and what holds then")


def test_a_rule_set_is_checked_while_it_is_written(programs: Programs, served: Page) -> None:
    served.open("#/rules").paste("hot(X) <- [2 sec] diamond warm(X).\ncold(Y) <- not warm(Y).")
    served.shows(".verdict", "1 error")
    assert served.texts(".gutter .wrong") == ["2"]
    served.paste("hot(X) <- [2 sec] diamond warm(X).\ncold(Y) <- place(Y), not warm(Y).")
    served.shows(".verdict", "This text is valid.")

"""The browser of these tests: Debian's chromium through its chromedriver, started once, a stand-in server for each test."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.webdriver import WebDriver

from tests.browser.answering import AnsweringEngine, serving
from tests.browser.page import Page
from tests.browser.standin import Address, Standin

OPTIONS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
           "--disable-component-update", "--disable-sync", "--window-size=1280,800")


def program(*names: str) -> str:
    """The path of the first of the programs that is there; else the test is skipped, or fails where CI is set."""
    found = next((path for path in map(shutil.which, names) if path), None)
    if found:
        return found
    reason = f"{names[0]} is not installed (Debian: apt-get install chromium chromium-driver)"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebDriver]:
    """One headless chromium for all tests, with a profile of its own."""
    options = webdriver.ChromeOptions()
    options.binary_location = program("chromium", "chromium-browser")
    for option in (*OPTIONS, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    options.add_experimental_option("prefs", {"download.default_directory": str(tmp_path_factory.mktemp("downloads"))})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(program("chromedriver", "chromium.chromedriver")))
    yield driver
    driver.quit()


@pytest.fixture(scope="session")
def address() -> Iterator[Address]:
    """Where the stand-ins answer, one after another: the browser keeps the console's files from test to test."""
    found = Address(keeps=True)
    yield found
    found.close()


@pytest.fixture
def standin(address: Address) -> Iterator[Standin]:
    """A server of canned answers, empty."""
    server = Standin().begin(address)
    yield server
    server.end()
    assert not server.unknown, f"the console asked for what is not documented: {server.unknown}"


def opened(browser: WebDriver, base: str) -> Iterator[Page]:
    """A page of the console, in the usual size and light; it must leave no error in the browser's log."""
    page = Page(browser, base)
    page.size(1280, 800)
    page.scheme("light")
    page.forget()
    page.errors()
    yield page
    errors = page.errors()
    browser.get("about:blank")
    assert not errors, errors


@pytest.fixture
def page(browser: WebDriver, standin: Standin) -> Iterator[Page]:
    """The console on the stand-in."""
    yield from opened(browser, standin.base)


@pytest.fixture
def without_spark() -> Iterator[tuple[AnsweringEngine, str]]:
    """The real server around an engine that answers pushes at once, without Spark: the engine, and the server's address."""
    with serving() as running:
        yield running


@pytest.fixture(params=["stand-in", "server", "running"])
def any_page(request: pytest.FixtureRequest, browser: WebDriver) -> Iterator[Page]:
    """The console on the stand-in, on the real server without Spark, and on the running one that THALWEG_URL names."""
    if request.param == "stand-in":
        yield from opened(browser, request.getfixturevalue("standin").base)
    elif request.param == "server":
        yield from opened(browser, request.getfixturevalue("without_spark")[1])
    elif os.environ.get("THALWEG_URL"):
        yield from opened(browser, os.environ["THALWEG_URL"].rstrip("/") + "/")
    else:
        pytest.skip("set THALWEG_URL to the address of a running server to run this on it as well")


@pytest.fixture
def downloads(browser: WebDriver, tmp_path: Path) -> Path:
    """A folder into which the browser saves files."""
    browser.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    return tmp_path

"""The console as a person uses it: open, read, type, click; everything waits on a condition with a deadline."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from selenium.common.exceptions import NoSuchElementException, StaleElementReferenceException, TimeoutException
from selenium.webdriver.chrome.webdriver import WebDriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import Select, WebDriverWait

DEADLINE_S = 20
T = TypeVar("T")


class Page:
    """One window of the browser on the console served at `base`."""

    def __init__(self, driver: WebDriver, base: str) -> None:
        self.driver = driver
        self.base = base

    def open(self, place: str = "#/") -> Page:
        """Load the console afresh at a place such as ``#/queries/hot``."""
        self.driver.get("about:blank")
        self.driver.get(self.base + place)
        self.find("main h1")
        return self

    def until(self, condition: Callable[[], T], what: str) -> T:
        """The first true value of the condition; fails naming `what` was waited for, with what the page shows."""
        try:
            return WebDriverWait(self.driver, DEADLINE_S, poll_frequency=0.05, ignored_exceptions=[
                StaleElementReferenceException, NoSuchElementException]).until(lambda _: condition())
        except TimeoutException:
            shown = self.driver.find_element(By.TAG_NAME, "body").text
            raise AssertionError(f"waited {DEADLINE_S} s for {what}; the page shows:\n{shown}") from None

    def all(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def find(self, selector: str) -> WebElement:
        """The first visible element."""
        return self.until(lambda: next((e for e in self.all(selector) if e.is_displayed()), None), f"an element {selector}")

    def texts(self, selector: str) -> list[str]:
        """The texts of all matching elements, read at one moment."""
        return self.js("return [...document.querySelectorAll(arguments[0])].map(e => e.textContent)", selector)

    def text(self, selector: str) -> str:
        return (self.texts(selector) or [""])[0]

    def shows(self, selector: str, text: str) -> None:
        """Wait until some matching element contains the text."""
        self.until(lambda: any(text in found for found in self.texts(selector)), f"“{text}” in {selector}")

    def gone(self, selector: str) -> None:
        self.until(lambda: not any(e.is_displayed() for e in self.all(selector)), f"the end of {selector}")

    def click(self, selector: str) -> None:
        self.find(selector).click()

    def button(self, label: str, within: str = "body") -> WebElement:
        """The visible button with this label."""
        def ready(button: WebElement) -> bool:
            return button.text == label and button.is_displayed() and button.is_enabled()

        return self.until(lambda: next(filter(ready, self.all(f"{within} button")), None), f"a button “{label}”")

    def press(self, label: str, within: str = "body") -> None:
        self.until(lambda: self._pressed(label, within), f"to press “{label}”")

    def _pressed(self, label: str, within: str) -> bool:
        self.button(label, within).click()
        return True

    def write(self, selector: str, text: str) -> None:
        """Replace what a field holds."""
        field = self.find(selector)
        field.send_keys(Keys.CONTROL, "a")
        field.send_keys(text)

    def paste(self, text: str, selector: str = ".editor textarea") -> None:
        """Put a text into an editor at once, as pasting does."""
        self.find(selector)
        self.js("const e = document.querySelector(arguments[0]); e.focus(); e.select();"
                "document.execCommand('insertText', false, arguments[1])", selector, text)

    def choose(self, selector: str, label: str) -> None:
        self.until(lambda: label in [option.text for option in Select(self.find(selector)).options], f"the choice {label}")
        Select(self.find(selector)).select_by_visible_text(label)

    def keys(self, *keys: str) -> None:
        """Type at what has the focus."""
        self.driver.switch_to.active_element.send_keys(*keys)

    def js(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def module(self, path: str, body: str, *arguments: Any) -> Any:
        """Run `body`, which sees the module as `m` and the arguments as `a`, and give what it returns."""
        script = ("const done = arguments[arguments.length - 1], a = [...arguments].slice(1, -1);"
                  f"import(arguments[0]).then(async m => {{ {body} }})"
                  ".then(value => done({value}), error => done({error: String(error.stack)}))")
        answer = self.driver.execute_async_script(script, f"{self.base}static/{path}", *arguments)
        assert "error" not in answer, answer["error"]
        return answer.get("value")

    def state(self, word: str) -> None:
        """Wait for the state of a query page, in words."""
        self.until(lambda: self.text(".pill .word") == word, f"the state {word}")

    def size(self, width: int, height: int) -> None:
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                    {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})

    def scheme(self, name: str) -> None:
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": name}]})

    def forget(self) -> None:
        """Drop what a test before may have left in the browser for this server, but for files."""
        self.driver.execute_cdp_cmd("Storage.clearDataForOrigin", {
            "origin": self.base.rstrip("/"), "storageTypes": "cookies,local_storage,indexeddb,service_workers,cache_storage"})

    def offline(self, cut: bool) -> None:
        """Whether the network is cut: no request reaches the server."""
        self.driver.execute_cdp_cmd("Network.enable", {})
        self.driver.execute_cdp_cmd("Network.emulateNetworkConditions", {
            "offline": cut, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1})

    def errors(self) -> list[str]:
        """What the browser has logged since the last call, but for refused requests, which tests provoke."""
        expected = ("Failed to load resource", "net::ERR_")
        return [entry["message"] for entry in self.driver.get_log("browser")
                if entry["level"] == "SEVERE" and not any(text in entry["message"] for text in expected)]

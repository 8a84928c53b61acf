"""What every client of the stress run shares: the server's present address, what it may answer, and what went wrong."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import requests

from tests.live import ServerProcess

# What a server under load, restarting or without room on its disk may say (docs/http-api.md, "Errors").
PATIENCE = {503: {"engine-starting", "engine-restarting", "engine-overloaded", "shutting-down", "query-timeout"}, 507: {"disk-full"},
            429: {"rate-limited"}}
_TRY_AGAIN_S = 0.25
_GIVE_UP_S = 240.0
_IDLE_S = 3.0       # the server closes a connection after 5 s without a request, and may do so while one is on its way


class Ended(Exception):
    """The run is over."""


@dataclass(slots=True)
class Site:
    """One server that is killed now and then. `wrong` gathers what must not happen; `counts` what was answered."""

    server: ServerProcess
    wrong: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    over: threading.Event = field(default_factory=threading.Event)
    down: threading.Event = field(default_factory=threading.Event)
    lives: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def complain(self, what: str) -> None:
        with self.lock:
            self.wrong.append(f"[{time.strftime('%H:%M:%S')}] {threading.current_thread().name}: {what}")

    def pause(self, seconds: float) -> None:
        """Wait; raises Ended where the run is over."""
        if self.over.wait(seconds):
            raise Ended


class Client:
    """Requests of one thread, repeated until the server gives an answer that is not `PATIENCE`."""

    def __init__(self, site: Site, seed: int) -> None:
        self.site = site
        self.random = random.Random(seed)
        self._session = requests.Session()
        self._used = time.monotonic()

    def ask(self, method: str, path: str, good: tuple[int, ...], **more: Any) -> requests.Response | None:
        """The answer if its status is among `good`. Any other is noted as wrong, and None. A call that must end well is made again."""
        began = time.monotonic()
        while True:
            answer = self._once(method, path, **more)
            if answer is not None and not self._patient(answer):
                break
            if time.monotonic() - began > _GIVE_UP_S:
                last = "no connection" if answer is None else f"{answer.status_code} {answer.text[:300]}"
                self.site.complain(f"{method} {path}: no answer within {_GIVE_UP_S:g} s, last {last}")
                return None
            self.site.pause(_TRY_AGAIN_S)
        if answer.status_code in good:
            return answer
        self.site.complain(f"{method} {path}: {answer.status_code} {answer.text[:400]}")
        return None

    def _once(self, method: str, path: str, **more: Any) -> requests.Response | None:
        """One attempt; None where the server was killed under it."""
        life = self.site.lives
        if time.monotonic() - self._used > _IDLE_S:
            self._session.close()
        headers = {"Accept": "application/json", **more.pop("headers", {})}
        try:
            answer = self._session.request(method, self.site.server.base + path, headers=headers, timeout=90, **more)
        except requests.Timeout:
            self.site.complain(f"{method} {path}: no answer within 90 s")
            return None
        except (requests.ConnectionError, requests.exceptions.ChunkedEncodingError) as gone:
            if not self.site.down.is_set() and life == self.site.lives:
                self.site.complain(f"{method} {path}: {gone}")
            return None
        finally:
            self._used = time.monotonic()
        with self.site.lock:
            self.site.counts[f"{method} {path.split('/')[1].split('?')[0]} {answer.status_code}"] += 1
        return answer

    def _patient(self, answer: requests.Response) -> bool:
        """Whether the answer says that it is to be tried again later, in the words of the documentation."""
        if answer.status_code not in PATIENCE:
            return False
        kind = answer.json().get("type", "").rpartition("/")[2] if "json" in answer.headers.get("Content-Type", "") else "no problem body"
        if kind not in PATIENCE[answer.status_code]:
            self.site.complain(f"{answer.request.method} {answer.request.url}: {answer.status_code} {kind}")
        return True


def start(site: Site, name: str, role: Callable[[Client], None], seed: int) -> threading.Thread:
    """Run a role over and over until the run is over; an exception in it is wrong."""
    def work() -> None:
        client = Client(site, seed)
        try:
            while True:
                role(client)
        except Ended:
            return
        except Exception as failure:  # the run goes on and tells of it at its end
            site.complain(f"the client failed: {type(failure).__name__}: {failure}")

    thread = threading.Thread(target=work, name=name, daemon=True)
    thread.start()
    return thread

"""A client that follows a query over any number of connections, as an EventSource does: each time with the id of its last event."""

from __future__ import annotations

import threading
from collections.abc import Callable

import requests

from tests.server.sse import Event, Events

_KINDS = ("result", "delta", "graph")


class Follower:
    """Collects the events of a query, from the earliest on, until `stop`. `base` gives the present address of the server."""

    def __init__(self, name: str, base: Callable[[], str]) -> None:
        self.name = name
        self.events: list[Event] = []
        self.connections = 0
        self.surprises: list[Event] = []
        self._base = base
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"follower-{name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    @property
    def last_id(self) -> str | None:
        return self.events[-1].id if self.events else None

    def stop(self) -> None:
        """End with the present connection (whose server must have ended, or must send something)."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join(60)
        assert not self._thread.is_alive(), f"{self.name} is still connected"

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._follow()
            except (requests.RequestException, OSError, KeyError):
                pass  # The server went away, within an event or between two: what was whole has been taken, the rest comes again.
            self._stopping.wait(0.05)

    def _follow(self) -> None:
        resume = {"Last-Event-ID": self.last_id} if self.last_id else {}
        url = f"{self._base()}/queries/{self.name}/results" + ("" if resume else "?since=earliest")
        with Events(url, timeout=60.0, **resume) as feed:
            if feed.response.status_code != 200:
                return  # Starting: not ready yet.
            self.connections += 1
            for event in feed:
                if event.event in _KINDS:
                    self.events.append(event)
                elif event.event in ("gap", "snapshot"):
                    self.surprises.append(event)

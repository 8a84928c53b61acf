"""A client of server-sent events and JSON lines for tests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import requests


@dataclass(frozen=True)
class Event:
    """One event as a client sees it."""

    event: str
    data: Any
    id: str | None = None


class Events:
    """An open feed; iterate over its events. A comment is an event named ``:``, ``retry`` one of that name."""

    def __init__(self, url: str, *, accept: str = "text/event-stream", timeout: float = 30.0, **headers: str) -> None:
        self.response = requests.get(url, headers={"Accept": accept, **{k.replace("_", "-"): v for k, v in headers.items()}}, stream=True,
                                     timeout=timeout)
        self._events = self._sse() if accept == "text/event-stream" else self._lines()

    def __enter__(self) -> Events:
        return self

    def __exit__(self, *_: object) -> None:
        self.response.close()

    def __iter__(self) -> Iterator[Event]:
        return self._events

    def next(self, *names: str) -> Event:
        """The next event (of one of `names`)."""
        for event in self._events:
            if not names or event.event in names:
                return event
        raise AssertionError(f"the feed ended before {names}")

    def rest(self) -> list[Event]:
        """All events up to the end of the feed."""
        return list(self._events)

    def _text_lines(self) -> Iterator[str]:
        """Lines as they arrive."""
        buffer = b""
        for chunk in self.response.iter_content(chunk_size=None):
            *lines, buffer = (buffer + chunk).split(b"\n")
            yield from (line.decode() for line in lines)

    def _sse(self) -> Iterator[Event]:
        fields: dict[str, str] = {}
        for line in self._text_lines():
            name, _, value = line.partition(": ")
            if line.startswith(":"):
                yield Event(":", line[1:].strip())
            elif name == "retry":
                yield Event("retry", int(value))
            elif line:
                fields[name] = value
            elif fields:
                yield Event(fields["event"], json.loads(fields["data"]), fields.get("id"))
                fields = {}

    def _lines(self) -> Iterator[Event]:
        for line in self._text_lines():
            value = json.loads(line) if line else {"event": ":", "data": "", "id": None}
            yield Event(value["event"], value["data"], value["id"])

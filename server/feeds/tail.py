"""The live tail of a stream's input: looked at a few times a second, each item sent once."""

from __future__ import annotations

from typing import Any

from engine.runtime.resources import TailEvent, iso
from server.feeds.frames import Frame, bye, message
from server.limits import Limits
from server.problems import dumps


class Tail:
    """Follows the items of one stream; driven as a `Feed` is. `limit` ends it after so many items."""

    def __init__(self, engine: Any, limits: Limits, name: str, since: int | None, limit: int | None) -> None:
        """Raises the problem of an unknown stream. `since` None begins with the last items."""
        self.done = False
        self._engine, self._limits, self.name, self._left = engine, limits, name, limit
        self._following = since is not None
        self._iri: str = engine.stream(name).iri
        self._position = since or 0
        self._due: float | None = None

    @property
    def position(self) -> str:
        """The id of the last item sent, or ``none``."""
        return str(self._position or "none")

    def close(self) -> None:
        """Nothing to leave."""

    def open(self, now_ms: int) -> list[Frame]:
        """Hello; the first items come with the first `poll`."""
        return [message("hello", stream=self.name, iri=self._iri, heartbeatSeconds=self._limits.heartbeat_seconds, serverTime=iso(now_ms))]

    def poll(self, now_s: float, blocking: bool) -> list[Frame] | None:
        """The items since the last look."""
        if self._due is not None and now_s < self._due:
            return []
        if not blocking:
            return None
        self._due = now_s + self._limits.tail_seconds
        part = self._engine.tail_part(self.name, self._limits.page, self._position)
        frames: list[Frame] = []
        if self._following and not part.whole:
            first = str(part.events[0].position) if part.events else None
            frames.append(message("gap", requested=self.position, oldestId=first, reason="tail", dropped=None))
        self._following = True
        for event in part.events:
            frames.append(item_frame(event))
            self._position = event.position
            self._left = None if self._left is None else self._left - 1
            if self._left == 0:
                return frames + self.end("limit", False)
        return frames

    def due_in(self, now_s: float) -> float | None:
        """Seconds until the next look."""
        return None if self._due is None else max(0.0, self._due - now_s)

    def end(self, reason: str, reconnect: bool) -> list[Frame]:
        """Say goodbye."""
        self.done = True
        return [bye(reason, reconnect)]

    def progress(self) -> list[Frame]:
        """There is none."""
        return []


def item_frame(event: TailEvent) -> Frame:
    """An item as an event; its id is the position in the input log."""
    text = "".join(f"{s} {p} {o} .\n" for s, p, o in event.triples)
    return Frame("item", dumps({"at": iso(event.t_ms), "graph": event.graph, "format": "ntriples", "text": text}), str(event.position))

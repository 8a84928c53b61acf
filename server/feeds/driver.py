"""What every host of a feed sends and when: first bytes, news, signs of life, goodbye (server/hub.py, server/routes/results.py). And the
feed of a stream's input.

Pure of sockets and clocks, as the feeds are: the host gives the monotonic time in seconds, and polls, sends and waits.
"""

from __future__ import annotations

import random
import time
from typing import Any

from engine.runtime.resources import TailEvent, iso
from server.feeds.feed import Feed
from server.feeds.frames import Ending, Frame, jsonl, message, sse
from server.feeds.many import ManyFeeds
from server.formats.media import JSONL, SSE
from server.limits import Limits
from server.problems import dumps

_ENCODERS = {SSE: sse, JSONL: jsonl}
_HEARTBEATS = {SSE: b": hb\n\n", JSONL: b"\n"}


class Tail(Ending):
    """Follows the items of one stream; driven as a `Feed` is. `limit` ends it after so many items."""

    def __init__(self, engine: Any, limits: Limits, name: str, since: int | None, limit: int | None) -> None:
        """Raises the problem of an unknown stream. `since` None begins with the last items."""
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
        return None if self._due is None else max(0.0, self._due - now_s)

    def progress(self) -> list[Frame]:
        """There is none."""
        return []


def item_frame(event: TailEvent) -> Frame:
    """An item as an event; its id is the position in the input log."""
    text = "".join(f"{s} {p} {o} .\n" for s, p, o in event.triples)
    return Frame("item", dumps({"at": iso(event.t_ms), "graph": event.graph, "format": "ntriples", "text": text}), str(event.position))


AnyFeed = Feed | ManyFeeds | Tail


class Driver:
    """Turns one feed into the bytes of one connection."""

    def __init__(self, feed: AnyFeed, media: str, limits: Limits) -> None:
        """Opens the feed, which may block; one that cannot be opened is closed."""
        self.feed, self._media, self._limits = feed, media, limits
        self._encode = _ENCODERS[media]
        try:
            self._opening = feed.open(time.time_ns() // 1_000_000)
        except BaseException:  # whatever it was, the channel must be left
            feed.close()
            raise
        self._until = self._silent_from = 0.0

    @property
    def headers(self) -> dict[str, str]:
        return headers(self._media, self.feed.position)

    def begin(self, now_s: float) -> bytes:
        return b"".join(self.opening(now_s))

    def due(self, frames: list[Frame], now_s: float, closing: bool = False) -> bytes:
        """What to send (`news`) as one."""
        return b"".join(self.news(frames, now_s, closing))

    def opening(self, now_s: float) -> list[bytes]:
        """The first bytes, in pieces that other feeds share. The connection is to be renewed after `feed_seconds`, spread so that not
        all clients come back at once."""
        spread = self._limits.feed_seconds_spread
        self._until = now_s + self._limits.feed_seconds * random.uniform(1 - spread, 1 + spread)
        self._silent_from = now_s
        retry = [f"retry: {self._limits.retry_ms}\n".encode()] if self._media == SSE else []
        opening, self._opening = self._opening, []
        return [*retry, *map(self._encode, opening)]

    def news(self, frames: list[Frame], now_s: float, closing: bool = False) -> list[bytes]:
        """What to send, given the feed's news: they, a goodbye where it is time for it, or a sign of life after a long silence. Where it is
        nothing the host waits for news, at the longest `patience`."""
        if not self.feed.done and (closing or now_s >= self._until):
            frames = [*frames, *self.feed.end("shutdown" if closing else "rotate", True)]
        silent = now_s - self._silent_from >= self._limits.heartbeat_seconds
        if not frames and not silent:
            return []
        self._silent_from = now_s
        return [*map(self._encode, frames or self.feed.progress())] or [_HEARTBEATS[self._media]]

    def patience(self, now_s: float) -> float:
        """Seconds until something is due without news."""
        due = self.feed.due_in(now_s)
        waits = [self._silent_from + self._limits.heartbeat_seconds - now_s, self._until - now_s]
        return max(0.0, min(waits if due is None else [*waits, due]))


def headers(media: str, position: str) -> dict[str, str]:
    """The headers of a feed that begins at `position`: an id, or ``none``."""
    return {"Content-Type": f"{media}; charset=utf-8", "Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no",
            "RSP-Last-Event-ID": position}

"""What every host of a feed sends and when: first bytes, news, signs of life, goodbye (server/hub.py, server/routes/feed.py).

Pure of sockets and clocks, as the feeds are: the host gives the monotonic time in seconds, and polls, sends and waits.
"""

from __future__ import annotations

import random
import time

from server.feeds.feed import Feed
from server.feeds.frames import Frame, jsonl, sse
from server.feeds.many import ManyFeeds
from server.feeds.tail import Tail
from server.formats.media import JSONL, SSE
from server.limits import Limits

AnyFeed = Feed | ManyFeeds | Tail
_ENCODERS = {SSE: sse, JSONL: jsonl}
_HEARTBEATS = {SSE: b": hb\n\n", JSONL: b"\n"}


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
        """The headers of the response."""
        return headers(self._media, self.feed.position)

    def begin(self, now_s: float) -> bytes:
        """The first bytes."""
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
        """What to send, given the feed's news: they, a goodbye where it is time for it, or a sign of life after a long silence.

        Where it is nothing the host waits for news, at the longest `patience`.
        """
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

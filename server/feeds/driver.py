"""What every host of a feed sends and when: first bytes, news, signs of life, goodbye (server/hub.py, server/routes/results.py). And the
feeds beside that of one query: of several (``/events``), with the changes of state of all, and of a stream's input.

Pure of sockets and clocks, as the feeds are: the host gives the monotonic time in seconds, and polls, sends and waits.
"""

import random
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from engine.runtime.resources import TailEvent, iso
from server.feeds.channel import Listener
from server.feeds.exchange import Exchange
from server.feeds.feed import Feed
from server.feeds.frames import Ending, Frame, jsonl, message, sse
from server.feeds.options import Options
from server.formats.media import JSONL, SSE
from server.limits import Limits
from server.problems import dumps

_ENCODERS = {SSE: sse, JSONL: jsonl}
_HEARTBEATS = {SSE: b": hb\n\n", JSONL: b"\n"}


class ManyFeeds(Ending):
    """The feeds of `names` as one. Ids are the places in all of them: ``name:epoch-seq,...``. Only feeds with news are looked at."""

    def __init__(self, exchange: Exchange, names: Sequence[str], options: Options, listener: Listener) -> None:
        """Blocks; raises the problem of the first query that cannot be followed."""
        self._exchange, self._listener = exchange, listener
        self._news: dict[str, None] = {}
        self._lock = threading.Lock()
        self._due: dict[str, float] = {}        # monotonic: when a feed has something to do without news
        self._places = dict.fromkeys(names, "")     # in the order of the names; of a feed that has not begun there is none
        self._given = _places(options.last_event_id)
        self._feeds: dict[str, Feed] = {}
        try:
            for name in dict.fromkeys(names):
                self._feeds[name] = Feed(exchange, name, replace(options, last_event_id=self._given.get(name)), partial(self._woken, name))
        except BaseException:  # whatever it was, the channels joined so far must be left
            self.close()
            raise
        with exchange.everything.lock:
            exchange.everything.listeners.add(listener)
            self._seen = exchange.everything.news

    @property
    def position(self) -> str:
        """The ids of the last events of each query, or ``none``."""
        return ",".join(filter(None, self._places.values())) or "none"

    def close(self) -> None:
        for feed in self._feeds.values():
            feed.close()
        with self._exchange.everything.lock:
            self._exchange.everything.listeners.discard(self._listener)

    def _woken(self, name: str) -> None:
        """A feed has news; from any thread."""
        with self._lock:
            self._news[name] = None
        self._listener()

    def open(self, now_ms: int) -> list[Frame]:
        """One hello, then what each feed begins with."""
        frames: list[Frame] = []
        hellos: list[Any] = []
        begun: dict[str, list[Frame]] = {}
        for name, feed in self._feeds.items():
            _, *begun[name] = feed.open(now_ms)
            hellos.append({"query": name, "form": feed.info.form, "vars": list(feed.info.variables), "output": feed.info.output,
                           "state": feed.info.state, "from": feed.position})
            if not begun[name]:
                self._place(feed)
            elif name in self._given:   # until it has what it begins with
                self._places[name] = f"{name}:{self._given[name]}"
        for name, feed in self._feeds.items():
            frames += self._named(feed, begun[name])
            self._place(feed)
        with self._lock:
            self._news = dict.fromkeys(self._feeds)
        return [message("hello", queries=hellos, heartbeatSeconds=self._exchange.limits.heartbeat_seconds, serverTime=iso(now_ms)), *frames]

    def poll(self, now_s: float, blocking: bool) -> list[Frame] | None:
        """As `Feed.poll`, for all of them."""
        frames: list[Frame] = []
        waiting = False
        for feed in self._with_news(now_s):
            before = feed.position
            found = feed.poll(now_s, blocking)
            frames += self._named(feed, found or [])
            self._place(feed)
            if found is None or found or feed.position != before:   # there may be more
                with self._lock:
                    self._news[feed.name] = None
            waiting = waiting or found is None
            self._due.pop(feed.name, None)
            if not feed.done and (due := feed.due_in(now_s)) is not None:
                self._due[feed.name] = now_s + due
        with self._exchange.everything.lock:
            statuses, self._seen = self._exchange.everything.statuses_after(self._seen)
        frames += statuses
        return None if waiting and not frames else frames

    def _with_news(self, now_s: float) -> list[Feed]:
        with self._lock:
            news, self._news = self._news, {}
        news |= dict.fromkeys(name for name, due in self._due.items() if due <= now_s)
        return [feed for name in news if not (feed := self._feeds[name]).done]

    def _place(self, feed: Feed) -> None:
        """Of a query without results yet the place before the first: who comes back misses none of them."""
        self._places[feed.name] = f"{feed.name}:{feed.place}"

    def due_in(self, now_s: float) -> float | None:
        if self._news:
            return 0.0
        return max(0.0, min(self._due.values()) - now_s) if self._due else None

    def progress(self) -> list[Frame]:
        return [named for feed in self._feeds.values() if not feed.done for named in self._named(feed, feed.progress())]

    def _named(self, feed: Feed, frames: list[Frame]) -> list[Frame]:
        """Frames that say whose they are, with the client's places at each; changes of state come from the list of all, once."""
        named = []
        for frame in frames:
            if frame.id is not None:
                self._places[feed.name] = f"{feed.name}:{frame.id}"
            if frame.event != "status":
                named.append(frame.about(feed.name, self.position))
        return named


def _places(text: str | None) -> dict[str, str]:
    """The id of a feed of many, taken apart."""
    parts = (part.partition(":") for part in (text or "").split(","))
    return {name: place for name, colon, place in parts if colon}


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

    def open(self, now_ms: int) -> list[Frame]:
        """Hello; the first items come with the first `poll`."""
        return [message("hello", stream=self.name, iri=self._iri, heartbeatSeconds=self._limits.heartbeat_seconds, serverTime=iso(now_ms))]

    def poll(self, now_s: float, blocking: bool) -> list[Frame] | None:
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

    def opening(self, now_s: float) -> list[bytes]:
        """The first bytes, in pieces that feeds share. Connections end after `feed_seconds`, spread so that not all come back at once."""
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

"""One feed of several queries (``/events``), and of the changes of state of all of them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from engine.runtime.resources import iso
from server.feeds.channel import Listener
from server.feeds.exchange import Exchange
from server.feeds.feed import Feed
from server.feeds.frames import Ending, Frame, message
from server.feeds.options import Options


class ManyFeeds(Ending):
    """The feeds of `names` as one. Ids are the places in all of them: ``name:epoch-seq,...``. Only feeds with news are looked at."""

    def __init__(self, exchange: Exchange, names: Sequence[str], options: Options, listener: Listener) -> None:
        """Blocks; raises the problem of the first query that cannot be followed."""
        self._exchange, self._listener = exchange, listener
        self._news: dict[str, None] = {}
        self._lock = threading.Lock()
        self._due: dict[str, float] = {}        # monotonic: when a feed has something to do without news
        self._places: dict[str, str] = {}
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
        return ",".join(self._places.values()) or "none"

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
        if (position := feed.position) != "none":
            self._places[feed.name] = f"{feed.name}:{position}"
        else:
            self._places.pop(feed.name, None)

    def due_in(self, now_s: float) -> float | None:
        if self._news:
            return 0.0
        return max(0.0, min(self._due.values()) - now_s) if self._due else None

    def progress(self) -> list[Frame]:
        """The newest progress of each query again."""
        return [named for feed in self._feeds.values() if not feed.done for named in self._named(feed, feed.progress())]

    def _named(self, feed: Feed, frames: list[Frame]) -> list[Frame]:
        """Frames that say whose they are, each with the places that the client has with it; changes of state come from the list of all,
        once."""
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

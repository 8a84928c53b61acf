"""The channels of all queries that somebody follows.

The engine tells of a result after it is logged; one thread of the exchange turns it into bytes and wakes the feeds. Nothing here
waits for a client, and the engine never waits: what it has told and the feeds have not been told yet is bounded. Beyond the bound
results are left out, for the result log has them, and of everything else each query's newest of a kind is kept.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from engine.runtime.resources import Notice, QueryInfo
from engine.supervision import Worker
from server.feeds.channel import Channel, Listener
from server.feeds.options import Variant
from server.limits import Limits
from server.problems import Problem

log = logging.getLogger("thalweg.feeds")
_LOOK_AFTER = 64    # notices


class Notices:
    """A queue from the engine's threads to the thread that writes events."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._waiting: deque[Notice | None] = deque()
        self._bytes = 0
        self._beyond: dict[tuple[str, str | None], Notice] = {}
        self._changed = threading.Condition()

    def __len__(self) -> int:
        return len(self._waiting) + len(self._beyond)

    def put(self, notice: Notice | None) -> None:
        """Take a notice; None ends the thread that reads them."""
        with self._changed:
            if notice is not None and (self._beyond or len(self._waiting) >= self._limits.notices_waiting
                                       or self._bytes + _size(notice) > self._limits.notices_bytes and self._waiting):
                key = (notice.kind, notice.query)
                self._beyond.pop(key, None)     # the newest comes last, as it was told
                self._beyond[key] = replace(notice, event=None)
            else:
                self._waiting.append(notice)
                self._bytes += _size(notice)
            self._changed.notify()

    def get(self) -> Notice | None:
        """The next one, once there is one. A result without its event, and perhaps some before it, must be read from the result log."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._beyond)
            if self._waiting and (self._waiting[0] is not None or not self._beyond):
                notice = self._waiting.popleft()
                self._bytes -= _size(notice)
                return notice
            return self._beyond.pop(next(iter(self._beyond)))


def _size(notice: Notice | None) -> int:
    return 0 if notice is None or notice.event is None else notice.event.size


class Exchange:
    """The channels of all queries that somebody follows, fed by the engine's notices."""

    def __init__(self, engine: Any, limits: Limits) -> None:
        self.engine, self.limits = engine, limits
        self.total = 0
        self._passed = self._grown = 0      # notices, and bytes that they brought, since the rings were looked at
        self.closing = False
        self.everything = Channel("", "", engine, limits)
        self._channels: dict[str, Channel] = {}
        self._lock = threading.Lock()
        self._notices = Notices(limits)
        self.worker = Worker("feeds", self._work, most=1 << 30)
        self._unsubscribe: Callable[[], None] | None = None

    def start(self) -> None:
        self._unsubscribe = self.engine.subscribe(self._notices.put)
        self.worker.start()

    def stop(self) -> None:
        """Stop listening; what was told before is still passed on."""
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._notices.put(None)
            self.worker.join(5)

    def close(self) -> None:
        self.closing = True
        with self._lock:
            channels = list(self._channels.values())
        for channel in (*channels, self.everything):
            channel.wake()

    def subscribers(self, query: str) -> int:
        with self._lock:
            return self._channels[query].followers if query in self._channels else 0

    def join(self, info: QueryInfo, variant: Variant, listener: Listener) -> Channel:
        """Follow a query; `quota-subscribers` where too many do. Blocks for a look at the log."""
        with self._lock:
            channel = self._channels.get(info.name) or Channel(info.name, info.iri, self.engine, self.limits)
            if self.total >= self.limits.subscribers or channel.followers >= self.limits.subscribers_per_query:
                limit = self.limits.subscribers_per_query if self.total < self.limits.subscribers else self.limits.subscribers
                raise too_many(self.limits, limit, channel.followers)
            self._channels[info.name] = channel
            self.total += 1
            channel.followers += 1
        with channel.lock:
            channel.listeners.add(listener)
            channel.variants[variant] = channel.variants.get(variant, 0) + 1
        if channel.epoch is None:
            bounds = self.engine.results.bounds(info.name)
            channel.look(info.epoch, bounds.newest if bounds.epoch == info.epoch else 0)
        return channel

    def leave(self, channel: Channel, variant: Variant, listener: Listener) -> None:
        with channel.lock:
            channel.listeners.discard(listener)
            channel.variants[variant] -= 1
            if not channel.variants[variant]:
                del channel.variants[variant]
        with self._lock:
            self.total -= 1
            channel.followers -= 1
            if not channel.followers and self._channels.get(channel.name) is channel:
                del self._channels[channel.name]

    def _work(self) -> None:
        while (notice := self._notices.get()) is not None:
            with self.worker.busy():
                self._pass_on(notice)

    def _pass_on(self, notice: Notice) -> None:
        if notice.kind in ("status", "removed", "epoch", "engine"):
            removed = {"state": "removed"} if notice.kind == "removed" else {}
            self.everything.add_status({"query": notice.query, **removed, **notice.data})
            self.everything.wake()
        with self._lock:
            channel = self._channels.get(notice.query or "")
        if channel is None:
            return
        before = channel.size
        try:
            self._take(channel, notice)
        except Exception:  # one result must not end the thread that serves all queries
            log.exception("an event of query %s could not be passed on", notice.query)
        self._grown += max(0, channel.size - before)
        self._passed += 1
        if self._passed >= _LOOK_AFTER or self._grown * _LOOK_AFTER >= self.limits.rings_bytes:     # there may be many rings to look at
            self._passed = self._grown = 0
            self._make_room()
        channel.wake()

    def _make_room(self) -> None:
        """Let the rings of all queries together keep within their limit: the largest gives its oldest results up."""
        with self._lock:
            channels = list(self._channels.values())
        total = sum(channel.size for channel in channels)
        while total > self.limits.rings_bytes and (largest := max(channels, key=lambda channel: channel.size)).size:
            freed = largest.shrink()
            if not freed:
                return
            total -= freed

    def _take(self, channel: Channel, notice: Notice) -> None:
        if notice.kind == "result":
            if notice.event is None or channel.misses(notice.event):
                channel.catch_up()
            if notice.event is not None:
                channel.add(notice.event)
        elif notice.kind == "progress":
            channel.set_progress(notice.data)
        elif notice.kind == "status":
            channel.add_status(notice.data)
        elif notice.kind == "epoch":
            channel.begin(notice.data.get("epoch"))
            channel.catch_up()      # results of it may have been left out of the queue
        elif notice.kind == "removed":
            channel.remove(notice.data.get("epoch"))


def too_many(limits: Limits, limit: int, current: int) -> Problem:
    return Problem("quota-subscribers", "Too many clients follow already.", status=503,
                   extra={"limit": limit, "current": current, "retryAfter": limits.retry_when_full_ms // 1000})

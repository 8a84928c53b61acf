"""Live feeds on asyncio: one task per client, bytes shared by all clients of a query, nobody waits for a slow one."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

from engine.runtime.errors import EngineError
from server.asgi_types import Receive, Scope, Send, header
from server.feeds.exchange import Exchange, too_many
from server.feeds.feed import Feed
from server.feeds.frames import Encoder, Frame, bye, encoded, jsonl, sse
from server.feeds.many import ManyFeeds
from server.feeds.options import MANY_PARAMETERS, parse_options, parse_tail
from server.feeds.tail import Tail
from server.formats.media import JSONL, SSE
from server.problems import Problem

AnyFeed = Feed | ManyFeeds | Tail
_HEARTBEATS = {SSE: b": hb\n\n", JSONL: b"\n"}


class Bell:
    """Wakes one task; `ring` may be called from any thread."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._future: asyncio.Future[None] | None = None
        self._rung = False

    def ring(self) -> None:
        """Wake the waiting task, or let it not fall asleep."""
        try:
            self._loop.call_soon_threadsafe(self._set)
        except RuntimeError:
            pass  # The loop is closed: there is nobody to wake.

    def _set(self) -> None:
        self._rung = True
        if self._future is not None and not self._future.done():
            self._future.set_result(None)

    async def wait(self, seconds: float) -> None:
        """Return when rung, at the latest after `seconds`."""
        if not self._rung:
            self._future = self._loop.create_future()
            timer = self._loop.call_later(max(0.0, seconds), self._set)
            try:
                await self._future
            finally:
                timer.cancel()
        self._rung = False


class Hub:
    """Serves ``/queries/{name}/results``, ``/events`` and ``/streams/{name}/items`` as live feeds."""

    def __init__(self, exchange: Exchange) -> None:
        self.exchange, self.limits = exchange, exchange.limits
        self._pool = ThreadPoolExecutor(4, thread_name_prefix="thalweg-replay")
        self._clients: set[_Client] = set()

    async def serve_results(self, scope: Scope, receive: Receive, send: Send, name: str, media: str, links: dict[str, str]) -> None:
        """A feed of one query; raises the problem if it cannot begin."""
        options, _ = parse_options(_query_string(scope), header(scope, "last-event-id"))
        await self._serve(receive, send, media, lambda bell: Feed(self.exchange, name, options, bell.ring, links))

    async def serve_events(self, scope: Scope, receive: Receive, send: Send, media: str) -> None:
        """A feed of several queries, and of all changes of state."""
        options, names = parse_options(_query_string(scope), header(scope, "last-event-id"), MANY_PARAMETERS)
        if len(names) > self.limits.queries_per_feed:
            raise Problem("unknown-parameter", f"A feed has at most {self.limits.queries_per_feed} queries.", extra={"parameter": "query"})
        await self._serve(receive, send, media, lambda bell: ManyFeeds(self.exchange, names, options, bell.ring))

    async def serve_tail(self, scope: Scope, receive: Receive, send: Send, name: str) -> None:
        """The live tail of a stream's input."""
        since, limit = parse_tail(_query_string(scope), header(scope, "last-event-id"))
        await self._serve(receive, send, SSE, lambda bell: Tail(self.exchange.engine, self.limits, name, since, limit))

    async def close(self, seconds: float) -> None:
        """Say goodbye to all and wait until they are gone, at most `seconds`."""
        self.exchange.close()
        for client in list(self._clients):
            client.bell.ring()
        tasks = [client.task for client in self._clients]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=seconds)
            for task in late:
                task.cancel()
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _serve(self, receive: Receive, send: Send, media: str, make: Callable[[Bell], AnyFeed]) -> None:
        bell = Bell()
        try:
            if len(self._clients) >= self.limits.subscribers:
                raise too_many(self.limits, self.limits.subscribers, len(self._clients))
            feed, first = await self.run(lambda: _begin(make(bell)))
        except Problem as problem:
            if problem.slug != "quota-subscribers" or media != SSE:
                raise
            await self._turn_away(send, problem)
            return
        except EngineError as error:
            if media == SSE and error.status == 410:
                await send({"type": "http.response.start", "status": 204, "headers": []})
                await send({"type": "http.response.body", "body": b""})
                return
            raise
        client = _Client(self, feed, bell, media, receive, send)
        self._clients.add(client)
        try:
            await client.run(first)
        finally:
            self._clients.discard(client)
            feed.close()

    async def run(self, work: Callable[[], Any]) -> Any:
        """Do blocking work beside the loop."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    async def _turn_away(self, send: Send, problem: Problem) -> None:
        """What an EventSource understands: come again later."""
        await send({"type": "http.response.start", "status": 200, "headers": _headers(SSE, "none")})
        body = f"retry: {self.limits.retry_when_full_ms}\n".encode() + sse(bye("quota", True, problem.body()))
        await send({"type": "http.response.body", "body": body})


class _Client:
    """One connection."""

    def __init__(self, hub: Hub, feed: AnyFeed, bell: Bell, media: str, receive: Receive, send: Send) -> None:
        self.hub, self.feed, self.bell = hub, feed, bell
        self.encode: Encoder = sse if media == SSE else jsonl
        self.task = cast("asyncio.Task[None]", asyncio.current_task())
        self._media, self._receive, self._asgi_send = media, receive, send
        self._gone = False
        self._sending_since: float | None = None

    async def run(self, frames: list[Frame]) -> None:
        """Send the first frames, then go on until the client goes, the feed ends, or the connection is old enough to be renewed."""
        limits = self.hub.limits
        await self._asgi_send({"type": "http.response.start", "status": 200, "headers": _headers(self._media, self.feed.position)})
        first = f"retry: {limits.retry_ms}\n".encode() if self._media == SSE else b""
        watcher = asyncio.create_task(self._watch())
        guard = asyncio.get_running_loop().call_later(limits.send_seconds, self._stalled)
        try:
            await self._send(first + encoded(frames, self.encode))
            spread = random.uniform(1 - limits.feed_seconds_spread, 1 + limits.feed_seconds_spread)
            await self._follow(time.monotonic() + limits.feed_seconds * spread)
            if not self._gone:
                await self._asgi_send({"type": "http.response.body", "body": b""})
        finally:
            guard.cancel()
            watcher.cancel()

    async def _follow(self, until: float) -> None:
        limits, feed = self.hub.limits, self.feed
        silent_from = time.monotonic()
        while not feed.done and not self._gone:
            now = time.monotonic()
            frames = await self._due(now)
            if not feed.done and self.hub.exchange.closing:
                frames += feed.end("shutdown", True)
            elif not feed.done and now >= until:
                frames += feed.end("rotate", True)
            if frames:
                await self._send(encoded(frames, self.encode))
                silent_from = time.monotonic()
                continue
            if now - silent_from >= limits.heartbeat_seconds:
                await self._send(encoded(feed.progress(), self.encode) or _HEARTBEATS[self._media])
                silent_from = now
            due = feed.due_in(now)
            waits = [silent_from + limits.heartbeat_seconds - now, until - now, *([due] if due is not None else [])]
            await self.bell.wait(min(waits))

    async def _due(self, now: float) -> list[Frame]:
        frames = self.feed.poll(now, blocking=False)
        if frames is None:
            frames = await self.hub.run(lambda: self.feed.poll(now, blocking=True))
        return frames or []

    async def _send(self, data: bytes) -> None:
        """Send; a client that takes nothing for long is cut off (`_stalled`)."""
        if self._gone:
            return
        self._sending_since = time.monotonic()
        await self._asgi_send({"type": "http.response.body", "body": data, "more_body": True})
        self._sending_since = None

    def _stalled(self) -> None:
        """Cut a client off that has not taken what was sent to it."""
        limit, since = self.hub.limits.send_seconds, self._sending_since
        if since is not None and time.monotonic() - since >= limit:
            self._gone = True
            self.task.cancel()
        elif not self.task.done():
            asyncio.get_running_loop().call_later(limit, self._stalled)

    async def _watch(self) -> None:
        """Notice that the client has gone."""
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._gone = True
        self.bell.ring()


def _begin(feed: AnyFeed) -> tuple[AnyFeed, list[Frame]]:
    """A feed with its first frames."""
    try:
        return feed, feed.open(time.time_ns() // 1_000_000)
    except BaseException:
        feed.close()
        raise


def _headers(media: str, position: str) -> list[tuple[bytes, bytes]]:
    return [(b"content-type", f"{media}; charset=utf-8".encode()), (b"cache-control", b"no-cache, no-transform"),
            (b"x-accel-buffering", b"no"), (b"rsp-last-event-id", position.encode("latin-1")), (b"vary", b"Accept"),
            (b"x-content-type-options", b"nosniff")]


def _query_string(scope: Scope) -> str:
    return bytes(scope["query_string"]).decode("latin-1")

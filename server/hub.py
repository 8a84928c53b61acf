"""Live feeds on asyncio: one task per client, bytes shared by all clients of a query, nobody waits for a slow one."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, cast

from engine.runtime.errors import EngineError
from server.feeds.driver import AnyFeed, Driver, ManyFeeds, Tail, headers
from server.feeds.exchange import Exchange, too_many
from server.feeds.feed import Feed
from server.feeds.frames import Frame, bye, sse
from server.feeds.options import MANY_PARAMETERS, parse_options, parse_tail
from server.formats.media import SSE
from server.outbox import Outbox, Receive, Scope, Send, Sending, abort_of, as_bytes, header, respond
from server.problems import Problem

_ALWAYS = {"Vary": "Accept", "X-Content-Type-Options": "nosniff"}


class Bell:
    """Wakes one task; `ring` may be called from any thread."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._rung = asyncio.Event()
        self._ringing = False

    def ring(self) -> None:
        """Wake the waiting task, or let it not fall asleep."""
        if self._ringing:   # the loop is told already, and has not come to it: a thousand results are one wake-up
            return
        self._ringing = True
        try:
            self._loop.call_soon_threadsafe(self._set)
        except RuntimeError:
            pass  # The loop is closed: there is nobody to wake.

    def _set(self) -> None:
        self._ringing = False
        self._rung.set()

    async def wait(self, seconds: float) -> None:
        """Return when rung, at the latest after `seconds`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._rung.wait()
        self._rung.clear()


class Hub:
    """Serves ``/queries/{name}/results``, ``/events`` and ``/streams/{name}/items`` as live feeds."""

    def __init__(self, exchange: Exchange, outbox: Outbox) -> None:
        self.exchange, self.limits, self.outbox = exchange, exchange.limits, outbox
        self._pool = ThreadPoolExecutor(4, thread_name_prefix="thalweg-replay")
        self._clients: set[_Client] = set()

    async def serve_results(self, scope: Scope, receive: Receive, send: Send, name: str, media: str, links: dict[str, str]) -> None:
        """A feed of one query; raises the problem if it cannot begin."""
        options, _ = parse_options(_query_string(scope), header(scope, "last-event-id"))
        await self._serve(scope, receive, send, media, lambda bell: Feed(self.exchange, name, options, bell.ring, links))

    async def serve_events(self, scope: Scope, receive: Receive, send: Send, media: str) -> None:
        """A feed of several queries, and of all changes of state."""
        options, names = parse_options(_query_string(scope), header(scope, "last-event-id"), MANY_PARAMETERS)
        if len(names) > self.limits.queries_per_feed:
            raise Problem("unknown-parameter", f"A feed has at most {self.limits.queries_per_feed} queries.", extra={"parameter": "query"})
        await self._serve(scope, receive, send, media, lambda bell: ManyFeeds(self.exchange, names, options, bell.ring))

    async def serve_tail(self, scope: Scope, receive: Receive, send: Send, name: str) -> None:
        since, limit = parse_tail(_query_string(scope), header(scope, "last-event-id"))
        await self._serve(scope, receive, send, SSE, lambda bell: Tail(self.exchange.engine, self.limits, name, since, limit))

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

    async def _serve(self, scope: Scope, receive: Receive, send: Send, media: str, make: Callable[[Bell], AnyFeed]) -> None:
        bell = Bell()
        try:
            if len(self._clients) >= self.limits.subscribers:
                raise too_many(self.limits, self.limits.subscribers, len(self._clients))
            driver = await self.run(lambda: Driver(make(bell), media, self.limits))
        except Problem as problem:
            if problem.slug != "quota-subscribers" or media != SSE:
                raise
            # What an EventSource understands: come again later.
            body = f"retry: {self.limits.retry_when_full_ms}\n".encode() + sse(bye("quota", True, problem.body()))
            await respond(send, 200, {**headers(SSE, "none"), **_ALWAYS}.items(), body)
            return
        except EngineError as error:
            if media == SSE and error.status == 410:
                await respond(send, 204)
                return
            raise
        client = _Client(self, driver, bell, receive, send, abort_of(scope))
        self._clients.add(client)
        try:
            await client.run()
        finally:
            self._clients.discard(client)
            driver.feed.close()

    async def run(self, work: Callable[[], Any]) -> Any:
        """Do blocking work beside the loop."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)


class _Client:
    def __init__(self, hub: Hub, driver: Driver, bell: Bell, receive: Receive, send: Send, abort: Callable[[], None]) -> None:
        self.hub, self.driver, self.bell = hub, driver, bell
        self.task = cast("asyncio.Task[None]", asyncio.current_task())
        self._receive, self._asgi_send = receive, send
        self._sending = Sending(hub.outbox, send, abort)
        self._left = False

    async def run(self) -> None:
        """Send the first frames, then go on until the client goes, the feed ends, or the connection is old enough to be renewed."""
        headers = as_bytes({**self.driver.headers, **_ALWAYS}.items())
        await self._asgi_send({"type": "http.response.start", "status": 200, "headers": headers})
        watcher = asyncio.create_task(self._watch())
        try:
            await self._sending.send(self.driver.opening(time.monotonic()))
            await self._follow()
            if not self._gone:
                await self._asgi_send({"type": "http.response.body", "body": b""})
        finally:
            watcher.cancel()

    @property
    def _gone(self) -> bool:
        return self._left or self._sending.gone

    async def _follow(self) -> None:
        while not self.driver.feed.done and not self._gone:
            now = time.monotonic()
            pieces = self.driver.news(await self._news(now), now, self.hub.exchange.closing)
            if pieces:
                await self._sending.send(pieces)
            else:
                await self.bell.wait(self.driver.patience(now))

    async def _news(self, now: float) -> list[Frame]:
        feed = self.driver.feed
        frames = feed.poll(now, blocking=False)
        if frames is None:
            frames = await self.hub.run(lambda: feed.poll(now, blocking=True))
        return frames or []

    async def _watch(self) -> None:
        """Notice that the client has gone."""
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._left = True
        self.bell.ring()


def _query_string(scope: Scope) -> str:
    return bytes(scope["query_string"]).decode("latin-1")

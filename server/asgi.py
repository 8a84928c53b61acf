"""The ASGI application: live feeds and health natively, everything else through the bridge to Flask; one process."""

import asyncio
import logging
import re
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import quote

from werkzeug.exceptions import HTTPException

from server import guard
from server.app import create_app, unavailable
from server.bridge import Bridge, Gone, Kind
from server.feeds.exchange import Exchange
from server.formats.media import GRAPH_RESULT_TYPES, HTML, JSONL, SSE, TABLE_TYPES, TRIG, accepted
from server.hub import Hub
from server.outbox import Outbox, Receive, Scope, Send, as_bytes, header, respond
from server.problems import Problem, dumps, form_for, from_error, head_too_large
from server.routes.info import readiness
from server.sinks import Sinks
from server.web import Site

log = logging.getLogger("thalweg.server")
_RESULTS, _ITEMS, _EVENTS = (re.compile(p) for p in (r"/queries/([^/]+)/results", r"/streams/([^/]+)/items", "/events"))
_BESIDE_A_HEADER = len(": \r\n")
# What is offered as a live feed, and what Flask gives as a document at the same address.
_OFFERED: dict[re.Pattern[str], tuple[tuple[str, ...], tuple[str, ...]]] = {
    _RESULTS: ((SSE, JSONL), (*TABLE_TYPES, *GRAPH_RESULT_TYPES, HTML)), _ITEMS: ((SSE,), (JSONL, TRIG)), _EVENTS: ((SSE, JSONL), ())}


class Application:
    """ASGI 3. `starting` and `stopping` run beside the loop when the server starts and stops (the engine's own)."""

    def __init__(self, site: Site, base_path: str = "", starting: Callable[[], None] | None = None,
                 stopping: Callable[[], None] | None = None) -> None:
        self._base_path = base_path.rstrip("/")
        self._starting, self._stopping = starting, stopping
        self.exchange = Exchange(site.engine, site.limits)
        self._sinks = Sinks(site.engine, site.limits)
        self.site = replace(site, audience=self.exchange, sinks=self._sinks)
        self.flask = create_app(site.engine, self.site)
        outbox = Outbox(site.limits)
        self._hub = Hub(self.exchange, outbox)
        self._bridge = Bridge(self.flask.wsgi_app, site.limits, outbox, self._kind_of)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One connection, or the life of the server."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, send)
        else:
            raise RuntimeError(f"not served: {scope['type']}")

    async def goodbye(self) -> None:
        await self._hub.close(self.site.limits.shutdown_seconds)

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                self.exchange.start()
                self._sinks.start()
                if self._starting is not None:
                    threading.Thread(target=self._starting, name="thalweg-start", daemon=True).start()
                await send({"type": "lifespan.startup.complete"})
            else:
                await self.goodbye()
                await asyncio.get_running_loop().run_in_executor(None, self._sinks.stop)
                if self._stopping is not None:
                    await asyncio.get_running_loop().run_in_executor(None, self._stopping)
                await asyncio.get_running_loop().run_in_executor(None, self.exchange.stop)
                self._bridge.close()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = False
        allowing = as_bytes(guard.cors_headers(partial(header, scope), self.site.origins))

        async def noted(message: Any) -> None:
            nonlocal started
            started = True
            await send(message)

        async def own(message: Any) -> None:
            """What Flask has no part in gets its headers for other origins here."""
            if message["type"] == "http.response.start":
                message["headers"] += allowing
            await noted(message)

        try:
            self._check_head(scope)
            path = self._local_path(scope)
            answer = guard.preflight(scope["method"], partial(header, scope), self.site.hosts, self.site.origins)
            if answer is not None:      # of an origin that may read
                await respond(own, 204, answer)
            elif path in ("/health/live", "/health/ready") and scope["method"] in ("GET", "HEAD"):
                await self._health(scope, path, own)
            elif not await self._feed(scope, receive, own, path):
                await self._bridge({**scope, "root_path": self._base_path}, receive, noted)
        except Gone:
            return
        except Exception as error:  # every failure has the one error body, also those of the server itself
            if started:
                raise
            await self._refuse(scope, own, from_error(error))

    def _check_head(self, scope: Scope) -> None:
        """Raise Problem where a head that came whole, and so was not counted on its way (serving.py), is too large."""
        most = self.site.limits.header_bytes
        target = len(scope.get("raw_path") or scope["path"].encode()) + len(scope["query_string"])
        if target + sum(len(name) + len(value) + _BESIDE_A_HEADER for name, value in scope["headers"]) > most:
            raise head_too_large(most)

    def _kind_of(self, scope: Scope) -> Kind:
        try:
            endpoint, _ = self.flask.url_map.bind("localhost").match(self._local_path(scope), method=scope["method"])
        except HTTPException:
            return "quick"
        view: Any = self.flask.view_functions[endpoint]
        return view.kind

    def _local_path(self, scope: Scope) -> str:
        path: str = scope["path"]
        if path != self._base_path and not path.startswith(f"{self._base_path}/"):
            raise Problem("not-found", f"There is nothing at {path[:200]}; the server is at {self._base_path}/.")
        return path[len(self._base_path):] or "/"

    async def _health(self, scope: Scope, path: str, send: Send) -> None:
        guard.check("GET", partial(header, scope), self.site.hosts, self.site.origins, base_url=self.site.base_url)
        if scope["query_string"]:
            raise Problem("unknown-parameter", "There are no parameters here.")
        status, value = (200, {"status": "live"}) if path == "/health/live" else readiness(
            self.site.engine, self._sinks, self.exchange.worker)
        body = dumps(value)
        headers = [("content-type", "application/json"), ("content-length", str(len(body))), ("cache-control", "no-store")]
        headers += [("retry-after", "2")] if status == 503 else []
        await respond(send, status, headers, body if scope["method"] == "GET" else b"")

    async def _feed(self, scope: Scope, receive: Receive, send: Send, path: str) -> bool:
        """Serve a live feed, if that is what is asked for."""
        found = next(((pattern, match) for pattern in _OFFERED if (match := pattern.fullmatch(path))), None)
        if found is None or scope["method"] != "GET":
            return False
        pattern, match = found
        feeds, documents = _OFFERED[pattern]
        media = accepted(header(scope, "accept"), (*documents, *feeds))
        if media not in feeds:
            return False
        guard.check("GET", partial(header, scope), self.site.hosts, self.site.origins, base_url=self.site.base_url)
        if self.exchange.closing:
            raise Problem("shutting-down", "The server is shutting down.")
        if not self.site.engine.ready:
            raise unavailable(self.site.engine)
        if pattern is _RESULTS:
            links = {kind: f"{self._base_path}/queries/{quote(match[1])}/{kind}" for kind in ("results", "plan", "stats")}
            await self._hub.serve_results(scope, receive, send, match[1], media, links)
        elif pattern is _ITEMS:
            await self._hub.serve_tail(scope, receive, send, match[1])
        else:
            await self._hub.serve_events(scope, receive, send, media)
        return True

    async def _refuse(self, scope: Scope, send: Send, problem: Problem) -> None:
        host = header(scope, "host") or ""
        base = f"{scope.get('scheme', 'http')}://{host}{self._base_path}"
        body, media = problem.render(form_for(header(scope, "accept") or ""), base)
        headers = {"content-type": media, "content-length": str(len(body)), "cache-control": "no-store", "vary": "Accept",
                   "x-content-type-options": "nosniff", **{name.lower(): value for name, value in problem.headers.items()}}
        await respond(send, problem.status, headers.items(), body if scope["method"] != "HEAD" else b"")

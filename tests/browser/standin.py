"""A stand-in for the server: the documented routes (docs/http-api.md) with canned answers and scripted feeds, without Spark.

The browser tests run against it; `tests/browser/demo.py` serves it with a moving weather feed, to look at the console.
"""

from __future__ import annotations

import json
import queue
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.browser import routes
from tests.browser.wire import Refused, Reply, Request

STATIC = Path(__file__).resolve().parents[2] / "static"
TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
         ".svg": "image/svg+xml", ".json": "application/json", ".rq": "application/sparql-query; charset=utf-8",
         ".rifps": "text/x-rif-ps; charset=utf-8", ".lars": "text/x-lars; charset=utf-8", ".dmtl": "text/x-datalogmtl; charset=utf-8"}
# Stricter than the server's own policy needs to be: no inline script or style, and no HTML made from text.
POLICY = "default-src 'self'; base-uri 'none'; object-src 'none'; require-trusted-types-for 'script'"


@dataclass
class Feed:
    """The scripted feed of one query: what was sent, and who listens."""

    events: list[tuple[str, dict[str, Any], str | None]] = field(default_factory=list)
    listeners: list[queue.SimpleQueue[bytes | None]] = field(default_factory=list)
    connections: list[dict[str, str]] = field(default_factory=list)
    refuse: int | None = None


def frame(event: str, data: dict[str, Any], event_id: str | None = None) -> bytes:
    """One server-sent event."""
    head = f"id: {event_id}\n" if event_id else ""
    return f"{head}event: {event}\ndata: {json.dumps(data)}\n\n".encode()


class Standin:
    """The catalogue, the feeds and the log of requests; a test scripts it directly. Start with `with Standin() as server`, or let it answer
    behind an `Address`."""

    base: str

    def __init__(self) -> None:
        self.streams: dict[str, dict[str, Any]] = {}
        self.queries: dict[str, dict[str, Any]] = {}
        self.graphs: dict[str, dict[str, Any]] = {}
        self.rules: dict[str, dict[str, Any]] = {rules["name"]: rules for rules in routes.RULES}
        self.feeds: dict[str, Feed] = {}
        self.requests: list[Request] = []
        self.items: dict[str, str] = {}
        self.answers: dict[str, Reply] = {}
        self.unknown: list[str] = []
        self.trouble: Refused | None = None
        self.refusal: Reply | None = None
        self.readiness = Reply(200, {"status": "ready", "progress": "", "degraded": []})
        self.silent = False
        self.heartbeat_s = 15.0
        self.explain: Callable[[str], Reply] = routes.default_explain
        self.lock = threading.RLock()

    def __enter__(self) -> Standin:
        self.address = Address()
        return self.begin(self.address)

    def __exit__(self, *_: object) -> None:
        self.end()
        self.address.close()

    def begin(self, address: Address) -> Standin:
        """Answer what comes to an address from now on."""
        address.standin, self.base = self, address.base
        return self

    def end(self) -> None:
        """End the feeds."""
        for name in list(self.feeds):
            self.cut(name)

    def feed(self, name: str) -> Feed:
        return self.feeds.setdefault(name, Feed())

    def emit(self, name: str, event: str, data: dict[str, Any], event_id: str | None = None) -> None:
        """Send an event to everyone who follows the query, and keep it for those who come later if it has an id."""
        with self.lock:
            if event_id:
                self.feed(name).events.append((event, data, event_id))
            for listener in self.feed(name).listeners:
                listener.put(frame(event, data, event_id))

    def cut(self, name: str) -> None:
        """End the connections of a feed without a word."""
        with self.lock:
            for listener in self.feed(name).listeners:
                listener.put(None)

    def subscribe(self, name: str, last_id: str | None, mode: str) -> queue.SimpleQueue[bytes | None]:
        """A new listener with its first events: hello, then what it missed, or a snapshot."""
        with self.lock:
            feed, listener = self.feed(name), queue.SimpleQueue[bytes | None]()
            ids = [event_id for _, _, event_id in feed.events]
            resumed = last_id in ids
            query = self.queries[name]
            hello = {"query": name, "form": query["form"], "mode": mode or "full", "output": query["output"],
                     "resumed": resumed, "from": last_id if resumed else None, "heartbeatSeconds": self.heartbeat_s,
                     "newestId": ids[-1] if ids else None}
            listener.put(b"retry: 100\n\n" if self.silent else b"retry: 100\n" + frame("hello", hello))
            missed = feed.events[ids.index(last_id) + 1:] if resumed else []
            if not resumed and feed.events and feed.events[-1][0] == "result":
                listener.put(frame("snapshot", {**feed.events[-1][1], "chunk": 0, "last": True}, feed.events[-1][2]))
            for event in missed:
                listener.put(frame(*event))
            feed.listeners.append(listener)
            return listener

    def unsubscribe(self, name: str, listener: queue.SimpleQueue[bytes | None]) -> None:
        with self.lock:
            self.feed(name).listeners.remove(listener)

    def answer(self, request: Request) -> Reply:
        """The reply to anything but a feed."""
        if request.path == "/" or request.path.startswith("/static/"):
            return static(request.path)
        if self.trouble:
            raise self.trouble
        if self.refusal and request.method == "POST":
            return self.refusal
        for method, pattern, handler in routes.ROUTES:
            match = re.fullmatch(pattern, request.path)
            if match and method == request.method:
                with self.lock:
                    return handler(self, request, *map(unquote, match.groups()))
        self.unknown.append(f"{request.method} {request.path}")
        raise Refused(404, "not-found", f"There is nothing at {request.method} {request.path}.")


class Address(ThreadingHTTPServer):
    """A port behind which one stand-in after another may answer. A browser that `keeps` the console's files loads fifty of them once, which
    is half the work of opening a page."""

    daemon_threads = True

    def __init__(self, keeps: bool = False) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.standin = Standin()
        self.keeps = keeps
        self.base = f"http://127.0.0.1:{self.server_address[1]}/"
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Address

    def log_message(self, *_: object) -> None:
        """Quiet: the tests read `requests` instead."""

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        parameters = {name: values[-1] for name, values in parse_qs(url.query).items()}
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        request = Request(self.command, url.path, parameters, dict(self.headers), body)
        self.standin = self.server.standin
        self.standin.requests.append(request)
        match = re.fullmatch("/queries/([^/]+)/results", url.path)
        try:
            if match and "text/event-stream" in self.headers.get("Accept", ""):
                self.follow(unquote(match[1]), request)
            else:
                self.reply(self.standin.answer(request))
        except Refused as problem:
            self.reply(Reply(problem.status, problem.body, "application/problem+json"))
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_GET

    def reply(self, reply: Reply) -> None:
        data = reply.encoded()
        self.send_response(reply.status)
        kept = self.server.keeps and reply.status == 200 and self.path.startswith("/static/")
        headers = {"Content-Type": reply.type, "Content-Security-Policy": POLICY, "Cache-Control": "max-age=3600" if kept else "no-store",
                   **reply.headers}
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if reply.status != 204 and self.command != "HEAD":
            self.wfile.write(data)

    def follow(self, name: str, request: Request) -> None:
        """The live feed: ends when the script cuts it or the browser has gone."""
        if self.standin.trouble:
            raise self.standin.trouble
        if name not in self.standin.queries:
            self.reply(Reply(204))
            return
        feed = self.standin.feed(name)
        feed.connections.append({**request.parameters, "Last-Event-ID": self.headers.get("Last-Event-ID", "")})
        if feed.refuse:
            raise Refused(feed.refuse, "quota-subscribers", "Too many subscribers follow this query.")
        last_id = self.headers.get("Last-Event-ID") or request.parameters.get("last_event_id")
        listener = self.standin.subscribe(name, last_id, request.parameters.get("mode", ""))
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Cache-Control", "no-cache, no-transform")
        self.end_headers()
        try:
            while True:
                try:
                    data = listener.get(timeout=1)
                except queue.Empty:
                    data = b": hb\n\n"
                if data is None:
                    return
                self.wfile.write(data)
        finally:
            self.standin.unsubscribe(name, listener)


def static(path: str) -> Reply:
    file = STATIC / ("index.html" if path == "/" else unquote(path.removeprefix("/static/")))
    if STATIC not in file.resolve().parents or not file.is_file():
        raise Refused(404, "not-found", f"There is no file {path}.")
    return Reply(200, file.read_bytes(), TYPES[file.suffix])

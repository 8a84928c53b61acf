"""Live feeds on a plain WSGI host: a generator and a thread for each client, so only a few of them (server/hub.py serves thousands)."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

from flask import Response, current_app, request

from server.feeds.exchange import Exchange
from server.feeds.feed import Feed
from server.feeds.frames import encoded, jsonl, sse
from server.feeds.options import parse_options
from server.formats.media import SSE
from server.problems import Problem
from server.web import path, site

_EXTENSION = "thalweg-exchange"
_starting = threading.Lock()


def plain_feed(name: str, media: str) -> Response:
    """The feed of one query; everything that can be refused is refused before it begins."""
    exchange = _exchange()
    if exchange.total >= site().limits.plain_wsgi_feeds:
        raise Problem("quota-subscribers", "This host serves only a few live feeds.", status=503,
                      extra={"limit": site().limits.plain_wsgi_feeds, "current": exchange.total})
    news = threading.Event()
    options, _ = parse_options(request.query_string.decode("latin-1"), request.headers.get("Last-Event-ID"))
    links = {kind: path("queries", name, kind) for kind in ("results", "plan", "stats")}
    feed = Feed(exchange, name, options, news.set, links)
    try:
        first = feed.open(time.time_ns() // 1_000_000)
    except BaseException:
        feed.close()
        raise
    encode = sse if media == SSE else jsonl
    response = Response(_generate(feed, news, encoded(first, encode), media), content_type=f"{media}; charset=utf-8")
    response.call_on_close(feed.close)
    response.headers.update({"Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no", "RSP-Last-Event-ID": feed.position})
    return response


def _generate(feed: Feed, news: threading.Event, first: bytes, media: str) -> Iterator[bytes]:
    limits = feed.limits
    encode, beat = (sse, b": hb\n\n") if media == SSE else (jsonl, b"\n")
    until = time.monotonic() + limits.feed_seconds
    yield (f"retry: {limits.retry_ms}\n".encode() if media == SSE else b"") + first
    while not feed.done:
        news.clear()
        now = time.monotonic()
        frames = feed.poll(now, blocking=True) or []
        if not feed.done and now >= until:
            frames += feed.end("rotate", True)
        if frames:
            yield encoded(frames, encode)
        elif not news.wait(min(limits.heartbeat_seconds, max(0.0, until - now), *filter(None, [feed.due_in(now)]))):
            yield encoded(feed.progress(), encode) or beat


def _exchange() -> Exchange:
    """The exchange of a plain WSGI host, started when first needed."""
    with _starting:
        if _EXTENSION not in current_app.extensions:
            exchange = Exchange(site().engine, site().limits)
            exchange.start()
            current_app.extensions[_EXTENSION] = exchange
        found: Exchange = current_app.extensions[_EXTENSION]
        return found

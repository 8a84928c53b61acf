"""Live feeds on a plain WSGI host: a generator and a thread for each client, so only a few of them (server/hub.py serves thousands)."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

from flask import Response, current_app, request

from server.feeds.driver import Driver
from server.feeds.exchange import Exchange
from server.feeds.feed import Feed
from server.feeds.options import parse_options
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
    driver = Driver(Feed(exchange, name, options, news.set, links), media, exchange.limits)
    response = Response(_generate(driver, news))
    response.call_on_close(driver.feed.close)
    response.headers.update(driver.headers)
    return response


def _generate(driver: Driver, news: threading.Event) -> Iterator[bytes]:
    yield driver.begin(time.monotonic())
    while not driver.feed.done:
        news.clear()
        now = time.monotonic()
        data = driver.due(driver.feed.poll(now, blocking=True) or [], now)
        if data:
            yield data
        else:
            news.wait(driver.patience(now))


def _exchange() -> Exchange:
    """The exchange of a plain WSGI host, started when first needed."""
    with _starting:
        if _EXTENSION not in current_app.extensions:
            exchange = Exchange(site().engine, site().limits)
            exchange.start()
            current_app.extensions[_EXTENSION] = exchange
        found: Exchange = current_app.extensions[_EXTENSION]
        return found

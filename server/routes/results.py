"""``/queries/{name}/results`` as a document: the last complete result in the format that the client accepts.

The live feeds of the same address (``text/event-stream``, ``application/jsonl``) are served by server/hub.py; on a plain WSGI host
a few clients get them here, by a generator and a thread for each.
"""

import threading
import time
from collections.abc import Iterator

import pyarrow as pa
from flask import Blueprint, Response, current_app, request

from engine.output import payload
from engine.runtime.resources import QueryInfo, ResultEvent, iso
from server.feeds.driver import Driver
from server.feeds.exchange import Exchange
from server.feeds.feed import Feed, streams_of
from server.feeds.options import PARAMETERS, parse_options
from server.feeds.whole import latest_whole
from server.formats import results as formats
from server.formats.media import GRAPH_RESULT_TYPES, HTML, JSON, JSONL, SSE, TABLE_TYPES, TEXT
from server.formats.values import choice, count
from server.problems import Problem
from server.routes.info import console
from server.web import best, json_reply, parameter, path, reply, route, site
from server.why import as_text, explained

blueprint = Blueprint("results", __name__)
GRAPH_FORMS = ("CONSTRUCT", "DESCRIBE")
_EXTENSION = "thalweg-exchange"
_starting = threading.Lock()


@route(blueprint, "/queries/<name>/results", "GET", query=PARAMETERS, page=True)
def latest(name: str) -> Response:
    """The relation at the last evaluation; empty, with ``RSP-Event-Id: none``, where there was none yet."""
    info: QueryInfo = site().engine.query(name)
    graph = info.form in GRAPH_FORMS
    feeds = () if site().audience else (SSE, JSONL)
    media = best(*(GRAPH_RESULT_TYPES if graph else TABLE_TYPES), HTML, *feeds)
    if media == HTML:
        return console()
    if media in feeds:
        return reply(b"", media) if request.method == "HEAD" else plain_feed(name, media)
    options, _ = parse_options(request.query_string.decode(), None)
    streams = streams_of(info, options)
    event: ResultEvent | None
    if streams and (options.mode == "full" or options.snapshot):
        event = latest_whole(site().engine, name)
    else:
        event = site().engine.results.latest(name, {"p": "istream", "n": "dstream"}.get(streams))
    if event is not None and event.epoch != info.epoch:     # of the query that this one replaces: the pump is not there yet
        event = None
    if event is not None:
        data = event.full
    else:
        data = b"" if graph else payload(info.form, pa.table({name: pa.array([], pa.string()) for name in info.variables}))
    if graph:
        text = formats.graph(data, media, f"{info.iri}/results/{event.id}" if event else None, iso(event.at_ms) if event else None)
    else:
        text = formats.table(data, media)
    return reply(text, media, etag=event.id if event else "none", headers=_headers(name, event))


@route(blueprint, "/queries/<name>/results/<id>/why", "GET", query=("row", "max", "mode"), kind="proofs")
def why(name: str, id: str) -> Response:
    """The proofs of one row of a result, as JSON or as text."""
    limits = site().limits
    row, most = parameter("row", count(1 << 31), 0), parameter("max", count(limits.why_proofs, 1), 1)
    mode = parameter("mode", choice("full", "delta"), "full")
    media = best(JSON, TEXT)
    found = explained(site().engine.evidence(name, id), row, most, mode, limits.why_triples)
    return json_reply(found) if media == JSON else reply(as_text(found), TEXT)


def _headers(name: str, event: ResultEvent | None) -> dict[str, str]:
    """What a document says about its place in the feed."""
    event_id = event.id if event else "none"
    since = f"?since={event_id}" if event else ""
    headers = {"RSP-Event-Id": event_id, "Link": f'<{path("queries", name, "results")}{since}>; rel="monitor"; type="text/event-stream"'}
    if event and event.windows:
        headers["RSP-Window"] = ", ".join(f'open="{iso(w["open"])}", close="{iso(w["close"])}"' for w in event.windows)
    if event and event.meta.get("truncated"):
        headers["RSP-Truncated"] = str(event.meta.get("limit", "true"))
    return headers


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
    yield b"".join(driver.opening(time.monotonic()))
    while not driver.feed.done:
        news.clear()
        now = time.monotonic()
        data = b"".join(driver.news(driver.feed.poll(now, blocking=True) or [], now))
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

"""``/info`` and ``/health``: what this server is, and whether it is well. And the console: ``/`` and the files of ``static/``."""

import hashlib
import platform
from typing import Any

from flask import Blueprint, Response, request
from werkzeug.security import safe_join

from engine.plan.build import MAX_NODES
from engine.rewrite.validate import MAX_RULES
from engine.supervision import Worker
from grammar.rule_sets import BY_MEDIA, RULE_SET_TYPES, STATEMENT_LANGUAGES
from grammar.statement import TEXT_LIMITS
from server import package_version
from server.formats.media import GRAPH_TYPES, HTML, JSON, PUSH_TYPES, TEXT
from server.problems import SLUGS, Problem
from server.sinks import Sinks
from server.web import best, json_reply, path, reply, route, site

blueprint = Blueprint("info", __name__)
_MOST_BUSY_S = 60.0
FEATURES = (*STATEMENT_LANGUAGES, "rdfs", *dict.fromkeys(BY_MEDIA[media].name for media in RULE_SET_TYPES), "sse", "jsonl", "sparql",
            "graph-store", "explain", "gzip", "idempotency")
_TYPES = {".html": "text/html", ".js": "text/javascript", ".mjs": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml",
          ".json": "application/json", ".rq": "application/sparql-query", ".ttl": "text/turtle", ".trig": "application/trig",
          ".png": "image/png", ".ico": "image/x-icon", ".txt": "text/plain", ".woff2": "font/woff2", ".nq": "application/n-quads"}


@route(blueprint, "/info", "GET", starting=True)
def info() -> Response:
    """Version, features, limits, and the state of the engine."""
    own = site()
    return json_reply({"name": "thalweg", "version": package_version("thalweg"), "python": platform.python_version(),
                       "spark": package_version("pyspark"), "features": list(FEATURES), "state": own.engine.state,
                       "progress": own.engine.progress,
                       "types": {"push": list(PUSH_TYPES), "graphs": list(GRAPH_TYPES), "rules": list(RULE_SET_TYPES)},
                       "limits": own.limits.as_json(), "textLimits": {**TEXT_LIMITS, "rules": MAX_RULES, "plan_steps": MAX_NODES},
                       **(own.engine.info() if hasattr(own.engine, "info") else {})})


@route(blueprint, "/health/live", "GET", starting=True)
def live() -> Response:
    """The process answers."""
    return json_reply({"status": "live"})


@route(blueprint, "/health/ready", "GET", starting=True)
def ready() -> Response:
    """The engine answers."""
    status, value = readiness(site().engine, site().sinks)
    return json_reply(value, status, headers={"Retry-After": "2"} if status == 503 else None)


@route(blueprint, "/problems/<slug>", "GET", starting=True, page=True)
def problem(slug: str) -> Response:
    """What a problem type means."""
    if slug not in SLUGS:
        raise Problem("not-found", f"There is no problem {slug!r}.")
    status, title = SLUGS[slug]
    if best(JSON, TEXT, HTML) == JSON:
        return json_reply({"slug": slug, "status": status, "title": title})
    return reply(f"{status} {slug}: {title}\n", TEXT)


def readiness(engine: Any, sinks: Sinks | None = None, feeds: Worker | None = None) -> tuple[int, dict[str, Any]]:
    """Status and body of ``/health/ready``; `sinks` writes results to topics, `feeds` is the thread that tells clients what
    the engine does."""
    well, more = engine.health()
    if sinks is not None and engine.ready:
        more["degraded"] = [*more["degraded"], *sinks.troubles()]
    trouble = feeds.trouble(_MOST_BUSY_S) if feeds is not None else None
    if feeds is not None and "threads" in more:
        more["threads"] = {**more["threads"], feeds.name: feeds.to_json()}
    if trouble is not None:
        well, more["reason"] = False, "; ".join([*([more["reason"]] if "reason" in more else []), trouble])
    return (200 if well else 503), {"status": "ready" if well else engine.state, "progress": engine.progress, **more}


@route(blueprint, "/", "GET", starting=True, page=True)
def home() -> Response:
    """The console for browsers, the list of resources for programs."""
    if best(JSON, HTML) == HTML:
        return console()
    return json_reply({"name": "thalweg", "links": {name: path(name) for name in
                                                    ("streams", "queries", "graphs", "rules", "sparql", "explain", "events", "info")}})


@route(blueprint, "/static/<path:file>", "GET", starting=True)
def static(file: str) -> Response:
    return _file(file)


@route(blueprint, "/favicon.ico", "GET", starting=True)
def icon() -> Response:
    return _file("icon.svg")


def console() -> Response:
    if request.path != "/":
        return Response(status=303, headers={"Location": request.script_root + "/#" + request.path.removesuffix("/results")})
    return _file("index.html")


def _file(name: str) -> Response:
    found = safe_join(str(site().static), name)
    media = _TYPES.get(name[name.rfind("."):]) if "." in name else None
    try:
        if found is None or media is None:
            raise FileNotFoundError(name)
        with open(found, "rb") as file:
            data = file.read()
    except OSError:
        raise Problem("not-found", f"There is no file {name[:200]!r}.") from None
    return reply(data, media, etag=hashlib.sha256(data).hexdigest()[:16])

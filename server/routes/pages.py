"""The console: ``/`` and the files of ``static/``."""

from __future__ import annotations

import hashlib

from flask import Blueprint, Response, request
from werkzeug.security import safe_join

from server.formats.media import HTML, JSON
from server.problems import Problem
from server.web import best, json_reply, path, reply, route, site

blueprint = Blueprint("pages", __name__)
_TYPES = {".html": "text/html", ".js": "text/javascript", ".mjs": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml",
          ".json": "application/json", ".rq": "application/sparql-query", ".ttl": "text/turtle", ".trig": "application/trig",
          ".png": "image/png", ".ico": "image/x-icon", ".txt": "text/plain", ".woff2": "font/woff2", ".nq": "application/n-quads"}


@route(blueprint, "/", "GET", starting=True, page=True)
def home() -> Response:
    """The console for browsers, the list of resources for programs."""
    if best(JSON, HTML) == HTML:
        return console()
    return json_reply({"name": "thalweg", "links": {name: path(name) for name in
                                                    ("streams", "queries", "graphs", "rules", "sparql", "explain", "events", "info")}})


@route(blueprint, "/static/<path:file>", "GET", starting=True)
def static(file: str) -> Response:
    """A file of the console."""
    return _file(file)


@route(blueprint, "/favicon.ico", "GET", starting=True)
def icon() -> Response:
    return _file("icon.svg")


def console() -> Response:
    """The console's page."""
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

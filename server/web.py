"""What all routes share: the site they belong to, their parameters, bodies, conditions and replies."""

import hashlib
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast
from urllib.parse import quote

import orjson
from flask import Blueprint, Response, current_app, request

from server.feeds.exchange import Exchange
from server.formats.bodies import read_body
from server.formats.media import JSON, LOOKED_AT, accepted, content_type, fitting
from server.guard import LOOPBACK_NAMES
from server.limits import Limits
from server.bridge import Kind
from server.problems import Problem, dumps
from server.sinks import Sinks

View = TypeVar("View", bound=Callable[..., Any])
Value = TypeVar("Value")
STATIC = Path(__file__).resolve().parents[1] / "static"


class RateLimit:
    """At most `most` uses in the last minute; `take` raises `rate-limited` beyond that."""

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._clock = most, clock
        self._uses: deque[float] = deque()
        self._lock = threading.Lock()

    def take(self) -> None:
        with self._lock:
            now = self._clock()
            while self._uses and self._uses[0] <= now - 60:
                self._uses.popleft()
            if len(self._uses) >= self._most:
                wait = int(self._uses[0] + 60 - now) + 1 if self._uses else 60
                raise Problem("rate-limited", f"There may be {self._most} registrations a minute.",
                              extra={"limit": self._most, "current": len(self._uses), "retryAfter": wait})
            self._uses.append(now)


@dataclass(frozen=True)
class Site:
    """One server: its engine, limits and names."""

    engine: Any
    limits: Limits = field(default_factory=Limits)
    hosts: frozenset[str] = LOOPBACK_NAMES
    origins: frozenset[str] = frozenset()
    base_url: str = "http://127.0.0.1:8175"
    static: Path = STATIC
    audience: Exchange | None = None
    sinks: Sinks | None = None
    registrations: RateLimit = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "registrations", RateLimit(self.limits.registrations_per_minute))


def site() -> Site:
    return cast(Site, current_app.extensions["thalweg"])


def route(blueprint: Blueprint, rule: str, *methods: str, query: Collection[str] = (), starting: bool = False,
          page: bool = False, others: bool = False, kind: Kind | None = None) -> Callable[[View], View]:
    """Register a view for `methods` of `rule` with the query parameters that it knows. `starting` marks those that work while the engine
    starts, `page` those that links of other sites may lead to, `others` those where unknown parameters are passed over and known ones may
    come again. `kind` is the kind of work (server/bridge.py): reads are quick, writes are the catalogue's, if nothing else is said."""
    def register(view: View) -> View:
        view.query_parameters = frozenset(query)  # type: ignore[attr-defined]
        view.other_parameters = others  # type: ignore[attr-defined]
        view.while_starting = starting  # type: ignore[attr-defined]
        view.page = page  # type: ignore[attr-defined]
        view.kind = kind or ("catalogue" if set(methods) - {"GET"} else "quick")  # type: ignore[attr-defined]
        blueprint.add_url_rule(rule, view_func=view, methods=list(methods) or ["GET"])
        return view
    return register


def parameter(name: str, read: Callable[[str], Value], default: Value) -> Value:
    """A query parameter through `read`; a ValueError there is a 400 that names it."""
    text = request.args.get(name)
    if text is None:
        return default
    try:
        return read(text)
    except ValueError as error:
        raise Problem("unknown-parameter", f"{name}={text[:100]!r}: {error}", extra={"parameter": name}) from error


def best(*offered: str) -> str:
    return accepted(request.headers.get("Accept"), offered)


def body_type(supported: Sequence[str], default: str | None = None) -> str:
    """The type of the body, one of `supported`; the 415 names the one that would fit."""
    try:
        return content_type(request.headers.get("Content-Type"), supported, default)
    except Problem as problem:
        fits = fitting(request.stream.read(LOOKED_AT), request.headers.get("Content-Encoding"))
        if fits not in supported or fits not in problem.extra["supported"]:
            raise
        hint = f"It looks like {fits}: send the header Content-Type: {fits}."
        raise Problem(problem.slug, f"{problem.detail} {hint}", extra={**problem.extra, "hint": hint, "fits": fits},
                      headers=problem.headers) from problem


def body(limit: int, limit_decompressed: int | None = None) -> bytes:
    length = request.content_length
    if length is not None and length > limit:
        raise Problem("body-too-large", f"The body has more than {limit} bytes.", extra={"limit": limit, "actual": length})
    return read_body(cast(BinaryIO, request.stream), request.headers.get("Content-Encoding"), limit, limit_decompressed)


def text_body(limit: int) -> str:
    raw = body(limit)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Problem("bad-request", f"The text is not UTF-8 (byte {error.start}).") from error


def json_object(text: str) -> dict[str, Any]:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise Problem("json-syntax", f"{error.msg}.", errors=[
            {"detail": error.msg, "location": {"line": error.lineno, "column": error.colno}}]) from error
    if not isinstance(value, dict):
        raise Problem("json-syntax", "Expected a JSON object.")
    return value


def known_members(value: Mapping[str, Any], known: Collection[str]) -> None:
    """Refuse members that nobody would read."""
    for name in value:
        if name not in known:
            raise Problem("unknown-parameter", f"There is no member {name!r}; there are {', '.join(sorted(known))}.", status=422,
                          extra={"parameter": name})


def etag_of(value: Any) -> str:
    """A strong ETag of a JSON value."""
    return hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS, default=str)).hexdigest()[:16]


def condition(etag_of_info: Callable[[Any], str]) -> Callable[[Any], None]:
    """What ``If-Match`` and ``If-None-Match`` of a write ask of what is there when the engine decides (None: nothing)."""
    match = request.if_match if "If-Match" in request.headers else None
    none_match = request.if_none_match if "If-None-Match" in request.headers else None

    def check(info: Any) -> None:
        etag = None if info is None else etag_of_info(info)
        if match is not None and (etag is None or not (match.star_tag or match.contains(etag))):
            raise Problem("etag-mismatch", "It is not the version that If-Match names.", extra={"etag": etag})
        if none_match is not None and etag is not None and none_match.contains_weak(etag):
            raise Problem("etag-mismatch", "It exists already, and If-None-Match forbids that.", extra={"etag": etag})

    return check


def reply(data: bytes | str, media: str, status: int = 200, *, etag: str | None = None,
          headers: Mapping[str, str] | None = None) -> Response:
    """A response; 304 where the client has it already."""
    unless = request.if_none_match if "If-None-Match" in request.headers and request.method in ("GET", "HEAD") else None
    if etag is not None and unless is not None and unless.contains_weak(etag):
        data, status = b"", 304
    response = Response(data, status, content_type=f"{media}; charset=utf-8" if media.startswith("text/") else media)
    if status == 204:
        del response.headers["Content-Type"]
    if etag is not None:
        response.set_etag(etag)
    response.headers["Vary"] = "Accept"
    response.headers.setdefault("Cache-Control", "no-cache")
    response.headers.update(headers or {})
    return response


def json_reply(value: Any, status: int = 200, *, etag: str | None = None, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON response; without body where a write was asked for ``Prefer: return=minimal``."""
    extra = dict(headers or {})
    if request.method in ("GET", "HEAD"):
        best(JSON)
    if request.method not in ("GET", "HEAD") and "return=minimal" in request.headers.get("Prefer", "").replace(" ", ""):
        extra["Preference-Applied"] = "return=minimal"
        return reply(b"", JSON, 204 if status == 200 else status, etag=etag, headers=extra)
    return reply(dumps(value) + b"\n", JSON, status, etag=etag, headers=extra)


def no_content() -> Response:
    """204: there is nothing to show, and so it has no type."""
    response = Response(status=204)
    del response.headers["Content-Type"]
    return response


def path(*parts: str) -> str:
    return request.script_root + "/" + "/".join(quote(part, safe="") for part in parts)

"""Pages of other origins that may read (``--allow-origin``): the headers of the CORS protocol (Fetch Standard, WHATWG, section 3.2).

Flask and the ASGI side both take them from here. Without such origins nothing is sent, and no preflight is answered.
"""

from __future__ import annotations

import re

from server.guard import READING, Header, host_name
from server.problems import Problem

EXPOSED = ("ETag", "Link", "Location", "Retry-After", "RSP-Event-Id", "RSP-Last-Event-ID", "RSP-Truncated", "RSP-Window")
ALLOWED = ("Accept", "Cache-Control", "If-None-Match", "Last-Event-ID")
_MAX_AGE_SECONDS = 600
_ORIGIN = re.compile(r"https?://(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?")
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}


def origin_of(text: str) -> str:
    """An origin as browsers write it, of what ``--allow-origin`` was given; ValueError for anything but one origin."""
    origin = text.strip().lower().removesuffix("/")
    if not _ORIGIN.fullmatch(origin):
        raise ValueError(f"{text!r} is not an origin: a scheme, a host and perhaps a port, such as https://board.example.org.")
    return origin.removesuffix(_DEFAULT_PORTS[origin.partition(":")[0]])


def headers(header: Header, origins: frozenset[str]) -> list[tuple[str, str]]:
    """What every response carries, errors included, where some origins may read. `header` looks a header of the request up."""
    if not origins:
        return []
    vary, origin = [("Vary", "Origin")], header("Origin")
    if origin is None or origin not in origins:
        return vary
    return [*vary, ("Access-Control-Allow-Origin", origin), ("Access-Control-Expose-Headers", ", ".join(EXPOSED))]


def preflight(method: str, header: Header, hosts: frozenset[str], origins: frozenset[str]) -> list[tuple[str, str]] | None:
    """What the answer to a preflight carries beside `headers`; None where the request is none, or of an origin that may not read."""
    asked = header("Access-Control-Request-Method")
    if method != "OPTIONS" or asked is None or header("Origin") not in origins or host_name(header("Host") or "") not in hosts:
        return None
    if asked not in READING:
        raise Problem("cross-site-request", f"A page of another origin may read here; {asked[:20]} would change something.")
    return [("Access-Control-Allow-Methods", "GET, HEAD"), ("Access-Control-Allow-Headers", ", ".join(ALLOWED)),
            ("Access-Control-Max-Age", str(_MAX_AGE_SECONDS))]

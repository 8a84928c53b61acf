"""Whom the server answers: known host names only, and no pages of other sites (docs/http-api.md, section 9), but for those of origins that
may read (``--allow-origin``), by the headers of the CORS protocol (Fetch Standard, WHATWG, section 3.2).

Browsers say whose page asks (Fetch Metadata Request Headers, W3C; the Origin header, RFC 6454). What says neither is no browser. Flask
and the ASGI side both ask here.
"""

import ipaddress
import re
from collections.abc import Callable
from urllib.parse import urlsplit

from server.problems import Problem

READING = frozenset({"GET", "HEAD", "OPTIONS"})
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
Header = Callable[[str], str | None]
EXPOSED = ("ETag", "Link", "Location", "Retry-After", "RSP-Event-Id", "RSP-Last-Event-ID", "RSP-Truncated", "RSP-Window")
ALLOWED = ("Accept", "Cache-Control", "If-None-Match", "Last-Event-ID")
_MAX_AGE_SECONDS = 600
_ORIGIN = re.compile(r"https?://(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?")
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}


def check(method: str, header: Header, hosts: frozenset[str], origins: frozenset[str] = frozenset(), page: bool = False,
          base_url: str = "http:") -> None:
    """Raise the problem of a request with a foreign ``Host`` (421) or from another site (403); pages of `origins` may read. `header` looks
    a header up. `page` marks what a link may lead to, which costs nothing to give. `base_url` is how the server names itself."""
    host = header("Host") or ""
    if host_name(host) not in hosts:
        raise Problem("untrusted-host", f"This server does not answer as {host[:200]!r}.", extra={"hosts": sorted(hosts)})
    if _own(header("Sec-Fetch-Site"), header("Origin"), host, base_url):
        return
    if method in READING:
        followed = page and header("Sec-Fetch-Mode") == "navigate" and header("Sec-Fetch-Dest") == "document"
        if followed or header("Origin") in origins:
            return
    raise Problem("cross-site-request", "A page of another site may neither read nor change anything here, unless --allow-origin names "
                  "the site: then it may read.")


def _own(site: str | None, origin: str | None, host: str, base_url: str) -> bool:
    """Whether a request comes from a page of this server, from the address bar, or from no page at all. At a loopback name the server
    speaks HTTP, and HTTPS where its own name says so; before a host that --allow-host names, a proxy may end TLS."""
    if site is not None:
        return site in ("same-origin", "none")
    if origin is None:
        return True
    scheme, _, place = origin.lower().partition("://")
    return place == host.lower() and (scheme in ("http", urlsplit(base_url).scheme) or host_name(host) not in LOOPBACK_NAMES)


def host_name(host: str) -> str:
    """The name in a Host header, in lower case, without port."""
    name = host.strip().lower()
    if name.startswith("["):
        return name.partition("]")[0] + "]"
    return name.partition(":")[0].rstrip(".")


def refuse_foreign_address(address: str) -> None:
    """Raise ValueError unless `address` is a loopback one: there are no tokens yet, and without one nobody else may connect."""
    name = address.strip("[]")
    try:
        loopback = name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        loopback = False
    if not loopback:
        raise ValueError(f"Will not listen on {address}: anyone who reaches it could push, register and delete. Other addresses than "
                         "loopback (127.0.0.1, ::1, localhost) need access tokens, which this version does not have.")


def origin_of(text: str) -> str:
    """An origin as browsers write it, of what ``--allow-origin`` was given; ValueError for anything but one origin."""
    origin = text.strip().lower().removesuffix("/")
    if not _ORIGIN.fullmatch(origin):
        raise ValueError(f"{text!r} is not an origin: a scheme, a host and perhaps a port, such as https://board.example.org.")
    return origin.removesuffix(_DEFAULT_PORTS[origin.partition(":")[0]])


def cors_headers(header: Header, origins: frozenset[str]) -> list[tuple[str, str]]:
    """What every response carries, errors included, where some origins may read. `header` looks a header of the request up."""
    if not origins:
        return []
    vary, origin = [("Vary", "Origin")], header("Origin")
    if origin is None or origin not in origins:
        return vary
    return [*vary, ("Access-Control-Allow-Origin", origin), ("Access-Control-Expose-Headers", ", ".join(EXPOSED))]


def preflight(method: str, header: Header, hosts: frozenset[str], origins: frozenset[str]) -> list[tuple[str, str]] | None:
    """What the answer to a preflight carries beside `cors_headers`; None where the request is none, or of an origin that may not read."""
    asked = header("Access-Control-Request-Method")
    if method != "OPTIONS" or asked is None or header("Origin") not in origins or host_name(header("Host") or "") not in hosts:
        return None
    if asked not in READING:
        raise Problem("cross-site-request", f"A page of another origin may read here; {asked[:20]} would change something.")
    return [("Access-Control-Allow-Methods", "GET, HEAD"), ("Access-Control-Allow-Headers", ", ".join(ALLOWED)),
            ("Access-Control-Max-Age", str(_MAX_AGE_SECONDS))]

"""Whom the server answers: known host names only, and no pages of other sites (docs/http-api.md, section 9).

Browsers say whose page asks (Fetch Metadata Request Headers, W3C; the Origin header, RFC 6454). What says neither is no browser.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from urllib.parse import urlsplit

from server.problems import Problem

READING = frozenset({"GET", "HEAD", "OPTIONS"})
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
Header = Callable[[str], str | None]


def check(method: str, header: Header, hosts: frozenset[str], origins: frozenset[str] = frozenset(), page: bool = False,
          base_url: str = "http:") -> None:
    """Raise the problem of a request with a foreign ``Host`` (421) or from another site (403). `header` looks a header up.

    Pages of `origins` may read (server/cors.py). `page` marks what a link may lead to: a page, which costs nothing to give.
    `base_url` is how the server names itself.
    """
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

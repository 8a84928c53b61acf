"""Whom the server answers: known host names only, and no writes from pages of other sites (docs/http-api.md, section 9)."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from urllib.parse import urlsplit

from server.problems import Problem

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "QUERY"})
Header = Callable[[str], str | None]


def check(method: str, header: Header, hosts: frozenset[str]) -> None:
    """Raise the problem of a request with a foreign ``Host`` (421) or from another site (403). `header` looks a header up."""
    host = header("Host") or ""
    if host_name(host) not in hosts:
        raise Problem("untrusted-host", f"This server does not answer as {host[:200]!r}.", extra={"hosts": sorted(hosts)})
    if method in SAFE_METHODS:
        return
    site, origin = header("Sec-Fetch-Site"), header("Origin")
    if site in ("same-origin", "none"):
        return
    if origin is not None and (urlsplit(origin).netloc or "").lower() == host.lower():
        return
    if site is not None or origin is not None:
        raise Problem("cross-site-request", "A page of another site may not change anything here.")


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

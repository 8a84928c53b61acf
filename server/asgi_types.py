"""The shapes of ASGI (https://asgi.readthedocs.io), and how to read its headers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


def abort_of(scope: Scope) -> Callable[[], None]:
    """What ends the connection of a request at once, where the host can do that (server/connection.py)."""
    abort: Callable[[], None] = scope.get("extensions", {}).get("thalweg.cut", {}).get("abort", lambda: None)
    return abort


def header(scope: Scope, name: str) -> str | None:
    """The value of a header, several of one name joined with commas; None where it is absent."""
    wanted = name.lower().encode("latin-1")
    found = [value.decode("latin-1") for key, value in scope["headers"] if key == wanted]
    return ", ".join(found) if found else None

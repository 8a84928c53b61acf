"""The shapes of ASGI (https://asgi.readthedocs.io), and how to read its headers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


def header(scope: Scope, name: str) -> str | None:
    """The value of a header, several of one name joined with commas; None where it is absent."""
    wanted = name.lower().encode("latin-1")
    found = [value.decode("latin-1") for key, value in scope["headers"] if key == wanted]
    return ", ".join(found) if found else None

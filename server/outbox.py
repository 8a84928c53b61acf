"""What is on its way to clients: handed over in small parts, counted, and taken back from those who do not take it. And the shapes of ASGI
(https://asgi.readthedocs.io).

A part is handed to a connection when it has taken the one before (uvicorn waits while its buffer is full). A client that takes
nothing for `send_seconds` is cut off. Where more than `pending_bytes` wait for all clients together, those are cut off that have
taken nothing for longest. Bytes that several clients share count once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, MutableMapping, Sequence
from typing import Any

from server.limits import Limits

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
_PART = 128 * 1024


def abort_of(scope: Scope) -> Callable[[], None]:
    """What ends the connection of a request at once, where the host can do that (server/serving.py)."""
    return scope.get("extensions", {}).get("thalweg.cut", {}).get("abort", lambda: None)


def header(scope: Scope, name: str) -> str | None:
    """The value of a header, several of one name joined with commas; None where it is absent."""
    wanted = name.lower().encode("latin-1")
    found = [value.decode("latin-1") for key, value in scope["headers"] if key == wanted]
    return ", ".join(found) if found else None


def as_bytes(headers: Iterable[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    """Headers as ASGI has them."""
    return [(name.lower().encode("latin-1"), value.encode("latin-1", "replace")) for name, value in headers]


async def respond(send: Send, status: int, headers: Iterable[tuple[str, str]] = (), body: bytes = b"") -> None:
    await send({"type": "http.response.start", "status": status, "headers": as_bytes(headers)})
    await send({"type": "http.response.body", "body": body})


class Outbox:
    """The sendings of all connections; used on the loop's thread only."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.pending = 0
        self.cut_off = 0
        self._sending: set[Sending] = set()
        self._held: dict[int, int] = {}
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, sending: Sending, pieces: Sequence[bytes]) -> None:
        """Count what waits for a client; whoever is slowest makes room for it."""
        self._sending.add(sending)
        for piece in pieces:
            holders = self._held.get(id(piece), 0)
            self._held[id(piece)] = holders + 1
            self.pending += 0 if holders else len(piece)
        if self.pending > self.limits.pending_bytes:
            self._make_room()
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self.limits.send_seconds / 4, self._look)

    def release(self, pieces: Sequence[bytes]) -> None:
        """These need not wait any longer."""
        for piece in pieces:
            self._held[id(piece)] -= 1
            if not self._held[id(piece)]:
                del self._held[id(piece)]
                self.pending -= len(piece)

    def end(self, sending: Sending) -> None:
        """Nothing waits for this client."""
        self._sending.discard(sending)

    def _make_room(self) -> None:
        """Cut off the slowest until what waits is within the limit; the last one may have more, for one answer may be that large."""
        for sending in sorted(self._sending, key=lambda sending: sending.since)[:-1]:
            if self.pending <= self.limits.pending_bytes:
                return
            self._cut(sending)

    def _look(self) -> None:
        """Cut off who has taken nothing for long."""
        loop = asyncio.get_running_loop()
        for sending in [sending for sending in self._sending if loop.time() - sending.since >= self.limits.send_seconds]:
            self._cut(sending)
        self._timer = loop.call_later(self.limits.send_seconds / 4, self._look) if self._sending else None

    def _cut(self, sending: Sending) -> None:
        self.cut_off += 1
        self._sending.discard(sending)
        sending.cut()


class Sending:
    """What one connection is sent. `gone` says that it was cut off."""

    def __init__(self, outbox: Outbox, send: Send, abort: Callable[[], None]) -> None:
        self.gone = False
        self.since = 0.0
        self._outbox, self._send, self._abort = outbox, send, abort
        self._waiting: list[bytes] = []

    async def send(self, pieces: Sequence[bytes]) -> None:
        if self.gone:
            return
        loop = asyncio.get_running_loop()
        self.since, self._waiting = loop.time(), list(pieces)
        self._outbox.begin(self, self._waiting)
        try:
            for part, done in _parts(pieces):
                self.since = loop.time()
                await self._send({"type": "http.response.body", "body": part, "more_body": True})
                if self.gone:
                    return
                self._outbox.release(self._waiting[:done])
                del self._waiting[:done]
        finally:
            self._give_up_waiting()
            self._outbox.end(self)

    def cut(self) -> None:
        """Take back what waits, and end the connection."""
        self.gone = True
        self._give_up_waiting()
        self._abort()

    def _give_up_waiting(self) -> None:
        self._outbox.release(self._waiting)
        self._waiting = []


def _parts(pieces: Sequence[bytes]) -> Iterator[tuple[bytes, int]]:
    """(bytes, pieces that end with them): small pieces together, large ones cut, a part each."""
    small: list[bytes] = []
    size = 0
    for piece in pieces:
        if size + len(piece) > _PART and small:
            yield b"".join(small), len(small)
            small, size = [], 0
        if len(piece) <= _PART:
            small.append(piece)
            size += len(piece)
            continue
        for start in range(0, len(piece), _PART):
            yield piece[start:start + _PART], int(start + _PART >= len(piece))
    if small:
        yield b"".join(small), len(small)

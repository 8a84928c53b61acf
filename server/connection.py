"""One HTTP connection: uvicorn's, with deadlines for what the client has to send, a cap on its headers, and one on connections.

uvicorn waits for ever for the rest of a request that was begun, and for the first byte of a connection.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from server.limits import Limits
from server.problems import Problem, head_too_large

# The application says itself that a body did not come in time; this is for bodies that it does not read.
_GRACE_SECONDS = 5.0


class Connection(HttpToolsProtocol):
    """A connection whose client must go on sending while a request is not complete."""

    limits = Limits()

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._deadline: asyncio.TimerHandle | None = None
        self._in_request = self._in_head = False
        self._head_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client came: it must ask for something soon, if there is room for it at all."""
        super().connection_made(transport)
        if len(self.connections) > self.limits.connections:
            self._refuse(Problem("engine-overloaded", "There are too many connections.", extra={
                "limit": self.limits.connections, "current": len(self.connections) - 1}))
        else:
            self._expect(self.limits.header_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        """The client went, or was cut off."""
        self._drop_deadline()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Bytes of a request: a head must be complete soon, and small."""
        if self._in_head:
            self._head_bytes += len(data)
        elif not self._in_request and self._deadline is None:
            self._expect(self.limits.header_seconds)
        super().data_received(data)
        if self._in_head and self._head_bytes > self.limits.header_bytes:
            self._refuse(head_too_large(self.limits.header_bytes))

    def on_message_begin(self) -> None:
        """A request begins. Its first bytes are counted with the next that come, for others may stand before them."""
        self._in_request = self._in_head = True
        self._head_bytes = 0
        if self._deadline is None:
            self._expect(self.limits.header_seconds)
        super().on_message_begin()
        self.scope["extensions"] = {"thalweg.cut": {"abort": self._abort}}

    def on_headers_complete(self) -> None:
        """The head is there; the body must come in time."""
        self._in_head = False
        self._expect(self.limits.upload_seconds + _GRACE_SECONDS)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The request is complete."""
        self._in_request = False
        self._drop_deadline()
        super().on_message_complete()

    def _expect(self, seconds: float) -> None:
        self._drop_deadline()
        self._deadline = self.loop.call_later(seconds, self._too_late)

    def _drop_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _too_late(self) -> None:
        self._deadline = None
        answering = self.cycle is not None and not self.cycle.response_complete
        if answering:
            if self._in_request:    # else these were stray bytes behind it
                self._abort()
        elif not self._in_request:
            self.transport.close()
        else:
            self._refuse(Problem("bad-request", f"The request did not arrive within {self.limits.header_seconds:g} s.", status=408))

    def _refuse(self, problem: Problem) -> None:
        """Answer without the application, and end the connection."""
        self._drop_deadline()
        body, media = problem.render("json")
        reason = {408: "Request Timeout", 431: "Request Header Fields Too Large", 503: "Service Unavailable"}[problem.status]
        named = {"content-type": media, "content-length": str(len(body)), "connection": "close", "cache-control": "no-store",
                 **problem.headers}
        head = "".join(f"{name}: {value}\r\n" for name, value in named.items())
        self.transport.write(f"HTTP/1.1 {problem.status} {reason}\r\n{head}\r\n".encode() + body)
        self.transport.close()

    def _abort(self) -> None:
        self.transport.abort()


def with_limits(limits: Limits) -> type[Connection]:
    """The class of the connections of a server with these limits."""
    return type("LimitedConnection", (Connection,), {"limits": limits})

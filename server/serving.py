"""The process: uvicorn around the application, its sockets, connections and signals, and an orderly end.

uvicorn waits for ever for the rest of a request that was begun, and for the first byte of a connection: here there are deadlines for what
a client has to send, a cap on its headers, and one on connections. On SIGTERM or SIGINT the feeds say ``bye``, requests in flight are
answered, the engine stops, and the exit status is 0.
"""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import socket
import threading
from http import HTTPStatus
from types import FrameType
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from server.asgi import Application
from server.limits import Limits
from server.problems import Problem, head_too_large

# The application says itself that a body did not come in time; this is for bodies that it does not read.
_GRACE_SECONDS = 5.0
log = logging.getLogger("thalweg.server")
_SEND_BUFFER = 128 * 1024
_USER_TIMEOUT_MS = 20_000
_PATIENCE_SECONDS = 9.0


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
        self.scope["extensions"] = {"thalweg.cut": {"abort": self.transport.abort}}

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._expect(self.limits.upload_seconds + _GRACE_SECONDS)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
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
                self.transport.abort()
        elif not self._in_request:
            self.transport.close()
        else:
            self._refuse(Problem("bad-request", f"The request did not arrive within {self.limits.header_seconds:g} s.", status=408))

    def _refuse(self, problem: Problem) -> None:
        """Answer without the application, and end the connection."""
        self._drop_deadline()
        body, media = problem.render("json")
        named = {"content-type": media, "content-length": str(len(body)), "connection": "close", "cache-control": "no-store",
                 **problem.headers}
        head = "".join(f"{name}: {value}\r\n" for name, value in named.items())
        self.transport.write(f"HTTP/1.1 {problem.status} {HTTPStatus(problem.status).phrase}\r\n{head}\r\n".encode() + body)
        self.transport.close()


class Server(uvicorn.Server):
    """uvicorn that lets feeds say goodbye before it goes, and does not raise the signal again afterwards."""

    def __init__(self, application: Application) -> None:
        limits = application.site.limits
        connection = type("LimitedConnection", (Connection,), {"limits": limits})
        super().__init__(uvicorn.Config(
            application, http=connection, ws="none", lifespan="on", backlog=limits.backlog,
            timeout_keep_alive=limits.keep_alive_seconds,  # type: ignore[arg-type]
            timeout_graceful_shutdown=int(limits.shutdown_seconds),
            access_log=False, log_config=None, log_level="warning", server_header=False))
        self._application = application
        self._ending = False

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A signal came: the first begins an orderly end, the second ends at once."""
        if self._ending:
            os._exit(1)
        self._ending = True
        watchdog = threading.Timer(_PATIENCE_SECONDS, self._give_up)
        watchdog.daemon = True
        watchdog.start()
        self.end()

    def end(self) -> None:
        """Begin the orderly end; may be called from any thread."""
        loop = self._loop
        loop.call_soon_threadsafe(lambda: loop.create_task(self._goodbye()))

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)

    async def _goodbye(self) -> None:
        await self._application.goodbye()
        self.should_exit = True

    def _give_up(self) -> None:
        log.warning("not everything stopped within %g s; leaving", _PATIENCE_SECONDS)
        logging.shutdown()
        os._exit(0)


def listen(host: str, port: int, backlog: int = Limits().backlog) -> socket.socket:
    """A listening socket whose clients cannot hide behind large buffers."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _USER_TIMEOUT_MS)
    try:
        listener.bind((host.strip("[]"), port))
        listener.listen(backlog)
    except OSError:
        listener.close()
        raise
    listener.setblocking(False)
    return listener


def raise_file_limit(connections: int) -> int:
    """Raise the soft limit of open files to the hard one; ValueError where the connections would not fit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if hard != resource.RLIM_INFINITY and hard < connections + 256:
        raise ValueError(f"{connections} connections need {connections + 256} open files; this process may have {hard} (ulimit -n), "
                         "so set --limit connections=.")
    return hard

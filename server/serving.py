"""The process: uvicorn around the application, its sockets and signals, and an orderly end.

On SIGTERM or SIGINT the feeds say ``bye``, requests in flight are answered, the engine stops, and the exit status is 0.
"""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import socket
import threading
from types import FrameType

import uvicorn

from server.asgi import Application
from server.connection import with_limits
from server.limits import Limits

log = logging.getLogger("thalweg.server")
_SEND_BUFFER = 128 * 1024
_USER_TIMEOUT_MS = 20_000
_PATIENCE_SECONDS = 9.0


class Server(uvicorn.Server):
    """uvicorn that lets feeds say goodbye before it goes, and does not raise the signal again afterwards."""

    def __init__(self, application: Application, threads_end: float = _PATIENCE_SECONDS) -> None:
        grace = int(application.site.limits.shutdown_seconds)
        limits = application.site.limits
        super().__init__(uvicorn.Config(
            application, http=with_limits(limits), ws="none", lifespan="on", backlog=limits.backlog,
            timeout_keep_alive=limits.keep_alive_seconds,  # type: ignore[arg-type]
            access_log=False, log_config=None, log_level="warning", server_header=False, timeout_graceful_shutdown=grace))
        self._application = application
        self._patience = threads_end
        self._ending = False

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A signal came: the first begins an orderly end, the second ends at once."""
        if self._ending:
            os._exit(1)
        self._ending = True
        watchdog = threading.Timer(self._patience, self._give_up)
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
        log.warning("not everything stopped within %g s; leaving", self._patience)
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

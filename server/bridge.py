"""From ASGI to the Flask application: request bodies are spooled first, responses are complete before the first byte is sent.

So a pool thread is never held by a slow client, in either direction (docs/decisions.md, "WSGI bridge").
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import unquote_to_bytes

from server.asgi_types import Receive, Scope, Send, header
from server.limits import Limits
from server.problems import Problem

_MEMORY = 1 << 20
_PIECE = 1 << 18
WsgiApp = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
Answer = tuple[int, list[tuple[bytes, bytes]], list[bytes]]


class Gone(Exception):
    """The client hung up before its request was complete."""


class Bridge:
    """Runs a WSGI application in a pool of threads."""

    def __init__(self, app: WsgiApp, limits: Limits, threads: int = 16) -> None:
        self._app, self._limits = app, limits
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="thalweg-http")
        self._large = asyncio.Semaphore(limits.large_uploads_at_once)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request. Raises Problem (nothing was sent then) or Gone."""
        length = header(scope, "content-length")
        large = length is None or not length.isdigit() or int(length) > self._limits.large_upload
        if large and header(scope, "transfer-encoding") is None and length is None:
            large = False
        if large:
            async with self._large:
                answer = await self._answer(scope, receive, length)
        else:
            answer = await self._answer(scope, receive, length)
        await _send(answer, send)

    def close(self) -> None:
        """Take no more requests."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _answer(self, scope: Scope, receive: Receive, length: str | None) -> Answer:
        with tempfile.SpooledTemporaryFile(max_size=_MEMORY) as body:
            try:
                size = await asyncio.wait_for(self._spool(receive, body, length), self._limits.upload_seconds)
            except asyncio.TimeoutError:
                raise Problem("bad-request", f"The body did not arrive within {self._limits.upload_seconds:g} s.", status=408,
                              headers={"Connection": "close"}) from None
            body.seek(0)
            environ = _environ(scope, body, size)
            return await asyncio.get_running_loop().run_in_executor(self._pool, self._run, environ)

    async def _spool(self, receive: Receive, body: Any, length: str | None) -> int:
        """Take the body in, at most as large as any route allows."""
        limit = max(self._limits.push_body_streamed, self._limits.graph_upload)
        size = int(length) if length is not None and length.isdigit() else 0
        more = size <= limit
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Gone
            body.write(message.get("body", b""))
            size = body.tell()
            more = message.get("more_body", False) and size <= limit
        if size > limit:
            raise Problem("body-too-large", f"The body has more than {limit} bytes.", extra={"limit": limit, "actual": size},
                          headers={"Connection": "close"})
        return size

    def _run(self, environ: dict[str, Any]) -> Answer:
        started: list[tuple[str, list[tuple[str, str]]]] = []

        def start_response(status: str, headers: list[tuple[str, str]], exc_info: object = None) -> Callable[[bytes], None]:
            started.append((status, headers))
            return early.append

        early: list[bytes] = []
        iterable = self._app(environ, start_response)
        try:
            pieces = [*early, *iterable]
        finally:
            if hasattr(iterable, "close"):
                iterable.close()
        status, headers = started[-1]
        return int(status[:3]), [(k.lower().encode("latin-1"), v.encode("latin-1", "replace")) for k, v in headers], pieces


async def _send(answer: Answer, send: Send) -> None:
    status, headers, pieces = answer
    await send({"type": "http.response.start", "status": status, "headers": headers})
    for piece in pieces:
        for start in range(0, len(piece), _PIECE):
            await send({"type": "http.response.body", "body": piece[start:start + _PIECE], "more_body": True})
    await send({"type": "http.response.body", "body": b""})


def _environ(scope: Scope, body: Any, size: int) -> dict[str, Any]:
    """The WSGI environment (PEP 3333): text values are bytes decoded as Latin-1."""
    root = scope.get("root_path", "")
    path = unquote_to_bytes(bytes(scope["raw_path"])).decode("latin-1")
    server, client = scope.get("server") or ("localhost", 80), scope.get("client") or ("", 0)
    environ: dict[str, Any] = {
        "REQUEST_METHOD": scope["method"], "SCRIPT_NAME": root, "PATH_INFO": path.removeprefix(root) or "/",
        "QUERY_STRING": bytes(scope["query_string"]).decode("latin-1"), "SERVER_NAME": server[0], "SERVER_PORT": str(server[1]),
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}", "REMOTE_ADDR": client[0], "REMOTE_PORT": str(client[1]),
        "wsgi.version": (1, 0), "wsgi.url_scheme": scope.get("scheme", "http"), "wsgi.input": body,
        "wsgi.errors": sys.stderr, "wsgi.multithread": True, "wsgi.multiprocess": False,
        "wsgi.run_once": False, "wsgi.input_terminated": True, "CONTENT_LENGTH": str(size),
    }
    for name, value in scope["headers"]:
        key = name.decode("latin-1").upper().replace("-", "_")
        text = value.decode("latin-1")
        if key == "CONTENT_TYPE":
            environ[key] = text
        elif key not in ("CONTENT_LENGTH", "TRANSFER_ENCODING"):
            environ[f"HTTP_{key}"] = f"{environ[f'HTTP_{key}']},{text}" if f"HTTP_{key}" in environ else text
    return environ

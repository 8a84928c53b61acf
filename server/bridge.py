"""From ASGI to the Flask application: request bodies are spooled first, responses are complete before the first byte is sent.

So a thread is never held by a slow client, in either direction (docs/decisions.md, "WSGI bridge"). Each kind of work has a few threads of
its own, so that slow calls hold up none but their like.

| kind | what | threads |
| --- | --- | --- |
| quick | reads of resources, pushes | `quick_threads` |
| catalogue | registrations, changes of streams, queries, graphs and rules | `catalogue_threads` |
| one-shot | `/sparql`, `/explain` | `one_shots_at_once` |
| bulk | large bodies, also such that become large when they are decompressed; graphs | `large_uploads_at_once` |
| proofs | `/queries/{name}/results/{id}/why` | `proofs_at_once` |
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Literal, TypeVar
from urllib.parse import unquote_to_bytes

from werkzeug.test import run_wsgi_app

from server.formats.bodies import inflates_past
from server.limits import Limits
from server.outbox import Outbox, Receive, Scope, Send, Sending, abort_of, as_bytes, header
from server.problems import Problem

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

Kind = Literal["quick", "catalogue", "one-shot", "bulk", "proofs"]
Result = TypeVar("Result")
_MEMORY = 1 << 20
Answer = tuple[int, list[tuple[bytes, bytes]], list[bytes]]


class Pool:
    """The threads of one kind of work, and a bound on what waits for them."""

    def __init__(self, kind: Kind, threads: int, waiting: int) -> None:
        self.kind, self.most = kind, threads + waiting
        self.busy = 0
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=f"thalweg-{kind}")

    async def run(self, work: Callable[[], Result]) -> Result:
        """Do blocking work beside the loop; `engine-overloaded` where too much waits already."""
        if self.busy >= self.most:
            raise Problem("engine-overloaded", f"{self.busy} requests of this kind ({self.kind}) are being worked on or wait.",
                          extra={"limit": self.most, "current": self.busy})
        self.busy += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, work)
        finally:
            self.busy -= 1

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)


class Gone(Exception):
    """The client hung up before its request was complete."""


@dataclass(slots=True)
class _Body:
    """A request's body: in memory while it is small, else in a file."""

    file: IO[bytes]
    size: int = 0


class Bridge:
    """Runs a WSGI application in pools of threads; `kind_of` tells which kind of work a request is."""

    def __init__(self, app: WSGIApplication, limits: Limits, outbox: Outbox, kind_of: Callable[[Scope], Kind]) -> None:
        self._app, self._limits, self._outbox, self._kind_of = app, limits, outbox, kind_of
        threads: dict[Kind, int] = {"quick": limits.quick_threads, "catalogue": limits.catalogue_threads, "proofs": limits.proofs_at_once,
                                    "one-shot": limits.one_shots_at_once, "bulk": limits.large_uploads_at_once}
        self.pools = {kind: Pool(kind, count, limits.waiting_requests) for kind, count in threads.items()}
        self.spooled = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request. Raises Problem (nothing was sent then) or Gone."""
        status, headers, pieces = await self._answer(scope, receive)
        await send({"type": "http.response.start", "status": status, "headers": headers})
        sending = Sending(self._outbox, send, abort_of(scope))
        await sending.send(pieces)
        if not sending.gone:
            await send({"type": "http.response.body", "body": b""})

    def close(self) -> None:
        for pool in self.pools.values():
            pool.close()

    async def _answer(self, scope: Scope, receive: Receive) -> Answer:
        with tempfile.SpooledTemporaryFile(max_size=_MEMORY) as file:
            body = _Body(file)
            try:
                await asyncio.wait_for(self._spool(receive, body, header(scope, "content-length")), self._limits.upload_seconds)
                kind = await self._kind(scope, body)
                file.seek(0)
                environ = _environ(scope, file, body.size)
                pieces, status, sent = await self.pools[kind].run(lambda: run_wsgi_app(self._app, environ, buffered=True))
                return int(status[:3]), as_bytes(sent), [*pieces]
            except asyncio.TimeoutError:
                raise Problem("bad-request", f"The body did not arrive within {self._limits.upload_seconds:g} s.", status=408,
                              headers={"Connection": "close"}) from None
            finally:
                self.spooled -= body.size

    async def _kind(self, scope: Scope, body: _Body) -> Kind:
        """The kind of work. What is large, or will be once it is decompressed, is bulk."""
        kind, limit = self._kind_of(scope), self._limits.large_upload
        if kind not in ("quick", "catalogue"):      # has few threads, whatever is sent
            return kind
        large, coded = body.size > limit, (header(scope, "content-encoding") or "identity").strip().lower() != "identity"
        if coded and body.size and not large:
            body.file.seek(0)
            large = await self.pools["quick"].run(lambda: inflates_past(body.file, limit))
        return "bulk" if large else kind

    async def _spool(self, receive: Receive, body: _Body, length: str | None) -> None:
        """Take the body in, at most as large as any route allows, and while there is room for it."""
        limit = max(self._limits.push_body_streamed, self._limits.graph_upload)
        told = int(length) if length is not None and length.isdigit() else 0
        more = told <= limit
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Gone
            data = message.get("body", b"")
            if self.spooled + len(data) > self._limits.spooled_bytes:
                raise Problem("engine-overloaded", "Too many large bodies arrive at once.", headers={"Connection": "close"},
                              extra={"limit": self._limits.spooled_bytes, "current": self.spooled})
            body.file.write(data)
            body.size += len(data)
            self.spooled += len(data)
            more = message.get("more_body", False) and body.size <= limit
        if max(told, body.size) > limit:
            raise Problem("body-too-large", f"The body has more than {limit} bytes.",
                          extra={"limit": limit, "actual": max(told, body.size)}, headers={"Connection": "close"})


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
        "wsgi.errors": sys.stderr, "wsgi.multithread": True, "wsgi.multiprocess": False, "wsgi.run_once": False,
        "wsgi.input_terminated": True, "CONTENT_LENGTH": str(size),
    }
    for name, value in scope["headers"]:
        key = name.decode("latin-1").upper().replace("-", "_")
        text = value.decode("latin-1")
        if key == "CONTENT_TYPE":
            environ[key] = text
        elif key not in ("CONTENT_LENGTH", "TRANSFER_ENCODING"):
            environ[f"HTTP_{key}"] = f"{environ[f'HTTP_{key}']},{text}" if f"HTTP_{key}" in environ else text
    return environ

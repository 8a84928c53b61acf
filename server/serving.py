"""``thalweg serve``: engine, application and process put together, with what the terminal shows; uvicorn around the application, its
sockets, connections and signals, and an orderly end.

uvicorn waits for ever for the rest of a request that was begun, and for the first byte of a connection: here there are deadlines for what
a client has to send, a cap on its headers, and one on connections. On SIGTERM or SIGINT the feeds say ``bye``, requests in flight are
answered, the engine stops, and the exit status is 0.
"""

import argparse
import asyncio
import json
import logging
import os
import resource
import socket
import sys
import threading
import time
from contextlib import suppress
from email.utils import formatdate
from functools import partial
from http import HTTPStatus
from types import FrameType
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from engine.limits import NAMES, EvaluationLimits
from engine.runtime.resources import Notice
from engine.runtime.service import Engine
from engine.runtime.settings import Settings
from engine.spark.settings import from_environment
from grammar import parse
from grammar.rule_sets import parse_rules
from server.asgi import Application
from server.demo import QUERIES, Demo
from server.formats.records import reader_of
from server.guard import LOOPBACK_NAMES, host_name, refuse_foreign_address
from server.limits import Limits
from server.problems import Problem, head_too_large
from server.web import Site

# The application says itself that a body did not come in time; this is for bodies that it does not read.
_GRACE_SECONDS = 5.0
log = logging.getLogger("thalweg.server")
_SEND_BUFFER = 128 * 1024
_USER_TIMEOUT_MS = 20_000
_PATIENCE_SECONDS = 9.0
_DATE_SECONDS = 1.0     # the Date header is at most this old


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
                 "date": formatdate(usegmt=True), **problem.headers}
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
        self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
        await super().startup(sockets)

    async def main_loop(self) -> None:
        """As uvicorn's, which looks ten times a second whether it is to end; here it is told."""
        while not await self.on_tick(0):
            with suppress(TimeoutError):
                async with asyncio.timeout(_DATE_SECONDS):
                    await self._ended.wait()

    async def _goodbye(self) -> None:
        await self._application.goodbye()
        self.should_exit = True
        self._ended.set()

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


def raise_file_limit(connections: int) -> None:
    """Raise the soft limit of open files to the hard one; ValueError where the connections would not fit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if hard != resource.RLIM_INFINITY and hard < connections + 256:
        raise ValueError(f"{connections} connections need {connections + 256} open files; this process may have {hard} (ulimit -n), "
                         "so set --limit connections=.")


_TOUR = """Try:
  curl {base}/queries
  curl -N {base}/queries/{query}/results -H 'Accept: text/event-stream'
  curl {base}/queries/{query}/results -H 'Accept: text/csv'
Stop it with Ctrl-C."""
_EMPTY_TOUR = """Try:
  curl -X PUT {base}/streams/temps -H 'Content-Type: application/json' -d '{{"iri":"http://ex.org/temps"}}'
  curl -X POST {base}/streams/temps -H 'Content-Type: text/turtle' -d '<http://ex.org/s1> <http://ex.org/temperature> 21.5 .'
  curl {base}/streams/temps/items
Stop it with Ctrl-C."""


def serve(given: argparse.Namespace, limits: Limits) -> int:
    """Run until a signal; ValueError for settings that cannot be."""
    refuse_foreign_address(given.host)
    raise_file_limit(limits.connections)
    try:
        listener = listen(given.host, given.port, limits.backlog)
    except OSError as error:
        print(f"thalweg: cannot listen on {given.host}:{given.port}: {error.strerror}.", file=sys.stderr)
        return 1
    _log(given)
    base_path = "/" + given.base_path.strip("/") if given.base_path.strip("/") else ""
    host, port = f"[{given.host}]" if ":" in given.host else given.host, listener.getsockname()[1]
    address = f"http://{host}:{port}{base_path}"
    base_url = given.base_url or f"http://localhost:{port}{base_path}"
    engine = Engine(_settings(given, limits, base_url), parse, parse_rules=parse_rules, reader_of=partial(reader_of, limits=limits))
    demo = Demo(engine) if given.demo else None
    process = Process(engine, demo, address)
    site = Site(engine, limits, LOOPBACK_NAMES | {host_name(name) for name in given.allow_host}, frozenset(given.allow_origin), base_url)
    process.server = Server(Application(site, base_path, process.start, process.stop))
    print(f"Thalweg listens on {address} while the engine starts.", flush=True)
    with listener:
        process.server.run(sockets=[listener])
    return process.status


class Process:
    """Start and stop of the engine beside the loop, with words for the terminal. `status` is the exit status."""

    def __init__(self, engine: Engine, demo: Demo | None, address: str) -> None:
        self.status = 0
        self.server: Server | None = None
        self._engine, self._demo, self._address = engine, demo, address
        self._began = time.monotonic()
        self._stopping = False

    def start(self) -> None:
        self._engine.subscribe(self._notice)
        try:
            self._engine.start()
        except Exception as error:  # in a thread of its own: the terminal tells, and the process ends
            logging.getLogger("thalweg.server").debug("the engine did not start", exc_info=True)
            self._failed(str(error))
            return
        if self._demo is not None:
            self._demo.start()

    def stop(self) -> None:
        self._stopping = True
        if self._demo is not None:
            self._demo.stop()
        self._engine.stop()
        print("Stopped.", flush=True)

    def _notice(self, notice: Notice) -> None:
        if notice.kind != "engine" or self._stopping:
            return
        if notice.data["state"] == "failed":
            self._failed(notice.data["progress"])
        elif notice.data["state"] == "running":
            print(f"Ready after {time.monotonic() - self._began:.1f} s: {self._address}", flush=True)
            print((_TOUR if self._demo else _EMPTY_TOUR).format(base=self._address, query=QUERIES[0]), flush=True)
        else:
            print(f"  {notice.data['progress']} ...", flush=True)

    def _failed(self, why: str) -> None:
        print(f"thalweg: the engine failed: {why}", file=sys.stderr, flush=True)
        self.status = 1
        if self.server is not None:
            self.server.end()


def _settings(given: argparse.Namespace, limits: Limits, base_url: str) -> Settings:
    spark = from_environment(master=given.master, memory=given.memory, shards=given.shards)
    return Settings(data=given.data, base_url=base_url, force_executor=given.executor, force_strategy=given.strategy, spark=spark,
                    paused=given.paused, evaluation=EvaluationLimits(**{name: getattr(limits, name) for name in NAMES}),
                    max_queries=limits.max_queries, commit_evaluations=limits.commit_evaluations,
                    batch_patience_ms=limits.batch_patience_ms, window_steps=limits.window_steps, window_items=limits.window_items,
                    product_rows=limits.product_rows, kafka=dict(given.kafka), graphs=given.graphs)


def _log(given: argparse.Namespace) -> None:
    handler = logging.StreamHandler()
    plain = logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    handler.setFormatter(_JsonLines() if given.log_format == "json" else plain)
    logging.basicConfig(level=given.log_level.upper(), handlers=[handler], force=True)
    logging.getLogger("py4j").setLevel(logging.WARNING)


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        entry = {"time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"), "level": record.levelname.lower(), "logger": record.name,
                 "message": record.getMessage()}
        if record.exc_info:
            entry["error"] = self.formatException(record.exc_info)
        return json.dumps(entry)

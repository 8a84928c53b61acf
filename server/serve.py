"""``thalweg serve``: engine, application and process put together, with what the terminal shows."""

from __future__ import annotations

import argparse
import json
import logging
import sys
import time

from engine.limits import NAMES, EvaluationLimits
from engine.runtime.resources import Notice
from engine.runtime.service import Engine
from engine.runtime.settings import Settings
from engine.spark.settings import from_environment
from grammar import parse
from grammar.rule_sets import parse_rules
from server.asgi import Application
from server.demo import QUERIES, Demo
from server.guard import LOOPBACK_NAMES, host_name, refuse_foreign_address
from server.limits import Limits
from server.serving import Server, listen, raise_file_limit
from server.web import Site

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
    engine = Engine(_settings(given, limits, base_url), parse, parse_rules=parse_rules)
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
        """Start the engine, and the demo once it runs."""
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
    spark = from_environment(master=given.master, memory=given.memory)
    return Settings(data=given.data, base_url=base_url, force_executor=given.executor, force_strategy=given.strategy, spark=spark,
                    paused=given.paused, evaluation=EvaluationLimits(**{name: getattr(limits, name) for name in NAMES}),
                    max_queries=limits.max_queries, commit_evaluations=limits.commit_evaluations,
                    batch_patience_ms=limits.batch_patience_ms, window_steps=limits.window_steps, window_items=limits.window_items,
                    product_rows=limits.product_rows)


def _log(given: argparse.Namespace) -> None:
    handler = logging.StreamHandler()
    plain = logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    handler.setFormatter(_JsonLines() if given.log_format == "json" else plain)
    logging.basicConfig(level=given.log_level.upper(), handlers=[handler], force=True)
    logging.getLogger("py4j").setLevel(logging.WARNING)


class _JsonLines(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        entry = {"time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"), "level": record.levelname.lower(), "logger": record.name,
                 "message": record.getMessage()}
        if record.exc_info:
            entry["error"] = self.formatException(record.exc_info)
        return json.dumps(entry)

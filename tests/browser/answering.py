"""The real server (Flask, feeds, uvicorn) around an engine that needs no Spark: it answers each push with the readings in it."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from engine.runtime.resources import Item, Receipt
from server.asgi import Application
from server.limits import Limits
from server.serving import Server, listen
from server.web import Site
from tests.server.fake_engine import FakeEngine, rows

TEMPERATURE = "<http://example.org/temperature>"
PATIENCE_SECONDS = 20.0


class AnsweringEngine(FakeEngine):
    """Answers to every query of a stream, at once: `sensor` and `temperature` of each reading of the push."""

    def push(self, name: str, items: Sequence[Item], **options: Any) -> Receipt:
        receipt = super().push(name, items, **options)
        readings = [triple for item in items for triple in item.triples if triple[1] == TEMPERATURE]
        table = rows(sensor=[s for s, _, _ in readings], temperature=[o for _, _, o in readings])
        for user in self.stream(name).used_by:
            self.answer(user, table)
        return receipt


@contextmanager
def serving() -> Iterator[tuple[AnsweringEngine, str]]:
    """The engine and the address of its server, while it runs."""
    engine = AnsweringEngine()
    application = Application(Site(engine, Limits(shutdown_seconds=1.0, retry_ms=100)), "", stopping=engine.stop)
    listener = listen("127.0.0.1", 0)
    server = Server(application)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield engine, f"http://127.0.0.1:{listener.getsockname()[1]}/"
    finally:
        server.end()
        thread.join(PATIENCE_SECONDS)
        assert not thread.is_alive(), "the server did not stop"

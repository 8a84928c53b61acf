"""A reader of server-sent events that costs little while it measures: bytes go to a file with the times at which they came.

What the events say is read afterwards, so that the client's own work does not compete with the server on a small machine.
"""

from __future__ import annotations

import bisect
import http.client
import mmap
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import orjson

_PIECE = 1 << 18


@dataclass(frozen=True, slots=True)
class Event:
    """An event, with the wall time (s) at which its last byte came."""

    event: str
    id: str | None
    data: bytes
    arrived: float

    def json(self) -> Any:
        return orjson.loads(self.data)


class Feed:
    """Follows one address from `__init__` until `close`."""

    def __init__(self, base: str, path: str) -> None:
        address = urlsplit(base)
        self._connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=60)
        self._connection.request("GET", path, headers={"Accept": "text/event-stream"})
        self._response = self._connection.getresponse()
        if self._response.status != 200:
            raise RuntimeError(f"{path}: {self._response.status} {self._response.read()[:500]!r}")
        self._spool = tempfile.TemporaryFile()
        self._ends: list[int] = []
        self._times: list[float] = []
        self._first = threading.Event()
        self.ended = threading.Event()
        self._closing = False
        self._thread = threading.Thread(target=self._read, name="feed", daemon=True)
        self._thread.start()
        if not self._first.wait(30):
            raise RuntimeError(f"{path}: nothing came")

    def _read(self) -> None:
        size = 0
        try:
            while piece := self._response.read1(_PIECE):
                now = time.time()
                self._spool.write(piece)
                size += len(piece)
                self._ends.append(size)
                self._times.append(now)
                self._first.set()
        except (OSError, ValueError, AttributeError, http.client.HTTPException):
            if not self._closing:
                raise
        finally:
            self.ended.set()

    def quiet_for(self, seconds: float) -> bool:
        """Whether nothing has come for so long."""
        return time.time() - self._times[-1] > seconds

    def wait_quiet(self, seconds: float, patience: float = 30.0) -> None:
        """Wait until nothing has come for so long."""
        deadline = time.monotonic() + patience
        while not self.quiet_for(seconds) and time.monotonic() < deadline:
            time.sleep(0.02)

    def close(self) -> None:
        """Stop reading; `events` may be called afterwards."""
        self._closing = True
        if self._connection.sock is not None:
            self._connection.sock.shutdown(2)
        self._thread.join(10)
        self._connection.close()

    def events(self) -> Iterator[Event]:
        """All whole events that came, in order."""
        self._spool.flush()
        if not self._ends:
            return
        with mmap.mmap(self._spool.fileno(), self._ends[-1], access=mmap.ACCESS_READ) as text:
            start = 0
            while (end := text.find(b"\n\n", start)) >= 0:
                fields = _fields(text[start:end])
                if b"data" in fields:
                    arrived = self._times[bisect.bisect_left(self._ends, end + 2)]
                    name = fields[b"id"].decode() if b"id" in fields else None
                    yield Event(fields[b"event"].decode(), name, fields[b"data"], arrived)
                start = end + 2


def _fields(block: bytes) -> dict[bytes, bytes]:
    """The fields of one event; a comment has none."""
    return {name: value for name, _, value in (line.partition(b": ") for line in block.split(b"\n")) if name}

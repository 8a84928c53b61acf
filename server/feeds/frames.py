"""The events of a feed as bytes: server-sent events, or JSON lines with the same objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import InitVar, dataclass, field
from typing import Any

from server.problems import dumps

Encoder = Callable[["Frame"], bytes]
Parts = Sequence[bytes | memoryview]


@dataclass(slots=True)
class Frame:
    """One event; `data` is JSON on one line, given in one or as `parts` without line breaks, which are copied once, into what is sent. The
    encoded forms are made once and shared by all clients."""

    event: str
    content: InitVar[bytes | Parts]
    id: str | None = None
    parts: Parts = field(default=(), repr=False)
    _sse: bytes | None = field(default=None, repr=False)
    _jsonl: bytes | None = field(default=None, repr=False)

    def __post_init__(self, content: bytes | Parts) -> None:
        self.parts = (on_one_line(content),) if isinstance(content, bytes) else content
        if self.id is not None and any(c in self.id for c in "\r\n\0"):
            raise ValueError("an event id is one line")

    @property
    def data(self) -> bytes:
        """The whole of it."""
        return b"".join(self.parts)

    @property
    def size(self) -> int:
        """How many bytes `data` has."""
        return sum(map(len, self.parts))

    def about(self, query: str, position: str | None) -> Frame:
        """The same event in a feed of several queries: the data says which, the id is the position in all of them."""
        head, data = b'{"query":' + dumps(query), self.data
        return Frame(self.event, head + (b"," + data[1:] if data != b"{}" else b"}"), position if self.id else None)


def on_one_line(data: bytes) -> bytes:
    """JSON without line breaks: within it a raw one can only be white space; in a server-sent event it would end the field."""
    return data.replace(b"\r", b" ").replace(b"\n", b" ") if b"\n" in data or b"\r" in data else data


def sse(frame: Frame) -> bytes:
    """WHATWG server-sent events."""
    if frame._sse is None:
        head = f"id: {frame.id}\n" if frame.id else ""
        frame._sse = b"".join((f"{head}event: {frame.event}\ndata: ".encode(), *frame.parts, b"\n\n"))
    return frame._sse


def jsonl(frame: Frame) -> bytes:
    """``{"id", "event", "data"}`` on a line."""
    if frame._jsonl is None:
        head = b'{"id":' + dumps(frame.id) + b',"event":' + dumps(frame.event) + b',"data":'
        frame._jsonl = b"".join((head, *frame.parts, b"}\n"))
    return frame._jsonl


def message(event: str, **data: Any) -> Frame:
    """An event without id."""
    return Frame(event, dumps(data))


def bye(reason: str, reconnect: bool, problem: dict[str, Any] | None = None) -> Frame:
    """The last event of a feed."""
    return message("bye", reason=reason, reconnect=reconnect, **({"problem": problem} if problem else {}))


def encoded(frames: Iterable[Frame], encoder: Encoder) -> bytes:
    """The bytes of several frames."""
    return b"".join(map(encoder, frames))

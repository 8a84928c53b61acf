"""The events of a feed as bytes: server-sent events, or JSON lines with the same objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from server.problems import dumps

Encoder = Callable[["Frame"], bytes]


@dataclass(slots=True)
class Frame:
    """One event; `data` is JSON on one line. The encoded forms are made once and shared by all clients."""

    event: str
    data: bytes
    id: str | None = None
    _sse: bytes | None = field(default=None, repr=False)
    _jsonl: bytes | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        # Within JSON a raw line break can only be white space; in a server-sent event it would end the field.
        if b"\n" in self.data or b"\r" in self.data:
            self.data = self.data.replace(b"\r", b" ").replace(b"\n", b" ")
        if self.id is not None and any(c in self.id for c in "\r\n\0"):
            raise ValueError("an event id is one line")

    def about(self, query: str, position: str | None) -> Frame:
        """The same event in a feed of several queries: the data says which, the id is the position in all of them."""
        head = b'{"query":' + dumps(query)
        return Frame(self.event, head + (b"," + self.data[1:] if self.data != b"{}" else b"}"), position if self.id else None)


def sse(frame: Frame) -> bytes:
    """WHATWG server-sent events."""
    if frame._sse is None:
        head = f"id: {frame.id}\n" if frame.id else ""
        frame._sse = f"{head}event: {frame.event}\ndata: ".encode() + frame.data + b"\n\n"
    return frame._sse


def jsonl(frame: Frame) -> bytes:
    """``{"id", "event", "data"}`` on a line."""
    if frame._jsonl is None:
        frame._jsonl = b'{"id":' + dumps(frame.id) + b',"event":' + dumps(frame.event) + b',"data":' + frame.data + b"}\n"
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

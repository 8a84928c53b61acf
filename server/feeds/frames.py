"""Logged results as events (full results, differences, graphs, snapshots; in chunks where they are large), and events as bytes: server-sent
events, or JSON lines with the same objects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import InitVar, dataclass, field
from typing import Any

import orjson

from engine.runtime.resources import ResultEvent, iso
from server.feeds.options import Variant
from server.formats.media import NQUADS, TRIG
from server.formats.results import graph, graph_members
from server.problems import dumps

Parts = Sequence[bytes | memoryview]
_DATASETS = {"trig": TRIG, "nquads": NQUADS}
_BINDINGS = b',"results":{"bindings":['
_END = b"]}}"
_ROW_END = b'"}},{"'
_BACKSLASH = ord("\\")
_EMPTY_BINDINGS = b'"bindings":[]}}'
Rows = Sequence[bytes]


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
        return b"".join(self.parts)

    @property
    def size(self) -> int:
        return sum(map(len, self.parts))

    def about(self, query: str, position: str | None) -> Frame:
        """The same event in a feed of several queries: the data says which, the id is the position in all of them."""
        head, data = b'{"query":' + dumps(query), self.data
        return Frame(self.event, (head, b"," + data[1:] if data != b"{}" else b"}"), position if self.id else None)


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
    return message("bye", reason=reason, reconnect=reconnect, **({"problem": problem} if problem else {}))


class Ending:
    """A feed that says goodbye at its end; then it is `done`."""

    done = False

    def end(self, reason: str, reconnect: bool) -> list[Frame]:
        self.done = True
        return [bye(reason, reconnect)]

    def progress(self) -> list[Frame]:
        """The newest progress again; none where there is none."""
        return []

    def close(self) -> None:
        """Leave what is followed."""


def result_frames(event: ResultEvent, before: bytes | None, variant: Variant, cap: int) -> list[Frame]:
    """The event of one evaluation. `before`, the relation at the one before (None: there was none), is read for differences only."""
    if variant.mode == "full":
        return full_frames(event, event.full, variant, cap)
    if event.kind == "boolean":
        return _chunks("delta", event, [_with_rsp(event, event.full)], False)
    if event.kind != "graph" and (event.added or event.removed):
        return _stream_frames(event, cap)
    changes = difference(event, before)
    fits = sum(len(row) for rows in changes for row in rows) <= cap
    slices: list[tuple[Rows, Rows]] = [changes] if fits else [*((piece, ()) for piece in _slices(changes[0], cap)),
                                                              *(((), piece) for piece in _slices(changes[1], cap))]
    head = None if event.kind == "graph" else orjson.loads(event.payload)["head"]
    return _chunks("delta", event, [_opened(event, _difference(event, head, piece, variant)) for piece in slices], not fits)


def full_frames(event: ResultEvent, data: bytes, variant: Variant, cap: int, snapshot: bool = False) -> list[Frame]:
    """The whole relation as ``result``, ``graph`` or ``snapshot`` events."""
    name, fits = "snapshot" if snapshot else "graph" if event.kind == "graph" else "result", len(data) <= cap
    if event.kind == "graph":
        pieces = [data] if fits else [b"".join(piece) for piece in _slices(data.splitlines(keepends=True), cap)]
        return _chunks(name, event, [_opened(event, _graph_part(event, piece, variant)) for piece in pieces], snapshot or not fits)
    if fits or event.kind == "boolean":
        return _chunks(name, event, [_with_rsp(event, data)], snapshot)
    head, runs = _pieces(data, cap)
    shown = dumps(rsp(event))
    return _chunks(name, event, [(head, run, b']},"rsp":', shown) for run in runs], True)


def difference(event: ResultEvent, before: bytes | None) -> tuple[Rows, Rows]:
    """(added, removed) rows of an evaluation: what ISTREAM or DSTREAM gave, else the difference of two relations as bags."""
    if event.added:
        return rows_of(event, event.payload), ()
    if event.removed:
        return (), rows_of(event, event.payload)
    new = rows_of(event, event.full)
    old = rows_of(event, before) if before else ()
    gone, come = Counter(old), Counter(new)
    gone.subtract(new)
    come.subtract(old)
    return list(come.elements()), list(gone.elements())


def rows_of(event: ResultEvent, data: bytes) -> Rows:
    """Bindings as JSON, or triples as lines."""
    if event.kind == "graph":
        return data.splitlines(keepends=True)
    return [orjson.dumps(row) for row in orjson.loads(data)["results"]["bindings"]]


def is_empty(event: ResultEvent, variant: Variant, before: bytes | None) -> bool:
    """Whether a feed with ``empty=omit`` leaves the event out."""
    if event.kind == "boolean":
        return variant.mode == "delta" and before == event.full
    if variant.mode == "full" or event.added or event.removed:
        text = event.full if variant.mode == "full" else event.payload
        return not text or text.endswith(_EMPTY_BINDINGS)
    added, removed = difference(event, before)
    return not added and not removed


def rsp(event: ResultEvent) -> dict[str, Any]:
    """The member ``rsp``: where in time the result stands, and what is to be known about it."""
    meta = event.meta
    windows = [{**w, "open": iso(w["open"]), "close": iso(w["close"])} for w in event.windows]
    shown = {"seq": event.seq, "window": windows, "at": iso(event.at_ms), "inferred": None,
             "inconsistencies": meta.get("inconsistencies", []), "truncated": bool(meta.get("truncated", False))}
    shown |= {"inconsistenciesFound": meta["inconsistent"]} if "inconsistent" in meta else {}
    shown |= {"stream": event.stream} if event.stream else {}
    return {**shown, "limit": meta["limit"]} if shown["truncated"] and "limit" in meta else shown


def _chunks(name: str, event: ResultEvent, pieces: Sequence[Parts], numbered: bool) -> list[Frame]:
    """Events whose data are objects, given without their closing braces. `numbered`: each says which chunk it is. The last has the id."""
    last = len(pieces) - 1
    return [Frame(name, (*piece, b"," + dumps({"chunk": number, "last": number == last})[1:] if numbered else b"}"),
                  event.id if number == last else None) for number, piece in enumerate(pieces)]


def _with_rsp(event: ResultEvent, data: bytes) -> Parts:
    """A JSON object with the member ``rsp`` at the end, without its closing brace."""
    return on_one_line(data.rstrip()[:-1]), b',"rsp":', dumps(rsp(event))


def _opened(event: ResultEvent, members: dict[str, Any]) -> Parts:
    """An object of ``rsp`` and these members, without its closing brace."""
    return (on_one_line(dumps({"rsp": rsp(event), **members}))[:-1],)


def _stream_frames(event: ResultEvent, cap: int) -> list[Frame]:
    """What ISTREAM or DSTREAM gave as differences (SEPA's names, as `_difference`): its rows as they are written already."""
    head, pieces = _pieces(event.payload, cap)
    before, after = b"".join((b'{"rsp":', dumps(rsp(event)), b',"addedResults":', head)), b"".join((b',"removedResults":', head, _END))
    if event.removed:
        before, after = b"".join((before, _END, b',"removedResults":', head)), b""
    return _chunks("delta", event, [(before, piece, _END, after) for piece in pieces], len(pieces) > 1)


def _pieces(data: bytes, cap: int) -> tuple[bytes, list[memoryview]]:
    """A table's JSON up to its bindings; and these in pieces."""
    data = on_one_line(data)
    begin = data.index(_BINDINGS) + len(_BINDINGS)
    return data[:begin], list(cut_rows(data, cap, begin, len(data) - len(_END)))


def cut_rows(text: bytes, cap: int, start: int = 0, end: int | None = None) -> Iterator[memoryview]:
    """The bindings, ``{...},{...}``, between two places of a text, in pieces of whole rows of at most `cap` bytes, or one longer row.
    Nothing is copied, and nothing parsed: 50,000 rows would hold up everything else for a third of a second."""
    whole, end = memoryview(text), len(text) if end is None else end
    while end - start > cap:
        cut = _row_end(text, start, start + cap)
        if cut < 0:
            break
        yield whole[start:cut]
        start = cut + 1
    yield whole[start:end]


def _row_end(rows: bytes, start: int, most: int) -> int:
    """Where the last row ends that ends between `start` and `most`, else the first one after; -1 if none does."""
    found = rows.rfind(_ROW_END, start, most + 3)
    while found >= 0 and not _closes(rows, found):
        found = rows.rfind(_ROW_END, start, found + len(_ROW_END) - 1)
    if found < 0:
        found = rows.find(_ROW_END, max(start, most - 2))
        while found >= 0 and not _closes(rows, found):
            found = rows.find(_ROW_END, found + 1)
    return found + 3 if found >= 0 else -1


def _closes(rows: bytes, quote: int) -> bool:
    """Whether a quotation mark surely closes a string: it is not escaped, and before it is nothing that stands before an opening one."""
    before = quote - 1
    while before >= 0 and rows[before] == _BACKSLASH:
        before -= 1
    return (quote - before) % 2 == 1 and rows[quote - 1] not in b":,{["


def _difference(event: ResultEvent, head: Any, rows: tuple[Rows, Rows], variant: Variant) -> dict[str, Any]:
    """Added and removed rows: as graphs, or as tables under SEPA's names (Roffia et al., "Dynamic Linked Data")."""
    if event.kind == "graph":
        return {name: _graph_part(event, b"".join(part), variant) for name, part in zip(("added", "removed"), rows)}
    return {name: {"head": head, "results": {"bindings": [orjson.Fragment(row) for row in part]}}
            for name, part in zip(("addedResults", "removedResults"), rows)}


def _graph_part(event: ResultEvent, data: bytes, variant: Variant) -> dict[str, Any]:
    """A graph as JSON-LD, or as text in a dataset format."""
    name = event.meta.get("graph") or f"urn:x-thalweg:{event.query}:{event.id}"
    if variant.graph_format in _DATASETS:
        media = _DATASETS[variant.graph_format]
        return {"format": media, "text": graph(data, media, name, iso(event.at_ms)).decode()}
    return {"@context": {"generatedAtTime": {"@id": "http://www.w3.org/ns/prov#generatedAtTime",
                                             "@type": "http://www.w3.org/2001/XMLSchema#dateTime"}},
            "@id": name, "generatedAtTime": iso(event.at_ms), "@graph": orjson.Fragment(graph_members(data))}


def _slices(rows: Rows, cap: int) -> Iterator[list[bytes]]:
    """Runs of rows of about `cap` bytes, at least one row each."""
    piece: list[bytes] = []
    size = 0
    for row in rows:
        if piece and size + len(row) > cap:
            yield piece
            piece, size = [], 0
        piece.append(row)
        size += len(row) + 1
    if piece:
        yield piece

"""Streams: descriptors as docs/http-api.md has them, durations, and the state of a stream at the pump."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from engine.runtime.errors import EngineError
from engine.runtime.resources import TailEvent
from engine.timeline import LONGEST_MS, MAX, MIN

PROV_TIME = "http://www.w3.org/ns/prov#generatedAtTime"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")
_IRI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20<>\"{}|^`\\]*")
_SHORT = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)", re.ASCII)
_ISO = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?", re.ASCII)
_LONGEST_TEXT = 100
_UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATIONS = {"lateness": "PT0S", "idle": "PT5S", "maxAhead": "PT1M", "retention": "PT1H"}
_CHOICES = {"time": ("arrival", "event"), "late": ("drop", "dead-letter")}


def check_name(name: str) -> str:
    """The name itself, if it may name a stream or query (docs/http-api.md, section 9); 400 ``bad-name`` if not."""
    if not _NAME.fullmatch(name) or ".." in name:
        raise EngineError("bad-name", 400, f"{name!r} is not a name: a letter, then up to 63 letters, digits, '_', '-' and single '.'.",
                          {"name": name})
    return name


def duration_ms(value: object) -> int:
    """``PT5S``, ``PT0.5S``, ``P1DT2H``, ``500ms`` or ``5s`` in ms; ValueError if it is none of these, or longer than `LONGEST_MS`."""
    if (ms := _any_duration_ms(value)) > LONGEST_MS:
        raise ValueError(f"{str(value)[:_LONGEST_TEXT]!r} is longer than 1,000 years")
    return ms


def kept_duration_ms(value: object) -> int:
    """A duration of a descriptor that was accepted once, perhaps when there was no bound, in ms up to `LONGEST_MS`."""
    return min(_any_duration_ms(value), LONGEST_MS)


def _any_duration_ms(value: object) -> int:
    text = str(value).strip()
    if len(text) > _LONGEST_TEXT:
        raise ValueError(f"{text[:_LONGEST_TEXT]}... is not a duration such as PT5S or 500ms")
    if short := _SHORT.fullmatch(text):
        return round(float(short[1]) * _UNITS[short[2]])
    whole = _ISO.fullmatch(text)
    if whole is None or not any(whole.groups()):
        raise ValueError(f"{text!r} is not a duration such as PT5S or 500ms")
    days, hours, minutes, seconds = whole.groups(default="0")
    return round(((int(days) * 24 + int(hours)) * 60 + int(minutes)) * 60_000 + float(seconds) * 1000)


def duration_text(ms: int) -> str:
    """A duration of ms as xsd:dayTimeDuration in seconds, minutes or hours: ``PT5S``, ``PT1M``, ``PT0.5S``."""
    for unit, letter in ((3_600_000, "H"), (60_000, "M")):
        if ms and ms % unit == 0:
            return f"PT{ms // unit}{letter}"
    whole, rest = divmod(ms, 1000)
    return f"PT{whole}S" if not rest else f"PT{whole}.{rest:03d}".rstrip("0") + "S"


def describe(name: str, given: Mapping[str, Any], base_url: str) -> dict[str, Any]:
    """The whole descriptor of a stream from what was given of it, in one spelling; 422 ``bad-descriptor`` names what is wrong."""
    known = {"name", "iri", "timestampPredicate", "source", "state", "usedBy", *_DURATIONS, *_CHOICES}
    for member in given:
        if member not in known:
            raise _bad(member, f"There is no member {member!r}; there are {', '.join(sorted(known - {'state', 'usedBy'}))}.")
    if given.get("name", name) != name:
        raise EngineError("name-mismatch", 422, f"The descriptor is for {given['name']!r}, the path for {name!r}.")
    found: dict[str, Any] = {"iri": given.get("iri", f"{base_url}/streams/{name}"),
                             "timestampPredicate": given.get("timestampPredicate", PROV_TIME)}
    for member in ("iri", "timestampPredicate"):
        if not isinstance(found[member], str) or not _IRI.fullmatch(found[member]):
            raise _bad(member, f"{member} must be an absolute IRI.")
    for member, choices in _CHOICES.items():
        found[member] = given.get(member, choices[0])
        if found[member] not in choices:
            raise _bad(member, f"{member} must be {' or '.join(choices)}.")
    for member, default in _DURATIONS.items():
        try:
            found[member] = duration_text(duration_ms(given.get(member, default)))
        except ValueError as error:
            raise _bad(member, f"{member}: {error}.") from error
    found["source"] = given.get("source", {"type": "http"})
    if found["source"] != {"type": "http"}:
        raise _bad("source", 'Only {"type": "http"} is a source here.')
    return found


def describe_made(iri: str, query: str, time: str) -> dict[str, Any]:
    """The descriptor of a stream that a query makes: nothing of it can be set."""
    return {"iri": iri, "timestampPredicate": PROV_TIME, "time": time, "source": {"type": "query", "query": query}}


def check_pushable(name: str, descriptor: Mapping[str, Any]) -> None:
    """Refuse a push to a stream that a query makes."""
    if descriptor["source"]["type"] == "query":
        raise made_by_a_query(name, "Nothing can be pushed to it.")


def made_by_a_query(name: str, what: str) -> EngineError:
    """405: the stream is a query's, and goes with it."""
    return EngineError("method-not-allowed", 405, f"The stream {name!r} is made by the query {name!r}. {what}",
                       {"query": name, "allowed": ["GET", "HEAD"]})


@dataclass(slots=True)
class StreamState:
    """A stream at the pump. `kept_from`: older events are no longer in its content; MAX where nothing is kept. `whole_from`: of older
    events some came while no query read the stream, and were never in it."""

    watermark: int = MIN
    idle: bool = False
    items: int = 0
    late: int = 0
    refused: int = 0
    kept_from: int = MAX
    whole_from: int = MIN

    def advance(self, watermark: int | None) -> None:
        """A record came: the stream is not idle."""
        self.watermark = max(self.watermark, MIN if watermark is None else watermark)
        self.idle = False

    def sleep(self, watermark: int | None) -> None:
        """It is idle (still, perhaps), and has nothing to bring that is older than `watermark`."""
        self.advance(watermark)
        self.idle = True

    def refuse(self, payload: Mapping[str, Any]) -> None:
        self.late += payload["late"]
        self.refused += payload["refused"]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> StreamState:
        return cls(**value)


_SHOWN = ["position", "t", "g", "s", "p", "o"]


_TAIL_ROWS = 50_000


class _Part(NamedTuple):
    """Rows of so many items, and their bytes."""

    items: int
    size: int
    rows: pa.Table


class Tail:
    """The last items of a stream; fewer where they are large. `gone` is the position of the last one that is no longer here."""

    def __init__(self, items: int, most_bytes: int = 8 << 20, parts: Sequence[_Part] = (), gone: int = 0) -> None:
        self._parts = tuple(parts)
        self._items, self._bytes = items, most_bytes
        self.gone = gone

    @property
    def tables(self) -> list[pa.Table]:
        """The rows of the items, in order."""
        return [part.rows for part in self._parts]

    def fixed(self) -> Tail:
        """The tail as it is now, which does not change."""
        return Tail(self._items, self._bytes, self._parts, self.gone)

    def add(self, rows: pa.Table) -> None:
        """Take rows of the log, of this stream's items only, in order."""
        positions = rows["position"].to_numpy()
        if not len(positions):
            return
        first = max(int(np.searchsorted(positions, np.unique(positions)[-self._items:][0])), len(positions) - _TAIL_ROWS)
        sizes = _sizes(rows.slice(first))
        begin = first + int(np.searchsorted(-np.cumsum(sizes[::-1])[::-1], -self._bytes))
        if begin:
            begin = int(np.searchsorted(positions, positions[begin - 1], side="right"))
            self.gone = int(positions[begin - 1])
        if begin == len(positions):
            self._parts = ()
            return
        kept = rows.select(_SHOWN).slice(begin).take(np.arange(len(positions) - begin))     # a copy: a slice would keep the whole batch
        parts = (*self._parts, _Part(len(np.unique(positions[begin:])), int(sizes[begin - first:].sum()), kept))
        superfluous = len(self._parts) if begin else _superfluous(parts, self._items, self._bytes)
        if superfluous:
            self.gone = max(self.gone, parts[superfluous - 1].rows["position"][-1].as_py())
        self._parts = parts[superfluous:]

    def read(self, limit: int, since: int = 0) -> list[TailEvent]:
        """The last `limit` items with position > `since`, in order."""
        items: dict[int, TailEvent] = {}
        for part in self._parts:
            for position, t, graph, s, p, o in zip(*(part.rows[name].to_pylist() for name in _SHOWN), strict=True):
                if position > since:
                    old = items.get(position)
                    triples = (*(old.triples if old else ()), *(((s, p, o),) if s is not None else ()))
                    items[position] = TailEvent(position, t, graph, triples)
        return [items[position] for position in sorted(items)[-limit:]] if limit else []


def _superfluous(parts: Sequence[_Part], enough: int, most_bytes: int) -> int:
    """How many of the first parts go because those after them are enough, or all that there is room for."""
    items = rows = size = 0
    for place in range(len(parts) - 1, -1, -1):
        own = parts[place]
        size += own.size
        if items >= enough or rows >= _TAIL_ROWS or size > most_bytes and place < len(parts) - 1:
            return place + 1
        items, rows = items + own.items, rows + own.rows.num_rows
    return 0


def _sizes(rows: pa.Table) -> np.typing.NDArray[np.int64]:
    """The bytes of each row, of what a tail shows."""
    sizes = np.full(rows.num_rows, 2 * 8, np.int64)
    for name in _SHOWN[2:]:
        sizes += pc.fill_null(pc.binary_length(rows[name].cast(pa.string())), 0).to_numpy()
    return sizes


def _bad(member: str, detail: str) -> EngineError:
    return EngineError("bad-descriptor", 422, detail, {"member": member})

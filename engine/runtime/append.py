"""What is decided once, when something is appended: positions, stamps, lateness, watermarks, idleness, whose blank nodes these are.

Pure: takes the state of the log's end and the time, gives rows (rows.py). The state is changed only through `Appender`, which the log
forks for each group of commands and adopts when the group is on disk.
"""

from __future__ import annotations

import logging
from collections import ChainMap
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from engine.ir.statement import Statement
from engine.runtime.catalogue import Catalogue
from engine.runtime.errors import EngineError, not_found
from engine.runtime.receipts import KeptReceipt, Terms, kept_receipt, receipt_payload, repeated
from engine.runtime.resources import OMITTED, Receipt, Rejection
from engine.runtime.rows import Control, Kind, Prepared, at_position, control_rows, controls, graph_rows, item_rows
from engine.runtime.rule_store import StoredRules
from engine.runtime.streams import kept_duration_ms
from engine.runtime.ticks import query_watermark
from engine.timeline import MIN

Key = tuple[str, str]
_LOG = logging.getLogger(__name__)
_LETTER_SIZE = 4_096
_LETTERS = 100


@dataclass(frozen=True, slots=True)
class Source:
    """A stream at the end of the log. Durations in ms; `active_ms` is the wall time of its last record."""

    iri: str
    arrival: bool = True
    lateness_ms: int = 0
    idle_ms: int = 5_000
    ahead_ms: int = 60_000
    keep_late: bool = False
    retention_ms: int = 3_600_000
    watermark: int = MIN
    idle: bool = False
    active_ms: int = 0
    items: int = 0
    late: int = 0
    refused: int = 0

    @classmethod
    def of(cls, descriptor: Mapping[str, Any], state: Mapping[str, Any], now_ms: int) -> Source:
        """A stream by its descriptor, and its state so far (`StreamState.to_json`, or nothing)."""
        lateness, idle, ahead, retention = (kept_duration_ms(descriptor[name]) for name in ("lateness", "idle", "maxAhead", "retention"))
        arrival, keep_late = descriptor["time"] == "arrival", descriptor["late"] == "dead-letter"
        return cls(descriptor["iri"], arrival, lateness, idle, ahead, keep_late, retention, state.get("watermark", MIN),
                   state.get("idle", False), now_ms, state.get("items", 0), state.get("late", 0), state.get("refused", 0))


@dataclass(slots=True)
class Appender:
    """The end of the log: the next position, the streams, the keys of pushes that were answered, and what is registered."""

    position: int = 1
    sources: dict[str, Source] = field(default_factory=dict)
    keys: MutableMapping[Key, KeptReceipt] = field(default_factory=dict)
    catalogue: Catalogue = field(default_factory=Catalogue)

    def fork(self) -> Appender:
        """A copy to decide on; `adopt` makes it real."""
        return Appender(self.position, dict(self.sources), ChainMap({}, self.keys), self.catalogue)

    def adopt(self, fork: Appender) -> None:
        """Take over the decisions of a fork whose rows are on disk."""
        self.position, self.sources, self.catalogue = fork.position, fork.sources, fork.catalogue
        if isinstance(fork.keys, ChainMap):
            self.keys.update(fork.keys.maps[0])

    def source(self, stream: str) -> Source:
        if stream not in self.sources:
            raise not_found("stream", stream)
        return self.sources[stream]

    def take(self, count: int = 1) -> int:
        """The first of `count` new positions."""
        first, self.position = self.position, self.position + count
        return first

    def push(self, stream: str, prepared: Prepared, now_ms: int, terms: Terms = Terms()) -> tuple[list[pa.Table], Receipt]:
        """Append items, in their order. An item older than the watermark before it is late; a watermark pushed along comes after all,
        unless all was refused."""
        source = self.source(stream)
        if terms.key is not None and (known := self.keys.get((stream, terms.key))) is not None:
            return [], repeated(known, terms)
        verdict, rejected = _judge(self._woken(source), prepared, now_ms), terms.rejected
        if verdict.ahead and not terms.skip:
            raise EngineError("timestamp-ahead", 422, f"Items are stamped more than {source.ahead_ms} ms ahead of the server's clock; "
                              "nothing was taken.", {"limit": source.ahead_ms, "errors": list(_ahead_errors(verdict, now_ms))})
        first = self.take(verdict.accepted)
        positions = first + np.cumsum(verdict.taken) - 1
        rows = []
        if verdict.accepted:
            rows.append(item_rows(prepared, stream, verdict.taken, positions, verdict.times, verdict.watermarks, source.items))
        asleep = source.idle and not verdict.accepted
        source = replace(source, watermark=source.watermark if asleep else verdict.watermark, active_ms=now_ms, idle=asleep,
                         items=source.items + verdict.accepted, late=source.late + verdict.late,
                         refused=source.refused + verdict.ahead + len(rejected))
        self.sources[stream] = source
        if verdict.late or verdict.ahead or rejected:
            rows.append(control_rows(Control(self.take(), Kind.REFUSED, stream, None, _refusal(source, prepared, verdict, rejected))))
        receipt = Receipt(verdict.accepted, verdict.late, verdict.ahead + len(rejected), str(first) if verdict.accepted else None,
                          str(first + verdict.accepted - 1) if verdict.accepted else None, None,
                          tuple({"detail": r.reason, "place": r.place} for r in rejected[:_LETTERS]) + _ahead_errors(verdict, now_ms))
        if terms.watermark_ms is not None and not receipt.refused:
            if terms.watermark_ms > now_ms + source.ahead_ms:
                raise EngineError("watermark-ahead", 422, f"The watermark is more than {source.ahead_ms} ms ahead of the server's clock.",
                                  {"limit": source.ahead_ms})
            rows += self.mark(stream, terms.watermark_ms, now_ms)
        receipt = replace(receipt, watermark_ms=_known(self.sources[stream].watermark))
        if terms.key is not None:
            rows.append(self._keep(stream, KeptReceipt(terms.key, receipt, now_ms + source.retention_ms, terms.digest)))
        return rows, receipt

    def mark(self, stream: str, watermark_ms: int, now_ms: int) -> list[pa.Table]:
        """Move a stream's watermark on; nothing is appended where it is there already and the stream is not idle."""
        source = self.source(stream)
        if watermark_ms <= source.watermark and not source.idle:
            return []
        source = self._woken(source)
        source = replace(source, watermark=max(source.watermark, watermark_ms), idle=False, active_ms=now_ms)
        self.sources[stream] = source
        return [control_rows(Control(self.take(), Kind.MARK, stream, source.watermark, {}))]

    def _woken(self, source: Source) -> Source:
        """A stream as it is when it comes back: while it was idle, what is read together with it was evaluated without it, so that its
        watermark is the last evaluation time of a query that it comes to, if that is later."""
        if not source.idle:
            return source

        def watermark(streams: Iterable[str]) -> int:
            return query_watermark([(self.sources[iri].watermark, self.sources[iri].idle) if iri in self.sources else (MIN, False)
                                    for iri in streams])
        return replace(source, watermark=max(source.watermark, self.catalogue.used(source.iri, watermark)))

    def clock_marks(self, streams: Iterable[str], now_ms: int) -> list[pa.Table]:
        """Clock marks for arrival streams: no item will get a stamp before the mark."""
        rows: list[pa.Table] = []
        for stream in streams:
            if stream in self.sources and self.sources[stream].arrival:
                rows += self.mark(stream, now_ms, now_ms)
        return rows

    def silent(self, now_ms: int) -> list[str]:
        """Event streams that have been silent for their idle time and are not declared idle yet."""
        return [s.iri for s in self.sources.values() if not s.arrival and not s.idle and now_ms - s.active_ms >= s.idle_ms]

    def next_silence(self) -> int | None:
        """The earliest wall time at which `silent` may name another stream."""
        return min((s.active_ms + s.idle_ms for s in self.sources.values() if not s.arrival and not s.idle), default=None)

    def declare_idle(self, now_ms: int) -> list[pa.Table]:
        """Idle records for the streams that are silent."""
        rows = []
        for stream in self.silent(now_ms):
            self.sources[stream] = replace(self.sources[stream], idle=True)
            rows.append(control_rows(Control(self.take(), Kind.IDLE, stream, None, {})))
        return rows

    def stay_awake(self, now_ms: int) -> tuple[list[pa.Table], None]:
        """Count silence from now on: nobody could push before."""
        self.sources = {iri: replace(source, active_ms=now_ms) for iri, source in self.sources.items()}
        return [], None

    def put_stream(self, name: str, descriptor: dict[str, Any], now_ms: int) -> list[pa.Table]:
        """Begin a stream."""
        self.sources[descriptor["iri"]] = Source.of(descriptor, {}, now_ms)
        self.catalogue = self.catalogue.with_stream(name, descriptor)
        return [control_rows(Control(self.take(), Kind.STREAM, descriptor["iri"], None, {"name": name, "descriptor": descriptor}))]

    def remove_stream(self, name: str) -> list[pa.Table]:
        """Forget a stream."""
        iri = self.catalogue.streams[name]["iri"]
        self.sources.pop(iri, None)
        self.catalogue = self.catalogue.with_stream(name, None)
        return [control_rows(Control(self.take(), Kind.STREAM, iri, None, {"name": name, "descriptor": None}))]

    def command(self, kind: Kind, name: str, payload: dict[str, Any]) -> tuple[list[pa.Table], int]:
        """A record that changes nothing here; the reply is its position."""
        position = self.take()
        return [control_rows(Control(position, kind, name, None, payload))], position

    def register(self, name: str, payload: dict[str, Any], statement: Statement) -> list[pa.Table]:
        """Register a query, or replace it; `statement` has the windows of its rules. The record says which generation it is: the pump
        and what is registered here cannot count differently."""
        position = self.position
        payload = {"since": position, **payload}
        self.catalogue = self.catalogue.with_query(name, payload, position, statement)
        definition = self.catalogue.queries[name].definition
        payload |= {"number": definition.number, "generation": definition.generation}
        return self.command(Kind.REGISTER, name, payload)[0]

    def change(self, kind: Kind, name: str, payload: dict[str, Any]) -> pa.Table:
        """The end of a query, a pause or a resumption."""
        position, known = self.position, self.catalogue
        if kind is Kind.UNREGISTER:
            self.catalogue = known.without_query(name, position)
        else:
            self.catalogue = known.with_wish(name, "paused" if kind is Kind.PAUSE else "running", position)
        return self.command(kind, name, payload)[0][0]

    def rules(self, name: str, stored: StoredRules | None) -> list[pa.Table]:
        """A new version of a rule set, or its removal (None)."""
        position = self.position
        self.catalogue = self.catalogue.with_rules(name, None if stored is None else replace(stored, version=position))
        payload = {"media": "", "text": None} if stored is None else {"media": stored.media, "text": stored.text}
        return self.command(Kind.RULES, name, payload)[0]

    def graph(self, iri: str, version: tuple[pa.Table, pa.Table] | None) -> list[pa.Table]:
        """A new version of a static graph, by its rows (`rows.graph_rows`, at any position) and its facts, or its removal (None)."""
        position = self.take()
        rows, facts = (graph_rows(position, iri, None), None) if version is None else version
        self.catalogue = self.catalogue.with_graph(iri, facts, position)
        return [at_position(rows, position)]

    def reached(self, position: int) -> tuple[list[pa.Table], None]:
        """The pump has come to a position."""
        self.catalogue = self.catalogue.reached(position)
        return [], None

    def forget_keys(self, now_ms: int) -> None:
        """Drop the keys whose time is over."""
        for key in [k for k, kept in self.keys.items() if kept.until_ms < now_ms]:
            del self.keys[key]

    def follow(self, table: pa.Table, now_ms: int) -> None:
        """Take in rows that are on disk already: recovery of the log's end from its last files."""
        table = table.filter(pc.greater_equal(table["position"], self.position))
        if not table.num_rows:
            return
        self.position = pc.max(table["position"]).as_py() + 1
        events = table.filter(pc.and_(pc.equal(table["record"], int(Kind.EVENT)), pc.equal(table["row"], 0)))
        steps: list[tuple[int, str, int | None, Control | None]] = [
            (position, stream, watermark, None) for position, stream, watermark in
            zip(events["position"].to_pylist(), events["stream"].to_pylist(), events["watermark"].to_pylist(), strict=True)]
        steps += [(control.position, control.stream, control.watermark, control) for control in controls(table)]
        for position, stream, watermark, control in sorted(steps, key=lambda step: step[0]):
            try:
                self._step(stream, watermark, control, now_ms)
            except Exception:  # one record must not keep the server from starting; the pump sets it aside
                _LOG.exception("the record at %s, of %s, cannot be applied to the end of the log", position, stream)

    def _step(self, stream: str, watermark: int | None, control: Control | None, now_ms: int) -> None:
        """Take in one record that is on disk already; `control` is None for an item."""
        if control is not None and control.kind is Kind.STREAM:
            self.sources.pop(stream, None)
            if (descriptor := control.payload["descriptor"]) is not None:
                self.sources[stream] = Source.of(descriptor, {}, now_ms)
            return
        if stream in self.sources:
            self.sources[stream] = _follow(self.sources[stream], watermark, control, now_ms)
        if control is not None and control.kind is Kind.KEY:
            self.keys[stream, control.payload["key"]] = kept_receipt(control.payload)

    def _keep(self, stream: str, kept: KeptReceipt) -> pa.Table:
        self.keys[stream, kept.key] = kept
        return control_rows(Control(self.take(), Kind.KEY, stream, None, receipt_payload(kept)))


@dataclass(frozen=True, slots=True)
class _Verdict:
    """Per item: taken or not, its stamp, the watermark once it is in; and which were late or ahead."""

    taken: np.typing.NDArray[np.bool_]
    times: np.typing.NDArray[np.int64]
    watermarks: np.typing.NDArray[np.int64]
    late_mask: np.typing.NDArray[np.bool_]
    ahead_mask: np.typing.NDArray[np.bool_]
    watermark: int

    @property
    def accepted(self) -> int:
        return int(self.taken.sum())

    @property
    def late(self) -> int:
        return int(self.late_mask.sum())

    @property
    def ahead(self) -> int:
        return int(self.ahead_mask.sum())


def _judge(source: Source, prepared: Prepared, now_ms: int) -> _Verdict:
    count = prepared.items
    none = np.zeros(count, np.bool_)
    if source.arrival:
        stamp = max(now_ms, source.watermark)
        times = np.full(count, stamp, np.int64)
        return _Verdict(~none, times, np.full(count, source.watermark, np.int64), none, none, source.watermark)
    if prepared.stamped is not None:
        bare = np.flatnonzero(~prepared.stamped).tolist()
        raise EngineError("missing-timestamp", 422, f"The stream {source.iri} has event time: each item must carry a time stamp.",
                          {"items": bare[:_LETTERS], **({"count": len(bare)} if len(bare) > _LETTERS else {})})
    times = prepared.times
    ahead = times > now_ms + source.ahead_ms
    reached = np.maximum.accumulate(np.concatenate([[source.watermark], np.where(ahead, MIN, times - source.lateness_ms)]))
    late = ~ahead & (times < reached[:-1])
    return _Verdict(~ahead & ~late, times, reached[1:], late, ahead, int(reached[-1]))


def _refusal(source: Source, prepared: Prepared, verdict: _Verdict, rejected: Sequence[Rejection]) -> dict[str, Any]:
    """The payload of a REFUSED record: counts, and the letters to keep."""
    letters = [_letter(r.reason, None, r.text or r.place or "") for r in rejected[:_LETTERS]]
    left_out = max(0, len(rejected) - _LETTERS)
    for reason, mask in (("ahead", verdict.ahead_mask), ("late", verdict.late_mask & source.keep_late)):
        indexes = np.flatnonzero(mask)
        left_out += max(0, len(indexes) - _LETTERS)
        for index in indexes[:_LETTERS]:
            item = prepared.table.filter(pc.equal(prepared.table["item"], int(index)))
            lines = [" ".join((s, p, o, ".")) for s, p, o in zip(*(item[c].to_pylist() for c in "spo"), strict=True) if s is not None]
            letters.append(_letter(reason, int(verdict.times[index]), "\n".join(lines)))
    if left_out:
        letters.append({"reason": OMITTED, "t": None, "text": "", "more": left_out})
    return {"late": verdict.late, "refused": verdict.ahead + len(rejected), "letters": letters}


def _letter(reason: str, t_ms: int | None, text: str) -> dict[str, Any]:
    """A dead letter; `more` is how much of its text is not kept."""
    more = len(text) - _LETTER_SIZE
    return {"reason": reason, "t": t_ms, "text": text[:_LETTER_SIZE], **({"more": more} if more > 0 else {})}


def _ahead_errors(verdict: _Verdict, now_ms: int) -> tuple[dict[str, Any], ...]:
    return tuple({"detail": f"The item is stamped {int(verdict.times[i]) - now_ms} ms ahead of the server's clock.", "item": int(i)}
                 for i in np.flatnonzero(verdict.ahead_mask)[:_LETTERS])


def _follow(source: Source, watermark: int | None, control: Control | None, now_ms: int) -> Source:
    """A stream after one more record of its own."""
    source = replace(source, active_ms=now_ms)
    if control is None or control.kind is Kind.MARK:
        return replace(source, watermark=max(source.watermark, MIN if watermark is None else watermark), idle=False,
                       items=source.items + (control is None))
    if control.kind is Kind.IDLE:
        return replace(source, idle=True)
    if control.kind is Kind.REFUSED:
        return replace(source, late=source.late + control.payload["late"], refused=source.refused + control.payload["refused"])
    return source


def _known(watermark: int) -> int | None:
    return None if watermark == MIN else watermark

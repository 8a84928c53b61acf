"""Figures of a running engine: the last batches, rates, latencies. Nothing that decides a result."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.runtime.batch import Outcome
from engine.runtime.resources import iso
from engine.timeline import MIN

_SPAN_MS = 10_000
_PROGRESS_MS = 500


@dataclass(slots=True)
class _Told:
    """The last progress message of a query, and the evaluations since."""

    at_ms: int = 0
    watermark: int = MIN
    closed: int = 0
    empty: int = 0


@dataclass(frozen=True, slots=True)
class _Came:
    """What a batch that ended at `at_ms` brought of each stream."""

    at_ms: int
    rows: Mapping[str, int]
    items: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Measured:
    """The figures after a batch, which do not change any more."""

    batches: tuple[dict[str, Any], ...] = ()
    totals: Mapping[str, int] = field(default_factory=dict)
    came: tuple[_Came, ...] = ()
    latency: Mapping[str, int | None] = field(default_factory=dict)
    answered: Mapping[str, int] = field(default_factory=dict)

    def query(self, name: str, streams: Iterable[str], now_ms: int) -> dict[str, Any]:
        """What `describe` shows of a query: rows per second over the last ten seconds, when its last result of this run was logged,
        and how old it was then: None where its time was yet to come."""
        rate = sum(self.rows(stream, now_ms) for stream in streams)
        return {"inputRowsPerSecond": round(rate, 1), "resultLatencyMs": self.latency.get(name),
                "lastResultAt": iso(self.answered.get(name))}

    def rows(self, iri: str, now_ms: int) -> float:
        """Triples per second of a stream over the last ten seconds."""
        return sum(batch.rows.get(iri, 0) for batch in self._recent(now_ms)) * 1000 / _SPAN_MS

    def stream(self, iri: str, now_ms: int) -> float:
        """Items per second of a stream over the last ten seconds."""
        return round(sum(batch.items.get(iri, 0) for batch in self._recent(now_ms)) * 1000 / _SPAN_MS, 1)

    def _recent(self, now_ms: int) -> list[_Came]:
        return [batch for batch in self.came if batch.at_ms >= now_ms - _SPAN_MS]


class Meters:
    """The owner's."""

    def __init__(self, batches: int = 50) -> None:
        self.batches: deque[dict[str, Any]] = deque(maxlen=batches)
        self.totals: dict[str, int] = defaultdict(int)
        self._came: deque[_Came] = deque()
        self._latency: dict[str, int | None] = {}
        self._answered: dict[str, int] = {}
        self._told: dict[str, _Told] = {}

    def batch(self, outcome: Outcome, now_ms: int) -> None:
        """Note a batch that ended at `now_ms`."""
        self.batches.append({"at": iso(now_ms), "rows": outcome.rows, "ticks": outcome.ticks, "results": len(outcome.results),
                             "evaluateMs": round(outcome.evaluate_ms, 1), "totalMs": round(outcome.total_ms, 1)})
        self.totals["batches"] += 1
        self.totals["rows"] += outcome.rows
        self.totals["results"] += len(outcome.results)
        self._came.append(_Came(now_ms, outcome.rows_by_stream, outcome.items_by_stream))
        while self._came[0].at_ms < now_ms - _SPAN_MS:
            self._came.popleft()
        begun = {notice.query: notice.data.get("epoch") for notice in outcome.notices
                 if notice.query is not None and notice.kind in ("epoch", "removed")}
        for name in begun:
            self._latency.pop(name, None)
            self._answered.pop(name, None)
        for event in outcome.results:
            if event.epoch != begun.get(event.query, event.epoch):
                continue
            self._latency[event.query] = None if event.at_ms > now_ms else now_ms - event.at_ms
            self._answered[event.query] = now_ms
            told = self._told.setdefault(event.query, _Told())
            told.closed += 1
            told.empty += event.meta.get("rows") == 0

    def measured(self) -> Measured:
        """The figures as they are now."""
        return Measured(tuple(self.batches), dict(self.totals), tuple(self._came), dict(self._latency), dict(self._answered))

    def news(self, name: str, watermark: int, now_ms: int) -> dict[str, Any] | None:
        """What a progress message says beside the query's progress; None if it has not moved, or was told of a moment ago."""
        told = self._told.setdefault(name, _Told())
        if watermark == told.watermark or now_ms - told.at_ms < _PROGRESS_MS:
            return None
        news = {"processedAt": iso(now_ms), "windowsClosed": told.closed, "empty": told.empty}
        self._told[name] = _Told(now_ms, watermark)
        return news

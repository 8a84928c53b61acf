"""A pushed stream as it is at the end of the log: what its descriptor says, and how far it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from engine.runtime.rows import Control, Kind
from engine.runtime.streams import kept_duration_ms
from engine.timeline import MIN


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

    def after(self, watermark: int | None, control: Control | None, now_ms: int) -> Source:
        """As it is after one more record of its own; `control` is None for an item."""
        source = replace(self, active_ms=now_ms)
        if control is None or control.kind is Kind.MARK:
            return replace(source, watermark=max(source.watermark, MIN if watermark is None else watermark), idle=False,
                           items=source.items + (control is None))
        if control.kind is Kind.IDLE:
            return replace(source, idle=True, watermark=max(source.watermark, MIN if watermark is None else watermark))
        if control.kind is Kind.REFUSED:
            return replace(source, late=source.late + control.payload["late"], refused=source.refused + control.payload["refused"])
        return source

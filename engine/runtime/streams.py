"""Pushed streams: descriptors as docs/http-api.md has them, durations, and a stream as it is at the end of the log."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from engine.runtime.errors import EngineError
from engine.runtime.rows import Control, Kind
from engine.timeline import LONGEST_MS, MIN

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


def _bad(member: str, detail: str) -> EngineError:
    return EngineError("bad-descriptor", 422, detail, {"member": member})


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

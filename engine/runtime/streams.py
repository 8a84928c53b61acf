"""Pushed streams: descriptors as docs/http-api.md has them, durations, a stream as it is at the end of the log; which items of a push are
taken, with which stamps and watermarks; what is kept of those that are not (late, ahead of the clock, not readable); and answers that are
kept so that a repetition gets the first one again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow.compute as pc

from engine.runtime.errors import EngineError
from engine.runtime.resources import OMITTED, Receipt, Rejection
from engine.runtime.rows import Control, Kind, Prepared
from engine.runtime.topics import Partition, Records, Topic, described, hushed, partitions_of, reach
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


def describe(name: str, given: Mapping[str, Any], base_url: str, kafka: Iterable[str] = ()) -> dict[str, Any]:
    """The whole descriptor of a stream from what was given of it, in one spelling; 422 ``bad-descriptor`` names what is wrong. `kafka` are
    the servers whose topics may be read."""
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
    found["source"] = _source(given.get("source", {"type": "http"}), found["time"] == "event", kafka)
    return found


def _source(given: object, event_time: bool, kafka: Iterable[str]) -> dict[str, Any]:
    if given == {"type": "http"}:
        return {"type": "http"}
    if not isinstance(given, dict) or given.get("type") != "kafka":
        raise _bad("source", 'A source is {"type": "http"}, or {"type": "kafka", "topic": ...}.')
    try:
        return described(given, event_time, kafka)
    except ValueError as error:
        raise _bad("source", f"source: {error}.") from error


def check_pushable(name: str, descriptor: Mapping[str, Any]) -> None:
    """405 for a stream whose items come from elsewhere."""
    if descriptor["source"]["type"] == "query":
        raise made_by_a_query(name, "Nothing can be pushed to it.")
    if descriptor["source"]["type"] == "kafka":
        raise EngineError("method-not-allowed", 405, f"The stream {name!r} is read from the topic {descriptor['source']['topic']!r}. "
                          "Nothing can be pushed to it.", {"topic": descriptor["source"]["topic"], "allowed": ["GET", "HEAD"]})


def made_by_a_query(name: str, what: str) -> EngineError:
    """405: the stream is a query's, and goes with it."""
    return EngineError("method-not-allowed", 405, f"The stream {name!r} is made by the query {name!r}. {what}",
                       {"query": name, "allowed": ["GET", "HEAD"]})


def _bad(member: str, detail: str) -> EngineError:
    return EngineError("bad-descriptor", 422, detail, {"member": member})


@dataclass(frozen=True, slots=True)
class Source:
    """A stream at the end of the log. Durations in ms; `active_ms` is the wall time of its last record. One that is read from a `topic`
    has its id and partitions, none before it was asked for them."""

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
    topic: Topic | None = None
    topic_id: str | None = None
    partitions: Mapping[int, Partition] = field(default_factory=dict)

    @classmethod
    def of(cls, descriptor: Mapping[str, Any], state: Mapping[str, Any], now_ms: int) -> Source:
        """A stream by its descriptor, and its state so far (that of `StreamState`, or nothing)."""
        # one that was accepted once, perhaps when durations had no bound
        lateness, idle, ahead, retention = (min(_any_duration_ms(descriptor[name]), LONGEST_MS)
                                            for name in ("lateness", "idle", "maxAhead", "retention"))
        arrival, keep_late = descriptor["time"] == "arrival", descriptor["late"] == "dead-letter"
        return cls(descriptor["iri"], arrival, lateness, idle, ahead, keep_late, retention, state.get("watermark", MIN),
                   state.get("idle", False), now_ms, state.get("items", 0), state.get("late", 0), state.get("refused", 0),
                   Topic.of(descriptor), state.get("topic_id"), partitions_of(state.get("partitions", {}), now_ms))

    @property
    def falls_silent(self) -> bool:
        """Whether it is idle once nothing was pushed for a while."""
        return not (self.arrival or self.idle or self.topic)

    def may_hush(self, at_end: Iterable[int], now_ms: int) -> bool:
        """Whether a partition of which nothing is left to be read is found silent now."""
        return not (self.arrival or self.idle) and hushed(self.partitions, at_end, now_ms, self.idle_ms) != self.partitions

    def after(self, watermark: int | None, control: Control | None, now_ms: int) -> Source:
        """As it is after one more record of its own; `control` is None for an item."""
        source = replace(self, active_ms=now_ms)
        if control is None or control.kind in (Kind.MARK, Kind.IDLE):
            reached = source.watermark if watermark is None else max(source.watermark, watermark)
            is_idle = control is not None and control.kind is Kind.IDLE
            items = source.items + (control is None)
            return replace(source, watermark=reached, idle=is_idle, items=items)
        if control.kind is Kind.REFUSED:
            return replace(source, late=source.late + control.payload["late"], refused=source.refused + control.payload["refused"])
        if control.kind is Kind.OFFSETS:
            before = source.partitions if control.payload["topic"] == source.topic_id else {}
            return replace(source, topic_id=control.payload["topic"],
                           partitions={**before, **partitions_of(control.payload["partitions"], now_ms)})
        return source


@dataclass(frozen=True, slots=True)
class Terms:
    """What a push says beside its items: a watermark, its idempotency key and what stands for the request, whether to `skip` items that
    are too far ahead of the clock (else they refuse the push as a whole), and what could not be parsed."""

    watermark_ms: int | None = None
    key: str | None = None
    digest: str | None = None
    skip: bool = False
    rejected: tuple[Rejection, ...] = ()


@dataclass(frozen=True, slots=True)
class KeptReceipt:
    """The answer to a push with an idempotency key, kept until `until_ms`."""

    key: str
    receipt: Receipt
    until_ms: int
    digest: str | None = None


class KeptKeys:
    """The answers that are kept, by stream and key: of each stream the last `most`; the oldest is forgotten first."""

    def __init__(self, most: int = 100_000, base: KeptKeys | None = None) -> None:
        self._most, self._base = most, base
        self._streams: dict[str, dict[str, KeptReceipt]] = {}
        self._dropped = set[str]()

    def get(self, stream: str, key: str) -> KeptReceipt | None:
        """The answer to the push with a key; None where it is not known (any more)."""
        found = self._streams.get(stream, {}).get(key)
        return found if found is not None or self._base is None or stream in self._dropped else self._base.get(stream, key)

    def add(self, stream: str, kept: KeptReceipt) -> None:
        own = self._streams.setdefault(stream, {})
        own.pop(kept.key, None)
        own[kept.key] = kept
        if len(own) > self._most:
            del own[next(iter(own))]

    def drop(self, stream: str) -> None:
        self._streams.pop(stream, None)
        if self._base is not None:
            self._dropped.add(stream)

    def forget(self, now_ms: int) -> None:
        young = {stream: {key: kept for key, kept in own.items() if kept.until_ms >= now_ms} for stream, own in self._streams.items()}
        self._streams = {stream: own for stream, own in young.items() if own}

    def fork(self) -> KeptKeys:
        """A copy to decide on, which costs nothing; `adopt` takes over what was changed in it."""
        return KeptKeys(self._most, self)

    def adopt(self, fork: KeptKeys) -> None:
        for stream in fork._dropped:
            self.drop(stream)
        for stream, own in fork._streams.items():
            for kept in own.values():
                self.add(stream, kept)


def receipt_payload(kept: KeptReceipt) -> dict[str, Any]:
    receipt = kept.receipt
    return {"key": kept.key, "until": kept.until_ms, "digest": kept.digest, "accepted": receipt.accepted, "late": receipt.late,
            "rejected": receipt.rejected, "first": receipt.first_id, "last": receipt.last_id, "watermark": receipt.watermark_ms,
            "errors": list(receipt.errors)}


def kept_receipt(payload: dict[str, Any]) -> KeptReceipt:
    """The inverse of `receipt_payload`."""
    receipt = Receipt(payload["accepted"], payload["late"], payload["rejected"], payload["first"], payload["last"],
                      payload["watermark"], tuple(payload["errors"]))
    return KeptReceipt(payload["key"], receipt, payload["until"], payload.get("digest"))


def repeated(known: KeptReceipt, terms: Terms) -> Receipt:
    if None not in (known.digest, terms.digest) and known.digest != terms.digest:
        raise EngineError("idempotency-key-reused", 422, f"The Idempotency-Key {terms.key!r} was used for another request.")
    return replace(known.receipt, repeated=True)


@dataclass(frozen=True, slots=True)
class LetterLimits:
    """Of a push: letters of each kind, and as many errors in its answer; the characters of a letter's text."""

    most: int = 100
    text: int = 4_096


@dataclass(frozen=True, slots=True)
class Admission:
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


def admit(source: Source, prepared: Prepared, now_ms: int, told: int) -> Admission:
    """Decide on the items of a push, in their order. EngineError (422 missing-timestamp) where one should carry a stamp and does not; so
    many of these are `told`."""
    count = prepared.items
    none = np.zeros(count, np.bool_)
    if source.arrival:
        stamp = max(now_ms, source.watermark)
        times = np.full(count, stamp, np.int64)
        return Admission(~none, times, np.full(count, source.watermark, np.int64), none, none, source.watermark)
    if prepared.stamped is not None:
        bare = np.flatnonzero(~prepared.stamped).tolist()
        raise EngineError("missing-timestamp", 422, f"The stream {source.iri} has event time: each item must carry a time stamp.",
                          {"items": bare[:told], **({"count": len(bare)} if len(bare) > told else {})})
    times = prepared.times
    ahead = times > now_ms + source.ahead_ms
    reached = np.maximum.accumulate(np.concatenate([[source.watermark], np.where(ahead, MIN, times - source.lateness_ms)]))
    late = ~ahead & (times < reached[:-1])
    return Admission(~ahead & ~late, times, reached[1:], late, ahead, int(reached[-1]))


def admit_records(source: Source, records: Records, now_ms: int) -> tuple[Admission, dict[int, Partition]]:
    """The same for records of a topic: items are late by the watermark of their own partition, or by that of the stream as it was before
    them. The watermark is that of before; the partitions say where it moves."""
    times = records.items.times
    ahead = np.ones(len(times), np.bool_) if source.arrival else times > now_ms + source.ahead_ms
    late, partitions = reach(records, source.partitions, ahead, source.lateness_ms, now_ms)
    if source.topic_id not in (None, records.identity):
        partitions = {number: partitions[number] for number in records.following}
    if source.arrival:
        return admit(source, records.items, now_ms, 0), partitions
    late = ~ahead & (late | (times < source.watermark))
    return Admission(~ahead & ~late, times, np.full(len(times), source.watermark, np.int64), late, ahead, source.watermark), partitions


def refusal(source: Source, prepared: Prepared, admission: Admission, rejected: Sequence[Rejection],
            limits: LetterLimits) -> dict[str, Any]:
    """The payload of a REFUSED record: counts, and the letters to keep."""
    letters = [_letter(r.reason, None, r.text or r.place or "", limits) for r in rejected[:limits.most]]
    left_out = max(0, len(rejected) - limits.most)
    for reason, mask in (("ahead", admission.ahead_mask), ("late", admission.late_mask & source.keep_late)):
        indexes = np.flatnonzero(mask)
        left_out += max(0, len(indexes) - limits.most)
        for index in indexes[:limits.most]:
            item = prepared.table.filter(pc.equal(prepared.table["item"], int(index)))
            lines = [" ".join((s, p, o, ".")) for s, p, o in zip(*(item[c].to_pylist() for c in "spo"), strict=True) if s is not None]
            letters.append(_letter(reason, int(admission.times[index]), "\n".join(lines), limits))
    if left_out:
        letters.append({"reason": OMITTED, "t": None, "text": "", "more": left_out})
    return {"late": admission.late, "refused": admission.ahead + len(rejected), "letters": letters}


def _letter(reason: str, t_ms: int | None, text: str, limits: LetterLimits) -> dict[str, Any]:
    """A dead letter; `more` is how much of its text is not kept."""
    more = len(text) - limits.text
    return {"reason": reason, "t": t_ms, "text": text[:limits.text], **({"more": more} if more > 0 else {})}


def ahead_errors(admission: Admission, now_ms: int, most: int) -> tuple[dict[str, Any], ...]:
    return tuple({"detail": f"The item is stamped {int(admission.times[i]) - now_ms} ms ahead of the server's clock.", "item": int(i)}
                 for i in np.flatnonzero(admission.ahead_mask)[:most])

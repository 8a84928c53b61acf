"""Pushes: which items are taken, with which stamps and watermarks; what is kept of those that are not (late, ahead of the clock, not
readable); and answers that are kept so that a repetition gets the first one again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow.compute as pc

from engine.runtime.errors import EngineError
from engine.runtime.resources import OMITTED, Receipt, Rejection
from engine.runtime.rows import Prepared
from engine.runtime.streams import Source
from engine.timeline import MIN


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
        """Keep an answer, as the youngest."""
        own = self._streams.setdefault(stream, {})
        own.pop(kept.key, None)
        own[kept.key] = kept
        if len(own) > self._most:
            del own[next(iter(own))]

    def drop(self, stream: str) -> None:
        """The stream is gone."""
        self._streams.pop(stream, None)
        if self._base is not None:
            self._dropped.add(stream)

    def forget(self, now_ms: int) -> None:
        """Drop the keys whose time is over."""
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
    """A kept receipt as JSON."""
    receipt = kept.receipt
    return {"key": kept.key, "until": kept.until_ms, "digest": kept.digest, "accepted": receipt.accepted, "late": receipt.late,
            "rejected": receipt.rejected, "first": receipt.first_id, "last": receipt.last_id, "watermark": receipt.watermark_ms,
            "errors": list(receipt.errors)}


def kept_receipt(payload: dict[str, Any]) -> KeptReceipt:
    """The inverse of `receipt_payload`."""
    receipt = Receipt(payload["accepted"], payload["late"], payload["rejected"], payload["first"], payload["last"],
                      payload["watermark"], tuple(payload["errors"]))
    return KeptReceipt(payload["key"], receipt, payload["until"], payload.get("digest"))


def receipt_of(text: str) -> KeptReceipt:
    """A kept receipt from its JSON text."""
    return kept_receipt(json.loads(text))


def repeated(known: KeptReceipt, terms: Terms) -> Receipt:
    """The first answer again, if the request is the same."""
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
    """What a receipt says of the items ahead of the clock, `most` of them."""
    return tuple({"detail": f"The item is stamped {int(admission.times[i]) - now_ms} ms ahead of the server's clock.", "item": int(i)}
                 for i in np.flatnonzero(admission.ahead_mask)[:most])

"""What a push asks beside its items, and answers to pushes that are kept so that a repetition gets the first one again."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from engine.runtime.errors import EngineError
from engine.runtime.resources import Receipt, Rejection


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

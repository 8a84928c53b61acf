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

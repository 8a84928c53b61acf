"""Which items of a push are taken, with which stamps and watermarks, and what is kept of those that are not: late, ahead of the clock,
or not readable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow.compute as pc

from engine.runtime.errors import EngineError
from engine.runtime.resources import OMITTED, Rejection
from engine.runtime.rows import Prepared
from engine.runtime.source import Source
from engine.timeline import MIN


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

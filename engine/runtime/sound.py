"""Whether a record of the input log can be applied. What cannot is set aside by the pump, once, instead of stopping it for ever."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from engine.timeline import EARLIEST_MS, LATEST_MS, MIN, is_moment

BEYOND = "its time is not within the years 1 to 9999"


def sound_items(rows: pa.Table) -> tuple[pa.Table, list[int]]:
    """The rows of items that can be taken in, and the positions of the others, which no push brings any more."""
    ends, latest = pc.min_max(rows["t"]).as_py(), pc.max(rows["watermark"]).as_py()
    if not rows.num_rows or not rows["t"].null_count and is_moment(ends["min"]) and is_moment(ends["max"]) and (latest or 0) <= LATEST_MS:
        return rows, []
    within = pc.and_(pc.greater_equal(rows["t"], EARLIEST_MS), pc.less_equal(rows["t"], LATEST_MS))
    within = pc.fill_null(pc.and_(within, pc.less_equal(pc.fill_null(rows["watermark"], 0), LATEST_MS)), False)
    return rows.filter(within), pc.unique(rows.filter(pc.invert(within))["position"]).to_pylist()


def sound_watermark(watermark: int | None) -> int | None:
    """The watermark itself; ValueError where it is not a time."""
    if watermark is not None and watermark > MIN and not is_moment(watermark):
        raise ValueError(BEYOND)
    return watermark


def storable_receipt(payload: dict[str, Any]) -> dict[str, Any]:
    """The payload of a KEY record, once it is known that SQLite can hold it; ValueError or KeyError otherwise."""
    _check(payload["key"], payload["until"])
    return payload


def storable_letters(letters: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Dead letters, once it is known that SQLite can hold them; ValueError or KeyError otherwise."""
    for letter in letters:
        _check(letter["reason"], letter["t"], letter["text"])
    return list(letters)


def _check(*values: object) -> None:
    for value in values:
        if isinstance(value, str):
            value.encode()      # UnicodeEncodeError, a ValueError, for half a character
        elif isinstance(value, bool) or not (value is None or isinstance(value, int) and -(1 << 63) <= value < 1 << 63):
            raise ValueError(f"{str(value)[:100]} cannot be stored")

"""Values as texts: time stamps of items as integer milliseconds, and the values of query parameters, each read by a function that raises
ValueError with what was expected."""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from engine.ir.notation import date_time_ms
from engine.ir.terms import XSD
from engine.timeline import MAX, MIN, Interval, is_moment

GENERATED_AT = "http://www.w3.org/ns/prov#generatedAtTime"
_STAMP_TYPES = ("", f"^^<{XSD}dateTime>", f"^^<{XSD}dateTimeStamp>")
_MS = re.compile(r"-?[0-9]{1,16}")


@lru_cache(maxsize=4096)
def stamp_ms(token: str) -> int | None:
    """Milliseconds of the literal `token`, an xsd:dateTime (or a plain string of its form); None for any other term."""
    end = token.rfind('"')
    if not token.startswith('"') or token[end + 1:] not in _STAMP_TYPES:
        return None
    return date_time_ms(token[1:end])


def flag(text: str) -> bool:
    return choice("true", "false")(text) == "true"


def count(most: int, least: int = 0) -> Callable[[str], int]:
    """A whole number from `least` to `most`."""
    def read(text: str) -> int:
        if not text.isascii() or not text.isdigit() or not least <= int(text) <= most:
            raise ValueError(f"expected a number from {least} to {most}")
        return int(text)
    return read


def moment(text: str) -> int:
    """A time in ms since the epoch: an xsd:dateTime, or the number itself."""
    ms = int(text) if _MS.fullmatch(text) else date_time_ms(text.replace(" ", "+"))
    if ms is None:
        raise ValueError("expected an xsd:dateTime such as 2026-11-21T05:00:00Z, or milliseconds since 1970")
    if not is_moment(ms):
        raise ValueError("expected a time within the years 1 to 9999")
    return ms


def since(text: str) -> str:
    """``earliest``, or the id of an item."""
    if text != "earliest" and not (text.isascii() and text.isdigit()):
        raise ValueError("expected earliest or the id of an item")
    return text


def choice(*words: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in words:
            raise ValueError(f"expected {' or '.join(words)}")
        return text
    return read


def times(when: Interval, at: Callable[[int], Any] = int) -> dict[str, Any]:
    """An interval: its ends, null where it has none, and whether they belong to it; `at` writes an instant (ms)."""
    start, end = when.lo // 2, (when.hi + 1) // 2
    return {"from": None if when.lo == MIN else at(start), "to": None if when.hi == MAX else at(end),
            "fromIncluded": when.lo != MIN and not when.lo % 2, "toIncluded": when.hi != MAX and not when.hi % 2}

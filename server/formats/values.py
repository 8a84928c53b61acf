"""Values as texts: time stamps of items (xsd:dateTime, with or without a zone, then UTC) as integer milliseconds, and the values of query
parameters, each read by a function that raises ValueError with what was expected."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from functools import lru_cache
from typing import Any

from engine.timeline import MAX, MIN, Interval, is_moment

XSD = "http://www.w3.org/2001/XMLSchema#"
GENERATED_AT = "http://www.w3.org/ns/prov#generatedAtTime"
_STAMP_TYPES = ("", f"^^<{XSD}dateTime>", f"^^<{XSD}dateTimeStamp>")
_DATE_TIME = re.compile(r"(-?\d{4,9})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)?", re.ASCII)
_DAY_MS = 86_400_000
_MS = re.compile(r"-?[0-9]{1,16}")


def date_time_ms(text: str) -> int | None:
    """Milliseconds since the epoch of an xsd:dateTime; digits beyond ms are cut off; None where it is none. Year 0 and years beyond four
    digits follow the proleptic Gregorian calendar (XSD 1.1, section 3.3.7)."""
    found = _DATE_TIME.fullmatch(text.strip())
    if found is None:
        return None
    year, month, day, hour, minute, second = (int(part) for part in found.groups()[:6])
    days = _days(year, month, day)
    if days is None or minute > 59 or second > 59 or hour > 24 or (hour == 24 and (minute or second or (found[7] or "0").strip("0"))):
        return None
    offset = _offset_minutes(found[8])
    if offset is None:
        return None
    ms = int((found[7] or "0").ljust(3, "0")[:3])
    return days * _DAY_MS + ((hour * 60 + minute - offset) * 60 + second) * 1000 + ms


@lru_cache(maxsize=4096)
def stamp_ms(token: str) -> int | None:
    """Milliseconds of the literal `token`, an xsd:dateTime (or a plain string of its form); None for any other term."""
    end = token.rfind('"')
    if not token.startswith('"') or token[end + 1:] not in _STAMP_TYPES:
        return None
    return date_time_ms(token[1:end])


def _days(year: int, month: int, day: int) -> int | None:
    """Days from 1970-01-01; years are brought into Python's range by whole 400-year cycles of 146,097 days."""
    cycles, base = divmod(year - 1, 400)
    try:
        return date(base + 1, month, day).toordinal() - 719_163 + cycles * 146_097
    except ValueError:
        return None


def _offset_minutes(zone: str | None) -> int | None:
    if zone is None or zone == "Z":
        return 0
    hours, minutes = int(zone[1:3]), int(zone[4:6])
    if minutes > 59 or hours > 14 or (hours == 14 and minutes):
        return None
    return (hours * 60 + minutes) * (-1 if zone[0] == "-" else 1)


def flag(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError("expected true or false")
    return text == "true"


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

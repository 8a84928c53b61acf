"""Values of query parameters: each function reads a text or raises ValueError with what was expected."""

from __future__ import annotations

import re
from collections.abc import Callable

from engine.timeline import is_moment
from server.formats.stamps import date_time_ms

_MS = re.compile(r"-?[0-9]{1,16}")


def flag(text: str) -> bool:
    """``true`` or ``false``."""
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
    """One of `words`."""
    def read(text: str) -> str:
        if text not in words:
            raise ValueError(f"expected {' or '.join(words)}")
        return text
    return read

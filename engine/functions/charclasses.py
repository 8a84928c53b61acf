"""Character classes of XPath regular expressions: Unicode categories and name characters (XSD 1.1 part 2, appendix G.4.2)."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

Ranges = tuple[tuple[int, int], ...]
"""Sorted, disjoint ranges of code points, ends included."""

LAST = 0x10FFFF
SPACE: Ranges = ((0x9, 0xA), (0xD, 0xD), (0x20, 0x20))
_CATEGORIES = frozenset((
    "L Lu Ll Lt Lm Lo M Mn Mc Me N Nd Nl No P Pc Pd Ps Pe Pi Pf Po Z Zs Zl Zp S Sm Sc Sk So C Cc Cf Co Cn").split())
_NAME_START: Ranges = (
    (0x3A, 0x3A), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A), (0xC0, 0xD6), (0xD8, 0xF6), (0xF8, 0x2FF), (0x370, 0x37D),
    (0x37F, 0x1FFF), (0x200C, 0x200D), (0x2070, 0x218F), (0x2C00, 0x2FEF), (0x3001, 0xD7FF), (0xF900, 0xFDCF), (0xFDF0, 0xFFFD),
    (0x10000, 0xEFFFF))
_NAME_MORE: Ranges = ((0x2D, 0x2E), (0x30, 0x39), (0xB7, 0xB7), (0x300, 0x36F), (0x203F, 0x2040))


def merge(*sets: Ranges) -> Ranges:
    """The union."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(pair for ranges in sets for pair in ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return tuple(merged)


def complement(ranges: Ranges) -> Ranges:
    """All other code points."""
    gaps, start = [], 0
    for low, high in ranges:
        if low > start:
            gaps.append((start, low - 1))
        start = high + 1
    if start <= LAST:
        gaps.append((start, LAST))
    return tuple(gaps)


@lru_cache(maxsize=1)
def _by_category() -> dict[str, Ranges]:
    """The ranges of each two-letter general category, of Python's version of Unicode."""
    found: dict[str, list[tuple[int, int]]] = {}
    start, current = 0, unicodedata.category("\0")
    for code in range(1, LAST + 2):
        category = unicodedata.category(chr(code)) if code <= LAST else ""
        if category != current:
            found.setdefault(current, []).append((start, code - 1))
            start, current = code, category
    return {name: tuple(ranges) for name, ranges in found.items()}


@lru_cache(maxsize=None)
def category(name: str) -> Ranges | None:
    """The characters of a general category (``L``, ``Lu``); None for an unknown name."""
    if name not in _CATEGORIES:
        return None
    return merge(*(ranges for key, ranges in _by_category().items() if key.startswith(name) and key != "Cs"))


@lru_cache(maxsize=None)
def escape_class(letter: str) -> Ranges:
    r"""The characters of ``\s \S \d \D \w \W \i \I \c \C``, given by the letter."""
    if letter.isupper():
        return complement(escape_class(letter.lower()))
    if letter == "s":
        return SPACE
    if letter == "i":
        return _NAME_START
    if letter == "c":
        return merge(_NAME_START, _NAME_MORE)
    if letter == "d":
        return category("Nd") or ()
    return complement(merge(*(category(name) or () for name in "PZC")))

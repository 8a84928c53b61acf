"""Records of the input log that are lost: which positions, as recorded in a file beside the log, so that every replay agrees.

The pump goes on over a hole that is recorded, and over no other.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.files import whole_file

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, order=True)
class Hole:
    """The records at positions `first` to `last` are lost."""

    first: int
    last: int
    reason: str


class Holes:
    """The holes of a log, ascending."""

    def __init__(self, path: Path, staging: Path) -> None:
        self._path, self._staged = path, staging / path.name
        self._holes: tuple[Hole, ...] = tuple(_read(path))

    def __iter__(self) -> Iterator[Hole]:
        return iter(self._holes)

    def add(self, first: int, last: int, reason: str) -> None:
        """Record that positions `first` to `last` are lost, as far as that is not recorded already: on disk when this returns."""
        fresh = [Hole(begin, end, reason) for begin, end in without((first, last), [(hole.first, hole.last) for hole in self._holes])]
        if not fresh:
            return
        for hole in fresh:
            _LOG.error("the records %d to %d of the input log are lost, though they were acknowledged: %s", hole.first, hole.last, reason)
        holes = tuple(sorted([*self._holes, *fresh]))
        with whole_file(self._path, self._staged) as sink:
            sink.write("".join(f"{json.dumps([hole.first, hole.last, hole.reason])}\n" for hole in holes).encode())
        self._holes = holes

    def after(self, position: int) -> int:
        """The position of the record that follows `position`."""
        following = position + 1
        for hole in self._holes:
            if hole.first <= following <= hole.last:
                following = hole.last + 1
        return following


def without(whole: tuple[int, int], parts: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """What is left of a range of positions (both ends are in it) without others."""
    found, begin = [], whole[0]
    for first, last in sorted(parts):
        if last < begin or first > whole[1]:
            continue
        if first > begin:
            found.append((begin, first - 1))
        begin = last + 1
    if begin <= whole[1]:
        found.append((begin, whole[1]))
    return found


def _read(path: Path) -> Iterator[Hole]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return
    for line in lines:
        first, last, reason = json.loads(line)
        yield Hole(first, last, reason)

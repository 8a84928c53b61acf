"""One parse: how far it has come, what was tried there, what it has cost; and what an element of a grammar can begin with."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Function = Callable[["Run", int, list[Any]], int]

FAILED = -1
MAX_EFFORT = 200_000     # a third of a second; 64 KiB of triples need 70,000
FOREIGN = "\x80"

_SPACE = re.compile(r"[ \t\r\n]*")


@dataclass(slots=True)
class Run:
    """One parse: the text, its effort, and the furthest place reached with what was tried there."""

    text: str
    effort: int = 0
    furthest: int = -1
    tried: set[str] = field(default_factory=set)
    quiet: bool = False
    _space: tuple[int, int] = (-1, -1)

    def skip(self, place: int) -> int:
        """The next place that is no white space."""
        if self._space[0] == place:
            return self._space[1]
        match = _SPACE.match(self.text, place)
        end = match.end() if match else place
        self._space = (place, end)
        return end

    def note(self, place: int, *names: str) -> None:
        """Terminals of these readable names are tried at `place`."""
        if self.quiet:
            return
        self.effort += 1
        if self.effort > MAX_EFFORT:
            raise TooMuchEffort(place)
        if place > self.furthest:
            self.furthest = place
            self.tried = set(names)
        elif place == self.furthest:
            self.tried.update(names)


class TooMuchEffort(Exception):
    """The text needs more work than one statement may; `place` is where the parse was given up."""

    def __init__(self, place: int) -> None:
        super().__init__(place)
        self.place = place


@dataclass(frozen=True, slots=True)
class First:
    """What an element can begin with: characters (None: any), readable names, and whether it can be nothing at all."""

    characters: frozenset[str] | None
    names: frozenset[str]
    empty: bool = False

    def either(self, other: First) -> First:
        """Of two alternatives."""
        known = None if self.characters is None or other.characters is None else self.characters | other.characters
        return First(known, self.names | other.names, self.empty or other.empty)

    def then(self, other: First) -> First:
        """Of two elements in sequence."""
        if not self.empty:
            return self
        both = self.either(other)
        return First(both.characters, both.names, other.empty)

    def admits(self, character: str) -> bool:
        """Whether an element may begin here; beyond ASCII all characters are as FOREIGN."""
        return self.characters is None or character in self.characters or self.empty

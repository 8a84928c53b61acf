"""One parse, what it has cost and how far it came; and the functions that a grammar is compiled to, a maker for each kind of element.

A function takes a run, an offset and the list of results so far; it returns the offset behind what it read, or FAILED.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from grammar.text import Leaf, Node

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


@dataclass(eq=False)
class TooMuchEffort(Exception):
    """The text needs more work than one statement may; `place` is where the parse was given up."""

    place: int


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


def leaf(inner: Function, kind: str, readable: str, skips: bool) -> Function:
    """A terminal, read by `inner`, as a Leaf."""
    def parse(run: Run, place: int, out: list[Any]) -> int:
        if skips:
            place = run.skip(place)
            run.note(place, readable)
        outer, run.quiet = run.quiet, True      # what a terminal is made of is of no interest to a reader
        end = inner(run, place, [])
        run.quiet = outer
        if end >= 0:
            out.append(Leaf(kind, run.text[place:end], place, end))
        return end

    return parse


def composite(inner: Function, name: str) -> Function:
    """A Node of what `inner` reads: its named parts, and the rest as its items."""
    def parse(run: Run, place: int, out: list[Any]) -> int:
        place = run.skip(place)
        results: list[Any] = []
        end = inner(run, place, results)
        if end >= 0:
            end = place + len(run.text[place:end].rstrip(" \t\r\n"))
            parts: dict[str, Any] = {}
            for result in results:
                if type(result) is _Named:
                    if result.is_list:
                        parts.setdefault(result.name, []).append(result.value)
                    else:
                        parts[result.name] = result.value
            items = tuple(result for result in results if type(result) is not _Named)
            out.append(Node(name, place, end, parts, items))
        return end

    return parse


@dataclass(frozen=True, slots=True, eq=False)
class _Named:
    name: str
    value: Any
    is_list: bool


def gathered(inner: Function, make: Callable[[list[Any]], list[Any]]) -> Function:
    """What `make` makes of the results of `inner`."""
    def parse(run: Run, place: int, out: list[Any]) -> int:
        results: list[Any] = []
        end = inner(run, place, results)
        if end >= 0:
            out.extend(make(results))
        return end

    return parse


def part(inner: Function, name: str, is_list: bool) -> Function:
    """What `inner` reads, as the part `name` of the composite around it."""
    return gathered(inner, lambda results: [_Named(name, results[0] if len(results) == 1 else results, is_list)])


def terminal(pattern: re.Pattern[str], readable: str, result: str | None, skips: bool) -> Function:
    """What the pattern matches; its result is the text, where it is not given."""
    def parse(run: Run, place: int, out: list[Any]) -> int:
        if skips:
            place = run.skip(place)
            run.note(place, readable)
        found = pattern.match(run.text, place)
        if found is None:
            return FAILED
        out.append(found[0] if result is None else result)
        return found.end()

    return parse


def sequence(parts: tuple[Function, ...]) -> Function:
    def parse(run: Run, place: int, out: list[Any]) -> int:
        mark = len(out)
        for part in parts:
            place = part(run, place, out)
            if place < 0:
                del out[mark:]
                return FAILED
        return place

    return parse


def first_of(parts: tuple[tuple[First, Function], ...], skips: bool) -> Function:
    """The first alternative that reads on; only those that the next character can begin are tried."""
    by_character: dict[str, tuple[tuple[Function, ...], frozenset[str]]] = {}

    def choose(character: str) -> tuple[tuple[Function, ...], frozenset[str]]:
        chosen = tuple(function for first, function in parts if first.admits(character))
        names: frozenset[str] = frozenset().union(*(first.names for first, _ in parts if not first.admits(character)))
        by_character[character] = chosen, names
        return chosen, names

    def parse(run: Run, place: int, out: list[Any]) -> int:
        if skips:
            place = run.skip(place)
        character = _character(run.text, place)
        chosen, names = by_character.get(character) or choose(character)
        if skips and place >= run.furthest:
            run.note(place, *names)
        for function in chosen:
            end = function(run, place, out)
            if end >= 0:
                return end
        return FAILED

    return parse


def _character(text: str, place: int) -> str:
    character = text[place:place + 1]
    return character if character < FOREIGN else FOREIGN


def repeat(inner: Function, first: First, least: int, most: int | None, skips: bool) -> Function:
    """`inner` at least and at most so many times, as long as the next character can begin it."""
    names = first.names

    def parse(run: Run, place: int, out: list[Any]) -> int:
        count = 0
        while most is None or count < most:
            start = run.skip(place)
            if not first.admits(_character(run.text, start)):
                if start >= run.furthest:
                    run.note(start, *names)
                break
            end = inner(run, place, out)
            if end < 0 or end == place:
                break
            place = end
            count += 1
        if count < least:
            return FAILED
        return place if count or not skips else run.skip(place)

    return parse

"""REGEX and REPLACE: fn:matches and fn:replace (XPath F&O sections 7.6.2 and 7.6.3).

Patterns are read by their own grammar (`regex_syntax`) and run by Python's `re`, which backtracks. Where that could take more than about a
second (`Cost`: nested repeats, or a long text) the linear matcher runs instead: slow, but sure. A pattern is at most 5,000 characters, a
repeat at most 1,000 times; a text too long even for the linear matcher is an error.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from engine.functions import regex_syntax as syntax
from engine.functions.context import ExpressionError
from engine.functions.regex_matchers import Machine, Writer

_FLAGS = frozenset("smixq")
_DIGITS = re.compile("[0-9]+")

Expand = Callable[[Sequence[str | None]], str]


class Engine:
    """A tree to be run by whichever matcher suits the length of the text."""

    def __init__(self, tree: syntax.Node, groups: int, flags: str) -> None:
        self._tree, self._groups, self._flags = tree, groups, flags
        self.longest = _longest(cost(tree), anchored(tree, flags))
        try:
            self._compiled = Writer(flags).compile(tree)
        except (re.error, OverflowError, RecursionError) as error:
            raise ExpressionError(f"regular expression: {error}") from error

    def search(self, text: str) -> bool:
        """Whether any part of the text matches."""
        if len(text) > self.longest:
            return self.machine.search(text)
        return self._compiled.search(text) is not None

    def replace(self, text: str, expand: Expand) -> str:
        """The text with what `expand` makes of each match."""
        if len(text) <= self.longest:
            return self._compiled.sub(lambda match: expand((match.group(), *match.groups())), text)
        parts, done = [], 0
        for before, *groups in self.machine.matches(text):
            parts += [before or "", expand(groups)]
            done += len(before or "") + len(groups[0] or "")
        return "".join(parts) + text[done:]

    @cached_property
    def machine(self) -> Machine:
        """The linear matcher, built when first needed."""
        return Machine(self._tree, self._groups, self._flags)


class Regex:
    """A pattern with its flags. Raises ExpressionError where either is none."""

    def __init__(self, pattern: str, flags: str = "") -> None:
        if not _FLAGS.issuperset(flags):
            raise ExpressionError(f"unknown flag in {flags!r}")
        self.literal = "q" in flags
        self.groups = 0
        self._flags = flags
        if self.literal:
            self._tree: syntax.Node = syntax.Sequence(tuple(map(syntax.Char, pattern)))
        else:
            self._tree, self.groups = syntax.parse(pattern, spaced="x" in flags)
        self.finder = Engine(_trimmed(self._tree), self.groups, flags)

    @cached_property
    def replacer(self) -> Engine:
        """The engine of REPLACE, which needs the pattern whole."""
        return Engine(self._tree, self.groups, self._flags)

    def matches(self, text: str) -> bool:
        """Whether any part of the text matches."""
        return self.finder.search(text)

    def replace(self, text: str, replacement: str) -> str:
        """The text with each match replaced. Raises ExpressionError for a bad replacement, or a pattern that matches ""."""
        if self.matches(""):
            raise ExpressionError("the pattern to replace matches the empty string")
        return self.replacer.replace(text, (lambda texts: replacement) if self.literal else expander(replacement, self.groups))


def _trimmed(tree: syntax.Node) -> syntax.Node:
    """Without ``.*`` and the like at either end, which do not change whether a text has a match but cost much."""
    parts = list(tree.parts) if isinstance(tree, syntax.Sequence) else [tree]
    while parts and _needless(parts[0]):
        parts.pop(0)
    while parts and _needless(parts[-1]):
        parts.pop()
    return syntax.Sequence(tuple(parts))


def _needless(node: syntax.Node) -> bool:
    return isinstance(node, syntax.Repeat) and node.least == 0 and isinstance(node.body, (syntax.Dot, syntax.Char, syntax.CharClass))


def _longest(bound: Cost, from_start: bool) -> int:
    """The length of text up to which backtracking is quick enough, -1 for none. The steps never fall with the length."""
    lengths = range((1 << 24) + 1)
    return bisect_left(lengths, True, key=lambda n: bound.steps(n, from_start) > MOST_STEPS) - 1


@lru_cache(maxsize=512)
def regex(pattern: str, flags: str = "") -> Regex:
    """The compiled pattern, remembered. Raises ExpressionError."""
    return Regex(pattern, flags)


@lru_cache(maxsize=512)
def expander(replacement: str, groups: int) -> Expand:
    """What a replacement text with ``$1``, ``\\$`` and ``\\\\`` makes of the texts of a match's groups (0: the whole match). Raises
    ExpressionError for a bad one."""
    parts: list[str | int] = []
    at = 0
    while at < len(replacement):
        char, at = replacement[at], at + 1
        if char == "\\":
            if replacement[at:at + 1] not in ("\\", "$"):
                raise ExpressionError("in a replacement, \\ stands before \\ or $ only")
            parts.append(replacement[at])
            at += 1
        elif char == "$":
            number, at = _group_number(replacement, at, groups)
            parts.append(number if number <= groups else "")
        else:
            parts.append(char)
    return lambda texts: "".join(part if isinstance(part, str) else texts[part] or "" for part in parts)


def _group_number(replacement: str, at: int, groups: int) -> tuple[int, int]:
    """The group after ``$``, and where its digits end: as many digits as name an existing group, one at least."""
    digits = _DIGITS.match(replacement, at)
    if digits is None:
        raise ExpressionError("in a replacement, $ stands before a digit only")
    length = 1
    while length < len(digits.group()) and int(digits.group()[:length + 1]) <= groups:
        length += 1
    return int(digits.group()[:length]), at + length


MOST_STEPS = 1e8


@dataclass(frozen=True, slots=True)
class Cost:
    """Backtracking takes at most about ``2**(bits + work) * n**degree`` steps from one start in a text of length n. ``2**bits * n**ways``
    is in how many ways the pattern can match from one start; `work` (a logarithm too) is what counted repeats such as ``(a{9}){9}`` do in
    any case."""

    degree: float = 0
    ways: float = 0
    bits: float = 0
    work: float = 0

    def steps(self, length: int, anchored: bool) -> float:
        """An upper bound for a search in a text of this length."""
        if math.isinf(self.degree):
            return math.inf
        return math.pow(2.0, min(self.bits + self.work, 500)) * math.pow(max(length, 1), min(self.degree + (not anchored), 40))


def cost(node: syntax.Node, follower: syntax.Node | None = None) -> Cost:
    """The bound for a pattern that `follower` comes after. Nested repeats count as exponential although some are not."""
    match node:
        case syntax.Sequence(parts):
            return _chained([cost(part, after) for part, after in zip(parts, (*parts[1:], follower))])
        case syntax.Choice(branches):
            costs = [cost(branch, follower) for branch in branches]
            choices = 0.0 if _disjoint(branches) else math.log2(len(branches))
            return Cost(max(c.degree for c in costs), max(c.ways for c in costs), choices + max(c.bits for c in costs),
                        max(c.work for c in costs))
        case syntax.Group(body):
            return cost(body, follower)
        case syntax.Repeat(body, least, most, _):
            return _repeated(cost(body), least, most, _ends_surely(body, follower))
    return Cost()


def anchored(node: syntax.Node, flags: str) -> bool:
    """Whether a match can begin at the start of the text only."""
    return isinstance(_first(node), syntax.Begin) and "m" not in flags


def _chained(costs: list[Cost]) -> Cost:
    """One after the other: each is tried for every way in which those before it can match."""
    degree = ways = bits = work = 0.0
    for part in costs:
        degree, work = max(degree, ways + part.degree), max(work, part.work)
        ways, bits = ways + part.ways, bits + part.bits
    return Cost(degree, ways, bits, work)


def _repeated(body: Cost, least: int, most: int | None, ends_surely: bool) -> Cost:
    if most is None:
        if body.degree or body.bits:
            return Cost(math.inf, math.inf)
        return Cost(1, 0 if ends_surely else 1, 0, body.work + math.log2(least + 1))
    choices = 0.0 if ends_surely else math.log2(most - least + 1)
    return Cost(most * body.degree, most * body.ways, most * body.bits + choices, body.work + math.log2(max(most, 1)))


def _ends_surely(body: syntax.Node, follower: syntax.Node | None) -> bool:
    """Whether what follows a repeat of `body` cannot begin inside it, so that only one number of repeats can be right."""
    mark = _start(follower) if follower is not None else None
    if mark is None:
        return False
    if isinstance(body, syntax.Char):
        return body.char.lower() != mark
    if not isinstance(body, syntax.CharClass):
        return False
    one = Writer("is").compile(body)
    return one.match(mark) is None and one.match(mark.upper()) is None


def _disjoint(branches: tuple[syntax.Node, ...]) -> bool:
    """Whether the first character tells which branch it is."""
    starts = [_start(branch) for branch in branches]
    return None not in starts and len(set(starts)) == len(starts)


def _start(node: syntax.Node) -> str | None:
    """The one character (in lower case) with which every match begins, if it is as simple as that."""
    first = _first(node)
    return first.char.lower() if isinstance(first, syntax.Char) else None


def _first(node: syntax.Node) -> syntax.Node | None:
    """What a pattern begins with; None where it is empty."""
    while isinstance(node, (syntax.Sequence, syntax.Group)):
        if isinstance(node, syntax.Sequence) and not node.parts:
            return None
        node = node.body if isinstance(node, syntax.Group) else node.parts[0]
    return node

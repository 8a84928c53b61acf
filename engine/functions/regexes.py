"""REGEX and REPLACE: fn:matches and fn:replace (XPath F&O sections 7.6.2 and 7.6.3).

Patterns are read by their own grammar (`regex_syntax`) and run by Python's `re`, which backtracks. Where that could take more
than about a second (`regex_cost`: nested repeats, or a long text) the linear matcher runs instead: slow, but sure. A pattern is
at most 5,000 characters, a repeat at most 1,000 times; a text too long even for the linear matcher is an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache

from engine.functions import regex_syntax as syntax
from engine.functions.errors import ExpressionError
from engine.functions.regex_cost import MOST_STEPS, Cost, anchored, cost
from engine.functions.regex_linear import Machine
from engine.functions.regex_python import Writer

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
    return (isinstance(node, syntax.Repeat) and node.least == 0
            and isinstance(node.body, (syntax.Dot, syntax.Char, syntax.CharClass)))


def _longest(bound: Cost, from_start: bool) -> int:
    """The length of text up to which backtracking is quick enough; -1 for none."""
    low, high = -1, 1 << 24
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if bound.steps(middle, from_start) <= MOST_STEPS else (low, middle - 1)
    return low


@lru_cache(maxsize=512)
def regex(pattern: str, flags: str = "") -> Regex:
    """The compiled pattern, remembered."""
    return Regex(pattern, flags)


def problem(pattern: str, flags: str = "") -> str | None:
    """What is wrong with a pattern or its flags, None where nothing is: for diagnostics about constant patterns."""
    try:
        regex(pattern, flags)
    except ExpressionError as error:
        return str(error)
    return None


@lru_cache(maxsize=512)
def expander(replacement: str, groups: int) -> Expand:
    """What a replacement text with ``$1``, ``\\$`` and ``\\\\`` makes of the texts of a match's groups (0: the whole match).

    Raises ExpressionError for a bad one.
    """
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

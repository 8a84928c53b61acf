"""REGEX and REPLACE: fn:matches and fn:replace (XPath F&O sections 7.6.2 and 7.6.3) by translation to Python's `re`."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from engine.functions import regex_syntax as syntax
from engine.functions.charclasses import LAST, Ranges
from engine.functions.errors import ExpressionError

_FLAGS = frozenset("smixq")


class Regex:
    """A pattern with its flags. Raises ExpressionError where either is none."""

    __slots__ = ("compiled", "groups", "literal")

    def __init__(self, pattern: str, flags: str = "") -> None:
        if not _FLAGS.issuperset(flags):
            raise ExpressionError(f"unknown flag in {flags!r}")
        self.literal = "q" in flags
        if self.literal:
            text, self.groups = re.escape(pattern), 0
        else:
            tree, self.groups = syntax.parse(pattern, spaced="x" in flags)
            text = _Writer("i" in flags, "m" in flags, "s" in flags).write(tree)
        try:
            self.compiled = re.compile(text, re.IGNORECASE if "i" in flags else 0)
        except (re.error, OverflowError, RecursionError) as error:
            raise ExpressionError(f"regular expression: {error}") from error

    def matches(self, text: str) -> bool:
        """Whether any part of the text matches."""
        return self.compiled.search(text) is not None

    def replace(self, text: str, replacement: str) -> str:
        """The text with each match replaced. Raises ExpressionError for a bad replacement, or a pattern that matches \"\"."""
        if self.compiled.search("") is not None:
            raise ExpressionError("the pattern to replace matches the empty string")
        expand = (lambda match: replacement) if self.literal else expander(replacement, self.groups)
        return self.compiled.sub(expand, text)


@lru_cache(maxsize=512)
def regex(pattern: str, flags: str = "") -> Regex:
    """The compiled pattern, remembered."""
    return Regex(pattern, flags)


@lru_cache(maxsize=512)
def expander(replacement: str, groups: int) -> Callable[[re.Match[str]], str]:
    """What a replacement text with ``$1``, ``\\$`` and ``\\\\`` makes of a match. Raises ExpressionError for a bad one."""
    parts: list[str | int] = []
    at = 0
    while at < len(replacement):
        char = replacement[at]
        if char == "\\":
            at += 1
            if replacement[at:at + 1] not in ("\\", "$"):
                raise ExpressionError("in a replacement, \\ stands before \\ or $ only")
            parts.append(replacement[at])
        elif char == "$":
            number, at = _group_number(replacement, at + 1, groups)
            parts.append(number)
            continue
        else:
            parts.append(char)
        at += 1
    parts = [part for part in parts if isinstance(part, str) or part <= groups]
    return lambda match: "".join(part if isinstance(part, str) else match.group(part) or "" for part in parts)


def _group_number(replacement: str, at: int, groups: int) -> tuple[int, int]:
    """The group after ``$``: as many digits as name an existing group, one at least."""
    digits = re.compile("[0-9]+").match(replacement, at)
    if digits is None:
        raise ExpressionError("in a replacement, $ stands before a digit only")
    length = 1
    while length < len(digits.group()) and int(digits.group()[:length + 1]) <= groups:
        length += 1
    return int(digits.group()[:length]), at + length


class _Writer:
    """Writes a tree as a pattern of Python's `re`."""

    def __init__(self, ignore_case: bool, multi_line: bool, dot_all: bool) -> None:
        self.ignore_case, self.multi_line, self.dot_all = ignore_case, multi_line, dot_all

    def write(self, node: syntax.Node) -> str:
        match node:
            case syntax.Char(char):
                return re.escape(char)
            case syntax.CharClass():
                return self.write_class(node)
            case syntax.Dot():
                return "(?s:.)" if self.dot_all else "[^\\n]"
            case syntax.Begin():
                return "(?:\\A|(?<=\\n)(?!\\Z))" if self.multi_line else "\\A"
            case syntax.End():
                return "(?:(?=\\n)|(?<!\\n)\\Z)" if self.multi_line else "\\Z"
            case syntax.Reference(number):
                return f"(?({number})(?:\\{number})|)"
            case syntax.Group(body, number):
                return f"({'' if number else '?:'}{self.write(body)})"
            case syntax.Sequence(parts):
                return "".join(map(self.write, parts))
            case syntax.Choice(branches):
                return "(?:" + "|".join(map(self.write, branches)) + ")"
            case syntax.Repeat(body, least, most, lazy):
                return f"(?:{self.write(body)}){{{least},{'' if most is None else most}}}{'?' if lazy else ''}"

    def write_class(self, node: syntax.CharClass) -> str:
        fixed = tuple(pair for ranges in node.fixed for pair in ranges)
        minus = f"(?!{self.write_class(node.minus)})" if node.minus else ""
        if not fixed or not self.ignore_case or not node.ranges:
            text = f"[{'^' if node.negated else ''}{_ranges(node.ranges + fixed)}]"
            return minus + (f"(?-i:{text})" if self.ignore_case and fixed else text)
        either = f"(?:[{_ranges(node.ranges)}]|(?-i:[{_ranges(fixed)}]))"
        return minus + (f"(?:(?!{either})(?s:.))" if node.negated else either)


def _ranges(ranges: Ranges) -> str:
    return "".join(_code(low) if low == high else f"{_code(low)}-{_code(min(high, LAST))}" for low, high in ranges)


def _code(code: int) -> str:
    return f"\\U{code:08X}"

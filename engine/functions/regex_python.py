"""XPath regular expressions as patterns of Python's `re`, meaning for meaning."""

from __future__ import annotations

import re

from engine.functions import regex_syntax as syntax
from engine.functions.charclasses import Ranges

_ANY = "(?s:.)"


class Writer:
    """Writes nodes as text for `re`, to be compiled with IGNORECASE where `ignore_case`."""

    def __init__(self, flags: str) -> None:
        self.ignore_case, self.multi_line, self.dot_all = "i" in flags, "m" in flags, "s" in flags

    def compile(self, node: syntax.Node) -> re.Pattern[str]:
        """The node as a compiled pattern."""
        return re.compile(self.write(node), re.IGNORECASE if self.ignore_case else 0)

    def write(self, node: syntax.Node) -> str:
        """The node as text."""
        match node:
            case syntax.Char(char):
                return re.escape(char)
            case syntax.CharClass():
                return self.char_class(node)
            case syntax.Dot():
                return _ANY if self.dot_all else "[^\\n]"
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

    def char_class(self, node: syntax.CharClass) -> str:
        """A class; under flag i its categories still tell upper from lower case."""
        fixed = tuple(pair for ranges in node.fixed for pair in ranges)
        minus = f"(?!{self.char_class(node.minus)})" if node.minus else ""
        if not node.ranges and not fixed:
            return minus + (_ANY if node.negated else "(?!)")
        if fixed and node.ranges and self.ignore_case:
            either = f"(?:[{_ranges(node.ranges)}]|(?-i:[{_ranges(fixed)}]))"
            return minus + (f"(?:(?!{either}){_ANY})" if node.negated else either)
        text = f"[{'^' if node.negated else ''}{_ranges(node.ranges + fixed)}]"
        return minus + (f"(?-i:{text})" if fixed and self.ignore_case else text)


def _ranges(ranges: Ranges) -> str:
    return "".join(f"\\U{low:08X}" if low == high else f"\\U{low:08X}-\\U{high:08X}" for low, high in ranges)

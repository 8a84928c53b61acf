"""REGEX as SQL: patterns for which Java's and RE2's answers are those of engine/functions.

Whether a part of the text matches does not depend on how an engine searches. So what is left out is only what the engines read
differently (back references, classes of Unicode beyond ASCII, case beyond ASCII) or run badly (repeated groups in Java).
"""

from __future__ import annotations

from engine.functions import regex_syntax as syntax
from engine.functions.charclasses import Ranges
from engine.functions.context import ExpressionError
from engine.functions.regex_matchers import Writer
from engine.functions.regexes import regex

LONGEST = 300
_ASCII = 127


class Unsafe(Exception):
    """The pattern is left to Python."""


def translate(pattern: str, flags: str) -> tuple[str, bool, int] | None:
    """The pattern for both engines, whether it holds for ASCII texts only, and up to which length of text; None for an unsafe one."""
    if not set(flags) <= {"i"} or len(pattern) > LONGEST:
        return None
    try:
        compiled = regex(pattern, flags)
        tree, _ = syntax.parse(pattern)
        writer = _Writer(flags)
        text = writer.write(tree)
    except (ExpressionError, Unsafe):
        return None
    return ("(?i)" if flags else "") + text, writer.ascii_only or bool(flags), compiled.finder.longest


class _Writer(Writer):
    """Writes nodes as both engines read them, where these differ from Python."""

    def __init__(self, flags: str) -> None:
        super().__init__(flags)
        self.ascii_only = False

    def write(self, node: syntax.Node) -> str:
        match node:
            case syntax.Char(char):
                return _char(ord(char))
            case syntax.End():
                return "\\z"
            case syntax.Group(body):
                return f"(?:{self.write(body)})"
            case syntax.Repeat(body, least, most) if isinstance(body, (syntax.Char, syntax.CharClass, syntax.Dot)):
                return f"(?:{self.write(body)}){{{least},{'' if most is None else most}}}"
            case syntax.Repeat(body, 0, 1):
                return f"(?:{self.write(body)})?"
            case syntax.Repeat() | syntax.Reference():
                raise Unsafe
        return super().write(node)

    def char_class(self, node: syntax.CharClass) -> str:
        if node.minus is not None or (node.fixed and self.ignore_case):  # categories do not heed flag i
            raise Unsafe
        ranges = list(node.ranges)
        if node.fixed:
            self.ascii_only = True
            ranges += [pair for fixed in node.fixed for pair in _within_ascii(fixed)]
        if not ranges:
            raise Unsafe
        listed = "".join(_char(low) if low == high else f"{_char(low)}-{_char(high)}" for low, high in ranges)
        return f"[{'^' if node.negated else ''}{listed}]"


def _within_ascii(ranges: Ranges) -> list[tuple[int, int]]:
    return [(low, min(high, _ASCII)) for low, high in ranges if low <= _ASCII]


def _char(code: int) -> str:
    if 0xD800 <= code <= 0xDFFF:
        raise Unsafe
    return chr(code) if chr(code).isalnum() and code <= _ASCII else f"\\x{{{code:X}}}"

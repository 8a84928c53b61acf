"""XPath regular expressions as a tree (XPath F&O section 7.6.1, XSD 1.1 part 2 appendix G): exactly this syntax, no other.

What other dialects add (lookaround, named groups, possessive quantifiers, ``\\b``) is an error here as in the specification.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.functions.charclasses import BLOCKS, Ranges, category, complement, escape_class
from engine.functions.context import ExpressionError


@dataclass(frozen=True, slots=True)
class Char:
    char: str


@dataclass(frozen=True, slots=True)
class CharClass:
    """One of a set: `ranges` heed flag i, `fixed` (categories and the like) do not; `minus` is subtracted after negation."""

    ranges: Ranges
    fixed: tuple[Ranges, ...] = ()
    negated: bool = False
    minus: CharClass | None = None


@dataclass(frozen=True, slots=True)
class Dot:
    """Any character; without flag s not a line feed."""


@dataclass(frozen=True, slots=True)
class Begin:
    """``^``"""


@dataclass(frozen=True, slots=True)
class End:
    """``$``"""


@dataclass(frozen=True, slots=True)
class Reference:
    """``\\1``: what group `number` matched, the empty text where it has not."""

    number: int


@dataclass(frozen=True, slots=True)
class Group:
    """``( )``, or ``(?: )`` with number 0."""

    body: Node
    number: int


@dataclass(frozen=True, slots=True)
class Sequence:
    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    branches: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """`most` None is unbounded."""

    body: Node
    least: int
    most: int | None
    lazy: bool


Node = Char | CharClass | Dot | Begin | End | Reference | Group | Sequence | Choice | Repeat

LONGEST_PATTERN = 5000
MOST_REPEATS = 1000
DEEPEST_NESTING = 100
_SINGLE_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", **{char: char for char in "\\|.?*+(){}-[]^$"}}
_SPACES = " \t\n\r"
_QUANTIFIERS = ("?", "*", "+", "{")
_SPECIAL: dict[str, Node] = {".": Dot(), "^": Begin(), "$": End()}


def parse(pattern: str, *, spaced: bool = False) -> tuple[Node, int]:
    """The tree of a pattern and its number of groups; `spaced` is flag x. Raises ExpressionError for what is no pattern."""
    if len(pattern) > LONGEST_PATTERN:
        raise ExpressionError("regular expression too long")
    parser = _Parser(pattern, spaced)
    tree = parser.choice(0)
    if parser.at < len(parser.text):
        raise parser.error("unexpected )")
    return tree, parser.groups


class _Parser:
    def __init__(self, text: str, spaced: bool) -> None:
        self.text = text
        self.spaced = spaced
        self.at = 0
        self.groups = 0
        self.closed: set[int] = set()

    def error(self, message: str) -> ExpressionError:
        return ExpressionError(f"regular expression, character {self.at + 1}: {message}")

    def peek(self) -> str:
        if self.spaced:
            while self.at < len(self.text) and self.text[self.at] in _SPACES:
                self.at += 1
        return self.text[self.at] if self.at < len(self.text) else ""

    def take(self, expected: str = "") -> str:
        char = self.peek()
        if not char or (expected and char != expected):
            raise self.error(f"expected {expected or 'more'}")
        self.at += 1
        return char

    def choice(self, depth: int) -> Node:
        if depth > DEEPEST_NESTING:
            raise self.error("nested too deeply")
        branches = [self.sequence(depth)]
        while self.peek() == "|":
            self.take()
            branches.append(self.sequence(depth))
        return branches[0] if len(branches) == 1 else Choice(tuple(branches))

    def sequence(self, depth: int) -> Node:
        parts: list[Node] = []
        while self.peek() not in ("", "|", ")"):
            parts.append(self.quantified(self.atom(depth)))
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def quantified(self, body: Node) -> Node:
        mark = self.peek()
        if mark not in _QUANTIFIERS:
            return body
        self.take()
        least, most = {"?": (0, 1), "*": (0, None), "+": (1, None)}.get(mark) or self.counts()
        if max(least, most or 0) > MOST_REPEATS:
            raise self.error("too many repeats")
        lazy = self.peek() == "?"
        if lazy:
            self.take()
        if self.peek() in _QUANTIFIERS:
            raise self.error("two quantifiers")
        return Repeat(body, least, most, lazy)

    def counts(self) -> tuple[int, int | None]:
        least = self.count()
        most: int | None = least
        if self.peek() == ",":
            self.take()
            most = None if self.peek() == "}" else self.count()
        self.take("}")
        if most is not None and most < least:
            raise self.error("counts out of order")
        return least, most

    def count(self) -> int:
        digits = ""
        while self.peek() and self.peek() in "0123456789":
            digits += self.take()
        if not digits or len(digits) > 6:
            raise self.error("expected a count")
        return int(digits)

    def atom(self, depth: int) -> Node:
        char = self.take()
        if char == "(":
            return self.group(depth)
        if char == "[":
            return self.char_class(depth)
        if char == "\\":
            return self.escape()
        if char in "?*+{}]":
            self.at -= 1
            raise self.error(f"unexpected {char}")
        return _SPECIAL.get(char) or Char(char)

    def group(self, depth: int) -> Node:
        number = 0
        if self.peek() == "?":
            self.take()
            self.take(":")
        else:
            self.groups += 1
            number = self.groups
        body = self.choice(depth + 1)
        self.take(")")
        self.closed.add(number)
        return Group(body, number)

    def escape(self) -> Node:
        """After a backslash outside a class."""
        char = self.raw()
        if char in "123456789":
            number = int(char)
            while self.peek() and self.peek() in "0123456789" and number * 10 + int(self.peek()) <= self.groups:
                number = number * 10 + int(self.take())
            if number not in self.closed:
                raise self.error("no such group before")
            return Reference(number)
        if char in _SINGLE_ESCAPES:
            return Char(_SINGLE_ESCAPES[char])
        return CharClass((), (self.multi(char),))

    def raw(self) -> str:
        """The next character, white space too."""
        if self.at >= len(self.text):
            raise self.error("unexpected end")
        self.at += 1
        return self.text[self.at - 1]

    def multi(self, char: str) -> Ranges:
        r"""The set of ``\d``, ``\p{Lu}`` and so on, after the letter."""
        if char in "sSdDwWiIcC":
            return escape_class(char)
        if char not in "pP":
            self.at -= 1
            raise self.error(f"unknown escape \\{char}")
        end = self.text.find("}", self.at)
        if not self.text.startswith("{", self.at) or end < 0:
            raise self.error("expected {category}")
        name = self.text[self.at + 1:end]
        found = BLOCKS.get(name[2:]) if name.startswith("Is") else category(name)
        if found is None:
            raise self.error(f"unknown category {name}")
        self.at = end + 1
        return found if char == "p" else complement(found)

    def char_class(self, depth: int) -> CharClass:
        """After ``[``; white space counts here even under flag x."""
        if depth > DEEPEST_NESTING:
            raise self.error("nested too deeply")
        negated = self.text.startswith("^", self.at)
        self.at += negated
        ranges: list[tuple[int, int]] = []
        fixed: list[Ranges] = []
        minus: CharClass | None = None
        first = True
        while not self.text.startswith("]", self.at) or first:
            if self.text.startswith("-[", self.at) and not first:
                self.at += 2
                minus = self.char_class(depth + 1)
                if not self.text.startswith("]", self.at):
                    raise self.error("expected ] after a subtraction")
                break
            self.class_item(ranges, fixed, first)
            first = False
        self.at += 1
        return CharClass(tuple(sorted(ranges)), tuple(fixed), negated, minus)

    def class_item(self, ranges: list[tuple[int, int]], fixed: list[Ranges], first: bool) -> None:
        low = self.class_char(first)
        if not isinstance(low, str):
            fixed.append(low)
            return
        last = low
        if self.text.startswith("-", self.at) and not self.text.startswith(("-]", "-["), self.at):
            self.at += 1
            high = self.class_char(False)
            if not isinstance(high, str) or high < low:
                raise self.error("not a range of characters")
            last = high
        ranges.append((ord(low), ord(last)))

    def class_char(self, first: bool) -> str | Ranges:
        char = self.raw()
        if char == "\\":
            char = self.raw()
            return _SINGLE_ESCAPES[char] if char in _SINGLE_ESCAPES else self.multi(char)
        if char in "[]" or (char == "-" and not first and not self.text.startswith("]", self.at)):
            self.at -= 1
            raise self.error(f"unexpected {char} in a class")
        return char

"""What is read of a statement: its text, its tokens, and the nodes of its parse tree. Each knows its place in the text as written.

The grammars (clauses.py, body.py) read the text themselves; the scan keeps them from what they cannot stand (deep nesting, comments) and
finds key words outside of strings, IRIs and comments, what was never closed, and what a grammar stumbled over.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from engine.ir.spans import Diagnostic, DiagnosticError, Span
from engine.ir.terms import LETTERS as _BASE, WORD as _WORD

MAX_LENGTH = 65_536

_SURROGATE = re.compile(r"[\ud800-\udfff]")
_ESCAPE = re.compile(r"\\\\|\\u([0-9A-Fa-f]{4})|\\U([0-9A-Fa-f]{8})")
MAX_NESTING = 64

_NAME = f"{_WORD}-"
_ESCAPED = r"\\[_~.\-!$&\"'()*+,;=/?#@%]|%[0-9A-Fa-f]{2}"
LOCAL_NAME = f"(?:[{_BASE}_:0-9]|{_ESCAPED})(?:(?:[{_NAME}.:]|{_ESCAPED})*(?:[{_NAME}:]|{_ESCAPED}))?"

WORD = f"[{_BASE}_][{_WORD}]*"
SHORT_PREFIX = f"[{_BASE}](?:[{_NAME}.]{{0,60}}[{_NAME}])?"     # a bound on what is read again where no colon follows
PREFIXED_NAME = f"(?:[{_BASE}](?:[{_NAME}.]*[{_NAME}])?)?:(?:{LOCAL_NAME})?"
IRI_REFERENCE = r"<[^<>\"{}|^`\\\x00-\x20]*>"

_TOKEN = re.compile("|".join((
    r"(?P<space>[ \t\r\n]+)",
    r"(?P<comment>#[^\r\n]*)",
    f"(?P<iri>{IRI_REFERENCE})",
    r"(?P<string>'''(?:'{0,2}(?:[^'\\]|\\.))*'''|\"\"\"(?:\"{0,2}(?:[^\"\\]|\\.))*\"\"\""
    r"|'(?!'')(?:[^'\\\r\n]|\\.)*'|\"(?!\"\")(?:[^\"\\\r\n]|\\.)*\")",
    f"(?P<variable>[?$][{_WORD}]+)",
    f"(?P<blank>_:[{_BASE}_0-9](?:[{_NAME}.]*[{_NAME}])?)",
    f"(?P<name>{PREFIXED_NAME})",
    r"(?P<language>@[A-Za-z]+(?:-[A-Za-z0-9]+)*)",
    r"(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)",
    f"(?P<word>{WORD})",
    r"(?P<mark>&&|\|\||!=|<=|>=|\^\^|[{}()\[\].,;*/+!=<>|^?$&-])",
    r"(?P<bad>.)",
)), re.DOTALL)
CLOSING = {"(": ")", "[": "]", "{": "}", "(*": "*)"}


def check_text(text: str, most: int, what: str, code: str) -> None:
    """Raise DiagnosticError for a text that is too long, or has half a character: JSON can write one, no encoding could send it back."""
    if len(text) > most:
        raise DiagnosticError(Diagnostic("body-too-large", f"The text has {len(text)} characters; {what} may have {most}."))
    alone = _SURROGATE.search(text)
    if alone is not None:
        raise DiagnosticError(Diagnostic(code, f"U+{ord(alone[0]):04X} is not a character of Unicode.",
                                         Span(_SURROGATE.sub("\ufffd", text), alone.start(), alone.end())))


class Text:
    """A text to parse: `decoded` is what the grammars read; `span` maps its offsets back to the text as written."""

    def __init__(self, written: str) -> None:
        self.written = written
        check_text(written, MAX_LENGTH, "a statement", "query-syntax")
        self._decoded_at: list[int] = []    # offsets in `decoded` just after an escape, ascending
        self._surplus: list[int] = []       # how many more characters were written up to there
        self.decoded = self._decode() if "\\u" in written or "\\U" in written else written

    def span(self, start: int, end: int) -> Span:
        """The place of ``decoded[start:end]`` in the text as written."""
        return Span(self.written, self._place(start), self._place(end))

    def error(self, message: str, start: int, end: int, *, code: str = "query-syntax", note: str | None = None,
              hint: str | None = None) -> Diagnostic:
        """A diagnostic about ``decoded[start:end]``."""
        return Diagnostic(code, message, self.span(start, end), note, hint)

    def _place(self, offset: int) -> int:
        known = bisect_right(self._decoded_at, offset)
        return offset + self._surplus[known - 1] if known else offset

    def _decode(self) -> str:
        pieces: list[str] = []
        last = length = surplus = 0
        for match in _ESCAPE.finditer(self.written):
            code = match[1] or match[2]
            if code is None:
                continue
            pieces.append(self.written[last:match.start()] + self._character(int(code, 16), match))
            length += len(pieces[-1])
            last = match.end()
            surplus += last - match.start() - 1
            self._decoded_at.append(length)
            self._surplus.append(surplus)
        return "".join(pieces) + self.written[last:]

    def _character(self, code: int, match: re.Match[str]) -> str:
        if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            raise DiagnosticError(Diagnostic("query-syntax", f"{match[0]} is not a character of Unicode.",
                                             Span(self.written, match.start(), match.end())))
        return chr(code)


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """A terminal as written; `kind` is its name in `Plan.leaves`."""

    kind: str
    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """A composite by its name in the grammar; `parts` are its named parts, `items` the results without a name, in order."""

    name: str
    start: int
    end: int
    parts: Mapping[str, Any]
    items: tuple[Any, ...] = ()

    def get(self, part: str) -> Any:
        """The named part; None where the text has none."""
        return self.parts.get(part)

    def all(self, part: str) -> list[Any]:
        """The named part as a list, empty where the text has none."""
        return self.parts.get(part) or []


@dataclass(frozen=True, slots=True)
class Token:
    """A token of the decoded text; `word` is its upper-case form where it may be a key word."""

    kind: str
    text: str
    start: int
    end: int

    @property
    def word(self) -> str:
        return self.text.upper() if self.kind == "word" else ""

    @property
    def shown(self) -> str:
        """The text, or its begin where it is long."""
        return self.text if len(self.text) <= 40 else self.text[:37] + "..."


def scan(text: Text) -> tuple[tuple[Token, ...], str]:
    """The tokens, without white space and comments (what is none is of kind ``bad``); and the text with comments blanked, offsets kept."""
    tokens: list[Token] = []
    clean: list[str] = []
    for match in _TOKEN.finditer(text.decoded):
        kind = match.lastgroup or "bad"
        clean.append(match[0] if kind != "comment" else " " * len(match[0]))
        if kind not in ("comment", "space"):
            tokens.append(Token(kind, match[0], match.start(), match.end()))
    return tuple(tokens), "".join(clean)


def unclosed(text: Text, tokens: tuple[Token, ...]) -> list[Diagnostic]:
    """What was never closed (strings, brackets), closed and never opened, or nested too deeply: the first such place."""
    open_: list[Token] = []
    for token in tokens:
        if token.kind == "bad" and token.text in "\"'":
            return [_unclosed_string(text, token)]
        if (wrong := track(open_, token, text.span, "query-syntax")) is not None:
            return [wrong]
    if open_:
        last = open_[-1]
        return [text.error(f"This '{last.text}' is never closed.", last.start, last.end, hint=f"add '{CLOSING[last.text]}' where it ends")]
    return []


def _unclosed_string(text: Text, token: Token) -> Diagnostic:
    stop = text.decoded.find("\n", token.start)
    end = stop if stop >= 0 else len(text.decoded)
    return text.error(f"This string is never closed: expected {token.text} before the end of the line.", token.start, max(end, token.end),
                      hint=f"close it with {token.text}, or write {token.text * 3} for a string of several lines")


def track(open_: list[Token], token: Token, span: Callable[[int, int], Span], code: str) -> Diagnostic | None:
    """Keep the brackets that are open, the token being the next of the text; what is wrong with it, if it is one."""
    if token.text in CLOSING:
        open_.append(token)
        if len(open_) > MAX_NESTING:
            return Diagnostic("nesting-too-deep", f"Brackets are nested more than {MAX_NESTING} deep.", span(token.start, token.end))
    elif token.text in CLOSING.values():
        here, opened = span(token.start, token.end), open_.pop() if open_ else None
        if opened is None:
            return Diagnostic(code, f"This '{token.text}' closes nothing.", here, hint="remove it, or open it before")
        wanted = CLOSING[opened.text]
        if token.text != wanted:
            line = span(opened.start, opened.end).line
            return Diagnostic(code, f"Expected '{wanted}' for the '{opened.text}' of line {line}, found '{token.text}'.", here,
                              hint=f"add '{wanted}' before this '{token.text}'")
    return None

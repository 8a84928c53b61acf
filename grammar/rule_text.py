"""The text of a rule document: its limits, and the diagnostics about it."""

from __future__ import annotations

import re

from engine.ir.spans import Diagnostic, DiagnosticError, Span

MAX_LENGTH = 1 << 20
MAX_NESTING = 64
MAX_ATOMS = 64      # and comparisons of a body: a join of so many takes seconds to plan
MAX_ERRORS = 20

_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
_ESCAPES = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f"}
_SURROGATE = re.compile(r"[\ud800-\udfff]")


class Report:
    """Gathers what is wrong with one text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.diagnostics: list[Diagnostic] = []
        if len(text) > MAX_LENGTH:
            raise DiagnosticError(Diagnostic(
                "body-too-large", f"The text has {len(text)} characters; a rule document may have {MAX_LENGTH}."))
        alone = _SURROGATE.search(text)
        if alone is not None:
            raise DiagnosticError(Diagnostic("rule-syntax", f"U+{ord(alone[0]):04X} is not a character of Unicode.",
                                             Span(_SURROGATE.sub("\ufffd", text), alone.start(), alone.end())))

    def span(self, start: int, end: int) -> Span:
        """The place of these characters."""
        return Span(self.text, start, end)

    def error(self, message: str, span: Span, *, code: str = "rule-syntax", note: str | None = None, hint: str | None = None) -> None:
        """Note a mistake; after MAX_ERRORS there is no point in more."""
        if len(self.diagnostics) < MAX_ERRORS:
            self.diagnostics.append(Diagnostic(code, message, span, note, hint))

    def raise_if_any(self) -> None:
        """Raise DiagnosticError with all that was noted, in the order of the text."""
        if self.diagnostics:
            raise DiagnosticError(*sorted(self.diagnostics, key=lambda d: d.span.start if d.span else 0))


class Stop(Exception):
    """Nothing after this mistake can be read; it is in the report."""


def unescaped(text: str) -> str:
    """A string as written between its quotes, its escapes undone."""
    return _ESCAPE.sub(_character, text) if "\\" in text else text


def _character(match: re.Match[str]) -> str:
    short, long, char = match.groups()
    if char is not None:
        return _ESCAPES.get(char, char)
    code = int(short or long, 16)
    return chr(code) if code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF else "\ufffd"

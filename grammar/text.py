"""The text of one statement: codepoint escapes decoded (SPARQL 1.1 section 19.2), places still told in the text as written."""

from __future__ import annotations

import re
from bisect import bisect_right

from engine.ir.spans import Diagnostic, DiagnosticError, Span

MAX_LENGTH = 65_536

_SURROGATE = re.compile(r"[\ud800-\udfff]")
_ESCAPE = re.compile(r"\\\\|\\u([0-9A-Fa-f]{4})|\\U([0-9A-Fa-f]{8})")


class Text:
    """A text to parse: `decoded` is what the grammars read; `span` maps its offsets back to the text as written."""

    def __init__(self, written: str) -> None:
        self.written = written
        if len(written) > MAX_LENGTH:
            raise DiagnosticError(Diagnostic(
                "body-too-large", f"The text has {len(written)} characters; a statement may have {MAX_LENGTH}."))
        alone = _SURROGATE.search(written)      # JSON can write half a character; no encoding could send the message back
        if alone is not None:
            raise DiagnosticError(Diagnostic("query-syntax", f"U+{ord(alone[0]):04X} is not a character of Unicode.",
                                             Span(_SURROGATE.sub("\ufffd", written), alone.start(), alone.end())))
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

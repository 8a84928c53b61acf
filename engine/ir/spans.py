"""Places in a text, and the one type of message about them."""

from dataclasses import dataclass, field


SNIPPET_WIDTH = 160


@dataclass(frozen=True, slots=True)
class Span:
    """Characters `start` to `end` (excluded) of the text `source`. Line and column count from 1."""

    source: str = field(repr=False)
    start: int
    end: int

    @property
    def line(self) -> int:
        """The line of the first character."""
        return self.source.count("\n", 0, self.start) + 1

    @property
    def column(self) -> int:
        """The column of the first character."""
        return self.start - self.source.rfind("\n", 0, self.start)

    @property
    def end_line(self) -> int:
        """The line of the character behind the last."""
        return self.source.count("\n", 0, self.end) + 1

    @property
    def end_column(self) -> int:
        """The column of the character behind the last."""
        return self.end - self.source.rfind("\n", 0, self.end)

    @property
    def text(self) -> str:
        """The characters themselves."""
        return self.source[self.start:self.end]

    def snippet(self) -> str:
        """The line of the text with a row of carets under the span; of a long line the part around it."""
        begin = self.source.rfind("\n", 0, self.start) + 1
        stop = self.source.find("\n", self.start)
        row = self.source[begin:stop if stop >= 0 else len(self.source)].rstrip("\r")
        at = self.start - begin
        width = max(1, min(self.end - self.start, len(row) - at))
        if len(row) > SNIPPET_WIDTH:
            cut = max(0, at - SNIPPET_WIDTH // 2)
            row = ("..." if cut else "") + row[cut:cut + SNIPPET_WIDTH]
            at += (3 if cut else 0) - cut
            width = max(1, min(width, len(row) - at))
        pad = "".join("\t" if c == "\t" else " " for c in row[:at])
        return f"{row}\n{pad}{'^' * width}"


@dataclass(frozen=True, slots=True)
class Placed:
    """What stands at a place in a text, or nowhere; two are the same wherever they stand."""

    span: Span | None = field(default=None, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A message about a text: `code` is a problem slug of docs/http-api.md, `hint` says how to write it instead."""

    code: str
    message: str
    span: Span | None = None
    note: str | None = None
    hint: str | None = None

    def render(self) -> str:
        """The message as a person reads it: place, sentence, line with carets, note, hint."""
        place = f"line {self.span.line}, column {self.span.column}: " if self.span else ""
        parts = [f"{place}{self.message}"]
        if self.span:
            parts.append(self.span.snippet())
        if self.note:
            parts.append(f"note: {self.note}")
        if self.hint:
            parts.append(f"hint: {self.hint}")
        return "\n".join(parts)


class DiagnosticError(Exception):
    """Carries every diagnostic found in one text; nothing was done."""

    def __init__(self, *diagnostics: Diagnostic) -> None:
        super().__init__("\n".join(d.render() for d in diagnostics))
        self.diagnostics = diagnostics

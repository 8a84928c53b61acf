"""The text of a rule document: its limits, the diagnostics about it, and its tokens one after the other, expectations with their messages.

What the readers of rule languages are made of.
"""

from collections.abc import Sequence
from typing import NoReturn

from engine.ir.spans import Diagnostic, DiagnosticError, Span
from grammar.text import Token, check_text

MAX_LENGTH = 1 << 20
MAX_NESTING = 64
MAX_ATOMS = 64      # and comparisons of a body: a join of so many takes seconds to plan
MAX_ERRORS = 20


class Report:
    """Gathers what is wrong with one text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.diagnostics: list[Diagnostic] = []
        check_text(text, MAX_LENGTH, "a rule document", "rule-syntax")

    def span(self, start: int, end: int) -> Span:
        return Span(self.text, start, end)

    def of(self, token: Token) -> Span:
        return self.span(token.start, token.end)

    def error(self, message: str, span: Span, *, code: str = "rule-syntax", note: str | None = None, hint: str | None = None) -> None:
        """Note a mistake; after MAX_ERRORS there is no point in more."""
        if len(self.diagnostics) < MAX_ERRORS:
            self.diagnostics.append(Diagnostic(code, message, span, note, hint))

    def refuse(self, message: str, span: Span, hint: str | None = None, code: str = "rule-syntax") -> NoReturn:
        """Note a mistake after which nothing can be read."""
        self.error(message, span, code=code, hint=hint)
        raise Stop

    def raise_if_any(self) -> None:
        """Raise DiagnosticError with all that was noted, in the order of the text."""
        if self.diagnostics:
            raise DiagnosticError(*sorted(self.diagnostics, key=lambda d: d.span.start if d.span else 0))


class Stop(Exception):
    """Nothing after this mistake can be read; it is in the report."""


class TokenReader:
    """The tokens of a text, the last of kind ``eof``; `whole` is what ends with it."""

    whole = "text"

    def __init__(self, report: Report, tokens: Sequence[Token]) -> None:
        self.report, self._tokens, self._place = report, tokens, 0
        self.prefixes: dict[str, str] = {}
        self._unknown: set[str] = set()

    @property
    def token(self) -> Token:
        """The next token."""
        return self._tokens[self._place]

    @property
    def after(self) -> Token:
        """The token after the next one."""
        return self._tokens[min(self._place + 1, len(self._tokens) - 1)]

    def next(self) -> Token:
        token = self._tokens[self._place]
        self._place = min(self._place + 1, len(self._tokens) - 1)
        return token

    def at(self, *texts: str) -> bool:
        """Whether the next token is one of these words or marks."""
        return self.token.kind in ("word", "mark") and self.token.text in texts

    def take(self, text: str) -> Token | None:
        return self.next() if self.at(text) else None

    def expect(self, text: str, hint: str | None = None) -> Token:
        return self.take(text) or self.fail(f"'{text}'" if not text.isalpha() else text, hint)

    def expect_kind(self, kind: str, readable: str, hint: str | None = None) -> Token:
        return self.next() if self.token.kind == kind else self.fail(readable, hint)

    def span(self, start: int) -> Span:
        """From `start` to the end of the last token taken."""
        return self.report.span(start, max(start, self._tokens[self._place - 1].end if self._place else start))

    def here(self) -> Span:
        return self.report.of(self.token)

    def namespace(self, prefix: str, token: Token, declaration: str) -> str:
        """What a prefix means; an unknown one is reported once, with how it is declared, and means something of its own."""
        if prefix not in self.prefixes and prefix not in self._unknown:
            self._unknown.add(prefix)
            self.report.error(f"Unknown prefix '{prefix}:'.", self.report.span(token.start, token.start + len(prefix) + 1),
                              hint=f"declare it: {declaration}")
        return self.prefixes.get(prefix, f"urn:unknown-prefix:{prefix}:")

    def fail(self, expected: str, hint: str | None = None) -> NoReturn:
        """Note that something else stands here, and stop."""
        token = self.token
        if token.kind == "eof":
            self.refuse(f"The {self.whole} ends too early: expected {expected}.", hint)
        self.refuse(f"Expected {expected}, found '{token.shown}'.", hint or self.hint(token))

    def refuse(self, message: str, hint: str | None = None, span: Span | None = None, code: str = "rule-syntax") -> NoReturn:
        """Note a mistake, where nothing else is said at the next token, and stop."""
        self.report.refuse(message, span or self.here(), hint, code)

    def hint(self, token: Token) -> str | None:
        """How to write it instead of this token, where nothing better is known."""
        return None

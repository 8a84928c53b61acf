"""Tokens of a rule text one after the other: expectations with their messages. What the readers of rule languages are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from engine.ir.spans import Span
from grammar.rule_text import Report, Stop
from grammar.scanner import Token


class TokenReader:
    """The tokens of a text, the last of kind ``eof``."""

    def __init__(self, report: Report, tokens: Sequence[Token]) -> None:
        self.report = report
        self._tokens = tokens
        self._place = 0

    @property
    def token(self) -> Token:
        """The next token."""
        return self._tokens[self._place]

    @property
    def after(self) -> Token:
        """The token after the next one."""
        return self._tokens[min(self._place + 1, len(self._tokens) - 1)]

    def next(self) -> Token:
        """Take the next token."""
        token = self._tokens[self._place]
        self._place = min(self._place + 1, len(self._tokens) - 1)
        return token

    def at(self, *texts: str) -> bool:
        """Whether the next token is one of these words or marks."""
        return self.token.kind in ("word", "mark") and self.token.text in texts

    def take(self, text: str) -> Token | None:
        """Take the next token if it is this word or mark."""
        return self.next() if self.at(text) else None

    def expect(self, text: str) -> Token:
        """Take this word or mark."""
        return self.take(text) or self.fail(f"'{text}'" if not text.isalpha() else text)

    def expect_kind(self, kind: str, readable: str) -> Token:
        """Take a token of this kind."""
        return self.next() if self.token.kind == kind else self.fail(readable)

    def span(self, start: int) -> Span:
        """From `start` to the end of the last token taken."""
        return self.report.span(start, max(start, self._tokens[self._place - 1].end if self._place else start))

    def here(self) -> Span:
        """The place of the next token."""
        return self.report.span(self.token.start, self.token.end)

    def fail(self, expected: str, hint: str | None = None) -> NoReturn:
        """Note that something else stands here, and stop."""
        token = self.token
        if token.kind == "eof":
            self.report.error(f"The text ends too early: expected {expected}.", self.here(), hint=hint)
            raise Stop
        found = token.text if len(token.text) <= 40 else token.text[:37] + "..."
        self.report.error(f"Expected {expected}, found '{found}'.", self.here(), hint=hint or self.hint(token))
        raise Stop

    def hint(self, token: Token) -> str | None:
        """How to write it instead of this token, where nothing better is known."""
        return None

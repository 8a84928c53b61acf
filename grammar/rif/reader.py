"""Reading tokens of the presentation syntax one after the other: expectations with their messages, names, constants."""

from __future__ import annotations

import re
from collections.abc import Callable
from difflib import get_close_matches
from typing import NoReturn

from engine.ir.spans import Span
from engine.ir.terms import XSD
from grammar.rif import constants
from grammar.rif.scanner import scan
from grammar.scanner import Token
from grammar.rif.text import Report, Stop

WORDS = ("Document", "Base", "Prefix", "Import", "Window", "Group", "Forall", "Exists", "And", "Or", "External", "List", "If", "Then")
# Words of other languages, in lower case.
_OTHERS = {"not": "negation is not in RIF-Core", "and": "conditions that must all hold stand in And( ... )",
           "or": "conditions of which one must hold stand in Or( ... )", "true": '"true"^^xs:boolean', "false": '"false"^^xs:boolean'}
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
_ESCAPES = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f"}


class Reader:
    """The tokens of a text, with the names it declares; `document` is what its local constants belong to."""

    def __init__(self, report: Report, document: str, base: str | None) -> None:
        self.report = report
        self.document = document
        self.base = base
        self.prefixes = dict(constants.PREFIXES)
        self._tokens = scan(report)
        self._place = 0
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

    def fail(self, expected: str, hint: str | None = None) -> NoReturn:
        """Note that something else stands here, and stop."""
        token = self.token
        if token.kind == "eof":
            self.report.error(f"The text ends too early: expected {expected}.", self.report.span(token.start, token.end), hint=hint)
            raise Stop
        found = token.text if len(token.text) <= 40 else token.text[:37] + "..."
        self.report.error(f"Expected {expected}, found '{found}'.", self.report.span(token.start, token.end),
                          hint=hint or self._hint(token))
        raise Stop

    def _hint(self, token: Token) -> str | None:
        if token.kind != "word":
            return None
        if token.text.lower() in _OTHERS:
            return _OTHERS[token.text.lower()]
        close = get_close_matches(token.text.capitalize(), WORDS, 1, 0.7)
        if close and close[0] != token.text:
            return f"did you mean {close[0]}?"
        return None if token.text in WORDS else f"a constant is written ex:{token.text}, <iri>, _{token.text} or \"{token.text}\""

    # ------------------------------------------------------------------ names and constants

    def skip_note(self) -> str | None:
        """Skip an annotation ``(* ... *)``; its IRI, where it begins with one that no frame follows (IRIMETA)."""
        name = None
        while self.token.kind == "note":
            self.next()
            if self.token.kind in ("iri", "curie", "local") and self.after.text not in ("[", "#", "="):
                name = self.constant()[1:-1]
            depth = 1
            while depth:
                kind = self.next().kind
                depth += (kind == "note") - (kind == "end")
        return name

    def iri(self, readable: str = "an IRI such as <http://ex.org/>") -> str:
        """An IRI in angle brackets, without them."""
        token = self.expect_kind("iri", readable)
        return self._checked(token, lambda: constants.iri(token.text[1:-1], self.base))[1:-1]

    def starts_constant(self) -> bool:
        """Whether a constant begins here."""
        return self.token.kind in ("iri", "curie", "string", "number", "local")

    def constant(self) -> str:
        """A constant: its token."""
        token = self.next()
        match token.kind:
            case "iri":
                return self._checked(token, lambda: constants.iri(token.text[1:-1], self.base))
            case "curie":
                return self._checked(token, lambda: constants.iri(self._curie(token), self.base))
            case "local":
                return constants.local(token.text[1:], self.document)
            case "number":
                kind = "double" if "e" in token.text.lower() else "decimal" if "." in token.text else "integer"
                return f'"{token.text}"^^<{XSD}{kind}>'
        text = _unescaped(token.text[1:-1])
        if self.token.kind == "language":
            tag = self.next()
            return self._checked(tag, lambda: constants.plain(text, tag.text[1:]))
        if not self.take("^^"):
            return constants.plain(text)
        space = self.next() if self.token.kind in ("iri", "curie") else self.fail("the IRI of a datatype")
        datatype = space.text[1:-1] if space.kind == "iri" else self._curie(space)
        return self._checked(token, lambda: constants.typed(text, datatype, self.document, self.base))

    def _curie(self, token: Token) -> str:
        prefix, _, name = token.text.partition(":")
        if prefix not in self.prefixes:
            if prefix not in self._unknown:
                self.report.error(f"Unknown prefix '{prefix}:'.", self.report.span(token.start, token.start + len(prefix) + 1),
                                  hint=f"declare it: Prefix({prefix or 'ex'} <http://...>)")
            self._unknown.add(prefix)
            return f"urn:unknown-prefix:{prefix}:{name}"
        return self.prefixes[prefix] + name

    def _checked(self, token: Token, make: Callable[[], str]) -> str:
        try:
            return make()
        except constants.NotAConstant as error:
            self.report.error(f"{error}.", self.report.span(token.start, token.end))
            return "<urn:not-a-constant>"


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(_character, text) if "\\" in text else text


def _character(match: re.Match[str]) -> str:
    short, long, char = match.groups()
    if char is not None:
        return _ESCAPES.get(char, char)
    code = int(short or long, 16)
    return chr(code) if code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF else "\ufffd"

"""Names and constants of the presentation syntax."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches

from engine.ir.terms import XSD
from grammar.rif import constants
from grammar.rif.scanner import scan
from grammar.rule_text import Report, unescaped
from grammar.scanner import Token
from grammar.token_reader import TokenReader

WORDS = ("Document", "Base", "Prefix", "Import", "Window", "Group", "Forall", "Exists", "And", "Or", "External", "List", "If", "Then")
# Words of other languages, in lower case.
_OTHERS = {"not": "negation is not in RIF-Core", "and": "conditions that must all hold stand in And( ... )",
           "or": "conditions of which one must hold stand in Or( ... )", "true": '"true"^^xs:boolean', "false": '"false"^^xs:boolean'}


class Reader(TokenReader):
    """The tokens of a text, with the names it declares; `document` is what its local constants belong to."""

    def __init__(self, report: Report, document: str, base: str | None) -> None:
        super().__init__(report, scan(report))
        self.document = document
        self.base = base
        self.prefixes = dict(constants.PREFIXES)
        self._unknown: set[str] = set()

    def hint(self, token: Token) -> str | None:
        """A word of this language that looks like it, or how a constant is written."""
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
        text = unescaped(token.text[1:-1])
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

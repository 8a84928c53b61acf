"""Terms and atoms of Datalog texts. RDF: ``triple(S, P, O)``, ``ex:p(S, O)`` and ``ex:C(X)`` are triples."""

from __future__ import annotations

import re

from engine.ir.rules import TRIPLE, Atom
from engine.ir.spans import Span
from engine.ir.terms import RDF_TYPE, XSD, Constant, Term, Variable, is_language_tag
from grammar.datalog.scanner import scan
from grammar.rule_text import Report, unescaped
from grammar.scanner import Token
from grammar.terms import WELL_KNOWN, literal
from grammar.token_reader import TokenReader

_LOCAL_ESCAPE = re.compile(r"\\(.)")
BOOLEANS = ("true", "false")
A_TERM = "a term"


class AtomReader(TokenReader):
    """Reads terms and atoms. `places` has where each variable of the rule stands first; clear it before each rule.

    `reserved` are the words, in lower case, that no predicate has as its name.
    """

    reserved: frozenset[str] = frozenset()

    def __init__(self, report: Report) -> None:
        super().__init__(report, scan(report))
        self.prefixes: dict[str, str] = {}
        self.places: dict[Variable, Span] = {}
        self._unknown: set[str] = set()

    # ------------------------------------------------------------------ names

    def iri(self, readable: str = "an IRI such as <http://ex.org/a>") -> str:
        """An IRI in angle brackets or by its prefix, without brackets."""
        token = self.next() if self.token.kind in ("iri", "name") else self.fail(readable)
        return self.iri_of(token)

    def iri_of(self, token: Token) -> str:
        """The IRI that a token of kind ``iri`` or ``name`` means; an unknown prefix is reported once."""
        if token.kind == "iri":
            return token.text[1:-1]
        prefix, _, local = token.text.partition(":")
        if prefix not in self.prefixes:
            if prefix not in self._unknown:
                self.report.error(f"Unknown prefix '{prefix}:'.", self.report.span(token.start, token.start + len(prefix) + 1),
                                  hint=f"declare it: PREFIX {prefix}: <{WELL_KNOWN.get(prefix, 'http://...')}>")
            self._unknown.add(prefix)
            return f"urn:unknown-prefix:{prefix}:{local}"
        return self.prefixes[prefix] + _LOCAL_ESCAPE.sub(r"\1", local)

    # ------------------------------------------------------------------ terms

    def starts_term(self) -> bool:
        """Whether a term begins here."""
        kinds = ("iri", "name", "string", "variable", "number", "word")
        return self.token.kind in kinds or self._signed()

    def term(self) -> Term:
        """A variable (``X``, ``?x``) or a constant."""
        if not self.starts_term():
            self.fail(A_TERM)
        token = self.next()
        match token.kind:
            case "variable":
                return self._variable(token.text[1:], token)
            case "word" if token.text[0].isupper():
                return self._variable(token.text, token)
            case "word" if token.text[0] == "_":
                self.report.error(f"'{token.text}' is no term.", self.report.span(token.start, token.end),
                                  hint="a variable begins with an upper-case letter, a constant with a lower-case one")
                return Constant('""')
            case "word" if token.text in BOOLEANS:
                return literal(token.text, f"{XSD}boolean")
            case "word":
                return literal(token.text)
            case "mark":
                return self._number(token.text + self.next().text)
            case "number":
                return self._number(token.text)
            case "string":
                return self._string(token)
        return Constant(f"<{self.iri_of(token)}>")

    def integer(self) -> int | None:
        """An integer with or without sign, of at most 15 digits; None where none stands here."""
        sign = self.token.text if self._signed() else ""
        digits = self.after if sign else self.token
        if digits.kind != "number" or not digits.text.isdecimal() or len(digits.text) > 15:
            return None
        if sign:
            self.next()
        return int(sign + self.next().text)

    def _signed(self) -> bool:
        return self.at("-", "+") and self.after.kind == "number" and self.after.start == self.token.end

    def _variable(self, name: str, token: Token) -> Variable:
        variable = Variable(name)
        self.places.setdefault(variable, self.report.span(token.start, token.end))
        return variable

    def _number(self, lexical: str) -> Constant:
        kind = "double" if "e" in lexical.lower() else "decimal" if "." in lexical else "integer"
        return literal(lexical, XSD + kind)

    def _string(self, token: Token) -> Constant:
        text = unescaped(token.text[1:-1])
        if self.token.kind == "language":
            tag = self.next()
            if not is_language_tag(tag.text[1:]):
                self.report.error(f"{tag.text} is no language tag.", self.report.span(tag.start, tag.end),
                                  hint="subtags have at most eight characters")
            return literal(text, language=tag.text[1:])
        if self.take("^^"):
            return literal(text, self.iri("the IRI of a datatype"))
        return literal(text)

    # ------------------------------------------------------------------ atoms

    def starts_atom(self) -> bool:
        """Whether an atom may begin here."""
        return self.token.kind in ("iri", "name") or (self.token.kind == "word" and self.token.text.lower() not in self.reserved)

    def atom(self, expected: str = "an atom such as p(X, a)") -> Atom:
        """``p(X, a)``, ``p()`` or ``p``; those that are triples as triples."""
        if not self.starts_atom():
            self.fail(expected)
        token = self.next()
        terms = self._arguments()
        span = self.span(token.start)
        if token.kind == "word":
            if token.text == TRIPLE and len(terms) != 3:
                self.report.error(f"triple takes 3 arguments, subject, property and object; found {len(terms)}.", span,
                                  hint="another predicate needs another name")
                return Atom("", terms, span)
            return Atom(token.text, terms, span)
        iri = f"<{self.iri_of(token)}>"
        match terms:
            case (subject,):
                return Atom(TRIPLE, (subject, Constant(RDF_TYPE), Constant(iri)), span)
            case (subject, object_):
                return Atom(TRIPLE, (subject, Constant(iri), object_), span)
        return Atom(iri, terms, span)

    def _arguments(self) -> tuple[Term, ...]:
        terms: list[Term] = []
        if self.take("("):
            if not self.at(")"):
                terms.append(self._argument())
            while not self.take(")"):
                if not self.take(","):
                    self.fail("',' or ')'")
                terms.append(self._argument())
        return tuple(terms)

    def _argument(self) -> Term:
        term = self.term()
        if self.at("("):
            self.fail("',' or ')'", "a term is a variable or a constant; there are no function terms")
        if self.at("+", "-", "*", "/"):
            self.fail("',' or ')'", "give the value a variable of its own in the body: Z = X + 1")
        return term

    def hint(self, token: Token) -> str | None:
        """What is known about a token that stands wrong anywhere."""
        match token.kind, token.text:
            case "open", _:
                return f"this string is never closed: close it with {token.text[0]}"
            case "mark", "<":
                return "an IRI begins with its scheme, ends with > and holds no spaces, quotes, braces or backslashes"
            case "mark", "{" | "}":
                return "brackets are round"
            case "mark", ";" | "|" | "||":
                return "write a rule for each alternative"
            case "mark", "#":
                return "a comment begins with %"
            case "word", text if text[0] == "_":
                return "a variable begins with an upper-case letter, a constant with a lower-case one"
        return None

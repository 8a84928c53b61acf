"""Texts of the languages of rules with atoms ``p(X, a)`` (LARS, DatalogMTL): tokens, terms, atoms, and the lines before the rules that say
what is read: ``PREFIX ex: <...>``, ``FROM STREAM <iri>``, ``FROM <graph>``. RDF: ``triple(S, P, O)``, ``ex:p(S, O)`` and ``ex:C(X)`` are
triples.

No token stops here: what is none is one of kind ``bad``, which the reader reports where it meets it. A comment is ``% ...``.
"""

import re
from collections.abc import Iterator, Mapping

from engine.ir.rules import SIMPLE, STREAM, TRIPLE, Atom, Fact, Import, Rule
from engine.ir.spans import Span
from engine.ir.terms import RDF_TYPE, XSD, Constant, Term, Variable, is_language_tag, unescape
from grammar.rule_text import Report, TokenReader
from grammar.terms import WELL_KNOWN, literal
from grammar.text import LOCAL_NAME, SHORT_PREFIX, WORD, Token

# An IRI has a scheme, so that X<3,Y>2 compares.
ABSOLUTE_IRI = r"<[A-Za-z][A-Za-z0-9+.-]*:[^<>\"{}|^`\\\x00-\x20]*>"
_TOKEN = re.compile("|".join((
    r"(?P<space>\s+)",
    r"(?P<comment>%[^\r\n]*)",
    f"(?P<iri>{ABSOLUTE_IRI})",
    r"(?P<string>\"(?:[^\"\\\r\n]|\\.)*\"|'(?:[^'\\\r\n]|\\.)*')",
    r"(?P<language>(?<=[\"'])@[A-Za-z]+(?:-[A-Za-z0-9]+)*)",
    rf"(?P<variable>\?{WORD})",
    f"(?P<name>(?:{SHORT_PREFIX})?:(?![-=])(?:{LOCAL_NAME})?)",      # p:-q(X) has no name p:
    f"(?P<word>{WORD})",
    r"(?P<number>[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)",
    r"(?P<mark><-|\u2190|:-|:=|<=|>=|!=|<>|==|&&|\|\||\^\^|[\u25c7\u25a1\u229e()\[\]{},.;@#<>=+*/&|!-])",
    r"(?P<open>[\"'][^\r\n]*)",                                      # a string that is never closed: with its line, one mistake
    r"(?P<bad>.)",
)), re.DOTALL)
_LOCAL_ESCAPE = re.compile(r"\\(.)")
AFTER_A_PREDICATE = ("(", ".", ",", "<-", "\u2190", ":-", "@")
"""What follows a predicate, never the first word of a line before the rules: ``from(a, b).`` is a fact."""


def scan(report: Report) -> list[Token]:
    """The tokens of a text without white space and comments; the last one is of kind ``eof``."""
    tokens = [Token(match.lastgroup or "bad", match[0], match.start(), match.end())
              for match in _TOKEN.finditer(report.text) if match.lastgroup not in ("space", "comment")]
    return [*tokens, Token("eof", "", len(report.text), len(report.text))]


class Reader(TokenReader):
    """Reads terms, atoms, and the lines before the rules. `places` has where each variable of the rule stands first; clear it before each
    rule. `reserved` are the words, in lower case, that no predicate has as its name; a language adds its own `directives`."""

    reserved: frozenset[str] = frozenset()
    directives: tuple[str, ...] = ("PREFIX", "FROM")
    hints: Mapping[str, str] = {
        "<": "an IRI begins with its scheme, ends with > and holds no spaces, quotes, braces or backslashes",
        **dict.fromkeys("{}", "brackets are round"), **dict.fromkeys((";", "|", "||"), "write a rule for each alternative"),
        "#": "a comment begins with %"}

    def __init__(self, report: Report) -> None:
        super().__init__(report, scan(report))
        self.places: dict[Variable, Span] = {}
        self.imports: list[Import] = []
        self._given: set[str] = set()

    def iri(self, readable: str = "an IRI such as <http://ex.org/a>") -> str:
        """An IRI in angle brackets or by its prefix, without brackets."""
        token = self.next() if self.token.kind in ("iri", "name") else self.fail(readable)
        return self.iri_of(token)

    def iri_of(self, token: Token) -> str:
        """The IRI that a token of kind ``iri`` or ``name`` means; an unknown prefix is reported once."""
        if token.kind == "iri":
            return token.text[1:-1]
        prefix, _, local = token.text.partition(":")
        namespace = self.namespace(prefix, token, f"PREFIX {prefix}: <{WELL_KNOWN.get(prefix, 'http://...')}>")
        return namespace + _LOCAL_ESCAPE.sub(r"\1", local)

    def starts_term(self) -> bool:
        kinds = ("iri", "name", "string", "variable", "number", "word")
        return self.token.kind in kinds or self._signed()

    def term(self) -> Term:
        """A variable (``X``, ``?x``) or a constant."""
        if not self.starts_term():
            self.fail("a term")
        token = self.next()
        match token.kind:
            case "variable":
                return self._variable(token.text[1:], token)
            case "word" if token.text[0].isupper():
                return self._variable(token.text, token)
            case "word" if token.text[0] == "_":
                self.report.error(f"'{token.text}' is no term.", self.report.of(token),
                                  hint="a variable begins with an upper-case letter, a constant with a lower-case one")
                return Constant('""')
            case "word" if token.text in ("true", "false"):
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
        self.places.setdefault(variable, self.report.of(token))
        return variable

    def _number(self, lexical: str) -> Constant:
        kind = "double" if "e" in lexical.lower() else "decimal" if "." in lexical else "integer"
        return literal(lexical, XSD + kind)

    def _string(self, token: Token) -> Constant:
        text = unescape(token.text[1:-1])
        if self.token.kind == "language":
            tag = self.next()
            if not is_language_tag(tag.text[1:]):
                self.report.error(f"{tag.text} is no language tag.", self.report.of(tag), hint="subtags have at most eight characters")
            return literal(text, language=tag.text[1:])
        if self.take("^^"):
            return literal(text, self.iri("the IRI of a datatype"))
        return literal(text)

    def starts_atom(self) -> bool:
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
                return Atom("", terms, span=span)
            return Atom(token.text, terms, span=span)
        iri = f"<{self.iri_of(token)}>"
        match terms:
            case (subject,):
                return Atom(TRIPLE, (subject, Constant(RDF_TYPE), Constant(iri)), span=span)
            case (subject, object_):
                return Atom(TRIPLE, (subject, Constant(iri), object_), span=span)
        return Atom(iri, terms, span=span)

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
        if token.kind == "open":
            return f"this string is never closed: close it with {token.text[0]}"
        if token.kind == "word" and token.text[0] == "_":
            return "a variable begins with an upper-case letter, a constant with a lower-case one"
        return self.hints.get(token.text)

    def sources(self) -> None:
        """All lines before the first rule; a stream is imported under the profile STREAM, a graph under SIMPLE."""
        while self.at_directive():
            start = self.token.start
            word = self.next().text.upper()
            if word == "PREFIX":
                self._prefix()
            elif word == "FROM":
                profile = STREAM if self.token.word == "STREAM" and self.next() else SIMPLE
                iri = self.iri("STREAM or an IRI" if profile == SIMPLE else "an IRI such as <http://ex.org/s>")
                self.imports.append(Import(iri, profile, span=self.span(start)))
            else:
                if word in self._given:
                    self.report.error(f"{word} is given twice.", self.report.span(start, start + len(word)), hint="give one of them")
                self.directive(word, start)
                self._given.add(word)

    def clauses(self) -> Iterator[Rule | Fact]:
        """The rules and facts, in the order of the text; what is read beside them is in the members."""
        raise NotImplementedError

    def at_directive(self) -> bool:
        """Whether such a line begins here: its word in any case, and not used as a predicate."""
        follows = self.after.kind == "mark" and self.after.text in AFTER_A_PREDICATE or self.after.kind == "eof"
        return self.token.word in self.directives and not follows

    def directive(self, word: str, start: int) -> None:
        """A line of the language's own, of which there is one, after its first word, which stands at `start`."""
        raise NotImplementedError

    def _prefix(self) -> None:
        token = self.token
        self._unknown.add(token.text.rstrip(":"))        # of a declaration that cannot be read, one mistake is told
        if token.kind != "name" or not token.text.endswith(":") or token.text.count(":") != 1:
            self.fail("a prefix with its colon", f"a prefix ends with a colon: PREFIX {token.text if token.kind == 'word' else 'ex'}: "
                      "<http://ex.org/>")
        self.next()
        iri = self.expect_kind("iri", "an IRI such as <http://ex.org/>", "the IRI stands in angle brackets and begins with its scheme")
        self.prefixes[token.text[:-1]] = iri.text[1:-1]

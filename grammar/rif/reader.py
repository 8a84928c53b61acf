"""Tokens, names and constants of RIF's presentation syntax (RIF-BLD section 2.6; short forms of constants: RIF-DTB section 2.1.2)."""

import re
from collections.abc import Callable
from difflib import get_close_matches
from typing import NoReturn

from engine.ir.terms import XSD, unescape
from grammar.rif import constants
from grammar.rule_text import Report, Stop, TokenReader
from grammar.text import CLOSING, Token, track

_START = r"[^\W\d]"
_NAME = rf"{_START}(?:[\w.]|-(?!>))*"      # a hyphen before > belongs to the arrow
_TOKEN = re.compile("|".join((
    r"(?P<space>\s+)",
    r"(?P<note>\(\*)",
    r"(?P<end>\*\))",
    r"(?P<iri><[^<>\"{}|^`\\\x00-\x20]*>)",
    r"(?P<string>\"(?:[^\"\\]|\\.)*\")",
    rf"(?P<variable>\?(?:{_NAME}|\w+))",
    rf"(?P<local>_(?:{_NAME}|\w+))",
    rf"(?P<curie>(?:{_NAME})?:(?!-)(?:[\w%](?:(?:[\w.%]|-(?!>))*(?:[\w%]|-(?!>)))?)?)",
    rf"(?P<word>{_NAME})",
    r"(?P<number>[+-]?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)",
    r"(?P<language>@[A-Za-z]+(?:-[A-Za-z0-9]+)*)",
    r"(?P<mark>\^\^|:-|->|##|[()\[\]#=|])",
    r"(?P<bad>.)",
)), re.DOTALL)
# What people write between two operands: the built-in that says it (RIF-DTB sections 4.4 and 4.5).
_OPERATORS = {">=": "pred:numeric-greater-than-or-equal", "<=": "pred:numeric-less-than-or-equal", "<-": "", "!=": "pred:numeric-not-equal",
              ">": "pred:numeric-greater-than", "<": "pred:numeric-less-than", "+": "func:numeric-add", "-": "func:numeric-subtract",
              "*": "func:numeric-multiply", "/": "func:numeric-divide"}
_OPERAND = re.compile(r"\s*(\?\w+|[+-]?[0-9]+(?:\.[0-9]+)?)")
_HINTS = {",": "arguments stand side by side, without commas", ".": "rules stand side by side, without dots",
          ";": "rules stand side by side, without semicolons", "'": 'a string stands in double quotes: "..."', "&": "write And( ... )",
          "{": "brackets are round: ( ... )", "}": "brackets are round: ( ... )", "!": "negation is not in RIF-Core"}
# Words that stand only right within the brackets of these, or of a quantifier's variables.
_WITHIN = {"Forall": ("Group",), "Group": ("Document", "Group"), "Prefix": ("Document",), "Import": ("Document",), "Base": ("Document",),
           ":-": ("Group", "Forall"), "Then": ("Group", "Forall"), "If": ("Group", "Forall")}
WORDS = ("Document", "Base", "Prefix", "Import", "Window", "Group", "Forall", "Exists", "And", "Or", "External", "List", "If", "Then")
# Words of other languages, in lower case.
_OTHERS = {"not": "negation is not in RIF-Core", "and": "conditions that must all hold stand in And( ... )",
           "or": "conditions of which one must hold stand in Or( ... )", "true": '"true"^^xs:boolean', "false": '"false"^^xs:boolean'}


def scan(report: Report) -> list[Token]:
    """The tokens of a text, brackets balanced and not too deep; the last one is of kind ``eof``. Raises Stop."""
    tokens: list[Token] = []
    open_: list[Token] = []
    for match in _TOKEN.finditer(report.text):
        kind = match.lastgroup or "bad"
        if kind == "space":
            continue
        token = Token(kind, match[0], match.start(), match.end())
        if kind == "bad":
            _bad(report, token, tokens)
        if (wrong := track(open_, token, report.span, "rule-syntax")) is not None:
            report.diagnostics.append(wrong)
            raise Stop
        tokens.append(token)
    if open_:
        _never_closed(report, tokens, open_)
    return [*tokens, Token("eof", "", len(report.text), len(report.text))]


def _bad(report: Report, token: Token, before: list[Token]) -> NoReturn:
    span = report.of(token)
    operator = next((found for found in _OPERATORS if report.text.startswith(found, token.start)), None)
    if token.text == '"':
        report.refuse("This string is never closed.", span, 'close it with ", and write \\" for a quote inside it')
    if operator == "<-":
        report.refuse("'<-' has no place in a rule document.", report.span(token.start, token.start + 2), "a rule is written head :- body")
    if operator is not None and (token.text != "<" or _compares(report.text, token, before)):
        left = before[-1].text if before and before[-1].kind in ("variable", "number", "string", "curie") else "?x"
        found = _OPERAND.match(report.text, token.start + len(operator))
        report.refuse(f"'{operator}' has no place in a rule document.", report.span(token.start, token.start + len(operator)),
                      f"write External({_OPERATORS[operator]}({left} {found[1] if found else '?y'}))")
    if token.text == "<":
        report.refuse("This IRI is never closed.", span, "an IRI ends with > and holds no spaces, quotes, braces or backslashes")
    report.refuse(f"'{token.text}' has no place in a rule document.", span, _HINTS.get(token.text))


def _compares(text: str, token: Token, before: list[Token]) -> bool:
    """Whether a ``<`` that begins no IRI is an operator: it stands between two operands."""
    return bool(before) and before[-1].kind in ("variable", "number") and _OPERAND.match(text, token.start + 1) is not None


def _never_closed(report: Report, tokens: list[Token], open_: list[Token]) -> NoReturn:
    """A bracket that is open at the end. It is an earlier one's where a rule begins within a rule, or has its ``:-`` within an atom."""
    stack: list[tuple[Token, str]] = []     # open brackets, each with the word before it
    word = ""
    for token in tokens:
        if token.text in CLOSING:
            stack.append((token, word))
        elif token.text in (")", "]", "*)"):
            stack.pop()
        elif stack and token.kind in ("word", "mark") and stack[-1][1] not in _WITHIN.get(token.text, (stack[-1][1],)):
            opened = stack[-1][0]
            report.refuse(f"This '{opened.text}' is never closed.", report.of(opened),
                          f"add '{CLOSING[opened.text]}' before the {token.text} of line {report.of(token).line}")
        if token.kind != "variable":        # Forall ?x ?y (
            word = token.text if token.kind == "word" else ""
    last = open_[-1]
    line, end = report.of(last).line, report.span(tokens[-1].end, tokens[-1].end)
    if end.line == line:
        report.refuse(f"This '{last.text}' is never closed.", report.of(last), f"add '{CLOSING[last.text]}' where it ends")
    report.refuse(f"The text ends too early: expected '{CLOSING[last.text]}' for the '{last.text}' of line {line}.", end,
                  f"a '{CLOSING[last.text]}' is missing here or before")


class Reader(TokenReader):
    """The tokens of a text, with the names it declares; `document` is what its local constants belong to."""

    def __init__(self, report: Report, document: str, base: str | None = None) -> None:
        super().__init__(report, scan(report))
        self.document, self.base = document, base
        self.prefixes = dict(constants.PREFIXES)

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
        return self._checked(token, constants.iri, token.text[1:-1], self.base)[1:-1]

    def starts_constant(self) -> bool:
        return self.token.kind in ("iri", "curie", "string", "number", "local")

    def constant(self) -> str:
        token = self.next()
        match token.kind:
            case "iri":
                return self._checked(token, constants.iri, token.text[1:-1], self.base)
            case "curie":
                return self._checked(token, constants.iri, self._curie(token), self.base)
            case "local":
                return constants.local(token.text[1:], self.document)
            case "number":
                kind = "double" if "e" in token.text.lower() else "decimal" if "." in token.text else "integer"
                return f'"{token.text}"^^<{XSD}{kind}>'
        text = unescape(token.text[1:-1])
        if self.token.kind == "language":
            tag = self.next()
            return self._checked(tag, constants.plain, text, tag.text[1:])
        if not self.take("^^"):
            return constants.plain(text)
        space = self.next() if self.token.kind in ("iri", "curie") else self.fail("the IRI of a datatype")
        datatype = space.text[1:-1] if space.kind == "iri" else self._curie(space)
        return self._checked(token, constants.typed, text, datatype, self.document, self.base)

    def _curie(self, token: Token) -> str:
        prefix, _, name = token.text.partition(":")
        return self.namespace(prefix, token, f"Prefix({prefix or 'ex'} <http://...>)") + name

    def _checked(self, token: Token, make: Callable[..., str], *arguments: str | None) -> str:
        return constants.checked(self.report, self.report.of(token), make, *arguments)

"""Tokens of RIF's presentation syntax (RIF-BLD section 2.6, RIF-DTB section 2.1.2 for the short forms of constants)."""

from __future__ import annotations

import re

from grammar.rif.text import MAX_NESTING, Report, Stop
from grammar.scanner import Token

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
_CLOSING = {"(": ")", "[": "]", "(*": "*)"}


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
            _bad(report, token)
        if token.text in _CLOSING:
            open_.append(token)
            if len(open_) > MAX_NESTING:
                report.error(f"Brackets are nested more than {MAX_NESTING} deep.", report.span(token.start, token.end),
                             code="nesting-too-deep")
                raise Stop
        elif token.text in (")", "]", "*)"):
            if not open_ or _CLOSING[open_[-1].text] != token.text:
                _mismatch(report, open_, token)
            open_.pop()
        tokens.append(token)
    if open_:
        last = open_[-1]
        report.error(f"This '{last.text}' is never closed.", report.span(last.start, last.end),
                     hint=f"add '{_CLOSING[last.text]}' where it ends")
        raise Stop
    return [*tokens, Token("eof", "", len(report.text), len(report.text))]


def _bad(report: Report, token: Token) -> None:
    span = report.span(token.start, token.end)
    match token.text:
        case '"':
            report.error("This string is never closed.", span, hint='close it with ", and write \\" for a quote inside it')
        case "<":
            report.error("This IRI is never closed.", span, hint="an IRI ends with > and holds no spaces, quotes, braces or backslashes")
        case _:
            report.error(f"'{token.text}' has no place in a rule document.", span,
                         hint="arguments stand side by side, without commas" if token.text == "," else None)
    raise Stop


def _mismatch(report: Report, open_: list[Token], token: Token) -> None:
    span = report.span(token.start, token.end)
    if not open_:
        report.error(f"This '{token.text}' closes nothing.", span, hint="remove it, or open it before")
    else:
        opened = open_[-1]
        line = report.span(opened.start, opened.end).line
        report.error(f"Expected '{_CLOSING[opened.text]}' for the '{opened.text}' of line {line}, found '{token.text}'.", span,
                     hint=f"add '{_CLOSING[opened.text]}' before this '{token.text}'")
    raise Stop

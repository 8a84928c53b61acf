"""Tokens of Datalog texts: words, prefixed names, IRIs, numbers without sign, strings, marks.

Nothing stops here: what is no token is one of kind ``bad``, which the reader reports where it meets it. A comment is ``% ...``.
"""

from __future__ import annotations

import re

from grammar.rule_text import Report
from grammar.scanner import LOCAL_NAME, SHORT_PREFIX, WORD, Token

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


def scan(report: Report) -> list[Token]:
    """The tokens of a text without white space and comments; the last one is of kind ``eof``."""
    tokens = [Token(match.lastgroup or "bad", match[0], match.start(), match.end())
              for match in _TOKEN.finditer(report.text) if match.lastgroup not in ("space", "comment")]
    return [*tokens, Token("eof", "", len(report.text), len(report.text))]

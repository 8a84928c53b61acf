"""Texts to IR: statements of C-SPARQL, RSP-QL and SPARQL 1.1, and rule programs. Only typed nodes with places leave this package."""

import sys

from engine.ir.statement import Statement
from grammar import rule_sets, statement

# 64 brackets inside one another (the limit of a statement) take some 1,500 calls to read: more than Python's own limit allows.
sys.setrecursionlimit(max(sys.getrecursionlimit(), 4_000))


def parse(text: str) -> Statement:
    """A text that can be registered: a statement (grammar.statement.parse), or a rule document (grammar.rule_sets.parse_program)."""
    media = rule_sets.media_of(text)
    return statement.parse(text) if media is None else rule_sets.parse_program(text, media)


__all__ = ["parse"]

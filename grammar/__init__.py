"""Texts to IR: statements of C-SPARQL, RSP-QL and SPARQL 1.1. Only typed nodes with places leave this package."""

import sys

from grammar.statement import parse

# 64 brackets inside one another (the limit of a statement) take some 1,500 calls to read: more than Python's own limit allows.
sys.setrecursionlimit(max(sys.getrecursionlimit(), 4_000))

__all__ = ["parse"]

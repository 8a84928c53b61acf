"""Texts to IR: statements of C-SPARQL, RSP-QL and SPARQL 1.1. Only typed nodes with places leave this package."""

from grammar.statement import parse

__all__ = ["parse"]

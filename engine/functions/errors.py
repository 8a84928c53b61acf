"""The one error of expression evaluation."""

from __future__ import annotations


class ExpressionError(Exception):
    """A SPARQL expression error (SPARQL 1.1 section 17.2): no value. False in a filter, unbound after BIND."""

"""Short notation of tokens in the tables of these tests: ``1``, ``2.5``, ``1e0``, ``true``, ``"x"^^xsd:date``; or the token."""

from __future__ import annotations

import re
from collections.abc import Sequence

from engine.functions.context import ExpressionError
from engine.functions.expressions import Context
from engine.functions.library import find
from engine.functions.terms import boolean
from engine.ir.terms import XSD

_NUMBERS = (("integer", re.compile(r"[+-]?\d+")), ("decimal", re.compile(r"[+-]?\d*\.\d+")),
            ("double", re.compile(r"[+-]?[\d.]+e[+-]?\d+")))


def token(text: str) -> str:
    """The canonical token that a short notation stands for."""
    for datatype, form in _NUMBERS:
        if form.fullmatch(text):
            return f'"{text}"^^<{XSD}{datatype}>'
    if text in ("true", "false"):
        return f'"{text}"^^<{XSD}boolean>'
    return re.sub(r'"\^\^xsd:(\w+)$', rf'"^^<{XSD}\1>', text)


def call(name: str, args: Sequence[str], context: Context, site: str = "") -> str:
    """Apply the function `name` to tokens; `site` tells calls of one row apart (RAND ...). Raises ExpressionError."""
    function = find(name, len(args))
    found = function.apply(context, site, *args) if function.volatile else function.apply(*args)
    return found if isinstance(found, str) else boolean(found)


def result(function: str, *args: str) -> str | None:
    """What a function makes of arguments in short notation; None for an error."""
    try:
        return call(token_name(function), [token(arg) for arg in args], Context(0, "query", "row"))
    except ExpressionError:
        return None


def token_name(function: str) -> str:
    """``xsd:date`` as the name of its constructor function."""
    return f"<{XSD}{function[4:]}>" if function.startswith("xsd:") else function

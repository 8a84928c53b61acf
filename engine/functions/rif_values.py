"""RIF's view of terms: two literals are the same if their data values are (RIF-DTB 2nd edition, section 2.2), whatever the derived type
or lexical form; lists if their members are; all other terms if they are one term."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from engine.functions import datatypes
from engine.functions.errors import ExpressionError
from engine.functions.terms import split
from engine.ir import lists
from engine.ir.builtins import DATATYPES
from engine.ir.terms import RDFS

_LITERAL = f"<{RDFS}Literal>"


@lru_cache(maxsize=1 << 14)
def value(token: str) -> str:
    """One token for all terms that are the same to RIF."""
    if token[0] != '"':
        return token
    members = lists.read(token)
    if members is not None:
        return lists.write(map(value, members))
    try:
        return datatypes.value(token)
    except ExpressionError:
        return token


def identical(first: str, second: str) -> bool:
    """RIF's ``=``."""
    return first == second or value(first) == value(second)


def is_literal(token: str) -> bool:
    """Whether a term is a literal of one of the datatypes known here, and has a value."""
    return datatypes.in_value_space(token, _LITERAL)


def is_a(token: str, name: str) -> bool:
    """Whether the value of a term is one of the datatype with this local name (a key of DATATYPES)."""
    return datatypes.in_value_space(token, f"<{DATATYPES[name]}>")


def guard(name: str, negated: bool) -> Callable[[str], bool]:
    """pred:is-literal-T, or pred:is-literal-not-T: a literal that is none of T (section 4.1)."""
    if negated:
        return lambda token: is_literal(token) and not is_a(token, name)
    return lambda token: is_a(token, name)


def text(token: str) -> str:
    """The characters of a string argument, of whichever string type. Raises ExpressionError."""
    if not is_a(token, "string"):
        raise ExpressionError("not a string")
    return split(token).lexical if not token.endswith("PlainLiteral>") else split(value(token)).lexical


def plain(token: str) -> tuple[str, str]:
    """The characters and tag ("" for none) of a plain literal. Raises ExpressionError."""
    if not is_a(token, "PlainLiteral"):
        raise ExpressionError("not a plain literal")
    parsed = split(value(token))
    return parsed.lexical, parsed.lang

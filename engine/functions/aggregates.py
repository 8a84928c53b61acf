"""Aggregates (SPARQL 1.1 section 18.5.1) over the tokens of one group, independent of the order in which they come."""

from collections.abc import Callable, Sequence

from engine.functions import arithmetic
from engine.functions.compare import order_key
from engine.functions.context import ExpressionError
from engine.functions.terms import characters, integer, string


def aggregate(function: str, tokens: Sequence[str | None], distinct: bool = False, separator: str = " ") -> str | None:
    """The aggregate `function` (``COUNT`` ...) of the values of its expression in a group's rows; None: no value (unbound). A None among
    the tokens is a row in which the expression has no value: COUNT and SAMPLE pass over it, the others have none then. For ``COUNT(*)``
    give any text for each row, equal for equal solutions. Sums of floats are taken in the order of tokens; SAMPLE is the least token,
    GROUP_CONCAT in the order of tokens; among equal extremes MIN and MAX give the least token."""
    bound = [token for token in tokens if token is not None]
    if distinct:
        bound = list(set(bound))
    if len(bound) < len(tokens) and None in tokens and function not in ("COUNT", "SAMPLE"):
        return None
    try:
        return _AGGREGATES[function](bound, separator)
    except ExpressionError:
        return None


def _sum(tokens: list[str]) -> str:
    total = integer(0)
    for token in sorted(tokens):
        total = arithmetic.add(total, token)
    return total


def _max(tokens: list[str]) -> str | None:
    highest = max(map(order_key, tokens), default=None)
    return min((token for token in tokens if order_key(token) == highest), default=None)


_AGGREGATES: dict[str, Callable[[list[str], str], str | None]] = {
    "COUNT": lambda tokens, _: integer(len(tokens)),
    "SUM": lambda tokens, _: _sum(tokens),
    "AVG": lambda tokens, _: (arithmetic.divide(_sum(tokens), integer(len(tokens))) if tokens else integer(0)),
    "MIN": lambda tokens, _: min(tokens, key=lambda token: (order_key(token), token), default=None),
    "MAX": lambda tokens, _: _max(tokens),
    "SAMPLE": lambda tokens, _: min(tokens, default=None),
    "GROUP_CONCAT": lambda tokens, separator: string(separator.join(map(characters, sorted(tokens)))),
}

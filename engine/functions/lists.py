"""RIF's built-ins on lists (RIF-DTB 2nd edition, section 4.11). A list is one term (engine/ir/lists.py).

Places count from 0, negative ones from the end (-1 is the last member); one outside of the list is an error. Members are compared by
value (`rif_values.identical`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from engine.functions.errors import ExpressionError
from engine.functions.rif_values import identical, value
from engine.functions.terms import integer
from engine.functions.values import Kind, decode
from engine.ir import lists


def members(token: str) -> tuple[str, ...]:
    """The members of a list argument. Raises ExpressionError."""
    found = lists.read(token)
    if found is None:
        raise ExpressionError("not a list")
    return found


def _number(token: str) -> int:
    found = decode(token)
    if found.kind not in (Kind.INTEGER, Kind.DECIMAL) or found.value != int(found.value):
        raise ExpressionError("not an integer")
    return int(found.value)


def _place(token: str, count: int) -> int:
    place = _number(token)
    place += count if place < 0 else 0
    if not 0 <= place < count:
        raise ExpressionError("no such place in the list")
    return place


def get(token: str, place: str) -> str:
    """func:get."""
    found = members(token)
    return found[_place(place, len(found))]


def sublist(token: str, start: str, stop: str | None = None) -> str:
    """func:sublist: from `start` up to, but without, `stop`; a stop behind the end is the end."""
    found = members(token)
    first = _place(start, len(found))
    last = len(found) if stop is None else min(_number(stop), len(found))
    return lists.write(found[first:last + len(found) if last < 0 else last])


def insert_before(token: str, place: str, member: str) -> str:
    """func:insert-before."""
    found = members(token)
    at = _place(place, len(found))
    return lists.write((*found[:at], member, *found[at:]))


def remove(token: str, place: str) -> str:
    """func:remove."""
    found = members(token)
    at = _place(place, len(found))
    return lists.write((*found[:at], *found[at + 1:]))


def index_of(token: str, member: str) -> str:
    """func:index-of: the list of the places at which the member stands."""
    return lists.write(integer(place) for place, found in enumerate(members(token)) if identical(found, member))


def contains(token: str, member: str) -> bool:
    """pred:list-contains."""
    return any(identical(found, member) for found in members(token))


def _distinct(found: Iterable[str]) -> str:
    """The list without the later ones of equal members."""
    first: dict[str, str] = {}
    for member in found:
        first.setdefault(value(member), member)
    return lists.write(first.values())


def union(*tokens: str) -> str:
    """func:union: the distinct members of all lists."""
    return _distinct(member for token in tokens for member in members(token))


def _chosen(first: str, second: str, wanted: bool) -> str:
    kept = {value(member) for member in members(second)}
    return _distinct(member for member in members(first) if (value(member) in kept) is wanted)


FUNCTIONS: dict[str, Callable[..., str]] = {
    "make-list": lambda *tokens: lists.write(tokens), "count": lambda token: integer(len(members(token))), "get": get,
    "sublist": sublist, "append": lambda token, *more: lists.write((*members(token), *more)),
    "concatenate": lambda *tokens: lists.write(member for token in tokens for member in members(token)),
    "insert-before": insert_before, "remove": remove, "reverse": lambda token: lists.write(members(token)[::-1]),
    "index-of": index_of, "union": union, "distinct-values": lambda token: _distinct(members(token)),
    "intersect": lambda first, second: _chosen(first, second, True), "except": lambda first, second: _chosen(first, second, False),
}
PREDICATES: dict[str, Callable[..., bool]] = {
    "is-list": lambda token: lists.read(token) is not None, "list-contains": contains,
}

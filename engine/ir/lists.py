"""Ground lists of RIF (RIF-DTB 2nd edition, section 2.2.4) as one term: a literal of datatype rif:list whose lexical form holds the
tokens of the members, ``(1 <a> (<b>))``. Equal lists have equal tokens if their members have."""

import re
from collections.abc import Iterable

from engine.ir.terms import quote, unescape

LIST = "http://www.w3.org/2007/rif#list"

_SUFFIX = f"^^<{LIST}>"
_PIECE = re.compile(r' |(?P<mark>[()])|<[^>]*>|_:[^\s()]+|"(?:[^"\\]|\\.)*"(?:@[A-Za-z0-9-]+|\^\^<[^>]*>)?', re.DOTALL)


def is_list(token: str) -> bool:
    """Whether a term is a list."""
    return token.endswith(_SUFFIX)


def write(members: Iterable[str]) -> str:
    """The token of the list of these tokens. A list inside stands there without quotes of its own: no escape is escaped again."""
    return quote(f"({' '.join(_text(m) if is_list(m) else m for m in members)})") + _SUFFIX


def read(token: str) -> tuple[str, ...] | None:
    """The tokens of a list's members; None where the term is no list."""
    if not is_list(token):
        return None
    text = _text(token)
    members: list[str] = []
    depth, start, place = 0, 0, 0
    while place < len(text):
        piece = _PIECE.match(text, place)
        if piece is None or (depth == 0 and place > 0):
            return None
        depth += (piece["mark"] == "(") - (piece["mark"] == ")")
        if depth == 2 and piece["mark"] == "(":
            start = place
        elif depth == 1 and piece["mark"] == ")":
            members.append(quote(text[start:piece.end()]) + _SUFFIX)
        elif depth == 1 and not piece["mark"] and piece[0] != " ":
            members.append(piece[0])
        place = piece.end()
    return tuple(members) if depth == 0 and text else None


def _text(token: str) -> str:
    return unescape(token[1:-len(_SUFFIX) - 1])

"""IRIs: which characters they allow, and resolution against a base (RFC 3986 section 5.2, RFC 3987)."""

from __future__ import annotations

import re

from engine.functions.errors import ExpressionError

_FORBIDDEN = re.compile("[\x00-\x20<>\"{}|^`\\\\]")
_PARTS = re.compile(r"(?:([^:/?#]+):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def resolve(reference: str, base: str = "") -> str:
    """The IRI of a reference; without a base a relative one stays as it is. Raises ExpressionError for characters no IRI has."""
    if _FORBIDDEN.search(reference):
        raise ExpressionError("not an IRI")
    if _SCHEME.match(reference) or not base:
        return reference
    base_scheme, base_authority, base_path, base_query, _ = _split(base)
    _, authority, path, query, fragment = _split(reference)
    if authority is not None:
        path = _without_dots(path)
    else:
        authority = base_authority
        if not path:
            path, query = base_path, base_query if query is None else query
        else:
            path = _without_dots(path if path.startswith("/") else _merged(base_authority, base_path, path))
    return "".join((
        f"{base_scheme}:" if base_scheme is not None else "", f"//{authority}" if authority is not None else "", path,
        f"?{query}" if query is not None else "", f"#{fragment}" if fragment is not None else ""))


def _split(text: str) -> tuple[str | None, str | None, str, str | None, str | None]:
    match = _PARTS.fullmatch(text)
    assert match is not None
    scheme, authority, path, query, fragment = match.groups()
    return scheme, authority, path or "", query, fragment


def _merged(authority: str | None, base_path: str, path: str) -> str:
    if authority is not None and not base_path:
        return "/" + path
    return base_path[:base_path.rfind("/") + 1] + path


def _without_dots(path: str) -> str:
    """Remove ``.`` and ``..`` segments (RFC 3986 section 5.2.4)."""
    kept: list[str] = []
    segments = path.split("/")
    for index, segment in enumerate(segments):
        last = index == len(segments) - 1
        if segment == "..":
            if len(kept) > 1 or (kept and kept[0]):
                kept.pop()
            if last:
                kept.append("")
        elif segment == ".":
            if last:
                kept.append("")
        else:
            kept.append(segment)
    return "/".join(kept)

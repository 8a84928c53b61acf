"""Resolution of IRI references against a base (RFC 3986 section 5.2)."""

from __future__ import annotations

import re

_PARTS = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL)


def resolve(reference: str, base: str) -> str:
    """The IRI that a reference means where `base` is the base IRI; both without brackets. A reference with a scheme is no relative one and
    stays as it is: SPARQL 1.1 section 4.1.1.1 forbids normalization."""
    scheme, authority, path, query, fragment = _split(reference)
    if scheme is not None:
        return reference
    scheme, base_authority, base_path, base_query, _ = _split(base)
    if authority is not None:
        path = _without_dots(path)
    elif not path:
        authority, path = base_authority, base_path
        query = base_query if query is None else query
    else:
        authority = base_authority
        path = _without_dots(path if path.startswith("/") else _merged(base_authority, base_path, path))
    return "".join((f"{scheme}:" if scheme is not None else "", f"//{authority}" if authority is not None else "", path,
                    f"?{query}" if query is not None else "", f"#{fragment}" if fragment is not None else ""))


def _split(iri: str) -> tuple[str | None, str | None, str, str | None, str | None]:
    match = _PARTS.fullmatch(iri)
    assert match is not None    # every part is optional
    return match[1], match[2], match[3], match[4], match[5]


def _merged(authority: str | None, base_path: str, path: str) -> str:
    if authority is not None and not base_path:
        return "/" + path
    return base_path[:base_path.rfind("/") + 1] + path


def _without_dots(path: str) -> str:
    """Remove ``.`` and ``..`` segments (section 5.2.4); a path without a leading slash (``urn:a:b``) has none."""
    if not path.startswith("/"):
        return path
    kept: list[str] = []
    segments = path.split("/")
    for index, segment in enumerate(segments):
        if segment not in (".", ".."):
            kept.append(segment)
            continue
        if segment == ".." and len(kept) > 1:
            kept.pop()
        if index == len(segments) - 1:
            kept.append("")
    return "/".join(kept)

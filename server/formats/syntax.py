"""What pyoxigraph reads: quads as canonical tokens, syntax errors as problems with their place and the caret line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pyoxigraph import DefaultGraph, Quad

from engine.records import Triple
from server.problems import Problem

_SHOWN = 120
_DIRECTIONS = ("--ltr", "--rtl")


def syntax_problem(detail: str, body: bytes, line: int | None = None, column: int | None = None, end_line: int | None = None,
                   end_column: int | None = None, *, item: str | None = None) -> Problem:
    """A 400 `rdf-syntax`; lines and columns count from 1. `item` names the item where the format has no lines."""
    error: dict[str, Any] = {"detail": detail}
    if item is not None:
        error["item"] = item
    if line is not None:
        location = {"line": line, "column": column, "endLine": end_line, "endColumn": end_column}
        error["location"] = {name: value for name, value in location.items() if value is not None}
        if column is not None:
            error["snippet"] = snippet(body, line, column, end_column if end_line in (None, line) else None)
    return Problem("rdf-syntax", detail, errors=[error])


def from_parser(error: SyntaxError, body: bytes, *, line_offset: int = 0, column_offset: int = 0, item: str | None = None) -> Problem:
    """pyoxigraph's error. The offsets are added where the text it saw was cut out of `body`; a column only counts in line 1."""
    detail = (error.msg or "The text is not valid").partition(": ")[2] if (error.msg or "").startswith("Parser error") else error.msg
    if "LoadDocumentCallback" in (error.msg or ""):
        return remote_context(item)
    detail = (detail or "The text is not valid").rstrip(".") + "."
    if error.lineno is None:
        return syntax_problem(detail, body, line_offset + 1 if line_offset else None, item=item)
    shift = column_offset if error.lineno == 1 else 0
    end_shift = column_offset if error.end_lineno == 1 else 0
    return syntax_problem(detail, body, error.lineno + line_offset, (error.offset or 1) + shift,
                          (error.end_lineno or error.lineno) + line_offset, (error.end_offset or 1) + end_shift, item=item)


def remote_context(item: str | None = None) -> Problem:
    """A JSON-LD context is named by an IRI; none is bundled, and nothing is fetched."""
    error = {"detail": "The @context must be written inline; contexts are not fetched."} | ({"item": item} if item else {})
    return Problem("remote-context-disabled", error["detail"], errors=[error], extra={"bundled": []})


def snippet(body: bytes, line: int, column: int, end_column: int | None = None) -> str:
    """Line `line` of `body` with carets under the place; long lines are cut around it."""
    start = 0
    for _ in range(line - 1):
        start = body.find(b"\n", start) + 1
        if start == 0:
            return ""
    stop = body.find(b"\n", start)
    row = body[start:stop if stop >= 0 else len(body)][:1_000_000].decode("utf-8", "replace").rstrip("\r")
    at = min(max(0, column - 1), len(row))
    width = max(1, min((end_column or column) - column, len(row) - at, _SHOWN))
    first = max(0, at - _SHOWN // 2)
    shown = row[first:first + _SHOWN]
    pad = "".join("\t" if c == "\t" else " " for c in shown[:at - first])
    return f"{shown}\n{pad}{'^' * width}"


def tokens(quads: Iterable[Quad], literal_cap: int | None = None) -> Iterator[tuple[str | None, Triple]]:
    """(graph token or None, triple) of each quad; RDF 1.2 terms and literals above `literal_cap` bytes are refused. `literal_cap` None
    skips the check (a text shorter than the cap cannot hold such a literal)."""
    default = DefaultGraph()
    for quad in quads:
        subject, predicate, object_ = str(quad.subject), str(quad.predicate), str(quad.object)
        if (" " in object_ and object_[0] != '"') or object_.endswith(_DIRECTIONS):
            raise Problem("rdf-syntax", "RDF 1.2 triple terms and base directions are not supported.",
                          errors=[{"detail": f"not supported: {object_[:200]}"}])
        if literal_cap is not None and len(object_) > literal_cap:
            raise Problem("item-too-large", f"A literal has more than {literal_cap} bytes.",
                          extra={"limit": literal_cap, "actual": len(object_.encode())})
        graph = quad.graph_name
        yield None if graph == default else str(graph), (subject, predicate, object_)


def own_blank_nodes(graph: str | None, triples: Iterable[Triple]) -> tuple[str | None, tuple[Triple, ...]]:
    """Blank nodes named ``_:b0``, ``_:b1``... in the order in which they appear, so that the same text gives the same item."""
    names: dict[str, str] = {}

    def own(token: str) -> str:
        return names.setdefault(token, f"_:b{len(names)}") if token[0] == "_" else token

    renamed = tuple([(own(s), p, own(o)) if s[0] == "_" or o[0] == "_" else (s, p, o) for s, p, o in triples])
    return (own(graph) if graph else None), renamed

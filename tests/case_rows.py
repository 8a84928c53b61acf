"""Rows of answers as one reads them: ``?s=:a ?v=21 ?label="hot"@en``, with the short forms of Turtle and SPARQL."""

from __future__ import annotations

import re
from collections.abc import Mapping

from engine.ir.terms import RDF, RDFS, XSD

Row = dict[str, str]

PREFIXES = {"": "http://ex.org/", "rdf": RDF, "rdfs": RDFS, "xsd": XSD}
EMPTY = "{}"

_CELL = re.compile(r'\?(\S+?)=(<[^>]*>|"(?:[^"\\]|\\.)*"(?:@[\w-]+|\^\^(?:<[^>]*>|\S+))?|\S+)(?: |$)')
_SHORT = {"integer": re.compile(r"[+-]?\d+"), "decimal": re.compile(r"[+-]?\d*\.\d+"),
          "double": re.compile(r"[+-]?(\d+\.\d*|\.?\d+)[eE][+-]?\d+"), "boolean": re.compile("true|false")}
_TYPED = re.compile(r'"(.*)"\^\^(<[^>]*>)', re.DOTALL)
_LOCAL = re.compile(r"[A-Za-z_][\w-]*|")


def show_row(row: Mapping[str, str], prefixes: Mapping[str, str]) -> str:
    """One row as text, variables by name; ``{}`` where none is bound."""
    return " ".join(f"?{name}={_shown(row[name], prefixes)}" for name in sorted(row)) or EMPTY


def read_row(text: str, prefixes: Mapping[str, str]) -> Row:
    """The inverse of `show_row`. Raises ValueError where the text is not a row."""
    if text == EMPTY:
        return {}
    cells = list(_CELL.finditer(text))
    if not cells or "".join(cell.group() for cell in cells) != text:
        raise ValueError(f"not a row: {text}")
    return {cell[1]: _token(cell[2], prefixes) for cell in cells}


def _shown(token: str, prefixes: Mapping[str, str]) -> str:
    if token[0] == "<":
        fitting = {f"{name}:{token[len(iri) + 1:-1]}" for name, iri in prefixes.items()
                   if token.startswith(f"<{iri}") and _LOCAL.fullmatch(token[len(iri) + 1:-1])}
        return min(fitting, key=lambda short: (len(short), short), default=token)
    typed = _TYPED.fullmatch(token)
    if typed is None:
        return token
    kind = typed[2].removeprefix(f"<{XSD}").removesuffix(">")
    if kind in _SHORT and _SHORT[kind].fullmatch(typed[1]):
        return typed[1]
    return f'"{typed[1]}"^^{_shown(typed[2], prefixes)}'


def _token(text: str, prefixes: Mapping[str, str]) -> str:
    if text[0] in "<_":
        return text
    if text[0] == '"':
        lexical, mark, datatype = text.rpartition('"^^')
        return f"{lexical}{mark}{_token(datatype, prefixes)}" if mark else text
    for kind, form in _SHORT.items():
        if form.fullmatch(text):
            return f'"{text}"^^<{XSD}{kind}>'
    prefix, colon, local = text.partition(":")
    if not colon or prefix not in prefixes:
        raise ValueError(f"not a term: {text}")
    return f"<{prefixes[prefix]}{local}>"

"""The language tags of JSON-LD. Of an ill-formed one the parser leaves out the literals that have it (JSON-LD 1.1 API, section 8.2.2), and
says nothing: here it is refused.

A tag may stand under `@language`, under a term that a context makes a name for that, or as a key of a language map. Which terms are names
and which have language maps is found in all contexts of a body together, wherever they stand.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

from engine.ir.terms import is_language_tag
from server.problems import Problem

_LANGUAGE, _NONE, _CONTEXT = "@language", "@none", "@context"


class _Members(list[tuple[str, object]]):
    """A JSON object as it is written: two members may have one name."""


@dataclass(slots=True)
class _Terms:
    """What contexts say of terms: `names` by what they stand for, `maps` are the terms whose values are language maps."""

    names: dict[str, set[str]] = field(default_factory=dict)
    maps: set[str] = field(default_factory=set)

    def names_of(self, keyword: str) -> set[str]:
        """A keyword and all terms that stand for it, also through other terms."""
        found, waiting = set[str](), [keyword]
        while waiting:
            if (name := waiting.pop()) not in found:
                found.add(name)
                waiting += self.names.get(name, ())
        return found


def check_languages(text: bytes) -> None:
    """Refuse JSON-LD with an ill-formed language tag. What is no JSON is left to the parser."""
    if b"@language" not in text and b"\\u" not in text:
        return
    try:
        tree = json.loads(text, object_pairs_hook=_Members, parse_int=str, parse_float=str, strict=False)
    except ValueError:
        return
    terms = _Terms()
    _read_contexts(tree, False, terms)
    names, nowhere = terms.names_of(_LANGUAGE), terms.names_of(_NONE)
    for tag in _tags(tree, False, names, nowhere, terms.maps):
        if not is_language_tag(tag):
            raise Problem("rdf-syntax", f"{tag[:200]!r} is no language tag.", errors=[{"detail": f"not a language tag: {tag[:200]!r}"}])


def _read_contexts(node: object, in_context: bool, terms: _Terms) -> None:
    if isinstance(node, _Members):
        for name, value in node:
            if in_context:
                _define(name, value, terms)
            _read_contexts(value, in_context or name == _CONTEXT, terms)
    elif isinstance(node, list):
        for value in node:
            _read_contexts(value, in_context, terms)


def _define(term: str, value: object, terms: _Terms) -> None:
    """A term's definition: what it stands for, or an object that says so."""
    if term.startswith("@"):
        return
    if isinstance(value, str):
        terms.names.setdefault(value, set()).add(term)
    elif isinstance(value, _Members):
        for name, said in value:
            if name == "@id" and isinstance(said, str):
                terms.names.setdefault(said, set()).add(term)
            elif name == "@container" and (said == _LANGUAGE or isinstance(said, list) and _LANGUAGE in said):
                terms.maps.add(term)


def _tags(node: object, in_context: bool, names: set[str], nowhere: set[str], maps: set[str]) -> Iterator[str]:
    """All language tags. In a context a term that stands for `@language` is defined, not used."""
    if isinstance(node, _Members):
        for name, value in node:
            if isinstance(value, str) and (name == _LANGUAGE if in_context else name in names):
                yield value
            if not in_context and name in maps and isinstance(value, _Members):
                yield from (tag for tag, _ in value if tag not in nowhere)
            yield from _tags(value, in_context or name == _CONTEXT, names, nowhere, maps)
    elif isinstance(node, list):
        for value in node:
            yield from _tags(value, in_context, names, nowhere, maps)

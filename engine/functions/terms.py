"""RDF terms as canonical N-Triples tokens: make them, take them apart.

A token is `<iri>`, `_:label`, `"lex"` (xsd:string), `"lex"@en` (tag in lower case: RDF 1.1 section 3.3) or `"lex"^^<datatype>`,
escaped as canonical N-Triples (RDF 1.2 N-Triples, section 3); two tokens are equal exactly where the terms are.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal, NamedTuple

from engine.functions.numeric import format_integer
from engine.ir.quoting import quote, unescape
from engine.ir.terms import RDF, XSD

XSD_STRING = XSD + "string"
XSD_BOOLEAN = XSD + "boolean"
XSD_INTEGER = XSD + "integer"
XSD_DECIMAL = XSD + "decimal"
XSD_FLOAT = XSD + "float"
XSD_DOUBLE = XSD + "double"
RDF_LANG_STRING = RDF + "langString"

TRUE = f'"true"^^<{XSD_BOOLEAN}>'
FALSE = f'"false"^^<{XSD_BOOLEAN}>'

string = quote


class Parsed(NamedTuple):
    """A term taken apart. `lexical` is the IRI, the label or the unescaped lexical form; `lang` is "" where there is none."""

    kind: Literal["iri", "blank", "literal"]
    lexical: str
    datatype: str
    lang: str


def iri(value: str) -> str:
    """The token of an absolute IRI given without brackets."""
    return f"<{value}>"


def blank(label: str) -> str:
    """The token of a blank node given by its label without ``_:``."""
    return f"_:{label}"


def literal(lexical: str, datatype: str | None = None, lang: str | None = None) -> str:
    """The token of a literal; `datatype` is an IRI without brackets, `lang` a language tag in any case."""
    if lang:
        return f"{string(lexical)}@{lang.lower()}"
    if datatype is None or datatype == XSD_STRING:
        return string(lexical)
    return f"{string(lexical)}^^<{datatype}>"


def boolean(value: bool) -> str:
    """The token of an xsd:boolean."""
    return TRUE if value else FALSE


def integer(value: int) -> str:
    """The token of an xsd:integer. Raises ExpressionError where it would be too long to write."""
    return f'"{format_integer(value)}"^^<{XSD_INTEGER}>'


@lru_cache(maxsize=1 << 16)
def split(token: str) -> Parsed:
    """Take a canonical token apart."""
    first = token[0]
    if first == "<":
        return Parsed("iri", token[1:-1], "", "")
    if first == "_":
        return Parsed("blank", token[2:], "", "")
    end = token.rindex('"')
    lexical = unescape(token[1:end])
    suffix = token[end + 1:]
    if not suffix:
        return Parsed("literal", lexical, XSD_STRING, "")
    if suffix[0] == "@":
        return Parsed("literal", lexical, RDF_LANG_STRING, suffix[1:])
    return Parsed("literal", lexical, suffix[3:-1], "")

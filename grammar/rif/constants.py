"""Constants of RIF (RIF-DTB 2nd edition, sections 2.1 and 2.2): from symbol space and lexical form to a term's token."""

import re
from collections.abc import Callable

from engine.ir.builtins import FUNC, INTEGERS, PRED, RIF, STRINGS
from engine.ir.spans import Span
from engine.ir.terms import RDF, RDFS, XSD, is_language_tag, literal, quote, resolve
from grammar.rule_text import Report

LOCAL = "urn:rif-local:"
PREFIXES = {"rif": RIF, "rdf": RDF, "rdfs": RDFS, "xs": XSD, "func": FUNC, "pred": PRED}
"""What these prefixes mean where a text does not declare them, as all documents of W3C use them."""

_IRI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20<>\"{}|^`\\]*")
_INTEGER = r"[+-]?[0-9]+"
_CLOCK = r"[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?"
_DAY = r"-?[0-9]{4,}-[0-9]{2}-[0-9]{2}"
_ZONE = r"(?:Z|[+-][0-9]{2}:[0-9]{2})"
_REAL = rf"{_INTEGER}(?:\.[0-9]*)?|[+-]?\.[0-9]+"
_DOUBLE = rf"(?:{_REAL})(?:[eE][+-]?[0-9]+)?|[+-]?INF|NaN"
_CLOCKED = r"T(?=[0-9])(?:[0-9]+H)?(?:[0-9]+M)?(?:[0-9]+(?:\.[0-9]+)?S)?"
_FORMS = {name: re.compile(pattern) for name, pattern in {
    **dict.fromkeys(INTEGERS, _INTEGER), "nonNegativeInteger": r"\+?[0-9]+|-0+", "positiveInteger": r"\+?0*[1-9][0-9]*",
    "nonPositiveInteger": r"-[0-9]+|\+?0+", "negativeInteger": r"-0*[1-9][0-9]*", "decimal": _REAL, "float": _DOUBLE,
    "double": _DOUBLE, "boolean": "true|false|0|1", "dateTime": f"{_DAY}T{_CLOCK}{_ZONE}?", "dateTimeStamp": f"{_DAY}T{_CLOCK}{_ZONE}",
    "date": f"{_DAY}{_ZONE}?", "time": f"{_CLOCK}{_ZONE}?", "hexBinary": "(?:[0-9A-Fa-f]{2})*",
    "base64Binary": r"(?:[A-Za-z0-9+/] ?){0,}(?:= ?){0,2}", "dayTimeDuration": rf"-?P(?=[0-9T])(?:[0-9]+D)?(?:{_CLOCKED})?",
    "yearMonthDuration": r"-?P(?=[0-9])(?:[0-9]+Y)?(?:[0-9]+M)?",
}.items()} | STRINGS


def checked(report: Report, span: Span, make: Callable[..., str], *arguments: str | None) -> str:
    """The token that `make` gives of the arguments; where they are no constant that is reported."""
    try:
        return make(*arguments)
    except NotAConstant as error:
        report.error(f"{error}.", span)
        return "<urn:not-a-constant>"


class NotAConstant(Exception):
    """The lexical form is none of its symbol space; the message says why."""


def iri(text: str, base: str | None) -> str:
    """The token of an IRI, resolved against the base where there is one. Raises NotAConstant."""
    absolute = text if base is None else resolve(text, base)
    if not _IRI.fullmatch(absolute):
        raise NotAConstant(f"<{text}> is no absolute IRI" + ("" if _IRI.match(absolute) or base else ", and there is no Base"))
    return f"<{absolute}>"


def local(name: str, document: str) -> str:
    """The token of a constant that a document keeps to itself (rif:local): no other document's is equal."""
    return f"<{LOCAL}{_escaped(document)}#{_escaped(name)}>"


def typed(lexical: str, space: str, document: str, base: str | None) -> str:
    """The token of ``"lexical"^^<space>``. Raises NotAConstant."""
    if space == f"{RIF}iri":
        return iri(lexical, base)
    if space == f"{RIF}local":
        return local(lexical, document)
    if space == f"{RDF}PlainLiteral":
        text, mark, tag = lexical.rpartition("@")
        if not mark or (tag and not is_language_tag(tag)):
            raise NotAConstant(f"'{lexical}' is no rdf:PlainLiteral: it ends with @ and a language tag, or @ alone")
        return plain(text, tag)
    if space == f"{XSD}string":
        return quote(lexical)
    form = _FORMS.get(space.removeprefix(XSD)) if space.startswith(XSD) else None
    if form is not None and not form.fullmatch(lexical):
        raise NotAConstant(f"'{lexical}' is no xs:{space.removeprefix(XSD)}")
    return f"{quote(lexical)}^^{iri(space, base)}"


def plain(text: str, tag: str = "") -> str:
    """The token of a string with a language tag, or without. Raises NotAConstant for what is no tag."""
    if tag and not is_language_tag(tag):
        raise NotAConstant(f"'{tag}' is no language tag")
    return literal(text, lang=tag)


def _escaped(name: str) -> str:
    """Without what an IRI may not hold."""
    return "".join(c if c.isalnum() or c in "-._~:/" else "".join(f"%{byte:02X}" for byte in c.encode()) for c in name)

"""Data values of literals, as the rules for datatypes of OWL 2 RL ask for them (OWL 2 Profiles section 4.3, Table 8; XSD 1.1 part 2).

Two literals have one data value where `value` gives one token; a datatype's value space is `in_value_space`. Value spaces are XSD's:
xsd:decimal holds the integers, xsd:float, xsd:double and xsd:decimal share nothing, and a dateTime is the instant that it names.
"""

from __future__ import annotations

import re
from base64 import b64decode
from decimal import Decimal
from xml.parsers import expat

from engine.functions.context import ExpressionError
from engine.functions.datetimes import Moment
from engine.functions.terms import RDF_LANG_STRING, READERS, Kind, Value, boolean, decode, literal, number, string
from engine.ir.terms import RDF, RDFS, XSD, is_language_tag

_START = "A-Za-z_\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c\u200d\u2070-\u218f\u2c00-\u2fef\u3001-\ud7ff" \
    "\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
_NEXT = _START + r"\-.0-9\u00b7\u0300-\u036f\u203f\u2040"
_STRINGS = {name: re.compile(pattern) for name, pattern in {
    "string": r"[\s\S]*",
    "normalizedString": r"[^\t\n\r]*",
    "token": r"(?:[^\t\n\r ]+(?: [^\t\n\r ]+)*)?",
    "language": r"[a-zA-Z]{1,8}(?:-[a-zA-Z0-9]{1,8})*",
    "Name": f"[:{_START}][:{_NEXT}]*",
    "NCName": f"[{_START}][{_NEXT}]*",
    "NMTOKEN": f"[:{_NEXT}]+",
}.items()}
_HEX = re.compile("(?:[0-9A-Fa-f]{2})*")
_BASE64 = re.compile("(?:(?:[A-Za-z0-9+/] ?){4})*(?:[A-Za-z0-9+/] ?[AQgw] ?= ?=|(?:[A-Za-z0-9+/] ?){2}[AEIMQUYcgkosw048] ?=)?")
_PLAIN, _XML, _LITERAL = f"{RDF}PlainLiteral", f"{RDF}XMLLiteral", f"{RDFS}Literal"
_KINDS = {"float": (Kind.FLOAT,), "double": (Kind.DOUBLE,), "boolean": (Kind.BOOLEAN,), "decimal": (Kind.INTEGER, Kind.DECIMAL),
          "dateTime": (Kind.DATETIME, Kind.DATETIME_LOCAL), "dateTimeStamp": (Kind.DATETIME,)}


def value(token: str) -> str:
    """One token for all literals of one data value. Raises ExpressionError for what has none: a term that is no literal, a lexical
    form that its datatype does not have, a datatype that is not known here."""
    known = _read(token)
    match known.kind:
        case Kind.STRING:
            return string(known.value)
        case Kind.LANG:
            return literal(known.value[0], lang=known.value[1])
        case Kind.BOOLEAN:
            return boolean(known.value)
        case Kind.INTEGER | Kind.DECIMAL:
            return number(Kind.DECIMAL, Decimal(known.value))
        case Kind.FLOAT | Kind.DOUBLE:
            return number(known.kind, known.value)
        case Kind.DURATION:
            return literal(f"{known.value.months} {known.value.seconds.normalize()}", f"{XSD}duration")
        case Kind.OTHER:
            return literal(*known.value)
    moment: Moment = known.value
    return literal(f"{moment.instant.normalize():f}{'' if moment.zone is None else 'Z'}", XSD + known.datatype)


def in_value_space(token: str, datatype: str) -> bool:
    """Whether the data value of a literal is one of `datatype` (the token of its IRI); never, where it has no value."""
    try:
        known = _read(token)
    except ExpressionError:
        return False
    iri = datatype[1:-1]
    local = iri.removeprefix(XSD)
    if iri == _LITERAL:
        return True
    if iri == _PLAIN:
        return known.kind in (Kind.STRING, Kind.LANG)
    if local in _STRINGS:
        return known.kind is Kind.STRING and _STRINGS[local].fullmatch(known.value) is not None
    if local in _KINDS:
        return known.kind in _KINDS[local]
    if local in READERS and READERS[local][0] is Kind.INTEGER:
        exact = known.kind in (Kind.INTEGER, Kind.DECIMAL) and known.value == int(known.value)
        return exact and READERS[local][1](str(int(known.value))) is not None
    return (known.value[1] == iri) if known.kind is Kind.OTHER else iri in (XSD + known.datatype, known.datatype)


def _read(token: str) -> Value:
    """As `decode`, with the datatypes that have no operators."""
    known = decode(token)
    if known.kind in (Kind.IRI, Kind.BLANK, Kind.ILL):
        raise ExpressionError("no data value")
    if known.kind is not Kind.OTHER:
        return known
    lexical, datatype = known.value
    local = datatype.removeprefix(XSD)
    if local in _STRINGS and _STRINGS[local].fullmatch(lexical):
        return Value(Kind.STRING, lexical, "string")
    if local == "dateTimeStamp":
        stamp = decode(literal(lexical, f"{XSD}dateTime"))
        if stamp.kind is Kind.DATETIME:
            return stamp
    if local == "hexBinary" and _HEX.fullmatch(lexical):
        return Value(Kind.OTHER, (lexical.upper(), datatype))
    if local == "base64Binary" and _BASE64.fullmatch(lexical):
        return Value(Kind.OTHER, (b64decode(lexical.replace(" ", "")).hex(), datatype))
    if datatype == _PLAIN:
        return _plain(lexical)
    if local == "anyURI" or datatype == _XML and _is_xml(lexical):
        return known
    raise ExpressionError("no data value")


def _is_xml(text: str) -> bool:
    """Whether this is well-formed between the tags of an element (RDF 1.1 Concepts section 5.3); no document type can stand there."""
    try:
        expat.ParserCreate(namespace_separator=" ").Parse(f"<x>{text}</x>", True)
    except (expat.ExpatError, UnicodeEncodeError):
        return False
    return True


def _plain(lexical: str) -> Value:
    """rdf:PlainLiteral: the text, and the language tag behind the last @ (rdf:PlainLiteral section 3)."""
    text, at, tag = lexical.rpartition("@")
    if not at or tag and not is_language_tag(tag):
        raise ExpressionError("no data value")
    return Value(Kind.LANG, (text, tag.lower()), RDF_LANG_STRING) if tag else Value(Kind.STRING, text, "string")

"""XSD's datatypes: constructor functions (SPARQL 1.1 section 17.5; XPath F&O section 17.1), ``xsd:integer(...)`` and the like, on tokens;
and data values of literals, as the rules for datatypes of OWL 2 RL ask for them (OWL 2 Profiles section 4.3, Table 8; XSD 1.1 part 2).

Besides the seven types of SPARQL's table there are constructors of date, time and the durations, and of the types derived from xsd:integer.
Two literals have one data value where `value` gives one token; a datatype's value space is `in_value_space`. Value spaces are XSD's:
xsd:decimal holds the integers, xsd:float, xsd:double and xsd:decimal share nothing, and a dateTime is the instant that it names.
"""

import math
import re
from base64 import b64decode
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from xml.parsers import expat

from engine.functions.context import ExpressionError
from engine.functions.datetimes import Duration, Moment
from engine.functions.numeric import decimal_to_single, format_decimal, format_double, format_float, single, to_double
from engine.functions.terms import (RDF_LANG_STRING, READERS, Kind, Value, boolean, characters, decode, duration, moment, number, split,
                                    string)
from engine.ir.builtins import STRINGS
from engine.ir.terms import RDF, RDFS, XSD, is_language_tag, literal

_STRINGS = {"string": re.compile("(?s:.*)"), **STRINGS}
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


SPACES = " \t\n\r"
_DERIVED_STRINGS = frozenset(XSD + name for name in STRINGS)
_PLAIN_LEAST, _PLAIN_MOST = 1e-6, 1e6


def cast(datatype: str, token: str) -> str:
    """The term as a literal of the XSD type with this local name. Raises ExpressionError where there is no such value."""
    if datatype == "string":
        return to_string(token)
    value = decode(token)
    if value.kind is Kind.STRING:
        return _from_text(datatype, value.value.strip(SPACES))
    if value.kind is Kind.OTHER and value.value[1] in _DERIVED_STRINGS:
        return _from_text(datatype, value.value[0].strip(SPACES))
    kind = READERS[datatype][0]
    if Kind.INTEGER <= kind <= Kind.DOUBLE:
        return _to_number(datatype, kind, value)
    if kind is Kind.BOOLEAN and (value.numeric or value.kind is Kind.BOOLEAN):
        return boolean(bool(value.value) and value.value == value.value)    # 0 and NaN are false (F&O section 17.1.6)
    if isinstance(value.value, Moment) and kind in (Kind.DATETIME, Kind.DATE, Kind.TIME, Kind.GREGORIAN):
        return _to_moment(datatype, value)
    if value.kind is Kind.DURATION and kind is Kind.DURATION:
        return _to_duration(datatype, value.value)
    raise ExpressionError(f"cannot be cast to xsd:{datatype}")


def to_string(token: str) -> str:
    """xsd:string(...): an IRI's or string's characters, a value's canonical form as F&O section 17.1.2 writes it."""
    value = decode(token)
    if value.kind <= Kind.LANG or value.kind in (Kind.ILL, Kind.OTHER):
        return string(characters(token))
    if value.kind in (Kind.FLOAT, Kind.DOUBLE):
        return string(_plain_float(value))
    if value.kind in (Kind.BOOLEAN, Kind.INTEGER, Kind.DECIMAL):
        return string(split(cast(value.datatype, f'"{split(token).lexical}"')).lexical)
    canonical = _to_moment(value.datatype, value) if isinstance(value.value, Moment) else duration(value.datatype, value.value)
    return string(split(canonical).lexical)


def _plain_float(value: Value) -> str:
    """Between 0.000001 and 1000000 as a decimal, else with an exponent."""
    size = abs(value.value)
    text = format_float(value.value) if value.kind is Kind.FLOAT else format_double(value.value)
    if size == 0:
        return "-0" if text.startswith("-") else "0"
    return format_decimal(Decimal(text)) if _PLAIN_LEAST <= size < _PLAIN_MOST else text


def _from_text(datatype: str, text: str) -> str:
    """A string's characters read as a lexical form, written canonically."""
    kind, read = READERS[datatype]
    value = read(text)
    if value is None:
        raise ExpressionError(f"not a lexical form of xsd:{datatype}")
    if kind is Kind.BOOLEAN:
        return boolean(value)
    if kind is Kind.INTEGER:
        return literal(str(value), XSD + datatype)
    if kind <= Kind.DOUBLE:
        return number(kind, value)
    return duration(datatype, value) if isinstance(value, Duration) else moment(datatype, value)


def _to_number(datatype: str, kind: Kind, value: Value) -> str:
    source = value.value
    if value.kind is Kind.BOOLEAN:
        source = int(source)
    elif not value.numeric:
        raise ExpressionError(f"cannot be cast to xsd:{datatype}")
    if kind is Kind.DOUBLE:
        return number(kind, to_double(source))
    if kind is Kind.FLOAT:
        return number(kind, single(source) if isinstance(source, float) else decimal_to_single(source))
    if isinstance(source, float) and not math.isfinite(source):
        raise ExpressionError(f"no xsd:{datatype} is infinite or not a number")
    if kind is Kind.DECIMAL:
        return number(kind, Decimal(source))
    return _from_text(datatype, str(math.trunc(source)))


def _to_moment(datatype: str, value: Value) -> str:
    """Among dates and times, where F&O's table has a cast (section 17.1.5)."""
    source, start = value.datatype, value.value
    if source in ("dateTime", datatype) or source == "date" and datatype != "time":
        return moment(datatype, start)
    raise ExpressionError(f"xsd:{source} cannot be cast to xsd:{datatype}")


def _to_duration(datatype: str, value: Duration) -> str:
    months = 0 if datatype == "dayTimeDuration" else value.months
    seconds = Decimal(0) if datatype == "yearMonthDuration" else value.seconds
    return duration(datatype, Duration(months, seconds))


CASTS: dict[str, Callable[[str], str]] = {f"<{XSD}{name}>": partial(cast, name) for name in ("string", *READERS)}
"""The constructor functions of XSD's types."""

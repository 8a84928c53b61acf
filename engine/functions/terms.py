"""RDF terms as canonical N-Triples tokens: make them, take them apart, and find the value that operators compute with.

A token is `<iri>`, `_:label`, `"lex"` (xsd:string), `"lex"@en` (tag in lower case: RDF 1.1 section 3.3) or `"lex"^^<datatype>`,
escaped as canonical N-Triples (RDF 1.2 N-Triples, section 3); two tokens are equal exactly where the terms are.
"""

from collections.abc import Callable
from decimal import Decimal
from enum import IntEnum
from functools import lru_cache, partial
from math import inf
from typing import Any, Literal, NamedTuple

from engine.functions import datetimes, numeric
from engine.functions.context import ExpressionError
from engine.functions.numeric import format_integer
from engine.ir.terms import RDF, XSD, quote, unescape

XSD_STRING = XSD + "string"
RDF_LANG_STRING = RDF + "langString"

TRUE = f'"true"^^<{XSD}boolean>'
FALSE = f'"false"^^<{XSD}boolean>'

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


def boolean(value: bool) -> str:
    return TRUE if value else FALSE


def integer(value: int) -> str:
    """The token of an xsd:integer. Raises ExpressionError where it would be too long to write."""
    return f'"{format_integer(value)}"^^<{XSD}integer>'


def number_of(token: str) -> int | None:
    """The integer that an instant's token stands for; None for any other term."""
    lexical = token[1:].partition('"')[0] if token.startswith('"') else ""
    return int(lexical) if lexical.lstrip("+-").isdigit() else None


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


class Kind(IntEnum):
    """What a term is to operators and to the typed columns (`typed.py`). Types derived from xsd:integer are INTEGER. HARD is in typed
    columns only: a value of which SQL must not decide a comparison. OTHER is a literal of a datatype without operators here, ILL one whose
    lexical form its datatype does not have."""

    IRI = 1
    BLANK = 2
    STRING = 3
    LANG = 4
    BOOLEAN = 5
    INTEGER = 6
    DECIMAL = 7
    FLOAT = 8
    DOUBLE = 9
    DATETIME = 10
    DATETIME_LOCAL = 11
    DATE = 12
    TIME = 13
    GREGORIAN = 14
    DURATION = 15
    OTHER = 16
    ILL = 17
    HARD = 18


_INTEGER, _DOUBLE = int(Kind.INTEGER), int(Kind.DOUBLE)  # plain ints: comparing enum members is slow


class Value(NamedTuple):
    """A term's kind and value: int, Decimal, float, bool, str (of IRI, label, string), (str, tag), Moment, Duration. `datatype` is the
    local name of an XSD type, "" otherwise."""

    kind: Kind
    value: Any
    datatype: str = ""

    @property
    def numeric(self) -> bool:
        return _INTEGER <= self.kind <= _DOUBLE


_INTEGER_RANGES: dict[str, tuple[float, float]] = {
    "integer": (-inf, inf), "nonPositiveInteger": (-inf, 0), "negativeInteger": (-inf, -1), "nonNegativeInteger": (0, inf),
    "positiveInteger": (1, inf), "long": (-2 ** 63, 2 ** 63 - 1), "int": (-2 ** 31, 2 ** 31 - 1),
    "short": (-2 ** 15, 2 ** 15 - 1), "byte": (-128, 127), "unsignedLong": (0, 2 ** 64 - 1), "unsignedInt": (0, 2 ** 32 - 1),
    "unsignedShort": (0, 2 ** 16 - 1), "unsignedByte": (0, 255),
}
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


def _integer_reader(name: str) -> Callable[[str], int | None]:
    least, most = _INTEGER_RANGES[name]

    def read(lexical: str) -> int | None:
        value = numeric.parse_integer(lexical)
        return value if value is not None and least <= value <= most else None
    return read


READERS: dict[str, tuple[Kind, Callable[[str], Any]]] = {
    **{name: (Kind.INTEGER, _integer_reader(name)) for name in _INTEGER_RANGES},
    "decimal": (Kind.DECIMAL, numeric.parse_decimal),
    "float": (Kind.FLOAT, numeric.parse_float),
    "double": (Kind.DOUBLE, numeric.parse_double),
    "boolean": (Kind.BOOLEAN, _BOOLEANS.get),
    **{name: (Kind.GREGORIAN, partial(datetimes.parse_moment, name)) for name in ("gYear", "gYearMonth", "gMonth", "gMonthDay", "gDay")},
    "dateTime": (Kind.DATETIME, partial(datetimes.parse_moment, "dateTime")),
    "date": (Kind.DATE, partial(datetimes.parse_moment, "date")),
    "time": (Kind.TIME, partial(datetimes.parse_moment, "time")),
    "duration": (Kind.DURATION, datetimes.parse_duration),
    "dayTimeDuration": (Kind.DURATION, datetimes.parse_day_time),
    "yearMonthDuration": (Kind.DURATION, datetimes.parse_year_month),
}
"""The XSD types with operators here: local name -> kind and reader of lexical forms (None: not in the lexical space)."""

_SUFFIXES = {f"^^<{XSD}{name}>": (kind, name, read) for name, (kind, read) in READERS.items()}
_PLAIN_STRING = f"^^<{XSD_STRING}>"


@lru_cache(maxsize=1 << 16)
def decode(token: str) -> Value:
    """The kind and value of a canonical token; ILL where its datatype has no such lexical form."""
    first = token[0]
    if first == "<":
        return Value(Kind.IRI, token[1:-1])
    if first == "_":
        return Value(Kind.BLANK, token[2:])
    end = token.rindex('"')
    suffix, lexical = token[end + 1:], token[1:end]
    if not suffix or suffix == _PLAIN_STRING:
        return Value(Kind.STRING, unescape(lexical), "string")
    found = _SUFFIXES.get(suffix)
    if found is not None:
        kind, name, read = found
        value = read(lexical)
        if value is None:
            return Value(Kind.ILL, lexical, name)
        if kind is Kind.DATETIME and value.zone is None:
            return Value(Kind.DATETIME_LOCAL, value, name)
        return Value(kind, value, name)
    if suffix[0] == "@":
        return Value(Kind.LANG, (unescape(lexical), suffix[1:]), RDF + "langString")
    return Value(Kind.OTHER, (unescape(lexical), suffix[3:-1]))


_FORMATS: dict[Kind, tuple[str, Callable[[Any], str]]] = {
    Kind.INTEGER: (f"^^<{XSD}integer>", numeric.format_integer),
    Kind.DECIMAL: (f"^^<{XSD}decimal>", numeric.format_decimal),
    Kind.FLOAT: (f"^^<{XSD}float>", numeric.format_float),
    Kind.DOUBLE: (f"^^<{XSD}double>", numeric.format_double),
}


def number(kind: Kind, value: Any) -> str:
    """The token of a number of one of the four numeric kinds, in canonical lexical form."""
    suffix, write = _FORMATS[kind]
    return f'"{write(value)}"{suffix}'


def moment(form: str, value: datetimes.Moment) -> str:
    """The token of a dateTime, date, time ..., in canonical lexical form."""
    return f'"{datetimes.format_moment(form, value)}"^^<{XSD}{form}>'


def duration(form: str, value: datetimes.Duration) -> str:
    """The token of a duration of the XSD type `form`."""
    return f'"{datetimes.format_duration(value, form == "yearMonthDuration")}"^^<{XSD}{form}>'


def characters(token: str) -> str:
    """The characters of an IRI or a literal. Raises ExpressionError for a blank node."""
    parsed = split(token)
    if parsed.kind == "blank":
        raise ExpressionError("a blank node has no string")
    return parsed.lexical


def numeric_value(token: str) -> Value:
    """The value of a numeric argument. Raises ExpressionError where it is none."""
    value = decode(token)
    if not value.numeric:
        raise ExpressionError("not a number")
    return value


def text_of(token: str) -> tuple[str, str]:
    """The characters and tag ("" for none) of a string literal argument (SPARQL 1.1 section 17.1.2). Raises ExpressionError."""
    value = decode(token)
    if value.kind is Kind.STRING:
        return value.value, ""
    if value.kind is Kind.LANG:
        return value.value[0], value.value[1]
    raise ExpressionError("not a string")


def simple_text(token: str) -> str:
    """The characters of a simple literal argument. Raises ExpressionError."""
    value = decode(token)
    if value.kind is not Kind.STRING:
        raise ExpressionError("not a simple string")
    return str(value.value)


def promote(first: Value, second: Value) -> tuple[Kind, Any, Any]:
    """The common type of two numbers and both values in it (XPath F&O section 6.2: integer, decimal, float, double)."""
    kind = max(first.kind, second.kind)
    return kind, convert(first, kind), convert(second, kind)


def convert(value: Value, kind: Kind) -> Any:
    """A number in the type `kind`, which is not narrower than its own."""
    if value.kind is kind:
        return value.value
    if kind is Kind.DOUBLE:
        return numeric.to_double(value.value)
    if kind is Kind.FLOAT:
        return numeric.decimal_to_single(value.value)
    return Decimal(value.value)

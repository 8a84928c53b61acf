"""RIF's view of terms, and its casts (RIF-DTB 2nd edition, sections 2.2, 4.1 and 4.2).

Two literals are the same if their data values are, whatever the derived type or lexical form; lists if their members are; all other terms
if they are one term. Casts to types that SPARQL's constructor functions have are those of datatypes.py.
"""

import base64
from collections.abc import Callable
from functools import lru_cache

from engine.functions import datatypes
from engine.functions.context import ExpressionError
from engine.functions.datatypes import SPACES, cast, to_string
from engine.functions.terms import READERS, Kind, decode, split, string
from engine.ir import lists
from engine.ir.builtins import DATATYPES, STRINGS
from engine.ir.terms import RDFS, XSD, literal

_LITERAL = f"<{RDFS}Literal>"


@lru_cache(maxsize=1 << 14)
def value(token: str) -> str:
    """One token for all terms that are the same to RIF."""
    if token[0] != '"':
        return token
    members = lists.read(token)
    if members is not None:
        return lists.write(map(value, members))
    try:
        return datatypes.value(token)
    except ExpressionError:
        return token


def identical(first: str, second: str) -> bool:
    """RIF's ``=``."""
    return first == second or value(first) == value(second)


def is_literal(token: str) -> bool:
    """Whether a term is a literal of one of the datatypes known here, and has a value."""
    return datatypes.in_value_space(token, _LITERAL)


def is_a(token: str, name: str) -> bool:
    """Whether the value of a term is one of the datatype with this local name (a key of DATATYPES)."""
    return datatypes.in_value_space(token, f"<{DATATYPES[name]}>")


def guard(name: str, negated: bool) -> Callable[[str], bool]:
    """pred:is-literal-T, or pred:is-literal-not-T: a literal that is none of T (section 4.1)."""
    if negated:
        return lambda token: is_literal(token) and not is_a(token, name)
    return lambda token: is_a(token, name)


def text(token: str) -> str:
    """The characters of a string argument, of whichever string type. Raises ExpressionError."""
    if not is_a(token, "string"):
        raise ExpressionError("not a string")
    return split(token).lexical if not token.endswith("PlainLiteral>") else split(value(token)).lexical


def whole_number(token: str) -> int:
    """The value of an integer argument, which may be a decimal without fraction. Raises ExpressionError."""
    found = decode(token)
    if found.kind not in (Kind.INTEGER, Kind.DECIMAL) or found.value != int(found.value):
        raise ExpressionError("not an integer")
    return int(found.value)


def plain(token: str) -> tuple[str, str]:
    """The characters and tag ("" for none) of a plain literal. Raises ExpressionError."""
    if not is_a(token, "PlainLiteral"):
        raise ExpressionError("not a plain literal")
    parsed = split(value(token))
    return parsed.lexical, parsed.lang


_TO_SPACES = str.maketrans("\t\n\r", "   ")
_BINARY = ("hexBinary", "base64Binary")


def caster(name: str) -> Callable[[str], str]:
    """The cast to the datatype with this local name (a key of DATATYPES)."""
    if name in READERS:
        return lambda token: cast(name, string(text(token)) if is_a(token, "string") else token)
    if name in STRINGS:
        return lambda token: _to_derived(name, token)
    if name in _BINARY:
        return lambda token: _to_binary(name, token)
    return {"string": written, "PlainLiteral": lambda token: token if is_a(token, "PlainLiteral") else written(token),
            "anyURI": _to_uri, "dateTimeStamp": _to_stamp, "XMLLiteral": _to_xml}[name]


def written(token: str) -> str:
    """xs:string: the canonical form of the value; octets as XSD's canonical forms have them."""
    if token[0] != '"':
        raise ExpressionError("only literals are cast")
    octets = _octets(token)
    return to_string(token) if octets is None else string(_spelled(split(token).datatype.removeprefix(XSD), octets))


def _to_derived(name: str, token: str) -> str:
    """A string type: white space is first treated as the type says."""
    found = split(written(token)).lexical
    found = found.translate(_TO_SPACES)
    if name != "normalizedString":
        found = " ".join(filter(None, found.split(" ")))
    if not is_a(string(found), name):
        raise ExpressionError(f"not a lexical form of xs:{name}")
    return literal(found, XSD + name)


def _octets(token: str) -> bytes | None:
    """The octets of a binary literal; None of any other term."""
    for name in _BINARY:
        if is_a(token, name):
            return _read(split(token).lexical, name)
    return None


def _read(lexical: str, name: str) -> bytes | None:
    try:
        if name == "hexBinary":
            return bytes.fromhex(lexical) if lexical.isalnum() or not lexical else None
        return base64.b64decode(lexical.replace(" ", ""), validate=True)
    except ValueError:
        return None


def _spelled(name: str, octets: bytes) -> str:
    return octets.hex().upper() if name == "hexBinary" else base64.b64encode(octets).decode()


def _to_binary(name: str, token: str) -> str:
    octets = _read(text(token).strip(SPACES), name) if is_a(token, "string") else _octets(token)
    if octets is None:
        raise ExpressionError(f"not a lexical form of xs:{name}")
    return literal(_spelled(name, octets), XSD + name)


def _to_uri(token: str) -> str:
    if not is_a(token, "string") and not is_a(token, "anyURI"):
        raise ExpressionError("cannot be cast to xs:anyURI")
    return literal(split(token).lexical.strip(SPACES), DATATYPES["anyURI"])


def _to_stamp(token: str) -> str:
    moment = cast("dateTime", string(split(token).lexical if is_a(token, "dateTimeStamp") else text(token))
                  if decode(token).kind is not Kind.DATETIME else token)
    if decode(moment).kind is not Kind.DATETIME:
        raise ExpressionError("an xs:dateTimeStamp has a time zone")
    return literal(split(moment).lexical, DATATYPES["dateTimeStamp"])


def _to_xml(token: str) -> str:
    if not is_a(token, "string") and not is_a(token, "XMLLiteral"):
        raise ExpressionError("cannot be cast to rdf:XMLLiteral")
    return literal(split(token).lexical, DATATYPES["XMLLiteral"])

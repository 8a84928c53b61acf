"""Casts of RIF (RIF-DTB 2nd edition, section 4.2) to types that SPARQL's constructor functions (casts.py) do not have."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable

from engine.functions.casts import cast, to_string
from engine.functions.errors import ExpressionError
from engine.functions.rif_values import is_a, text
from engine.functions.terms import literal, split, string
from engine.functions.values import READERS, Kind, decode
from engine.ir.builtins import DATATYPES, STRINGS
from engine.ir.terms import XSD

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
    return {"string": written, "PlainLiteral": _to_plain, "anyURI": _to_uri, "dateTimeStamp": _to_stamp, "XMLLiteral": _to_xml}[name]


def written(token: str) -> str:
    """xs:string: the canonical form of the value; octets as XSD's canonical forms have them."""
    if token[0] != '"':
        raise ExpressionError("only literals are cast")
    octets = _octets(token)
    return to_string(token) if octets is None else string(_spelled(split(token).datatype.removeprefix(XSD), octets))


def _to_plain(token: str) -> str:
    return token if is_a(token, "PlainLiteral") else written(token)


def _to_derived(name: str, token: str) -> str:
    """A string type: white space is first treated as the type says."""
    found = split(written(token)).lexical
    found = found.translate(_TO_SPACES) if name == "normalizedString" else " ".join(found.split())
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
    except (ValueError, binascii.Error):
        return None


def _spelled(name: str, octets: bytes) -> str:
    return octets.hex().upper() if name == "hexBinary" else base64.b64encode(octets).decode()


def _to_binary(name: str, token: str) -> str:
    octets = _read(text(token).strip(), name) if is_a(token, "string") else _octets(token)
    if octets is None:
        raise ExpressionError(f"not a lexical form of xs:{name}")
    return literal(_spelled(name, octets), XSD + name)


def _to_uri(token: str) -> str:
    if not is_a(token, "string") and not is_a(token, "anyURI"):
        raise ExpressionError("cannot be cast to xs:anyURI")
    return literal(split(token).lexical.strip(), DATATYPES["anyURI"])


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

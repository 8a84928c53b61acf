"""The typed columns beside a token: what Spark SQL can compute with, without reading the token.

`kind` is a `Kind`. `number` is there for INTEGER, DECIMAL, FLOAT and DOUBLE: comparing these doubles decides ``= < >`` between
any two of them, except FLOAT against INTEGER or DECIMAL, which SPARQL compares in single precision. `micros` is there for
DATETIME and DATETIME_LOCAL: microseconds since the epoch, a local time read as UTC. What a double or a 64-bit count of
microseconds does not hold well enough (16 significant digits, NaN, nanoseconds, the year 300000) has kind HARD: only Python
decides it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import pyarrow as pa

from engine.functions.datetimes import parse_moment
from engine.functions.numeric import parse_decimal, parse_double, parse_float, parse_integer
from engine.functions.values import READERS, Kind, decode
from engine.ir.terms import XSD

__all__ = ["Kind", "Typed", "typed", "typed_columns"]

Typed = tuple[int, float | None, int | None]

EXACT_DIGITS = 15
_LARGEST_MICROS = 1 << 62
_IRI, _BLANK, _STRING = (int(Kind.IRI), None, None), (int(Kind.BLANK), None, None), (int(Kind.STRING), None, None)
_LANG, _OTHER, _ILL, _HARD = ((int(kind), None, None) for kind in (Kind.LANG, Kind.OTHER, Kind.ILL, Kind.HARD))
_INTEGER, _DECIMAL, _FLOAT, _DOUBLE = int(Kind.INTEGER), int(Kind.DECIMAL), int(Kind.FLOAT), int(Kind.DOUBLE)
_DATETIME, _DATETIME_LOCAL = int(Kind.DATETIME), int(Kind.DATETIME_LOCAL)


def typed(token: str) -> Typed:
    """Kind, number and micros of a term."""
    if token[0] != '"':
        return _IRI if token[0] == "<" else _BLANK
    end = token.rindex('"')
    suffix = token[end + 1:]
    if not suffix:
        return _STRING
    reader = _READERS.get(suffix)
    if reader is not None:
        return reader(token[1:end])
    return _LANG if suffix[0] == "@" else (int(decode(token).kind), None, None)


def typed_columns(tokens: pa.Array | pa.ChunkedArray) -> tuple[pa.Array, pa.Array, pa.Array]:
    """The columns kind (int8), number (float64) and micros (int64) of a column of tokens; null of null.

    Each distinct token is read once.
    """
    if isinstance(tokens, pa.ChunkedArray):
        tokens = tokens.combine_chunks()
    encoded = tokens.dictionary_encode()
    rows = [_remembered(token) for token in encoded.dictionary.to_pylist()]
    kinds, numbers, micros = zip(*rows) if rows else ((), (), ())
    columns = pa.array(kinds, pa.int8()), pa.array(numbers, pa.float64()), pa.array(micros, pa.int64())
    return tuple(column.take(encoded.indices) for column in columns)


def _integer(lexical: str) -> Typed:
    value = parse_integer(lexical)
    if value is None:
        return _ILL
    if len(lexical) <= EXACT_DIGITS:
        return _INTEGER, float(value), None
    return (_INTEGER, float(value), None) if _few_digits(str(value)) else _HARD


def _derived(name: str) -> Callable[[str], Typed]:
    read = READERS[name][1]
    return lambda lexical: _ILL if read(lexical) is None else _integer(lexical)


def _decimal(lexical: str) -> Typed:
    value = parse_decimal(lexical)
    if value is None:
        return _ILL
    if len(lexical) <= EXACT_DIGITS:
        return _DECIMAL, float(lexical), None
    return (_DECIMAL, float(value), None) if _few_digits(format(value, "f")) else _HARD


def _few_digits(numeral: str) -> bool:
    """Whether a plain numeral has so few digits, and is so near 1, that a double tells it from every other such."""
    figures = numeral.lstrip("+-0").replace(".", "")
    return len(numeral) < 300 and len(figures.lstrip("0").rstrip("0")) <= EXACT_DIGITS


def _double(lexical: str) -> Typed:
    return _of_float(_DOUBLE, parse_double(lexical))


def _float(lexical: str) -> Typed:
    return _of_float(_FLOAT, parse_float(lexical))


def _of_float(kind: int, value: float | None) -> Typed:
    if value is None:
        return _ILL
    return _HARD if math.isnan(value) else (kind, value + 0.0, None)


def _datetime(lexical: str) -> Typed:
    value = parse_moment("dateTime", lexical)
    if value is None:
        return _ILL
    micros = value.instant.scaleb(6)
    whole = int(micros)
    if whole != micros or abs(whole) > _LARGEST_MICROS:
        return _HARD
    return (_DATETIME_LOCAL if value.zone is None else _DATETIME), None, whole


_READERS: dict[str, Callable[[str], Typed]] = {
    **{f"^^<{XSD}{name}>": _derived(name) for name, (kind, _) in READERS.items() if kind is Kind.INTEGER},
    f"^^<{XSD}integer>": _integer, f"^^<{XSD}decimal>": _decimal, f"^^<{XSD}double>": _double, f"^^<{XSD}float>": _float,
    f"^^<{XSD}dateTime>": _datetime,
}
_remembered: Callable[[str | None], Typed | tuple[None, None, None]] = lru_cache(maxsize=1 << 16)(
    lambda token: (None, None, None) if token is None else typed(token))

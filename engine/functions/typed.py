"""The typed columns beside a token: what Spark SQL can compute with, without reading the token.

`kind` is a `Kind`. `number` is there for INTEGER, DECIMAL, FLOAT and DOUBLE: comparing these doubles decides ``= < >`` between any two of
them, except FLOAT against INTEGER or DECIMAL, which SPARQL compares in single precision. `micros` is there for DATETIME and DATETIME_LOCAL:
microseconds since the epoch, a local time read as UTC. What a double or a 64-bit count of microseconds does not hold well enough (16
significant digits, NaN, nanoseconds, the year 300000) has kind HARD: only Python decides it.
"""

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from engine.functions.datetimes import parse_moment
from engine.functions.numeric import EXACT, parse_double, parse_float
from engine.functions.terms import READERS, Kind, decode
from engine.ir.terms import XSD
from engine.processors import processors

__all__ = ["ANY_KIND", "Kind", "Kinds", "Typed", "typed", "typed_columns"]

Typed = tuple[int, float | None, int | None]
Kinds = frozenset[int]
"""Kinds that the values of a column may have; where there is no value the kind is null, whatever they are."""
ANY_KIND: Kinds = frozenset(map(int, Kind))

EXACT_DIGITS = 15
_LARGEST_MICROS = 1 << 62
_IRI, _BLANK, _STRING = (int(Kind.IRI), None, None), (int(Kind.BLANK), None, None), (int(Kind.STRING), None, None)
_LANG, _OTHER, _ILL, _HARD = ((int(kind), None, None) for kind in (Kind.LANG, Kind.OTHER, Kind.ILL, Kind.HARD))
_FLOAT, _DOUBLE = int(Kind.FLOAT), int(Kind.DOUBLE)
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
    """The columns kind (int8), number (float64) and micros (int64) of a column of tokens; null of null. Each distinct token is read once:
    the common shapes by Arrow, the others by `typed`. Chunks are read side by side."""
    if isinstance(tokens, pa.ChunkedArray):
        if tokens.num_chunks == 1 or len(tokens) < _SIDE_BY_SIDE:
            return typed_columns(tokens.combine_chunks())
        with ThreadPoolExecutor(processors()) as pool:
            read = [*pool.map(typed_columns, tokens.chunks), typed_columns(pa.array([], tokens.type))]
        kinds, numbers, micros = (pa.concat_arrays(columns) for columns in zip(*read))
        return kinds, numbers, micros
    encoded = tokens.dictionary_encode()
    distinct, rest = encoded.dictionary, pa.array(range(len(encoded.dictionary)), pa.int64())
    parts: list[_Part] = []
    if len(distinct) >= _WORTH_ARROW:
        for shape in _SHAPES:
            part, rest = shape.read(distinct, rest)
            parts.append(part)
    parts.append(_read_each(distinct, rest))
    places, *columns = (pa.concat_arrays(arrays) for arrays in zip(*parts))
    back = pc.sort_indices(places).take(encoded.indices)
    return columns[0].take(back), columns[1].take(back), columns[2].take(back)


_Part = tuple[pa.Array, pa.Array, pa.Array, pa.Array]
_WORTH_ARROW = 64
_SIDE_BY_SIDE = 16_384  # tokens: fewer are not worth threads
_PLAIN_DAY = (r"(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)")


@dataclass(frozen=True, slots=True)
class _Shape:
    """Tokens that begin and end so and whose lexical form matches `form`: of `kind`, the number or micros found by a cast. `form` takes
    fewer forms than the type has, only those that Arrow reads as `typed` does."""

    kind: Kind
    start: str
    end: str = ""
    form: str = ""

    def read(self, tokens: pa.Array, places: pa.Array) -> tuple[_Part, pa.Array]:
        """The typed columns of the tokens of this shape among those at `places`, and the places of the others."""
        chosen = tokens.take(places)
        mask = pc.and_(pc.starts_with(chosen, self.start), pc.ends_with(chosen, self.end))
        if self.form and pc.any(mask).as_py():
            mask = pc.and_(mask, pc.match_substring_regex(chosen, f'^"(?:{self.form})"'))
        found = chosen.filter(mask)
        lexical = pc.utf8_slice_codeunits(found, 1, -len(self.end)) if self.form else found
        numbers = pc.add(lexical.cast(pa.float64()), 0.0) if self.form and self.kind is not Kind.DATETIME else None
        micros = lexical.cast(pa.timestamp("us", "UTC")).cast(pa.int64()) if self.kind is Kind.DATETIME else None
        return (places.filter(mask), pa.array([int(self.kind)] * len(found), pa.int8()),
                pa.nulls(len(found), pa.float64()) if numbers is None else numbers,
                pa.nulls(len(found), pa.int64()) if micros is None else micros), places.filter(pc.invert(mask))


_SHAPES = (
    _Shape(Kind.IRI, "<"),
    _Shape(Kind.STRING, '"', '"'),
    _Shape(Kind.INTEGER, '"', f'"^^<{XSD}integer>', "-?[0-9]{1,15}"),
    _Shape(Kind.DECIMAL, '"', f'"^^<{XSD}decimal>', r"-?[0-9]{1,8}\.[0-9]{1,7}"),
    _Shape(Kind.DOUBLE, '"', f'"^^<{XSD}double>', r"-?[0-9]{1,15}(?:\.[0-9]{1,17})?(?:[eE][+-]?[0-9]{1,2})?"),
    _Shape(Kind.DATETIME, '"', f'"^^<{XSD}dateTime>', "[12][0-9]{3}-" + _PLAIN_DAY +
           r"T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,6})?(?:Z|[+-](?:0[0-9]|1[0-3]):[0-5][0-9])"),
)


def _read_each(tokens: pa.Array, places: pa.Array) -> _Part:
    rows = [typed(token) for token in tokens.take(places).to_pylist()]
    kinds, numbers, micros = zip(*rows) if rows else ((), (), ())
    return places, pa.array(kinds, pa.int8()), pa.array(numbers, pa.float64()), pa.array(micros, pa.int64())


def _exact(kind: int, read: Callable[[str], int | Decimal | None]) -> Callable[[str], Typed]:
    """The reader of xsd:decimal or an integer type: the value as a double; HARD where that does not tell it from all others."""
    def typed_exact(lexical: str) -> Typed:
        value = read(lexical)
        if value is None:
            return _ILL
        if len(lexical) <= EXACT_DIGITS or _few_digits(format(Decimal(value), "f")):
            return kind, float(value), None
        return _HARD
    return typed_exact


def _few_digits(numeral: str) -> bool:
    """Whether a plain numeral has so few digits, and is so near 1, that a double tells it from every other such."""
    figures = numeral.lstrip("+-0").replace(".", "")
    return len(numeral) < 300 and len(figures.lstrip("0").rstrip("0")) <= EXACT_DIGITS


def _of_float(kind: int, value: float | None) -> Typed:
    if value is None:
        return _ILL
    return _HARD if math.isnan(value) else (kind, value + 0.0, None)


def _datetime(lexical: str) -> Typed:
    value = parse_moment("dateTime", lexical)
    if value is None:
        return _ILL
    micros = EXACT.scaleb(value.instant, 6)
    whole = int(micros)
    if whole != micros or abs(whole) > _LARGEST_MICROS:
        return _HARD
    return (_DATETIME_LOCAL if value.zone is None else _DATETIME), None, whole


_READERS: dict[str, Callable[[str], Typed]] = {
    **{f"^^<{XSD}{name}>": _exact(int(kind), read) for name, (kind, read) in READERS.items() if kind in (Kind.INTEGER, Kind.DECIMAL)},
    f"^^<{XSD}dateTime>": _datetime,
    f"^^<{XSD}double>": lambda lexical: _of_float(_DOUBLE, parse_double(lexical)),
    f"^^<{XSD}float>": lambda lexical: _of_float(_FLOAT, parse_float(lexical)),
}

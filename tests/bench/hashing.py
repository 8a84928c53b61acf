"""Bags of answers as one number: the sum of a 64-bit hash of each row, modulo 2**64, and the count of rows.

The sum does not depend on the order and counts repetitions; two bags that differ have equal sums with a chance of about 2**-64.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

MASK = (1 << 64) - 1
Term = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Bag:
    """The count of rows and the sum of their hashes. Bags add up and are taken apart."""

    rows: int = 0
    total: int = 0

    def __add__(self, other: Bag) -> Bag:
        return Bag(self.rows + other.rows, self.total + other.total & MASK)

    def __sub__(self, other: Bag) -> Bag:
        return Bag(self.rows - other.rows, self.total - other.total & MASK)


def row_hash(parts: Sequence[str | None]) -> int:
    """The hash of one row: its terms (`term_text`) in the order of the variables, None for unbound."""
    text = "\x1e".join("\x00" if part is None else part for part in parts)
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


def term_text(term: Term) -> str:
    """A term of SPARQL JSON as one text: value, type or datatype, language."""
    return f"{term['value']}\x1f{term.get('datatype') or term['type']}\x1f{term.get('xml:lang', '')}"


def iri_text(iri: str) -> str:
    """`term_text` of an IRI."""
    return f"{iri}\x1furi\x1f"


def literal_text(lexical: str, datatype: str) -> str:
    """`term_text` of a typed literal."""
    return f"{lexical}\x1f{datatype}\x1f"


def bag_of(hashes: Iterable[int]) -> Bag:
    """The bag of rows with these hashes."""
    known = list(hashes)
    return Bag(len(known), sum(known) & MASK)


def bag_of_bindings(variables: Sequence[str], bindings: Iterable[Mapping[str, Term]], *, ranked: bool = False) -> Bag:
    """The bag of the rows of a SPARQL JSON result; each with its place from 0 on, as one more term, where the order counts (`ranked`)."""
    return bag_of(row_hash([*(term_text(row[name]) if name in row else None for name in variables), *([str(place)] if ranked else [])])
                  for place, row in enumerate(bindings))

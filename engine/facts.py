"""The columns of facts on their way through the system, as Arrow.

One row is one triple of one item: `position` is the item's place in the input log (0 for static graphs), `t` its time stamp in ms,
`g` the token of the item's graph name (null where it has none), `s p o` canonical N-Triples tokens. `kind`, `number` and `micros`
are the typed value of `o` (functions/typed.py), filled once when the item is parsed. `pieces` divides many rows of any kind.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

import pyarrow as pa

Row = TypeVar("Row")
AT_ONCE = 10_000    # rows: to sort them, or to write them out, takes some 10 ms

FACTS = pa.schema([
    ("position", pa.int64()), ("t", pa.int64()), ("g", pa.string()), ("s", pa.string()), ("p", pa.string()), ("o", pa.string()),
    ("kind", pa.int8()), ("number", pa.float64()), ("micros", pa.int64()),
])


def pieces(rows: Iterable[Row]) -> Iterator[tuple[Row, ...]]:
    """The rows, some at a time: one call over a schema of 400,000 rows keeps Python from all other threads for a second."""
    left = iter(rows)
    return iter(lambda: tuple(islice(left, AT_ONCE)), ())

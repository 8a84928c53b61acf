"""The columns of facts on their way through the system, as Arrow.

One row is one triple of one item: `position` is the item's place in the input log (0 for static graphs), `t` its time stamp in ms,
`g` the token of the item's graph name (null where it has none), `s p o` canonical N-Triples tokens. `kind`, `number` and `micros`
are the typed value of `o` (functions/typed.py), filled once when the item is parsed.
"""

from __future__ import annotations

import pyarrow as pa

FACTS = pa.schema([
    ("position", pa.int64()), ("t", pa.int64()), ("g", pa.string()), ("s", pa.string()), ("p", pa.string()), ("o", pa.string()),
    ("kind", pa.int8()), ("number", pa.float64()), ("micros", pa.int64()),
])

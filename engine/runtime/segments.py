"""Where a batch of the log must be cut so that results do not depend on where it was cut already.

Within a segment the order of records does not matter. A registration, a version of a graph or rule set, the beginning or end of a
stream, a pause and the end of a replay begin one, and so does the first record of a stream that was idle: what was due before it must
not see it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from engine.runtime.rows import Control, Kind, controls

BARRIERS = frozenset((Kind.REGISTER, Kind.UNREGISTER, Kind.PAUSE, Kind.RESUME, Kind.GRAPH, Kind.RULES, Kind.STREAM, Kind.END))


def segments(table: pa.Table, idle: Collection[str], cuts: Collection[int] = ()) -> Iterator[tuple[pa.Table, Control | None]]:
    """Cut rows (in order) into segments, each with the barrier that it begins with. `idle` are the streams that are idle before it, `cuts`
    further positions before which to cut."""
    found = controls(table)
    barriers = {control.position: control for control in found if control.kind in BARRIERS}
    cuts = sorted(barriers.keys() | set(_returns(table, found, idle)) | set(cuts))
    bounds = [0, *np.searchsorted(table["position"].to_numpy(), cuts).tolist(), table.num_rows]
    for cut, begin, end in zip([-1, *cuts], bounds, bounds[1:], strict=False):
        if end > begin:
            yield table.slice(begin, end - begin), barriers.get(cut)


def _returns(table: pa.Table, found: Sequence[Control], idle: Collection[str]) -> Iterator[int]:
    """Positions of the records with which idle streams come back."""
    asleep = {stream: [0] for stream in idle}
    for control in found:
        if control.kind is Kind.IDLE:
            asleep.setdefault(control.stream, []).append(control.position)
    if not asleep:
        return
    awake = table.filter(pc.or_(pc.equal(table["record"], int(Kind.EVENT)), pc.equal(table["record"], int(Kind.MARK))))
    for stream, since in asleep.items():
        positions = awake.filter(pc.equal(awake["stream"], stream))["position"].to_numpy()
        places = np.searchsorted(positions, since, side="right")
        yield from {int(positions[place]) for place in places if place < len(positions)}

"""What a lasting closure starts with: the events that came since it was last made, each with the points between which it holds."""

from __future__ import annotations

from collections.abc import Sequence

from engine.ir.statement import StreamSource, TimeWindow
from engine.plan.derive import NOTHING
from engine.plan.nodes import ClosedSource, WindowSource, leaf_sources
from engine.spark.sql.fixpoint import ClosureText
from engine.spark.sql.sources import closes, closure_table, stream_table
from engine.timeline import ON_CHANGE_STEP


def first_text(closure: ClosureText, streams: Sequence[StreamSource], after: int, point: int) -> str:
    """The facts of positions > `after` that hold at `point` or later."""
    parts = [_new(streams[leaf.index], closure, after, point)
             for leaf in leaf_sources(closure.source.base) if isinstance(leaf, WindowSource)]
    return " UNION ".join(parts)


def found_text(source: ClosedSource) -> str:
    """All that was found beyond what was kept."""
    return f"SELECT * FROM {closure_table(source.name)}"


def _new(source: StreamSource, closure: ClosureText, after: int, point: int) -> str:
    assert isinstance(source.window, TimeWindow)
    first, last = closes(source.window, ON_CHANGE_STEP, 0)
    made = {"lo": f"2 * {first} - 1", "hi": f"2 * ({last} + {ON_CHANGE_STEP}) - 2", "shown": "CAST(0 AS TINYINT)"}
    made |= {c: f"'{NOTHING.token}'" for c in closure.columns if c.startswith("x")}
    listed = ", ".join(f"{made[c]} AS {c}" if c in made else c for c in closure.columns)
    return f"SELECT DISTINCT {listed} FROM {stream_table(source.stream)} WHERE position > {after} AND {made['hi']} >= {point}"

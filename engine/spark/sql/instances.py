"""What a lasting closure starts with, the events that came since it was last made, each with the points between which it holds; and
what is shown of it."""

from __future__ import annotations

from collections.abc import Sequence

from engine.ir.statement import StreamSource, TimeWindow
from engine.plan.derive import NOTHING, width
from engine.plan.nodes import ClosedSource, WindowSource, leaf_sources
from engine.spark.sql.fixpoint import ClosureText
from engine.spark.sql.sources import closes, closure_table, stream_table
from engine.timeline import ON_CHANGE_STEP


def first_text(closure: ClosureText, streams: Sequence[StreamSource], after: int, point: int, on_change: bool, start_at_ms: int) -> str:
    """The facts of positions > `after` that hold at `point` or later."""
    windows = [streams[leaf.index] for leaf in leaf_sources(closure.source.base) if isinstance(leaf, WindowSource)]
    return " UNION ".join(_new(source, closure, after, point, on_change, start_at_ms) for source in windows)


def shown_text(source: ClosedSource) -> str:
    """Of all that was found beyond what was kept the facts that are shown, and when they hold."""
    terms = ["s", "p", "o", *(f"x{number + 3}" for number in range(width(source.rules)))]
    return f"SELECT {', '.join(terms)}, lo, hi FROM {closure_table(source.name)} WHERE shown = 1"


def _new(source: StreamSource, closure: ClosureText, after: int, point: int, on_change: bool, start_at_ms: int) -> str:
    assert isinstance(source.window, TimeWindow)
    step, start = (ON_CHANGE_STEP, 0) if on_change else (source.window.step_ms, start_at_ms)
    first, last = closes(source.window, step, start)
    made = {"lo": f"2 * {first} - 1", "hi": f"2 * ({last} + {step}) - 2", "shown": "CAST(0 AS TINYINT)"}
    made |= {c: f"'{NOTHING.token}'" for c in closure.columns if c.startswith("x")}
    listed = ", ".join(f"{made[c]} AS {c}" if c in made else c for c in closure.columns)
    return (f"SELECT DISTINCT {listed} FROM {stream_table(source.stream)} "
            f"WHERE position > {after} AND {made['hi']} >= {point} AND {made['lo']} <= {made['hi']}")

"""Whether the items that a window of a one-shot query shows are all there: the pump keeps what registered queries may still see."""

from __future__ import annotations

from collections.abc import Sequence

from engine.execution.content import StreamContent
from engine.ir.notation import duration
from engine.ir.printer import show_window
from engine.ir.statement import NowWindow, StreamSource, TimeWindow, TupleWindow
from engine.runtime.errors import EngineError
from engine.runtime.resources import iso
from engine.runtime.snapshot import Seen
from engine.runtime.streams import StreamState
from engine.sql.sources import Evaluation, bounds
from engine.timeline import MAX


def check_kept(source: StreamSource, content: StreamContent, state: StreamState | None, evaluation: Evaluation,
               readers: Sequence[Seen]) -> None:
    """Refuse a window that shows items which are not kept, 422 ``window-not-kept``. `content` and `state` are the stream's (None where
    nothing was ever pushed), `readers` the queries that read it."""
    if state is None or content.items == state.items:
        return
    kept_from = max(state.kept_from, state.whole_from)
    low, high = bounds(source.window, evaluation.ticks[0], evaluation)
    match source.window:
        case TimeWindow():
            whole = low >= kept_from
        case TupleWindow(count=count, unit=unit):
            whole = _count(content, kept_from, high, unit) >= count
        case NowWindow():
            whole = content.between(kept_from, high, -1).num_rows > 0
        case _:
            whole = False
    if not whole:
        raise _refusal(source, low, high, kept_from, readers)


def _count(content: StreamContent, low: int, high: int, unit: str) -> int:
    """The distinct triples, or items, of these times."""
    keys = ["t", "s", "p", "o"] if unit == "triples" else ["t"]     # equal items of one time are one item
    return int(content.between(low, high, -1).group_by(keys).aggregate([]).num_rows)


def _refusal(source: StreamSource, low: int, high: int, kept_from: int, readers: Sequence[Seen]) -> EngineError:
    """What the window shows, what is kept, why, and what can be asked instead."""
    kept = {query.name: " ".join(show_window(window) for stream, window in query.timetable.windows if stream == source.stream)
            for query in readers if query.state != "failed"}
    detail = f"Not all items that this window on <{source.stream}> shows are kept"
    if not kept or kept_from >= MAX:
        detail += ": no registered query reads the stream."
    else:
        if isinstance(source.window, TimeWindow):
            detail += (f". It has STEP {duration(source.window.step_ms)}: its last close was at {_time(high)}, so it shows the items from "
                       f"{_time(low)} on")
        detail += f"; they are kept from {_time(kept_from)} on, for {', '.join(sorted(kept))}."
    hint = "Register a query with this window."
    if kept:
        hint = f"Ask with a window that a registered query has, {' or '.join(dict.fromkeys(kept.values()))}, or register one with this."
    return EngineError("window-not-kept", 422, detail, {"stream": source.stream, "hint": hint, "kept": kept})


def _time(ms: int) -> str:
    return iso(ms) or f"{ms} ms"

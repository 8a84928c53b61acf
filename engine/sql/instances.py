"""What a lasting closure starts with, the events that came since it was last made, each with the points between which it holds; and
what is shown of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.ir.rules import Atom
from engine.ir.statement import StreamSource, TimeWindow
from engine.ir.terms import Constant
from engine.plan.derive import NOTHING, properties_read, row_of, width
from engine.plan.nodes import ClosedSource, WindowSource, leaf_sources
from engine.sql.dialect import Dialect, fixed
from engine.sql.fixpoint import ClosureText
from engine.sql.sources import closes, closure_table
from engine.timeline import MAX, MIN, ON_CHANGE_STEP


def first_text(closure: ClosureText, streams: Sequence[StreamSource], after: int, point: int, on_change: bool, start_at_ms: int,
               dialect: Dialect, tables: Mapping[str, str]) -> str:
    """The facts of positions > `after` that hold at `point` or later, and that the rules read. They stand in `tables` (stream IRI ->
    name)."""
    read = properties_read(closure.source.rules)
    windows = [streams[leaf.index] for leaf in leaf_sources(closure.source.base) if isinstance(leaf, WindowSource)]
    some = "" if read is None else f" AND p IN ({', '.join(map(dialect.quote, sorted(read)))})" if read else " AND FALSE"
    return " UNION ".join(_new(source, closure, after, point, on_change, start_at_ms, tables[source.stream]) + some for source in windows)


def shown_text(source: ClosedSource, at_first: bool, dialect: Dialect, names: Mapping[str, str]) -> str:
    """Of all that was found beyond what was kept the facts that are shown, and when they hold; `at_first` those of the background too.
    Some closures have other `names`."""
    def table(closed: ClosedSource) -> str:
        return closure_table(names.get(closed.name, closed.name))

    further = [f"x{number + 3}" for number in range(width(source.rules))]
    found = f"SELECT {', '.join(['s', 'p', 'o', *further])}, lo, hi FROM {table(source)} WHERE shown = 1"
    behind = source.background
    if behind is None or not behind.shown or not at_first:
        return found
    marks = {row_of(rule.head)[1] for rule in behind.rules if rule.role == behind.shown and isinstance(rule.head, Atom)}
    there = width(behind.rules)
    rest = [name if number < there else f"{dialect.quote(NOTHING.token)} AS {name}" for number, name in enumerate(further)]
    always = f"CAST({MIN} AS BIGINT) AS lo, CAST({MAX} AS BIGINT) AS hi"
    listed = ", ".join(sorted(dialect.quote(mark.token) for mark in marks if isinstance(mark, Constant)))
    terms = ", ".join(["s", "p", "o", *rest])
    return f"{found} UNION ALL SELECT {terms}, {always} FROM {table(behind)} WHERE p IN ({listed})"


def _new(source: StreamSource, closure: ClosureText, after: int, point: int, on_change: bool, start_at_ms: int,
         table: str) -> str:
    assert isinstance(source.window, TimeWindow)
    step, start = (ON_CHANGE_STEP, 0) if on_change else (source.window.step_ms, start_at_ms)
    first, last = closes(source.window, step, start)
    made = {"lo": f"2 * {first} - 1", "hi": f"2 * ({last} + {step}) - 2", "shown": "CAST(0 AS TINYINT)"}
    made |= {c: fixed(NOTHING.token) for c in closure.columns if c.startswith("x")}
    listed = ", ".join(f"{made[c]} AS {c}" if c in made else c for c in closure.columns)
    return (f"SELECT DISTINCT {listed} FROM {table} "
            f"WHERE position > {after} AND {made['hi']} >= {point} AND {made['lo']} <= {made['hi']}")

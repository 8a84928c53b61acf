"""Aggregates of a kept relation by panes: what is gathered of its solutions is kept for each stretch of time in which their newest facts
lie. At T the panes that the windows show whole are merged, and only the other solutions are read (Li et al., "No Pane, No Gain: Efficient
Evaluation of Sliding-Window Aggregates over Data Streams", 2005). A pane is as wide as a part of the first window, whatever STEP says.

The table of some panes has a row for each pane and group: the number ``pane``, the keys, what is gathered, and the least ``first0 ...`` and
``born`` of the solutions. Which panes are read says the worker: the numbers from ``$..._from`` to before ``$..._until``, for each T.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from engine.ir.statement import StreamSource, TimeWindow
from engine.plan.nodes import KeptSource
from engine.sql.kept import newest, rest_macro
from engine.sql.sources import MOST_NAMES, Evaluation, bounds

IN_WINDOW = 32      # panes in a window


@dataclass(frozen=True, slots=True)
class PaneText:
    """The statements of the table `name` of panes over a kept `relation`, each `width_ms` wide: one makes it without rows, one has the rows
    of the panes from number ``$from`` to before ``$until`` added, one gives of each of these the least columns ``first0 ... born``."""

    name: str
    relation: str
    width_ms: int
    empty: str
    added: str
    least: str


@dataclass(frozen=True, slots=True)
class Panes:
    """What is gathered of the solutions of a kept relation, as columns `listed` of it: for each group of the `keys` the aggregates
    `gathered`, by name."""

    source: KeptSource
    listed: tuple[str, ...]
    keys: tuple[str, ...]
    gathered: tuple[tuple[str, str], ...]

    @property
    def name(self) -> str:
        """Name of the relation under a plan: what is gathered for each T in one or more rows a group, to be merged."""
        said = (self.source.name, *map(str, self.source.windows), *self.listed, *self.keys, *(" ".join(one) for one in self.gathered))
        return f"p_{hashlib.sha256(chr(0).join(said).encode()).hexdigest()[:16]}"

    @property
    def _columns(self) -> list[str]:
        return [*self.keys, *(name for name, _ in self.gathered)]

    def _grouped(self, from_: str, also: Sequence[tuple[str, str]] = (), by: Sequence[str] = ()) -> str:
        """What is gathered, and `also` is, of the rows of a FROM clause, by these columns and the keys: nothing where there are none."""
        keys = [*by, *self.keys]
        made = [*keys, *(f"{aggregate} AS {name}" for name, aggregate in (*self.gathered, *also))]
        read = [*by, *self.listed, "1 AS here", *(column for column, _ in also)]
        grouping = f"GROUP BY {', '.join(keys)}" if keys else "HAVING count(here) > 0"
        return f"SELECT {', '.join(made)} FROM (SELECT {', '.join(read)} {from_}) AS r {grouping}"

    def table(self, streams: Sequence[StreamSource]) -> PaneText:
        """The table for a statement's windows."""
        window = streams[self.source.windows[0]].window
        assert isinstance(window, TimeWindow)
        return self._table(max(1, window.range_ms // IN_WINDOW))

    @lru_cache(maxsize=MOST_NAMES)      # it is the same in each evaluation
    def _table(self, width: int) -> PaneText:
        name, time = f"{self.name}_{width}", newest(len(self.source.windows))
        least = [(column, f"min({column})") for column in (*(f"first{n}" for n in range(len(self.source.windows))), "born")]

        def made(where: str) -> str:
            return self._grouped(f"FROM (SELECT *, {time} // {width} AS pane FROM {self.source.name} WHERE {where})", least, ("pane",))

        added = made(f"{time} >= $from * {width} AND {time} < $until * {width}")
        return PaneText(name, self.source.name, width, f"CREATE OR REPLACE TABLE {name} AS {made('FALSE')}", f"INSERT INTO {name} {added}",
                        f"SELECT pane, {', '.join(sql for _, sql in least)} FROM {name} WHERE pane >= $from GROUP BY pane")

    def windows(self, streams: Sequence[StreamSource], tick: int, evaluation: Evaluation) -> tuple[tuple[int, int], ...]:
        """The times ``low <= t < high`` that each window of the relation shows at T."""
        return tuple(bounds(streams[index].window, tick, evaluation) for index in self.source.windows)

    def text(self, streams: Sequence[StreamSource], evaluation: Evaluation) -> str:
        """The common table expression under a plan, with parameters `parameters` for each T."""
        table = self.table(streams)
        texts = []
        for number, tick in enumerate(evaluation.ticks):
            at = f"CAST({tick} AS BIGINT) AS tick"
            from_, until = (f"${name}" for name in parameters(table.name, number))
            times = [str(time) for window in self.windows(streams, tick, evaluation) for time in window]
            given = [*times, str(evaluation.since), *(f"{end} * {table.width_ms}" for end in (from_, until))]
            texts.append(f"SELECT {', '.join([at, *self._columns])} FROM {table.name} WHERE pane >= {from_} AND pane < {until}")
            rest = self._grouped(f"FROM {rest_macro(self.source.name)}({', '.join(given)})")
            texts.append(f"SELECT {', '.join([at, *self._columns])} FROM ({rest}) AS g")
        return f"{self.name} AS ({' UNION ALL '.join(texts)})"


def parameters(table: str, number: int) -> tuple[str, str]:
    """The parameters of the T of this number: the first pane of a table that is read, and the one after the last."""
    return f"{table}_{number}_from", f"{table}_{number}_until"

"""What is asked of a kept relation by panes: for each stretch of time in which the newest facts of solutions lie it is kept what aggregates
gather of these, or the first of them by a key. At T the panes that the windows show whole are read, and all other solutions (Li et al.,
"No Pane, No Gain: Efficient Evaluation of Sliding-Window Aggregates over Data Streams", 2005). A pane is as wide as a part of the first
window, whatever STEP says.

The table of some panes has in each row the number ``pane``, its columns, and the least ``first0 ...`` and ``born`` of the pane's solutions,
or of some of them. Which panes are read says the worker: the numbers from ``$..._from`` to before ``$..._until``, for each T.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from engine.ir.statement import StreamSource, TimeWindow
from engine.plan.nodes import KeptSource
from engine.sql.functions.comparisons import heap
from engine.sql.kept import newest, rest_macro
from engine.sql.relation import named
from engine.sql.sources import MOST_NAMES, Evaluation, bounds, window_ends

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
class Panes(ABC):
    """What is kept of the solutions of a kept relation, as columns `listed` of it with their names in the plan."""

    source: KeptSource
    listed: tuple[tuple[str, str], ...]

    @property
    def name(self) -> str:
        """Name of the relation under a plan: what panes have for each T, and what of the other solutions stands beside it."""
        said = (self.source.name, *map(str, self.source.windows), *named(self.listed), *self._said)
        return f"p_{hashlib.sha256(chr(0).join(said).encode()).hexdigest()[:16]}"

    @property
    @abstractmethod
    def _said(self) -> tuple[str, ...]:
        """What tells it from others over the same columns."""

    @property
    @abstractmethod
    def _columns(self) -> list[str]:
        """Names of its columns."""

    @abstractmethod
    def _made(self, rows: str, least: Sequence[tuple[str, str]]) -> str:
        """What panes have of the `rows` of a FROM clause, which have the number ``pane``: that, the columns, and what is `least` (names and
        aggregates)."""

    @abstractmethod
    def _other(self, rows: str) -> str:
        """The columns of other solutions, the rows of a FROM clause."""

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
            return self._made(f"FROM (SELECT *, {time} // {width} AS pane FROM {self.source.name} WHERE {where})", least)

        added = made(f"{time} >= {_begin('$from', width)} AND {time} < {_begin('$until', width)}")
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
            at = f"CAST({evaluation.number(f't{number}', tick)} AS BIGINT) AS tick"
            from_, until = (f"${name}" for name in parameters(table.name, number))
            given = [*window_ends(self.source.windows, streams, tick, evaluation), str(evaluation.since),
                     *(_begin(end, table.width_ms) for end in (from_, until))]
            texts.append(f"SELECT {', '.join([at, *self._columns])} FROM {table.name} WHERE pane >= {from_} AND pane < {until}")
            other = self._other(f"FROM {rest_macro(self.source.name)}({', '.join(given)})")
            texts.append(f"SELECT {', '.join([at, *self._columns])} FROM ({other}) AS g")
        return f"{self.name} AS ({' UNION ALL '.join(texts)})"


@dataclass(frozen=True, slots=True)
class GatheredPanes(Panes):
    """Of each pane and group of the `keys` the aggregates `gathered`, by name; of the others, too. To be merged."""

    keys: tuple[str, ...]
    gathered: tuple[tuple[str, str], ...]

    @property
    def _said(self) -> tuple[str, ...]:
        return (*self.keys, *(" ".join(one) for one in self.gathered))

    @property
    def _columns(self) -> list[str]:
        return [*self.keys, *(name for name, _ in self.gathered)]

    def _made(self, rows: str, least: Sequence[tuple[str, str]]) -> str:
        return self._grouped(rows, least, ("pane",))

    def _other(self, rows: str) -> str:
        return self._grouped(rows)

    def _grouped(self, rows: str, also: Sequence[tuple[str, str]] = (), by: Sequence[str] = ()) -> str:
        """What is gathered, and `also` is, by these columns and the keys: nothing where there are no rows."""
        keys = [*by, *self.keys]
        made = [*keys, *(f"{aggregate} AS {name}" for name, aggregate in (*self.gathered, *also))]
        read = [*by, *named(self.listed), "1 AS here", *(column for column, _ in also)]
        grouping = f"GROUP BY {', '.join(keys)}" if keys else "HAVING count(here) > 0"
        return f"SELECT {', '.join(made)} FROM (SELECT {', '.join(read)} {rows}) AS r {grouping}"


@dataclass(frozen=True, slots=True)
class FirstPanes(Panes):
    """Of each pane the first `most` solutions by the value of `key`, and those that have the last one's; all of the others."""

    key: str
    descending: bool
    most: int

    @property
    def _said(self) -> tuple[str, ...]:
        return self.key, str(self.descending), str(self.most)

    @property
    def _columns(self) -> list[str]:
        return [name for _, name in self.listed]

    def _made(self, rows: str, least: Sequence[tuple[str, str]]) -> str:
        ends = [name for name, _ in least]      # of each row: what is not among the first may be shown or not
        firsts, is_first = heap("sort_key", self.descending, self.most)
        return (f"WITH r AS (SELECT *, {self.key} AS sort_key FROM (SELECT {', '.join(['pane', *named(self.listed), *ends])} {rows})), "
                f"f AS (SELECT pane AS of_pane, {firsts} FROM r GROUP BY pane) "
                f"SELECT {', '.join(['pane', *self._columns, *ends])} FROM r JOIN f ON pane = of_pane WHERE {is_first}")

    def _other(self, rows: str) -> str:
        return f"SELECT {', '.join(named(self.listed))} {rows}"


def _begin(pane: str, width: int) -> str:
    """The time at which a pane begins. Its number may be one of 32 bits, the time never is."""
    return f"CAST({pane} AS BIGINT) * {width}"


def parameters(table: str, number: int) -> tuple[str, str]:
    """The parameters of the T of this number: the first pane of a table that is read, and the one after the last."""
    return f"{table}_{number}_from", f"{table}_{number}_until"

"""A lasting closure between batches: its rows in segments on disk, what is shown of it here.

This is expiration-time maintenance (Barbieri et al., "Incremental Reasoning on Streams and Rich Background Knowledge", section 4), with
the valid windows of CoDeR (Monks et al., "Continuous Deductive Reasoning over Streamed RDF Data"): nothing is ever deleted because a fact
lost a justification, since each knows until when its best one lasts.
"""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from engine.execution.compiled import Compiled
from engine.plan.nodes import Instances, closures
from engine.sql.closing import Closing, Kept, Segment
from engine.sql.dialect import DIALECTS
from engine.sql.fixpoint import NO_TIMES, ClosureText
from engine.sql.instances import first_text, shown_text
from engine.sql.sources import Evaluation
from engine.timeline import evaluation_point

MOST_SEGMENTS = 16
POINTS = ("lo", "hi")
_GROWTH = 1.25


class KeptClosure(ABC):
    """The state of one query whose plan is `Instances`. What is shown of a fact that began before the last T is the one row that lasts
    longest; of what begins later every row."""

    def __init__(self, compiled: Compiled, folder: Path, mark: str) -> None:
        """Its segments go into a folder of its own in `folder`; `mark` tells it from all other closures."""
        assert isinstance(compiled.plan, Instances)
        self.compiled = compiled
        self.source = compiled.plan.source
        self.name = f"{self.source.name}_{mark}"
        self.seen = -1
        self.mark, self._folder = mark, folder / self.name
        self._segments: list[Segment] = []
        self._sizes: dict[Segment, int] = {}
        self._statements: dict[tuple[str, str], tuple[ClosureText, Closing]] = {}
        self._written = 0
        self._kept: Kept | None = None
        self._rows_settled = 0
        self.shown: pa.Table | None = None

    @abstractmethod
    def at(self, ticks: Sequence[int]) -> list[pa.Table]:
        """The answer at each T, from `shown`."""

    def closings(self, executor: str, typed: bool, evaluation: Evaluation, tables: Mapping[str, str]) -> tuple[Closing, ...]:
        """What is to be computed: the closure of the background, and what follows from the events since the last time, which stand in
        `tables` (stream IRI -> name)."""
        point, streams = evaluation_point(evaluation.ticks[0]), self.compiled.statement.windows
        found = []
        for closure in self.compiled.text(executor, typed).closures:
            closing = self._ready(closure, executor)
            if closure.source.lasting:
                self._folder.mkdir(parents=True, exist_ok=True)
                self._kept = self._next(closure, point, evaluation_point(evaluation.ticks[-1]))
                after = max(self.seen, evaluation.since)
                first = first_text(closure, streams, after, point, evaluation.on_change, evaluation.start_at_ms, DIALECTS[executor], tables)
                closing = replace(closing, first=first, kept=self._kept)
            found.append(closing)
        return tuple(found)

    def _ready(self, closure: ClosureText, executor: str) -> Closing:
        """The statements of a closure under the names of this query, written once: those of a background are the same in each evaluation,
        as those of a lasting one are but for what it starts with."""
        assert closure.source.lasting or closure.source.static
        known, closing = self._statements.get((closure.name, executor), (None, None))
        if closing is None or known is not closure:
            closing = closure.ready((NO_TIMES,)).own(self._names(executor), DIALECTS[executor])
            self._statements[closure.name, executor] = closure, closing
        return closing

    def text(self, executor: str) -> str:
        """What is shown of all that was found now."""
        return shown_text(self.source, self.seen < 0, DIALECTS[executor], self._names(executor))

    def _names(self, executor: str) -> dict[str, str]:
        """The names of closures as evaluations of this query use them: in workers those of static graphs are everybody's."""
        own = [closed for closed in closures([self.source]) if executor == "sql" or not closed.static]
        return {closed.name: f"{closed.name}_{self.mark}" for closed in own}

    def answers(self, found: pa.Table, position: int, ticks: Sequence[int]) -> list[pa.Table]:
        """Take what was found up to log position `position`; the answers at the `ticks`."""
        self._adopt_segment()
        self.seen = max(self.seen, position)
        self.shown = found if self.shown is None else pa.concat_tables([self.shown, found.cast(self.shown.schema)])
        self.shown = self.shown.filter(pc.greater_equal(self.shown["hi"], evaluation_point(ticks[0])))
        answers = self.at(ticks)
        self._settle(evaluation_point(ticks[-1]))
        return answers

    def lacks(self, failure: str) -> bool:
        """Whether a failure names one of the segments."""
        return any(segment.path in failure for segment in self._segments)

    def close(self) -> None:
        """Forget the segments."""
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def terms(self) -> list[str]:
        """The columns of `shown` that are terms."""
        assert self.shown is not None
        return [name for name in self.shown.column_names if name not in POINTS]

    def _next(self, closure: ClosureText, point: int, settled: int) -> Kept:
        self._written += 1
        replaced = self._to_merge()
        first = min((segment.first for segment in replaced), default=self._written)
        out = Segment(first, self._written, str(self._folder / f"{first}-{self._written}.parquet"))
        return Kept(tuple(self._segments), out, point, settled, replaced, closure.columns)

    def _to_merge(self) -> tuple[Segment, ...]:
        """Segments that had better be one: the later ones, and the first if they have half of it."""
        if len(self._segments) < MOST_SEGMENTS:
            return ()
        first, *later = (self._sizes[segment] for segment in self._segments)
        return tuple(self._segments[1 if 2 * sum(later) < first else 0:])

    def _adopt_segment(self) -> None:
        """Count the segment that was written; what it replaces goes."""
        assert self._kept is not None
        if Path(self._kept.out.path).exists():
            self._sizes[self._kept.out] = Path(self._kept.out.path).stat().st_size
            for segment in self._kept.replaces:
                del self._sizes[segment]
                Path(segment.path).unlink(missing_ok=True)
            self._segments = [*(segment for segment in self._segments if segment not in self._kept.replaces), self._kept.out]

    def _settle(self, point: int) -> None:
        """Of what began up to `point` the last end of each fact counts: whatever comes begins later."""
        assert self.shown is not None
        if self.shown.num_rows <= self._rows_settled * _GROWTH:
            return
        past = pc.less_equal(self.shown["lo"], point)
        best = self.shown.filter(past).group_by(self.terms, use_threads=False).aggregate([("lo", "min"), ("hi", "max")])
        best = best.rename_columns([*self.terms, *POINTS]).select(self.shown.column_names)
        self.shown = pa.concat_tables([best.cast(self.shown.schema), self.shown.filter(pc.invert(past))]).combine_chunks()
        self._rows_settled = max(self.shown.num_rows, 1_000)

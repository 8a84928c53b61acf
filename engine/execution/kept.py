"""What is kept of the closures of a query between batches: their rows, in segments on disk.

This is expiration-time maintenance (Barbieri et al., "Incremental Reasoning on Streams and Rich Background Knowledge", section 4), with
the valid windows of CoDeR (Monks et al., "Continuous Deductive Reasoning over Streamed RDF Data"): nothing is ever deleted because a fact
lost a justification, since each knows until when its best one lasts.
"""

import itertools
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from engine.execution.compiled import Compiled
from engine.sql.closing import Closing, Kept, Segment
from engine.sql.dialect import DUCKDB
from engine.sql.fixpoint import ClosureText
from engine.sql.sources import Evaluation, source_texts
from engine.timeline import evaluation_point

MOST_SEGMENTS = 16


class KeptClosures:
    """The closures with intervals of one query, which are made of facts up to log position `seen` (-1: they are not made yet)."""

    def __init__(self, compiled: Compiled, folder: Path, mark: str) -> None:
        """Segments go into folders of their own in `folder`; `mark` tells these closures from all others."""
        self.compiled = compiled
        self.seen = -1
        self.mark, self._folder = mark, folder / mark
        self._segments: dict[str, _Segments] = {}
        self._ready: dict[str, tuple[ClosureText, Closing]] = {}
        self.close()    # what a process that died may have left

    @property
    def states(self) -> frozenset[str]:
        """The names of the closures in workers."""
        return frozenset(self._segments)

    def adopt(self, position: int) -> None:
        """What was made has the facts up to a log position: count the segments that were written."""
        self.seen = max(self.seen, position)
        for segments in self._segments.values():
            segments.adopt()

    def lacks(self, failure: str) -> bool:
        """Whether a failure names one of the segments."""
        return any(segments.names(failure) for segments in self._segments.values())

    def close(self) -> None:
        """Forget the segments."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def closing(self, text: ClosureText, evaluation: Evaluation, new: Mapping[str, str]) -> Closing:
        """The closure to be made by a task for some evaluation times: one with intervals from what is new on the streams, which stands in
        tables (stream IRI -> name), another from all there is."""
        streams = self.compiled.statement.windows
        if not text.source.has_intervals:
            return text.ready(source_texts(text.source.base, streams, evaluation, DUCKDB))
        segments = self._segments.setdefault(text.name, _Segments(self._folder / text.name))
        kept = segments.next(text, evaluation_point(evaluation.ticks[0]))
        after = replace(evaluation, since=max(self.seen, evaluation.since))
        prefix = source_texts(text.source.base, streams, after, DUCKDB, new)
        known, closing = self._ready.get(text.name, (None, None))
        if closing is None or known is not text:    # but for what it starts with, its statements are the same in each evaluation
            closing = text.ready(prefix, kept)
            self._ready[text.name] = text, closing
        return replace(closing, first=f"WITH {', '.join(prefix)} {text.base}", kept=kept)


class QueryClosures:
    """The kept closures of queries; their segments go into folders of their own in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._marks = itertools.count(1)
        self._kept: dict[str, KeptClosures] = {}

    def __contains__(self, query: str) -> bool:
        return query in self._kept

    def of(self, query: str, compiled: Compiled) -> KeptClosures:
        """What is kept of the closures of a query in this form, from now on if not yet."""
        kept = self._kept.get(query)
        if kept is None or kept.compiled is not compiled:
            self.drop(query)
            kept = self._kept[query] = KeptClosures(compiled, self._folder, f"k{next(self._marks)}")
        return kept

    def values(self) -> list[KeptClosures]:
        """All of them. Another thread may add some meanwhile."""
        return list(self._kept.values())

    def drop(self, query: str) -> None:
        """Keep nothing of a query any more."""
        if (kept := self._kept.pop(query, None)) is not None:
            kept.close()

    def close(self) -> None:
        """Keep nothing of any."""
        for query in list(self._kept):
            self.drop(query)


class _Segments:
    """The segments of one closure."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._sizes: dict[Segment, int] = {}    # in order
        self._written = 0
        self._kept: Kept | None = None

    def next(self, text: ClosureText, point: int) -> Kept:
        """Where the next evaluation keeps what it finds."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._written += 1
        replaced = self._to_merge()
        first = min((segment.first for segment in replaced), default=self._written)
        out = Segment(first, self._written, str(self._folder / f"{first}-{self._written}.arrow"))
        self._kept = Kept(tuple(self._sizes), out, point, replaced, text.columns)
        return self._kept

    def _to_merge(self) -> tuple[Segment, ...]:
        """Segments that had better be one: the later ones, and the first if they have half of it."""
        if len(self._sizes) < MOST_SEGMENTS:
            return ()
        first, *later = self._sizes.values()
        return tuple(self._sizes)[1 if 2 * sum(later) < first else 0:]

    def adopt(self) -> None:
        """Count the segment that was written; what it replaces goes."""
        assert self._kept is not None
        if Path(self._kept.out.path).exists():
            for segment in self._kept.replaces:
                del self._sizes[segment]
                Path(segment.path).unlink(missing_ok=True)
            self._sizes[self._kept.out] = Path(self._kept.out.path).stat().st_size

    def names(self, failure: str) -> bool:
        """Whether a failure names one of them."""
        return any(segment.path in failure for segment in self._sizes)

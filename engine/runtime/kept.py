"""What the pump keeps of the streams: watermarks and counts, the contents that windows may still see, the last items of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from engine.execution.content import StreamContent
from engine.runtime.needs import Need
from engine.runtime.rows import facts_of
from engine.runtime.streams import StreamState, Tail
from engine.runtime.ticks import Times, query_watermark
from engine.timeline import MAX, MIN


class KeptStreams:
    """By IRI: `states`, `contents` (only of streams that some query reads), `tails`."""

    def __init__(self, tail_items: int, tail_bytes: int = 8 << 20) -> None:
        self.states: dict[str, StreamState] = {}
        self.contents: dict[str, StreamContent] = {}
        self.tails: dict[str, Tail] = {}
        self._tail = tail_items, tail_bytes

    @property
    def idle(self) -> list[str]:
        """The streams that are idle."""
        return [stream for stream, state in self.states.items() if state.idle]

    def state(self, stream: str) -> StreamState:
        return self.states.setdefault(stream, StreamState())

    def content(self, stream: str) -> StreamContent:
        found = self.contents.get(stream)
        if found is None:
            found = self.contents[stream] = StreamContent(stream)
        return found

    def watermark(self, streams: Iterable[str]) -> int:
        """The time up to which a query on these streams may be evaluated."""
        return query_watermark([self.reached(stream) for stream in streams])

    def reached(self, stream: str) -> tuple[int, bool]:
        """The watermark of a stream, and whether it is idle."""
        state = self.states.get(stream)
        return (state.watermark, state.idle) if state else (MIN, False)

    def all_idle(self, streams: Iterable[str]) -> bool:
        """Whether every one of the streams is idle."""
        return all((state := self.states.get(stream)) is not None and state.idle for stream in streams)

    def take(self, stream: str, rows: pa.Table, used: bool) -> Times:
        """Take in items of one stream; where it is `used`, their distinct times in order."""
        state = self.state(stream)
        state.advance(pc.max(rows["watermark"]).as_py())
        state.items += int(pc.sum(pc.equal(rows["row"], 0)).as_py() or 0)
        self.tails.setdefault(stream, Tail(*self._tail)).add(rows)
        facts = facts_of(rows)
        if not used and rows.num_rows:
            state.whole_from = max(state.whole_from, (pc.max(rows["t"]).as_py() or 0) + 1)
        if not used or not facts.num_rows:
            return np.empty(0, np.int64)
        self.content(stream).append(facts)
        return np.unique(facts["t"].to_numpy())

    def make(self, stream: str, facts: pa.Table, items: int, used: bool) -> Times:
        """Take in items of a stream that a query makes; where it is `used`, their distinct times in order."""
        state = self.state(stream)
        state.items += items
        if not used:
            state.whole_from = max(state.whole_from, (pc.max(facts["t"]).as_py() or 0) + 1)
            return np.empty(0, np.int64)
        self.content(stream).append(facts)
        return np.unique(facts["t"].to_numpy())

    def times(self, stream: str, since: int) -> Times:
        """The distinct times of the facts kept of a stream from positions > `since`."""
        if stream not in self.contents:
            return np.empty(0, np.int64)
        return np.unique(self.contents[stream].after(since)["t"].to_numpy())

    def evict(self, needs: Mapping[str, Need]) -> None:
        """Forget what no query needs."""
        for stream, content in self.contents.items():
            horizon = _horizon(content, needs[stream]) if stream in needs else MAX
            if stream in self.states:
                self.states[stream].kept_from = horizon
            content.evict(horizon)

    def recall(self, tables: Iterable[pa.Table], needed: Mapping[str, int]) -> None:
        """Read back items: those of `needed` streams from the given times on into the contents, all into the tails."""
        for table in tables:
            for stream in pc.unique(table["stream"]).to_pylist():
                rows = table.filter(pc.equal(table["stream"], stream))
                self.tails.setdefault(stream, Tail(*self._tail)).add(rows)
                if stream in needed:
                    self.content(stream).append(facts_of(rows.filter(pc.greater_equal(rows["t"], needed[stream]))))

    def refill(self, streams: Sequence[str], tables: Iterable[pa.Table]) -> None:
        """Make the contents of `streams` anew from all their items."""
        for stream in streams:
            self.content(stream).evict(MAX)
        for table in tables:
            for stream in streams:
                self.content(stream).append(facts_of(table.filter(pc.equal(table["stream"], stream))))
        for stream in streams:      # the log may have forgotten what is older
            state = self.state(stream)
            state.whole_from = min((chunk.oldest for chunk in self.content(stream).chunks), default=state.whole_from)

    def to_json(self) -> dict[str, dict[str, Any]]:
        return {stream: state.to_json() for stream, state in self.states.items()}

    def forget(self, stream: str) -> None:
        """A stream was removed. Its content stays as an empty one: what mirrors it goes by its serial numbers."""
        self.states.pop(stream, None)
        self.tails.pop(stream, None)
        self.content(stream).evict(MAX)


def _horizon(content: StreamContent, need: Need) -> int:
    """The time before which nothing of `content` is needed."""
    times = [need.from_ms]
    if need.from_ms > MIN and content.rows:
        times += [content.horizon(need.from_ms, count, unit)
                  for count, unit in ((need.triples, "triples"), (need.items, "items")) if count]
    return min(times)

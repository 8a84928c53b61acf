"""What the pump keeps of the streams: watermarks and counts, the contents that windows may still see, the last items of each."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from engine.arrays import each_once
from engine.execution.content import StreamContent
from engine.runtime.resources import TailEvent
from engine.runtime.rows import facts_of
from engine.runtime.ticks import Need, Times, query_watermark
from engine.timeline import MAX, MIN

_SHOWN = ["position", "t", "g", "s", "p", "o"]
_TAIL_ROWS = 50_000


@dataclass(slots=True)
class StreamState:
    """A stream at the pump. `kept_from`: older events are no longer in its content; MAX where nothing is kept. `whole_from`: of older
    events some came while no query read the stream, and were never in it. Of one that is read from a topic: the `partitions`, as
    `Partition.to_json` has them, the id of the topic, and how many records were `lost`."""

    watermark: int = MIN
    idle: bool = False
    items: int = 0
    late: int = 0
    refused: int = 0
    kept_from: int = MAX
    whole_from: int = MIN
    partitions: Mapping[str, Sequence[int | None]] = field(default_factory=dict)
    topic_id: str | None = None
    lost: int = 0

    def advance(self, watermark: int | None) -> None:
        """A record came: the stream is not idle."""
        self.watermark = max(self.watermark, MIN if watermark is None else watermark)
        self.idle = False

    def sleep(self, watermark: int | None) -> None:
        """It is idle (still, perhaps), and has nothing to bring that is older than `watermark`."""
        self.advance(watermark)
        self.idle = True


class _Part(NamedTuple):
    """Rows of so many items, and their bytes."""

    items: int
    size: int
    rows: pa.Table


class Tail:
    """The last items of a stream; fewer where they are large. `gone` is the position of the last one that is no longer here."""

    def __init__(self, items: int, most_bytes: int = 8 << 20) -> None:
        self._parts: tuple[_Part, ...] = ()
        self._items, self._bytes = items, most_bytes
        self.gone = 0

    @property
    def tables(self) -> list[pa.Table]:
        return [part.rows for part in self._parts]

    def add(self, rows: pa.Table) -> None:
        """Take rows of the log, of this stream's items only, in order."""
        positions = rows["position"].to_numpy()
        if not len(positions):
            return
        items = np.flatnonzero(np.diff(positions, prepend=-1))      # where each begins
        first = max(int(items[-self._items:][0]), len(positions) - _TAIL_ROWS)
        sizes = _sizes(rows.slice(first))
        begin = first + int(np.searchsorted(-np.cumsum(sizes[::-1])[::-1], -self._bytes))
        if begin:
            begin = int(np.searchsorted(positions, positions[begin - 1], side="right"))
            self.gone = int(positions[begin - 1])
        if begin == len(positions):
            self._parts = ()
            return
        kept = rows.select(_SHOWN).slice(begin).take(np.arange(len(positions) - begin))     # a copy: a slice would keep the whole batch
        parts = (*self._parts, _Part(int(np.count_nonzero(items >= begin)), int(sizes[begin - first:].sum()), kept))
        superfluous = len(self._parts) if begin else _superfluous(parts, self._items, self._bytes)
        if superfluous:
            self.gone = max(self.gone, parts[superfluous - 1].rows["position"][-1].as_py())
        self._parts = parts[superfluous:]

    def read(self, limit: int, since: int = 0) -> list[TailEvent]:
        """The last `limit` items with position > `since`, in order."""
        items: dict[int, TailEvent] = {}
        for part in self._parts:
            for position, t, graph, s, p, o in zip(*(part.rows[name].to_pylist() for name in _SHOWN), strict=True):
                if position > since:
                    old = items.get(position)
                    triples = (*(old.triples if old else ()), *(((s, p, o),) if s is not None else ()))
                    items[position] = TailEvent(position, t, graph, triples)
        return [items[position] for position in sorted(items)[-limit:]] if limit else []


def _superfluous(parts: Sequence[_Part], enough: int, most_bytes: int) -> int:
    """How many of the first parts go because those after them are enough, or all that there is room for."""
    items = rows = size = 0
    for place in range(len(parts) - 1, -1, -1):
        own = parts[place]
        size += own.size
        if items >= enough or rows >= _TAIL_ROWS or size > most_bytes and place < len(parts) - 1:
            return place + 1
        items, rows = items + own.items, rows + own.rows.num_rows
    return 0


def _sizes(rows: pa.Table) -> np.typing.NDArray[np.int64]:
    sizes = np.full(rows.num_rows, 2 * 8, np.int64)
    for name in _SHOWN[2:]:
        sizes += pc.fill_null(pc.binary_length(rows[name].cast(pa.string())), 0).to_numpy()
    return sizes


class KeptStreams:
    """By IRI, made where they are first asked for: `states`, `contents` (of streams that some query reads) and `tails`."""

    def __init__(self, tail_items: int, tail_bytes: int = 8 << 20) -> None:
        self.states = defaultdict[str, StreamState](StreamState)
        self.contents = defaultdict[str, StreamContent](StreamContent)
        self.tails = defaultdict[str, Tail](lambda: Tail(tail_items, tail_bytes))

    @property
    def idle(self) -> list[str]:
        return [stream for stream, state in self.states.items() if state.idle]

    def watermark(self, streams: Iterable[str]) -> int:
        """The time up to which a query on these streams may be evaluated."""
        return query_watermark([self.reached(stream) for stream in streams])

    def reached(self, stream: str) -> tuple[int, bool]:
        """The watermark of a stream, and whether it is idle."""
        state = self.states.get(stream)
        return (state.watermark, state.idle) if state else (MIN, False)

    def all_idle(self, streams: Iterable[str]) -> bool:
        return all((state := self.states.get(stream)) is not None and state.idle for stream in streams)

    def take(self, stream: str, rows: pa.Table, used: bool) -> Times:
        """Take in items of one stream; where it is `used`, their distinct times in order."""
        state = self.states[stream]
        state.advance(pc.max(rows["watermark"]).as_py())
        state.items += int(pc.sum(pc.equal(rows["row"], 0)).as_py() or 0)
        self.tails[stream].add(rows)
        return self._keep(stream, rows, used)

    def make(self, stream: str, facts: pa.Table, items: int, used: bool) -> Times:
        self.states[stream].items += items
        return self._keep(stream, facts, used)

    def _keep(self, stream: str, rows: pa.Table, used: bool) -> Times:
        state, facts = self.states[stream], facts_of(rows)
        if not used and rows.num_rows:
            state.whole_from = max(state.whole_from, (pc.max(rows["t"]).as_py() or 0) + 1)
        if not used or not facts.num_rows:
            return np.empty(0, np.int64)
        self.contents[stream].append(facts)
        return each_once(facts["t"].to_numpy())

    def times(self, stream: str, since: int) -> Times:
        """The distinct times (ms, in order) of the facts kept of a stream from log positions > `since`."""
        if stream not in self.contents:
            return np.empty(0, np.int64)
        return each_once(self.contents[stream].after(since)["t"].to_numpy())

    def evict(self, needs: Mapping[str, Need]) -> None:
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
                self.tails[stream].add(rows)
                if stream in needed:
                    self.contents[stream].append(facts_of(rows.filter(pc.greater_equal(rows["t"], needed[stream]))))

    def refill(self, streams: Sequence[str], tables: Iterable[pa.Table]) -> None:
        for stream in streams:
            self.contents[stream].evict(MAX)
        for table in tables:
            for stream in streams:
                self.contents[stream].append(facts_of(table.filter(pc.equal(table["stream"], stream))))
        for stream in streams:      # the log may have forgotten what is older
            state = self.states[stream]
            state.whole_from = min((chunk.oldest for chunk in self.contents[stream].chunks), default=state.whole_from)

    def to_json(self) -> dict[str, dict[str, Any]]:
        return {stream: asdict(state) for stream, state in self.states.items()}

    def forget(self, stream: str) -> None:
        """A stream was removed. Its content stays as an empty one: what mirrors it goes by its serial numbers."""
        self.states.pop(stream, None)
        self.tails.pop(stream, None)
        self.contents[stream].evict(MAX)


def _horizon(content: StreamContent, need: Need) -> int:
    times = [need.from_ms]
    if need.from_ms > MIN and content.rows:
        times += [content.horizon(need.from_ms, count, unit) for count, unit in ((need.triples, "triples"), (need.items, "items")) if count]
    return min(times)

"""The facts of one stream that some window may still see, as Arrow chunks, and what workers are brought of them.

They are resident in workers (engine/worker/resident.py), and mirrored as Parquet segments for Spark (engine/spark/mirror.py); here they are
what another worker is given. So large chunks lie in files of the driver that are mapped, and take none of its memory.
"""

from __future__ import annotations

import itertools
import logging
import secrets
import tempfile
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import replace
from functools import cached_property, lru_cache
from threading import Lock
from weakref import ref

import pyarrow as pa
import pyarrow.compute as pc

from engine.facts import FACTS
from engine.functions.typed import Kind, Kinds
from engine.ir.terms import RDF_TYPE
from engine.plan.nodes import Key
from engine.plan.order import Estimate
from engine.timeline import MAX, MIN
from engine.worker.resident import Followed
from engine.worker.shares import Shares

_NUMBERS = itertools.count(1)
_FILE_ROWS = 8_192      # chunks of so many rows lie in files
_PIECE = 4096   # rows: where the pieces of a batch are greater, they are not made one


class StreamContent:
    """Rows of `FACTS`, appended in log order; `append` and `evict` belong to the pump, everything else only reads. `parts` is how often
    some were appended since it was empty; `token` is another one each time that it was. `kinds` are those of all objects so far, also of
    facts that have gone: so they seldom change."""

    def __init__(self, chunks: tuple[Chunk, ...] = (), kinds: Kinds = frozenset()) -> None:
        """`chunks`, and the kinds so far, are those of another content."""
        self.kinds: Kinds = kinds.union(*(chunk.kinds for chunk in chunks))
        self._hold(chunks)
        self._begin()

    def _hold(self, chunks: tuple[Chunk, ...]) -> None:
        """Hold these, with what every query on the stream asks for: how many rows there are, the time of the oldest, the position of the
        first in the log, and whether some literal's value does not fit the typed columns, so that SQL must not compare by them."""
        self.chunks = chunks
        self.rows: int = sum(chunk.table.num_rows for chunk in chunks)
        self.oldest: int = min((chunk.oldest for chunk in chunks), default=MAX)
        self.first: int = min((chunk.first for chunk in chunks), default=MAX)
        self.hard = any(Kind.HARD in chunk.kinds for chunk in chunks)

    def _begin(self) -> None:
        """What follows has nothing of what was there before."""
        self.token = f"{next(_NUMBERS)}"
        self.parts = 0

    @property
    def items(self) -> int:
        """How many items the facts are of."""
        return sum(len(pc.unique(chunk.table["position"])) for chunk in self.chunks)

    def append(self, table: pa.Table) -> None:
        """Take the facts of a batch; `table` has the columns of FACTS."""
        if table.num_rows:
            self.parts += 1
            table = table.select(FACTS.names)
            pieces = table["position"].num_chunks
            chunk = Chunk(table if pieces * _PIECE < table.num_rows else table.combine_chunks(), self.parts)
            self.chunks, self.kinds, self.rows = (*self.chunks, chunk), self.kinds | chunk.kinds, self.rows + table.num_rows
            self.oldest, self.first = min(self.oldest, chunk.oldest), min(self.first, chunk.first)
            self.hard = self.hard or Kind.HARD in chunk.kinds

    def evict(self, before_ms: int) -> None:
        """Forget facts older than `before_ms`: whole chunks, and parts of a chunk once half of it is dead."""
        kept = []
        for chunk in self.chunks:
            if chunk.newest < before_ms:
                continue
            if chunk.oldest < before_ms:
                alive = pc.greater_equal(chunk.table["t"], before_ms)
                if pc.sum(alive).as_py() * 2 < chunk.table.num_rows:
                    chunk = Chunk(chunk.table.filter(alive), chunk.part)
            kept.append(chunk)
        if tuple(kept) != self.chunks:
            self._hold(tuple(kept))
            if not kept:
                self._begin()

    def added_after(self, part: int) -> pa.Table:
        """What is here of the parts that were appended after part number `part`."""
        parts = [chunk.table for chunk in self.chunks if chunk.part > part]
        return pa.concat_tables(parts) if parts else FACTS.empty_table()

    def horizon(self, before_ms: int, count: int, unit: str) -> int:
        """The oldest time among the last `count` distinct triples, or items, before `before_ms`: what a tuple window needs kept."""
        table = self.between(MIN, before_ms, -1)
        keys = ["t", "s", "p", "o"] if unit == "triples" else ["t"]  # equal items of one time are one item
        times = table.group_by(keys).aggregate([]).column("t").sort(order="descending")
        return times[min(count, len(times)) - 1].as_py() if len(times) else before_ms

    def between(self, low_ms: int, high_ms: int, since: int) -> pa.Table:
        """Facts with ``low <= t < high`` and position > since."""
        parts = []
        for chunk in self.chunks:
            if chunk.newest < low_ms or chunk.oldest >= high_ms or chunk.last <= since:
                continue
            table = chunk.table
            if chunk.oldest < low_ms or chunk.newest >= high_ms or chunk.first <= since:
                table = table.filter(pc.and_(_inside(table, low_ms, high_ms), pc.greater(table["position"], since)))
            parts.append(table)
        return pa.concat_tables(parts) if parts else FACTS.empty_table()

    def overlapping(self, low_ms: int, high_ms: int) -> StreamContent:
        """The chunks with facts of ``low <= t < high``, as a content of its own."""
        found = StreamContent(tuple(chunk for chunk in self.chunks if chunk.newest >= low_ms and chunk.oldest < high_ms), self.kinds)
        found.parts = max((chunk.part for chunk in found.chunks), default=0)
        return found

    def count_between(self, low_ms: int, high_ms: int) -> int:
        """How many facts have ``low <= t < high``."""
        found = 0
        for chunk in self.chunks:
            if low_ms <= chunk.oldest and chunk.newest < high_ms:
                found += chunk.table.num_rows
            elif chunk.newest >= low_ms and chunk.oldest < high_ms:
                found += pc.sum(_inside(chunk.table, low_ms, high_ms)).as_py()
        return found

    def after(self, position: int) -> pa.Table:
        """Facts of later positions: what an incremental plan has not seen."""
        return self.between(MIN, MAX, position)

    def estimate(self) -> Estimate:
        """Live counts for the join order."""
        return merge_estimates(chunk.estimate for chunk in self.chunks)

    def mentions(self, words: frozenset[str]) -> bool:
        """Whether some of these properties, or of these classes as types, occur."""
        estimates = [chunk.estimate for chunk in self.chunks]
        return any(not words.isdisjoint(e.predicates) or not words.isdisjoint(e.classes) for e in estimates)

    def count(self, properties: frozenset[str]) -> int:
        """How many facts have one of some properties."""
        found = [chunk.estimate.predicates for chunk in self.chunks]
        return sum(counts[property_] for counts in found for property_ in properties & counts.keys())


class Chunk:
    """An immutable part of a stream's content with its bounds; `part` is the number of the append that it came with. No other has its
    `serial` number, of whatever content."""

    def __init__(self, table: pa.Table, part: int = 0) -> None:
        self.serial, self.part = next(_NUMBERS), part
        self.table = table = mapped(table) if table.num_rows >= _FILE_ROWS else table
        times, positions = pc.min_max(table["t"]).as_py(), pc.min_max(table["position"]).as_py()
        self.oldest, self.newest = times["min"], times["max"]
        self.first, self.last = positions["min"], positions["max"]
        self.kinds: Kinds = frozenset(pc.unique(table["kind"]).to_pylist())

    @cached_property
    def estimate(self) -> Estimate:
        return table_estimate(self.table)


def _inside(table: pa.Table, low_ms: int, high_ms: int) -> pa.ChunkedArray:
    """Which facts have ``low <= t < high``."""
    return pc.and_(pc.greater_equal(table["t"], low_ms), pc.less(table["t"], high_ms))


def mapped(table: pa.Table) -> pa.Table:
    """The same rows in a file that is mapped; the table itself where the disk is full. The file has no name any more, and no descriptor
    stays open: it goes with the table."""
    try:
        with tempfile.NamedTemporaryFile(prefix="thalweg-") as file:
            with pa.ipc.new_file(file, table.schema) as writer:
                writer.write_table(table)
            file.flush()
            with pa.memory_map(file.name) as source:
                return pa.ipc.open_file(source).read_all()
    except OSError as failure:
        logging.getLogger(__name__).warning("%d facts stay in memory: %s", table.num_rows, failure)
        return table


def table_estimate(table: pa.Table) -> Estimate:
    """Counts of a table's triples per predicate and per class."""
    classes = table.filter(pc.equal(table["p"], RDF_TYPE))["o"]
    return Estimate(table.num_rows, _counts(table["p"]), _counts(classes))


def merge_estimates(estimates: Iterable[Estimate]) -> Estimate:
    total, predicates, classes = 0, Counter[str](), Counter[str]()
    for estimate in estimates:
        total += estimate.total
        predicates.update(estimate.predicates)
        classes.update(estimate.classes)
    return Estimate(total, predicates, classes)


def _counts(column: pa.ChunkedArray) -> dict[str, int]:
    return {row["values"]: row["counts"] for row in pc.value_counts(column).to_pylist()}


class Following:
    """What each shard's worker has been brought, by the name of the table there. A hint only: a worker that lacks a part raises Behind, and
    is brought all of it."""

    def __init__(self, shards: int = 1) -> None:
        """Workers are those of so many `shards`."""
        self._shares = Shares(shards) if shards > 1 else None
        self._shards = shards
        self._brought: dict[str, tuple[str, tuple[int, ...]]] = {}
        self._graphs: dict[str, tuple[ref[pa.Table], str]] = {}
        self._versions = 0
        self._token = secrets.token_hex(4)      # workers may outlive an executor
        self._used: dict[str, frozenset[str]] = {}

    def stream(self, name: str, content: StreamContent, key: Key = "", by_object: frozenset[str] = frozenset()) -> Followed:
        """The table of a stream, which is shared out by its key, or, of properties `by_object`, by object (ValiditySource)."""
        rows = content.count(by_object) if by_object else content.rows
        return self._shared_out(Followed(content.token, self._known(name, content.token), content.parts, rows, content.added_after,
                                         content.oldest), key, by_object)

    def lacking(self, name: str, content: StreamContent) -> int:
        """How many rows of a stream the first shard's worker has not been brought."""
        known, *_ = self._known(name, content.token)
        return sum(chunk.table.num_rows for chunk in content.chunks if chunk.part > known)

    def graph(self, name: str, table: pa.Table, key: Key = "") -> Followed:
        """The table of a static graph, which is shared out by its key: another version is another content."""
        known = self._graphs.get(name)
        if known is None or known[0]() is not table:
            self._versions += 1
            known = self._graphs[name] = ref(table), f"{self._token}-{self._versions}"
        return self._shared_out(self._whole(name, known[1], table), key)

    def constants(self, name: str, table: pa.Table) -> Followed:
        """A table that its name tells from all others."""
        return self._whole(name, name, table)

    def _whole(self, name: str, token: str, table: pa.Table) -> Followed:
        return Followed(token, self._known(name, token), 1, table.num_rows, lambda part: table.slice(0, 0) if part else table)

    def _shared_out(self, table: Followed, key: Key, by_object: frozenset[str] = frozenset()) -> Followed:
        shares = self._shares
        if not key or shares is None:
            return table
        parts = lru_cache(maxsize=2)(lambda part: shares.of(table.after(part), key, by_object))     # new rows, and all of them
        lock = Lock()

        def share(part: int, shard: int) -> pa.Table:
            with lock:      # bundles of several shards are made side by side
                return parts(part)[shard]

        return replace(table, rows=table.rows // shares.shards, share=share)

    def _known(self, name: str, token: str) -> tuple[int, ...]:
        """The last part of a content that each shard's worker was brought."""
        before, upto = self._brought.get(name, ("", ()))
        return upto if before == token else (0,) * self._shards

    def use(self, query: str, names: frozenset[str]) -> None:
        """A query reads these tables."""
        self._used[query] = names

    @property
    def used(self) -> frozenset[str]:
        """The tables that some query reads."""
        return frozenset().union(*list(self._used.values()))

    def brought(self, name: str, table: Followed, shards: Collection[int]) -> None:
        """The workers of some shards have a table now."""
        known = self._known(name, table.token)
        self._brought[name] = table.token, tuple(table.upto if shard in shards else upto for shard, upto in enumerate(known))

    def forget(self, query: str) -> None:
        self._used.pop(query, None)
        for name in self._brought.keys() - self.used:
            del self._brought[name]
            self._graphs.pop(name, None)

    def close(self) -> None:
        if self._shares is not None:
            self._shares.close()

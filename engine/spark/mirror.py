"""Large contents in Spark: each chunk of a stream's content as a Parquet segment, sorted by predicate, read by a temporary view.

Segments are files, not cached frames: writing one costs milliseconds, dropping one nothing, and many small cached frames are the
enemy (docs/decisions.md, "State and incremental answers"). Young segments are merged into one when they become many. On a cluster
the folder must be one that every executor sees. A segment that is gone or cannot be read is an error that names it; it is never taken
for one without rows.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from engine.execution.content import Chunk, StreamContent
from engine.facts import FACTS
from engine.worker.closures import SegmentLost

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOST_SEGMENTS = 24
MERGED_ROWS = 200_000
ROW_GROUP = 32_768
SCHEMA = "position long, t long, g string, s string, p string, o string, kind tinyint, number double, micros long"


class Mirror:
    """The segments of one stream behind the view `view`."""

    def __init__(self, view: str, folder: Path) -> None:
        self.view = view
        self.folder = folder
        self._segments: dict[tuple[int, ...], Path] = {}
        self._sizes: dict[Path, int] = {}
        self._shown: tuple[Path, ...] | None = None
        self._names = itertools.count()
        folder.mkdir(parents=True, exist_ok=True)

    def show(self, spark: SparkSession, content: StreamContent) -> None:
        """Bring the view up to date with the content: new chunks are written, gone ones deleted, many young ones merged. Raises SegmentLost
        where one is not as it was written."""
        chunks = {chunk.serial: chunk for chunk in content.chunks}
        for serials in [s for s in self._segments if not set(s) & set(chunks)]:
            self._drop(serials)
        self._check()
        covered = {serial for serials in self._segments for serial in serials}
        fresh = [chunk for serial, chunk in chunks.items() if serial not in covered]
        if fresh:
            self._write(fresh)
        if len(self._segments) > MOST_SEGMENTS:
            self._merge(chunks)
        paths = tuple(self._segments.values())
        if paths != self._shown:
            frame = spark.read.schema(SCHEMA).parquet(*map(str, paths)) if paths else spark.createDataFrame(FACTS.empty_table())
            frame.createOrReplaceTempView(self.view)
            self._shown = paths

    def _check(self) -> None:
        """Spark takes a file of no length for one without rows, and says nothing."""
        for path, written in self._sizes.items():
            try:
                size = path.stat().st_size
                if size != written:
                    raise OSError(f"it has {size} bytes instead of {written}")
            except OSError as failure:
                raise SegmentLost(str(path), failure) from failure

    def mend(self, failures: str) -> bool:
        """Forget the segments that `failures` name, so that they are written again when they are next shown; whether there were any.
        Nothing may read them meanwhile."""
        lost = [serials for serials, path in self._segments.items() if path.name in failures]
        for serials in lost:
            self._drop(serials)
        return bool(lost)

    def _drop(self, serials: tuple[int, ...]) -> None:
        path = self._segments.pop(serials)
        del self._sizes[path]
        path.unlink(missing_ok=True)

    def close(self) -> None:
        for serials in list(self._segments):
            self._drop(serials)

    def _write(self, chunks: list[Chunk]) -> None:
        table = pa.concat_tables(chunk.table for chunk in chunks).sort_by([("p", "ascending")])
        path = self.folder / f"{self.view}-{next(self._names)}.parquet"
        pq.write_table(table, path, row_group_size=ROW_GROUP, compression="lz4", use_dictionary=["g", "p"])
        self._segments[tuple(chunk.serial for chunk in chunks)] = path
        self._sizes[path] = path.stat().st_size

    def _merge(self, chunks: dict[int, Chunk]) -> None:
        """One segment of the youngest, up to MERGED_ROWS, so that old ones still expire whole."""
        young: list[tuple[int, ...]] = []
        rows = 0
        for serials in reversed(self._segments):
            rows += sum(chunks[s].table.num_rows for s in serials if s in chunks)
            if rows > MERGED_ROWS and len(young) > 1:
                break
            young.append(serials)
        merged = [chunks[s] for serials in reversed(young) for s in serials if s in chunks]
        for serials in young:
            self._drop(serials)
        self._write(merged)

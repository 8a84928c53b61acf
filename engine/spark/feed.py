"""The input log through Structured Streaming: ``readStream`` over the log's folder, ``foreachBatch``, one Arrow table per batch.

A batch costs about 100 ms of processor time whatever it holds. So the callback keeps it open: what is written meanwhile the pump reads
itself, as soon as it is there, and the next batch comes after `open_s` seconds.

The checkpoint is disposable (positions in the result log make that safe): a new folder at each start and every `rotate_files` files,
because the source never forgets a file name. Rows come in any order, and again after a restart; the callback sorts that out.
"""

import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.query import StreamingQuery

from engine.supervision import Worker

OnBatch = Callable[[Callable[[], pa.Table] | None], None]


@dataclass(frozen=True, slots=True)
class FeedSettings:
    """`folder` of Parquet files with `schema`; `poll_ms` between two looks at it when nothing came."""

    folder: Path
    checkpoints: Path
    schema: pa.Schema
    poll_ms: int = 25
    rotate_files: int = 15_000
    most_files: int = 2_000
    open_s: float = 300.0
    look_s: float = 1.0     # so long what was written may wait where nobody was woken


class Feed:
    """One streaming query after another over the same folder. `on_batch` runs in a thread of Py4J's."""

    def __init__(self, spark: SparkSession, settings: FeedSettings, on_batch: OnBatch, on_failure: Callable[[BaseException], None]) -> None:
        """`on_batch` is told of each batch, and reads it if it wants to; and, without a batch, that files may have been written."""
        self._spark, self._settings = spark, settings
        self._on_batch, self._on_failure = on_batch, on_failure
        self._stopping = threading.Event()
        self._woken = threading.Event()
        self._generation = 0
        self._files_seen = 0
        self._query: StreamingQuery | None = None
        self.worker = Worker("feed", self._run, on_failure, most=0)

    def start(self) -> None:
        """Start the first query; returns when it runs."""
        shutil.rmtree(self._settings.checkpoints, ignore_errors=True)
        self._spark.conf.set("spark.sql.streaming.pollingDelay", str(self._settings.poll_ms))
        self._spark.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "false")
        self._query = self._launch()
        self.worker.start()

    def stop(self) -> None:
        """Stop after the batch that runs."""
        self._stopping.set()
        self._woken.set()
        try:
            if self._query is not None:
                self._query.stop()
        finally:
            self.worker.join(30)

    def _launch(self) -> StreamingQuery:
        """The log's files are merged and go while the source still lists them: what is gone, the pump reads from the log itself. That
        holds for this source alone: a segment that is gone fails what reads it (mirror.py)."""
        self._generation += 1
        checkpoint = self._settings.checkpoints / str(self._generation)
        source = (self._spark.readStream.schema(from_arrow_schema(self._settings.schema))
                  .option("ignoreMissingFiles", "true").option("maxFilesPerTrigger", str(self._settings.most_files))
                  .parquet(str(self._settings.folder)))
        return source.writeStream.foreachBatch(self._batch).option("checkpointLocation", str(checkpoint)).start()

    def _batch(self, frame: DataFrame, number: int) -> None:
        if self._stopping.is_set():     # begun before Spark knew; nothing is lost, since the checkpoint is not used again
            return
        try:
            self._woken.clear()
            self._on_batch(frame.toArrow)
            until = time.monotonic() + self._settings.open_s
            while not self._over and (left := until - time.monotonic()) > 0:
                self._woken.wait(min(left, self._settings.look_s))
                self._woken.clear()
                if not self._over:
                    self._on_batch(None)
        except BaseException as failure:  # SystemExit too: it would leave the query active and stop() hanging
            raise RuntimeError(f"batch {number}: {failure!r}") from failure

    def _run(self) -> None:
        """Watch the query: report its end, and begin a new checkpoint when the old one has seen enough files."""
        while not self._stopping.is_set():
            query = self._query
            assert query is not None
            try:
                ended = query.awaitTermination(2)
                if not ended and not self._over:
                    continue
                if self._stopping.is_set():
                    return
                if ended:
                    self._on_failure(query.exception() or RuntimeError("the streaming query ended by itself"))
                    return
                query.stop()
                self._files_seen = 0
                self._query = self._launch()
                shutil.rmtree(self._settings.checkpoints / str(self._generation - 1), ignore_errors=True)
            except Exception as failure:  # the query's own, or Py4J's when the JVM is gone: they have no common base
                if not self._stopping.is_set():
                    self._on_failure(failure)
                return

    def wake(self) -> None:
        """Told by whoever writes: there are files that should not wait."""
        self._woken.set()

    def seen(self, files: int) -> None:
        """Told by whoever tidies the folder: how many files it removed, none of which the query's checkpoint forgets."""
        self._files_seen += files
        self._woken.set()

    @property
    def _over(self) -> bool:
        """Whether the query is to end after this batch."""
        return self._stopping.is_set() or self._files_seen >= self._settings.rotate_files

"""The limits of a task, kept in the worker that runs it: time by an interrupt, the size of the answer while it is read. Loops in Python,
which no interrupt of DuckDB ends, ask for their time.

What neither ends (one call of a function over a huge value, the planning of a text) is ended by a signal some seconds later, and the
worker with it: its tasks are then run again, each alone (jobs.py).
"""

from __future__ import annotations

import os
import re
import resource
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa

from engine.limits import EvaluationLimits, LimitExceeded, Postponed
from engine.supervision import deadline

if TYPE_CHECKING:
    import duckdb

MEMORY_VARIABLE = "THALWEG_WORKER_MEMORY"
DEFAULT_MEMORY = "2GB"
GRACE_S = 5.0
PATIENT_GRACE_S = 2.0   # of an evaluation that others wait for
BATCH_ROWS = 50_000
# The copy is 2 ms of 270,000 rows; a relation (`connection.sql`) is planned twice, a quarter of a small one's cost.
warnings.filterwarnings("ignore", "Arrow output on a DB-API result", UserWarning)
# Of a function; and of a streamed answer, whose failures come by Arrow, as an OSError.
_TOO_LITTLE = re.compile(r"^Out of Memory Error: |(?:executing the UDF: |\n)(?:Arrow)?MemoryError\b")
_ends_at: dict[int, float] = {}     # by thread
_ends_lock = threading.Lock()


def end_at(moment: float | None = None) -> None:
    """Let the task of this thread have time up to a moment of the monotonic clock, in seconds; None: it is done."""
    with _ends_lock:
        if moment is None:
            _ends_at.pop(threading.get_ident(), None)
        else:
            _ends_at[threading.get_ident()] = moment


def end_all() -> None:
    """Let the tasks of all threads have no more time. From any thread."""
    with _ends_lock:
        for thread in _ends_at:
            _ends_at[thread] = min(_ends_at[thread], time.monotonic())


def check_time() -> None:
    """Raise TimeoutError where the time of the task at hand is over; in a thread of DuckDB's, which works for any task, where that of all
    is."""
    moment = _ends_at.get(threading.get_ident())
    if moment is None:
        moment = max(list(_ends_at.values()), default=float("inf"))
    if time.monotonic() > moment:
        raise TimeoutError("the time of the task is over")


@contextmanager
def guarded(connection: duckdb.DuckDBPyConnection, limits: EvaluationLimits, patience_ms: int | None = None) -> Iterator[None]:
    """Run a task for at most its time. Raises LimitExceeded where that, or the memory of the worker, was not enough; Postponed where
    the patience of others (ms) was over before."""
    hurried = patience_ms is not None and patience_ms < limits.evaluation_ms
    seconds = (patience_ms if hurried and patience_ms is not None else limits.evaluation_ms) / 1000
    ends_at = time.monotonic() + seconds
    end_at(ends_at)
    with deadline(seconds, connection.interrupt):
        if in_task := "pyspark.worker" in sys.modules and threading.current_thread() is threading.main_thread():
            signal.setitimer(signal.ITIMER_REAL, seconds + (PATIENT_GRACE_S if hurried else GRACE_S))
        try:
            yield
            if time.monotonic() > ends_at:
                raise TimeoutError
        except Exception as failure:
            if time.monotonic() > ends_at and hurried:
                raise Postponed(f"it was not done within {patience_ms} ms") from failure
            if time.monotonic() > ends_at:
                raise LimitExceeded.of("evaluation_ms", limits.evaluation_ms, "the evaluation took longer") from failure
            if (over := out_of_memory(failure)) is not None:
                raise over from failure
            raise
        finally:
            if in_task:
                signal.setitimer(signal.ITIMER_REAL, 0)
            end_at()


def end_overdue() -> None:
    """End the process where a task in another thread goes on long after its time, as the signal of `guarded` does in the main one."""
    if any(time.monotonic() > moment + GRACE_S for moment in list(_ends_at.values())):
        signal.raise_signal(signal.SIGALRM)


def out_of_memory(failure: Exception) -> LimitExceeded | None:
    """The error of an evaluation with too little memory (of DuckDB, Python, or a function which one of DuckDB or Spark called): what was
    asked for, without DuckDB's advice on settings that are locked here. None for any other failure."""
    if not (isinstance(failure, MemoryError) or type(failure).__name__ == "OutOfMemoryException" or _TOO_LITTLE.search(str(failure))):
        return None
    found = re.search(r"[^:\n]*\([^()]* used\)", str(failure))
    return LimitExceeded("worker_memory", "the evaluation needs more memory than a worker has"
                         f"{': ' + found[0].strip() if found else ''}; the limit workerMemory is set by THALWEG_WORKER_MEMORY")


def fetched(connection: duckdb.DuckDBPyConnection, text: str | duckdb.Statement, given: Mapping[str, int],
            limits: EvaluationLimits) -> pa.Table:
    """The answer of a plan text with the parameters `given`, read only as long as it is within its limits. A text is streamed. Of a parsed
    statement DuckDB makes all rows first, which its memory limit does not count: it needs a LIMIT of its own."""
    if isinstance(text, str):
        reader = streamed(connection, text, given)
    else:
        reader = connection.execute(text, given or None).to_arrow_reader(BATCH_ROWS)
    batches, rows, size = [], 0, 0
    try:
        for batch in reader:
            rows += batch.num_rows
            size += batch.nbytes
            check_size(rows, size, limits)
            check_time()
            batches.append(batch)
    finally:
        reader.close()      # else the connection could run nothing else
    return pa.Table.from_batches(batches, reader.schema)


def streamed(connection: duckdb.DuckDBPyConnection, text: str, given: Mapping[str, int] | None = None,
             rows: int = BATCH_ROWS) -> pa.RecordBatchReader:
    """The rows of a query as they are made, so many at a time. Until the reader is closed the connection can run nothing else."""
    reader: pa.RecordBatchReader | None = connection._submit(text, dict(given) if given else None, "stream", rows).arrow_reader()
    assert reader is not None, "a query gives rows"
    return reader


def given_memory() -> str:
    """The memory of a database ("2GB"), as the environment has it; in Spark's workers it is a setting of Spark's (settings.py)."""
    return os.environ.get(MEMORY_VARIABLE, DEFAULT_MEMORY)


def memory_bytes(memory: str | None = None) -> int:
    """A size in bytes, by default that of `given_memory`."""
    text = memory or given_memory()
    number, unit = re.fullmatch(r"\s*([0-9.]+)\s*([kKmMgGtT]?)(?:i?[bB])?\s*", text).groups()  # type: ignore[union-attr]
    return int(float(number) * 1024 ** (" kmgt".index(unit.lower() or " ")))


def bound_process() -> None:
    """Let this process and its children have no more data than twice the memory of DuckDB and 2 GiB more, so that one that wants more
    fails before the machine does."""
    most = 2 * memory_bytes() + 2 * 1024**3
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (most, hard))


def check_size(rows: int, size: int, limits: EvaluationLimits) -> None:
    """Raise LimitExceeded where an answer has too many rows or bytes."""
    if rows > limits.evaluation_rows:
        raise LimitExceeded.of("evaluation_rows", limits.evaluation_rows, f"the answer has {rows} rows or more")
    if size > limits.evaluation_bytes:
        raise LimitExceeded.of("evaluation_bytes", limits.evaluation_bytes, f"the answer has {size} bytes or more")

"""Tasks that run in this process, one after another: what is small is done before a JVM would have started."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from engine.limits import Cancelled
from engine.processors import processors
from engine.worker.bundles import Found, Tables, Task, run_bundles, run_in_shards
from engine.worker.database import close, connect, interrupt
from engine.worker.guard import GRACE_S, end_all, given_memory, memory_bytes

_LOOK_S = 0.1


class OwnProcess:
    """Runs tasks in a database of its own, which nobody else sees, on all cores; in one for each of several shards, one after another.
    `work` is a folder for what is kept. From any thread: tasks of several wait for each other."""

    def __init__(self, work: Path, threads: int | None = None, shards: int = 1) -> None:
        self.work, self.memory, self.shards, self._threads = work, memory_bytes(), shards, threads
        self._beside: list[OwnProcess] = []
        self._connections = [connect(given_memory(), threads or processors()) for _ in range(shards)]
        self._told: dict[int, frozenset[str] | None] = {}
        self._running: frozenset[str] = frozenset()
        self._cancelled: set[str] = set()
        self._stuck = False
        self._lock = threading.Lock()
        self._ending = threading.Lock()     # so that an interrupt ends what it is meant for

    def run(self, tasks: Sequence[Task], tables: Tables, alive: frozenset[str] | None, *,
            may_stay: bool = False) -> list[Found | Exception]:
        """What the tasks give, as Spark's workers give it; there is one process. A signal, which only the main thread is told of, ends
        them."""
        if threading.current_thread() is not threading.main_thread():
            return self._answers(tasks, tables, alive)
        future = Future[list[Found | Exception]]()
        thread = threading.Thread(target=self._work, args=(future, tasks, tables, alive), name="tasks", daemon=True)
        thread.start()
        try:
            return future.result()
        finally:
            if not future.done():
                self._end(future)
            if future.done():
                thread.join()   # where its frames hold something of DuckDB when the process ends, that is told on standard error

    def _work(self, future: Future[list[Found | Exception]], *given: Any) -> None:
        try:
            future.set_result(self._answers(*given))
        except BaseException as failure:    # whoever waits is told
            future.set_exception(failure)

    def _end(self, future: Future[list[Found | Exception]]) -> None:
        """End what runs, again and again: an interrupt between two statements ends nothing."""
        until = time.monotonic() + GRACE_S
        while not future.done() and time.monotonic() < until:
            self._interrupt()
            end_all()
            wait([future], _LOOK_S)
        self._stuck = not future.done()

    def _answers(self, tasks: Sequence[Task], tables: Tables, alive: frozenset[str] | None) -> list[Found | Exception]:
        while True:
            cancelled = frozenset(self._cancelled)      # one that is forgotten meanwhile was so all the same
            left = [task for task in tasks if not task.is_of(cancelled)]
            found = iter(self._run(left, tables, alive) if left or not tasks else [])
            if not any(task.is_of(self._cancelled) for task in left):
                return [Cancelled("its query is removed") if task.is_of(cancelled) else next(found) for task in tasks]

    def _run(self, tasks: Sequence[Task], tables: Tables, alive: frozenset[str] | None) -> list[Found | Exception]:
        with self._lock:
            self._note({query for task in tasks for query in (task.query, *task.beside)})
            try:
                if self._running & self._cancelled:     # since they were chosen
                    return []
                return run_in_shards(tasks, tables, self.shards, alive, self._told, lambda bundles: (
                    result for shard, bundle in bundles.items() for result in run_bundles([bundle()], self._connections[shard])))
            except Exception:   # an interrupt may come before or behind a task, too
                if self._running & self._cancelled:
                    return []
                raise
            finally:
                self._note(())

    def _note(self, queries: Collection[str]) -> None:
        with self._ending:
            self._running = frozenset(queries)

    def cancel(self, query: str) -> None:
        """End the tasks of a query; what runs beside it is run again. It runs no more until it is forgotten. From any thread."""
        self._cancelled.add(query)
        for one in (self, *self._beside):
            with one._ending:
                if query in one._running:
                    one._interrupt()

    def _interrupt(self) -> None:
        for connection in self._connections:
            interrupt(connection)

    def forget(self, query: str) -> None:
        self._cancelled.discard(query)

    def beside(self) -> OwnProcess:
        """Databases of their own, for tasks of other threads; to cancel and forget a query is for both."""
        other = OwnProcess(self.work, self._threads, self.shards)
        other._cancelled = self._cancelled
        self._beside.append(other)
        return other

    def close(self) -> None:
        """Drop the database, unless something runs in it that no interrupt ends."""
        for other in self._beside:
            other.close()
        if not self._stuck:
            for connection in self._connections:
                close(connection)


@contextmanager
def own_process(threads: int | None = None, shards: int = 1) -> Iterator[OwnProcess]:
    """Such a runner, on so many threads (None: on all cores), with a folder that is removed in the end."""
    with tempfile.TemporaryDirectory(prefix="thalweg-") as folder:
        tasks = OwnProcess(Path(folder), threads, shards)
        try:
            yield tasks
        finally:
            tasks.close()

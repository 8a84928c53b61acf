"""An evaluator without Spark for tests of the engine's life: the reference executor, and a feed that reads the log's folder itself."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import pyarrow as pa

from engine.compiler import Catalog, compile_statement
from engine.execution.compiled import Compiled
from engine.execution.due import Answer, Due
from engine.ir.statement import Statement
from engine.ir.windows import with_rule_windows
from engine.rewrite.validate import validate
from engine.runtime.log import LogFile, LogFolder
from engine.runtime.rows import in_order
from engine.runtime.settings import Settings
from engine.supervision import Worker
from tests.unit.runtime.reference_executor import ReferenceCompiled, ReferenceExecutor

OnBatch = Callable[[Callable[[], pa.Table] | None], None]


class MemoryBackend:
    """`down` makes every evaluation fail as if Spark were gone; while it is `halted` it does not answer, and evaluations hang. The feed
    stands still while `fed` is not set; `reads` are the batches that were read from it. `starts` counts the starts, of which the next
    `refusals` fail; they wait for `starting`."""

    def __init__(self, settings: Settings) -> None:
        self.executor = _Halting(threading.Event(), set(), {}, settings.states_folder)
        self.down = False
        self.halted, self.starting = threading.Event(), threading.Event()
        self.starting.set()
        self.starts = self.refusals = 0
        self.fed, self.reads = threading.Event(), 0
        self.fed.set()
        self._settings = settings
        self._folder: LogFolder | None = None
        self.die: Callable[[BaseException], None] = lambda failure: None

    def start(self, say: Callable[[str], None], on_death: Callable[[BaseException], None]) -> ReferenceExecutor:
        assert self.starting.wait(10)
        self.starts += 1
        self._folder = self._folder or LogFolder(self._settings.log_folder, self._settings.archive_folder)    # before anything is written
        if self.refusals:
            self.refusals -= 1
            raise RuntimeError("it does not start")
        self.die = on_death
        self.halted.clear()
        self.executor = _Halting(self.halted, self.executor.failing, self.executor.deadly, self._settings.states_folder)
        return self.executor

    def warm_up(self, say: Callable[[str], None]) -> None:
        """Nothing is slow here."""

    def compile(self, statement: Statement, name: str, catalog: Catalog) -> Compiled:
        if statement.is_timed:      # these are evaluated as in a worker
            return compile_statement(statement, catalog, name)
        statement = validate(with_rule_windows(statement, catalog.rules), catalog)
        return ReferenceCompiled.of(statement, name, catalog.graphs, catalog.rules)

    def feed(self, on_batch: OnBatch, on_failure: Callable[[BaseException], None]) -> FolderFeed:
        def told(read: Callable[[], pa.Table] | None) -> None:
            self.fed.wait(10)
            on_batch(None if read is None else lambda: self._read(read))

        assert self._folder is not None
        return FolderFeed(self._folder, told, on_failure)

    def _read(self, read: Callable[[], pa.Table]) -> pa.Table:
        self.reads += 1
        return read()

    def one_shot(self, due: Due, timeout_s: float) -> Answer:
        return ReferenceExecutor().evaluate([due])[0]

    def beside(self) -> None:
        """Every batch waits for all queries."""

    def alive(self) -> bool:
        return not self.down and not self.halted.is_set()

    def lacks(self) -> str:
        return ""

    def describe(self) -> Mapping[str, object]:
        return {}

    def stop(self) -> None:
        """What hangs is ended."""
        self.executor.ended.set()


class _Halting(ReferenceExecutor):
    """Hangs while it is halted, until it is ended. `deadly` has by epoch the evaluation time from which on one ends the evaluator."""

    def __init__(self, halted: threading.Event, failing: set[str], deadly: dict[str, int], states: Path | None) -> None:
        super().__init__(states)
        self.failing, self.deadly, self.ended, self._halted = failing, deadly, threading.Event(), halted

    def evaluate(self, dues: Sequence[Due]) -> list[Answer]:
        if self._halted.is_set():
            self.ended.wait(10)
            raise RuntimeError("the evaluator was ended")
        if any(due.query in self.deadly and due.ticks[-1] >= self.deadly[due.query] for due in dues):
            self._halted.set()
            return [Answer(due.query, tick, None, ConnectionResetError("the JVM has died")) for due in dues for tick in due.ticks]
        return super().evaluate(dues)


class FolderFeed:
    """Looks at the folder every few milliseconds, as Structured Streaming does; what comes in a batch after its first file is not read."""

    def __init__(self, folder: LogFolder, on_batch: OnBatch, on_failure: Callable[[BaseException], None]) -> None:
        self._folder, self._on_batch, self._on_failure = folder, on_batch, on_failure
        self._stopping = threading.Event()
        self.worker = Worker("feed", self._run, on_failure, most=0)

    def start(self) -> None:
        self.worker.start()

    def stop(self) -> None:
        self._stopping.set()
        self.worker.join()

    def wake(self) -> None:
        """It looks all the time."""

    def seen(self, files: int) -> None:
        """No checkpoint grows here."""

    def _run(self) -> None:
        after = 0
        while not self._stopping.wait(0.002):
            try:
                for number, file in enumerate(self._folder.waiting(after)):
                    self._on_batch(None if number else partial(_rows, file))
                    after = file.last
            except FileNotFoundError:
                continue  # merged into the archive, or set aside, while the folder was listed
            except Exception as failure:
                self._on_failure(failure)
                return


def _rows(file: LogFile) -> pa.Table:
    return in_order(file.read())

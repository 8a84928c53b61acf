"""What evaluates: Spark with its session, executor and feed, behind an interface that tests fill with something smaller."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import pyarrow as pa

from engine.compiler import Catalog, compile_statement
from engine.ir.statement import Statement
from engine.runtime.pump import Executor
from engine.runtime.query import Compiled
from engine.runtime.rows import ROWS
from engine.runtime.settings import Settings
from engine.spark.executor import Answer, Due

OnBatch = Callable[[pa.Table], None]
OnFailure = Callable[[BaseException], None]
Say = Callable[[str], None]


class Feed(Protocol):
    """Hands the rows of new log files to the pump."""

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def seen(self, files: int) -> None:
        """Told how many files were removed from the log's folder."""


class Backend(Protocol):
    """An evaluator. `start` before anything else."""

    def start(self, say: Say, on_death: OnFailure) -> Executor: ...

    def warm_up(self, say: Say) -> None: ...

    def compile(self, statement: Statement, name: str, catalog: Catalog) -> Compiled: ...

    def feed(self, on_batch: OnBatch, on_failure: OnFailure, between: Callable[[], None]) -> Feed: ...

    def one_shot(self, due: Due, timeout_s: float) -> Answer: ...

    def alive(self) -> bool: ...

    def describe(self) -> Mapping[str, object]: ...

    def stop(self) -> None: ...


class SparkBackend:
    """Spark in this process. Imported when started: the rest of the runtime, and its tests, do without PySpark."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._session: object = None

    def start(self, say: Say, on_death: OnFailure) -> Executor:
        """Start the session; `on_death` is called if its JVM ends by itself."""
        from engine.spark.executor import Executor as SparkExecutor
        from engine.spark.oneshot import OneShots
        from engine.spark.session import start_session
        session = start_session(self._settings.spark, say)
        session.on_death(lambda: on_death(RuntimeError("Spark's JVM has died")))
        self._session, self._one_shots = session, OneShots(session)
        return SparkExecutor(session, force_executor=self._settings.force_executor,  # type: ignore[arg-type]
                             force_strategy=self._settings.force_strategy)  # type: ignore[arg-type]

    def warm_up(self, say: Say) -> None:
        self._session.warm_up(say)  # type: ignore[attr-defined]

    def compile(self, statement: Statement, name: str, catalog: Catalog) -> Compiled:
        return compile_statement(statement, catalog, identity=name)

    def feed(self, on_batch: OnBatch, on_failure: OnFailure, between: Callable[[], None]) -> Feed:
        from engine.spark.feed import Feed as SparkFeed
        from engine.spark.feed import FeedSettings
        own = self._settings
        settings = FeedSettings(own.log_folder, own.checkpoint_folder, ROWS, own.poll_ms, own.rotate_files)
        return SparkFeed(self._session.spark, settings, on_batch, on_failure, between)  # type: ignore[attr-defined]

    def one_shot(self, due: Due, timeout_s: float) -> Answer:
        return self._one_shots.evaluate(due, timeout_s)

    def alive(self) -> bool:
        return bool(self._session.alive and self._session.responds())  # type: ignore[attr-defined]

    def describe(self) -> Mapping[str, object]:
        """What ``/info`` tells about it."""
        session = self._session
        if session is None:
            return {}
        return {"graphframes": session.graphframes,  # type: ignore[attr-defined]
                "graphframesReason": session.graphframes_reason}  # type: ignore[attr-defined]

    def stop(self) -> None:
        if self._session is not None:
            self._session.stop()  # type: ignore[attr-defined]

"""What evaluates: Spark with its session, executor and feed. Tests have something smaller in its place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from engine.compiler import Catalog, Compiled, compile_statement
from engine.execution.due import Answer, Due
from engine.ir.statement import Statement
from engine.runtime.rows import ROWS
from engine.runtime.settings import Settings
from engine.spark.settings import from_environment
from engine.supervision import filling

if TYPE_CHECKING:
    from engine.spark.beside import Beside, OneShots
    from engine.spark.executor import Executor
    from engine.spark.feed import Feed, OnBatch
    from engine.spark.session import Say, Session
    from engine.spark.topic import TopicQuery, TopicWriter

OnFailure = Callable[[BaseException], None]


class Backend:
    """Spark in this process. PySpark is imported when it is needed: many tests do without it."""

    def __init__(self, settings: Settings, session: Session | None = None) -> None:
        """`session` is one that is running already, and is left running."""
        self._settings = settings
        self._session = session
        self._own = session is None
        self._executor: Executor | None = None
        self._one_shots: OneShots | None = None

    def start(self, say: Say, on_death: OnFailure) -> Executor:
        """Start the session; `on_death` is called if its JVM ends by itself."""
        from engine.spark.beside import OneShots
        from engine.spark.executor import Executor
        from engine.spark.session import start_session
        if self._session is None:
            settings = replace(self._settings.spark or from_environment(), kafka=bool(self._settings.kafka))
            self._session = start_session(replace(settings, shared=settings.shared or self._settings.data / "spark"), say)
        self._session.on_death(lambda: on_death(RuntimeError("Spark's JVM has died")))
        self._one_shots = OneShots(self._session)
        self._executor = Executor(self._session, force_executor=self._settings.force_executor,
                                  force_strategy=self._settings.force_strategy, states=self._settings.states_folder.resolve())
        return self._executor

    def warm_up(self, say: Say) -> None:
        self._running.warm_up(say)

    def compile(self, statement: Statement, name: str, catalog: Catalog) -> Compiled:
        with filling():
            return compile_statement(statement, catalog, identity=name)

    def feed(self, on_batch: OnBatch, on_failure: OnFailure) -> Feed:
        from engine.spark.feed import Feed, FeedSettings
        own = self._settings
        settings = FeedSettings(own.log_folder, own.checkpoint_folder, ROWS, own.poll_ms, own.rotate_files)
        return Feed(self._running.spark, settings, on_batch, on_failure)

    def topic(self, servers: str, name: str) -> TopicQuery:
        """What reads a topic (topic_feeds.py)."""
        from engine.spark.topic import TopicQuery
        own = self._settings
        return TopicQuery(self._running, servers, name, own.kafka[servers], own.topics_folder)

    def topic_writer(self, servers: str, name: str, transactions: str) -> TopicWriter:
        """What writes to a topic, in transactions of that id. Raises TopicError."""
        from engine.spark.topic import TopicWriter
        return TopicWriter(self._running, servers, name, self._settings.kafka[servers], transactions)

    def one_shot(self, due: Due, timeout_s: float) -> Answer:
        assert self._one_shots is not None
        return self._one_shots.evaluate(due, timeout_s)

    def beside(self) -> Beside | None:
        """What evaluates registered queries beside the pump; None where nothing does (in tests)."""
        from engine.spark.beside import Beside
        assert self._executor is not None and self._one_shots is not None
        return Beside(self._executor.beside(self._one_shots.free), self._running, self._one_shots.free)

    def alive(self) -> bool:
        """Whether it answers, told within about two seconds."""
        session = self._session
        return session is not None and session.alive and session.responds()

    def lacks(self) -> str:
        """What evaluations wait for; empty where that is nothing."""
        session = self._session
        return f"the cluster {session.settings.master} has no executor" if session is not None and session.lacks_executors() else ""

    def describe(self) -> Mapping[str, object]:
        if self._session is None:
            return {}
        return {"graphframes": self._session.graphframes, "graphframesReason": self._session.graphframes_reason,
                "workerMemory": self._session.settings.worker_memory}

    def stop(self) -> None:
        """End it, whatever state it is in; calls that hang in it end too. It may be started again."""
        session, executor, alive = self._session, self._executor, self.alive()
        self._executor = None
        if executor is not None:
            executor.close() if alive else executor.abandon()
        if not self._own or session is None:
            return
        self._session = None
        if not alive:
            session.kill()
        session.stop()

    @property
    def _running(self) -> Session:
        assert self._session is not None
        return self._session

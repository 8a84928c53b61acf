"""One Spark session and the JVM that it lives in: start, warm up, watch, stop, and start again in the same process.

``start_session`` owns what PySpark leaves to chance: which Java runs, which Python the workers run, that the JVM survives the
signals meant for this process, that its death is noticed, and that PySpark's globals are reset so that a next session can start.

``python -m engine.spark.session`` fetches what is needed once and tries it, telling what it does.
"""

from __future__ import annotations

import copy
import logging
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyspark
from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from engine.spark.cluster import await_executors, executors_in
from engine.spark.jars import download_shown, fetch_jars, missing, use_jars
from engine.spark.java import Java, JavaNotFound, archive_path, ensure_java, finish, make_options, use_archive
from engine.spark.launch import Scratch, SparkStartError, end_jvm, launch, reset_pyspark, zip_engine
from engine.spark.packages import SUFFIX
from engine.spark.settings import SparkSettings, configuration, from_environment, parallelism
from engine.spark.warm import exercise, warm_up
from engine.spark.workers import ResidentTask

__all__ = ["JavaNotFound", "Session", "SparkSettings", "SparkStartError", "from_environment", "prepare", "start_session"]

Say = Callable[[str], None]
_starting = threading.Lock()


class Session:
    """A running Spark, made by `start_session` only. `spark` is PySpark's session; `graphframes` tells whether the JVM half of GraphFrames
    is loaded, `graphframes_reason` why not. `residents` have the workers where tables stay, one for each shard, of so many `threads`;
    `residents_beside` those of what is evaluated in shards beside the pump."""

    def __init__(self, spark: SparkSession, gateway: Any, settings: SparkSettings, scratch: Scratch, graphframes_reason: str,
                 threads: int) -> None:
        self.spark = spark
        self.settings = settings
        self.work = scratch.path
        self._scratch = scratch
        self.graphframes = not graphframes_reason
        self.graphframes_reason = graphframes_reason
        self.residents: list[ResidentTask] = []
        self.residents_beside: list[ResidentTask] = []
        for residents, count in ((self.residents, settings.shards or 1), (self.residents_beside, settings.shards_beside)):
            for _ in range(count):
                residents.append(ResidentTask(spark, threads, () if settings.local else residents))
        self._context = spark.sparkContext
        self._gateway = gateway
        self._process: subprocess.Popen[bytes] = gateway.proc
        self._on_death: list[Callable[[], None]] = []
        self._stopping = threading.Event()
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        threading.Thread(target=self._watch, name="spark-watcher", daemon=True).start()

    @property
    def alive(self) -> bool:
        """Whether the JVM runs and `stop` has not been called."""
        return not self._stopping.is_set() and self._process.poll() is None

    def beside(self) -> Session:
        """The same Spark with temporary views and a folder of its own. It leaves one of the slots free."""
        other = copy.copy(self)
        other.spark = self.spark.newSession()
        other.work = self.work / "beside"
        other.work.mkdir(exist_ok=True)
        for name, value in parallelism(max(1, self.settings.partitions - 1)).items():
            other.spark.conf.set(name, value)
        return other

    def on_death(self, callback: Callable[[], None]) -> None:
        """Call `callback` once, from a thread of its own, when the JVM ends without `stop` having been asked for."""
        with self._lock:
            dead = self._process.poll() is not None and not self._stopping.is_set()
            if not dead:
                self._on_death.append(callback)
        if dead:
            callback()

    def responds(self, within_s: float = 2.0) -> bool:
        """Whether Spark answers in time that it has not stopped; a halted JVM hangs every call, so it is asked from a spare thread. A
        JVM that is told to end answers for a while, with all jobs cancelled."""
        answers: list[bool] = []
        _within(within_s, lambda: answers.append(not self._context._jsc.sc().isStopped()))
        return any(answers)

    def lacks_executors(self, within_s: float = 2.0) -> bool:
        """Whether Spark says, in time, that the cluster has none; they may come."""
        found: list[bool] = []
        if not self.settings.local:
            _within(within_s, lambda: found.append(not executors_in(self._context._jsc.sc().statusStore())))
        return any(found)

    def has_slots_beside(self) -> bool:
        """Whether there is a slot beside those that all resident tasks take: executors may have ended."""
        if self.settings.local:
            return True
        cores: int = sum(each.totalCores() for each in executors_in(self._context._jsc.sc().statusStore()))
        return cores > len(self.residents) + len(self.residents_beside)

    def kill(self) -> None:
        """End a JVM that no longer responds; `on_death` callbacks follow."""
        self._process.kill()

    def warm_up(self, say: Say = lambda message: None) -> None:
        """Run a few tiny jobs: classes are loaded, code is compiled and a Python worker forked before the first real answer."""
        warm_up(self.spark, say)
        for resident in self.residents:
            resident.start()

    def stop(self, within_s: float = 3.0) -> None:
        """Stop Spark, its JVM and workers, and reset PySpark's globals; safe to call twice and after the JVM's death."""
        with self._lock:
            first = not self._stopping.is_set()
            self._stopping.set()
        if not first:
            self._stopped.wait(within_s + 10)
            return
        for resident in (*self.residents, *self.residents_beside):
            resident.close()
        try:
            _end(self.spark, self._context, self._gateway, self._scratch, within_s)
        finally:
            self._stopped.set()

    def _watch(self) -> None:
        self._process.wait()
        with self._lock:
            callbacks = [] if self._stopping.is_set() else list(self._on_death)
        for callback in callbacks:
            try:
                callback()
            except Exception:  # one callback must not keep the others from being told
                logging.getLogger(__name__).exception("a callback on the death of Spark's JVM failed")


def start_session(settings: SparkSettings, say: Say = lambda message: None, *, make_archive: bool = False) -> Session:
    """Start Spark as `settings` say, telling `say` what takes time. `make_archive` lets the JVM write its
    archive of classes when it ends. Raises JavaNotFound, or SparkStartError. Without the network and without GraphFrames in the cache it
    starts without them."""
    if not settings.local and (archive := settings.executor_env) is not None and not (archive.is_file() and archive.name.endswith(SUFFIX)):
        raise SparkStartError(f"{archive} (THALWEG_EXECUTOR_ENV) is no file whose name ends in {SUFFIX}; `thalweg executor-env` makes one")
    java = ensure_java(say)
    with _starting:
        if SparkContext._active_spark_context is not None:
            raise SparkStartError("a Spark session is running in this process already: stop it first")
        scratch = Scratch(settings.work, None if settings.local else settings.shared)
        say(f"starting Spark {pyspark.__version__} on Java {java.version} ({java.home})")
        try:
            spark, gateway, reason = _start(settings, configuration(settings, scratch.path), java, scratch.path, say, make_archive)
        except BaseException:  # an interrupt too leaves nothing behind
            scratch.remove()
            raise
        threads, context = max(1, settings.partitions // (settings.shards or 1)), spark.sparkContext
        if not settings.local:
            try:
                context.addPyFile(str(zip_engine(scratch.path / "engine.zip")))  # for every executor
                settings, threads = await_executors(spark, settings, scratch.path, say)
            except BaseException:
                _end(spark, context, gateway, scratch, 3)
                raise
    # PySpark logs each refused query as a line of JSON with its stack; whoever sent the query gets the error.
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    reason = reason or _lacking(spark, settings)
    if reason:
        logging.getLogger(__name__).warning("GraphFrames not loaded (%s): their plain Spark twins run instead", reason)
        say(f"GraphFrames not loaded ({reason}): their plain Spark twins run instead")
    return Session(spark, gateway, settings, scratch, reason, threads)


def _end(spark: SparkSession, context: SparkContext, gateway: Any, scratch: Scratch, within_s: float) -> None:
    """Stop Spark and its JVM, whatever state they are in, and reset PySpark's globals."""
    try:
        if gateway.proc.poll() is None:
            _within(within_s + 5, spark.stop)
        end_jvm(gateway, within_s)
    finally:
        reset_pyspark(context)
        scratch.remove()


def prepare(settings: SparkSettings, say: Say) -> None:
    """Fetch what is fetched once, make the archive of the driver's classes, and so try that Spark works here; quick where all is there."""
    settings = settings if settings.local else replace(settings, master=SparkSettings().master, worker_python=sys.executable)
    java = ensure_java(say)
    if missing(settings):
        start_session(settings, say).stop()
    path = archive_path(settings, java, use_jars(settings))
    if path.is_file():
        say("all is there")
        return
    say("making the archive of Spark's classes, for quicker starts (once, about 200 MB)")
    session = start_session(settings, make_archive=True)
    exercise(session.spark, session.work, say)
    say("writing it")
    session.stop(within_s=180)
    say("ready" if finish(path) else "the JVM wrote no archive: starts will be slower, nothing else")


def _start(settings: SparkSettings, entries: dict[str, str], java: Java, work: Path, say: Say,
           make_archive: bool) -> tuple[SparkSession, Any, str]:
    """Start with jars from the cache, else fetched, else without GraphFrames. The last value says why without, "" if with. Raises
    SparkStartError where the connector for Kafka is wanted and cannot be fetched."""
    without = "" if settings.graphframes else "switched off"
    if not (lacks := missing(settings)):
        entries |= use_jars(settings)
        path = archive_path(settings, java, entries)
        options = make_options(path) if make_archive else use_archive(path)
        entries["spark.driver.extraJavaOptions"] += f" {options}"
        return *launch(entries, java, work, settings.worker_python), without
    say(f"fetching once: {' and '.join(lacks)} into {settings.ivy}")
    try:
        with download_shown(settings, say):
            return *launch(entries | use_jars(settings) | fetch_jars(settings, lacks), java, work, settings.worker_python), without
    except SparkStartError as failure:
        logging.getLogger(__name__).debug("%s", failure)
        if settings.kafka_connector in lacks:
            raise SparkStartError(f"the connector for Kafka, {settings.kafka_connector} (THALWEG_KAFKA_CONNECTOR), could not be fetched") \
                from failure
    return *launch(entries | use_jars(settings), java, work, settings.worker_python), f"{settings.graphframes} could not be fetched"


def _lacking(spark: SparkSession, settings: SparkSettings) -> str:
    """Why GraphFrames are not there although a jar is; "" if they are."""
    jvm: Any = spark.sparkContext._jvm
    try:
        jvm.java.lang.Thread.currentThread().getContextClassLoader().loadClass("org.graphframes.GraphFramePythonAPI")
    except Py4JJavaError:
        return f"{settings.graphframes} has no GraphFrames"
    return ""


def _within(seconds: float, action: Callable[[], None]) -> None:
    """Run `action` in a spare thread and wait for it at most `seconds`: a call into a halted JVM never returns."""
    def run() -> None:
        with suppress(Exception):  # a JVM that is dead, or dies under the call, raises any of Py4J's and the socket's errors
            action()

    thread = threading.Thread(target=run, name="spark-call", daemon=True)
    thread.start()
    thread.join(seconds)


def main() -> int:
    """Prepare Spark, with the seconds each step took."""
    began = time.monotonic()

    def say(message: str) -> None:
        print(f"    [{time.monotonic() - began:5.1f} s] {message}", flush=True)

    try:
        prepare(from_environment(), say)
    except (JavaNotFound, SparkStartError) as failure:
        print(failure, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

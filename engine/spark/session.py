"""One Spark session and the JVM that it lives in: start, warm up, watch, stop, and start again in the same process.

``start_session`` owns what PySpark leaves to chance: which Java runs, which Python the workers run, that the JVM survives the
signals meant for this process, that its death is noticed, and that PySpark's globals are reset so that a next session can start.

``python -m engine.spark.session`` fetches what is needed, starts, warms up and stops, telling what it does.
"""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import pyspark
from pyspark import SparkConf, SparkContext, accumulators
from pyspark.errors import PySparkException, PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession, SQLContext

from .jars import cached_jar, download_shown, fetch_jar, use_jar
from .java import Java, ensure_java
from .settings import SparkSettings, configuration, from_environment

Say = Callable[[str], None]
_starting = threading.Lock()


class SparkStartError(RuntimeError):
    """Spark did not start; the message has the end of what the JVM wrote."""


class Session:
    """A running Spark, made by `start_session` only.

    `spark` is PySpark's session; `graphframes` tells whether the JVM half of GraphFrames is loaded, `graphframes_reason` why not.
    """

    def __init__(self, spark: SparkSession, gateway: Any, java: Java, settings: SparkSettings, work: Path,
                 graphframes_reason: str) -> None:
        self.spark = spark
        self.java = java
        self.settings = settings
        self.work = work
        self.graphframes = not graphframes_reason
        self.graphframes_reason = graphframes_reason
        self._gateway = gateway
        self._process: subprocess.Popen[bytes] = gateway.proc
        self._on_death: list[Callable[[], None]] = []
        self._stopping = threading.Event()
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._watcher = threading.Thread(target=self._watch, name="spark-watcher", daemon=True)
        self._watcher.start()

    @property
    def alive(self) -> bool:
        """Whether the JVM runs and `stop` has not been called."""
        return not self._stopping.is_set() and self._process.poll() is None

    @property
    def jvm_pid(self) -> int:
        return self._process.pid

    def on_death(self, callback: Callable[[], None]) -> None:
        """Call `callback` once, from a thread of its own, when the JVM ends without `stop` having been asked for."""
        with self._lock:
            dead = self._process.poll() is not None and not self._stopping.is_set()
            if not dead:
                self._on_death.append(callback)
        if dead:
            callback()

    def responds(self, within_s: float = 2.0) -> bool:
        """Whether the JVM answers a trivial call in time; a halted one hangs every call, so it is asked from a spare thread."""
        answers: list[int] = []

        def ask() -> None:
            with suppress(Exception):  # a dead JVM raises any of Py4J's and the socket's errors: no answer
                answers.append(self.spark.sparkContext._jvm.System.nanoTime())  # type: ignore[union-attr]

        asking = threading.Thread(target=ask, name="spark-heartbeat", daemon=True)
        asking.start()
        asking.join(within_s)
        return bool(answers)

    def kill(self) -> None:
        """End a JVM that no longer responds; `on_death` callbacks follow."""
        self._process.kill()

    def warm_up(self, say: Say | None = None) -> None:
        """Run a few tiny jobs: classes are loaded, code is compiled and a Python worker forked before the first real answer."""
        from .warm import warm_up
        warm_up(self.spark, say or _silent)

    def stop(self, within_s: float = 3.0) -> None:
        """Stop Spark, its JVM and workers, and reset PySpark's globals; safe to call twice and after the JVM's death."""
        with self._lock:
            first = not self._stopping.is_set()
            self._stopping.set()
        if not first:
            self._stopped.wait(within_s + 10)
            return
        try:
            if self._process.poll() is None:
                _within(within_s + 5, self.spark.stop)
            _end_jvm(self._gateway, within_s)
        finally:
            _reset_pyspark(self.spark.sparkContext)
            if self.settings.work is None:
                shutil.rmtree(self.work, ignore_errors=True)
            self._stopped.set()

    def _watch(self) -> None:
        self._process.wait()
        with self._lock:
            callbacks = [] if self._stopping.is_set() else list(self._on_death)
        for callback in callbacks:
            try:
                callback()
            except Exception:
                logging.getLogger(__name__).exception("a callback on the death of Spark's JVM failed")


def start_session(settings: SparkSettings | None = None, say: Say | None = None) -> Session:
    """Start Spark as `settings` say (None: from the environment), telling `say` what takes time.

    Raises JavaNotFound, or SparkStartError. Without the network and without GraphFrames in the cache it starts without them.
    """
    settings, say = settings or from_environment(), say or _silent
    java = ensure_java(say)
    with _starting:
        if SparkContext._active_spark_context is not None:
            raise SparkStartError("a Spark session is running in this process already: stop it first")
        work = _work_folder(settings)
        entries = configuration(settings, work)
        spark, gateway, reason = _start_with_graphframes(settings, entries, java, work, say)
    # PySpark logs each refused query as a line of JSON with its stack; whoever sent the query gets the error.
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    if reason:
        say(f"GraphFrames not loaded ({reason}): their plain Spark twins run instead")
    return Session(spark, gateway, java, settings, work, reason)


def _start_with_graphframes(settings: SparkSettings, entries: dict[str, str], java: Java, work: Path,
                            say: Say) -> tuple[SparkSession, Any, str]:
    """Start with GraphFrames from the cache, else fetched, else without. The last value says why without, "" if with."""
    if not settings.graphframes:
        return *_launch(entries, java, work, say), "switched off"
    if jar := cached_jar(settings):
        return *_launch(entries | use_jar(settings, jar), java, work, say), ""
    say(f"fetching GraphFrames once (73 MB, {settings.graphframes}) into {settings.ivy}")
    try:
        with download_shown(settings, say):
            return *_launch(entries | fetch_jar(settings), java, work, say), ""
    except SparkStartError as failure:
        _say_all(str(failure), logging.getLogger(__name__).debug)
    return *_launch(entries, java, work, say), f"{settings.graphframes} could not be fetched"


def _launch(entries: Mapping[str, str], java: Java, work: Path, say: Say) -> tuple[SparkSession, Any]:
    """Start a JVM in a process session of its own (so that a signal to this process's group leaves it alone) and Spark in it."""
    say(f"starting Spark {pyspark.__version__} on Java {java.version} ({java.home})")
    conf = SparkConf(loadDefaults=False)
    for name, value in entries.items():
        conf.set(name, value)
    gateway = None
    with _process_environment(java, entries), _log_file(work) as log:
        try:
            process = {"start_new_session": True, "stdout": log, "stderr": log}
            gateway = launch_gateway(conf, process)  # type: ignore[no-untyped-call]
            return SparkSession(SparkContext(conf=conf, gateway=gateway)), gateway
        except (PySparkRuntimeError, PySparkException, OSError, RuntimeError) as failure:
            if gateway is not None:
                _end_jvm(gateway, 3)
            _reset_pyspark(None)
            raise SparkStartError(f"Spark did not start: {failure}\n{_tail(work / 'spark.log')}") from failure


@contextmanager
def _process_environment(java: Java, entries: Mapping[str, str]) -> Iterator[None]:
    """What PySpark reads from the environment, set while it starts: its own Spark, the Java found, this Python for workers."""
    wanted = {"JAVA_HOME": str(java.home), "SPARK_HOME": os.path.dirname(pyspark.__file__), "PYSPARK_PYTHON": sys.executable,
              "PYSPARK_SUBMIT_ARGS": "pyspark-shell"}
    if "spark.driver.bindAddress" in entries:
        wanted["SPARK_LOCAL_IP"] = entries["spark.driver.bindAddress"]
    absent = ("PYSPARK_GATEWAY_PORT", "SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "SPARK_TESTING")
    before = {name: os.environ.get(name) for name in (*wanted, *absent)}
    os.environ.update(wanted)
    for name in absent:
        os.environ.pop(name, None)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def _work_folder(settings: SparkSettings) -> Path:
    if settings.work is None:
        return Path(tempfile.mkdtemp(prefix="thalweg-spark-"))
    settings.work.mkdir(parents=True, exist_ok=True)
    return settings.work.resolve()


@contextmanager
def _log_file(work: Path) -> Iterator[BinaryIO]:
    """spark.log, begun anew; the one of the start before is kept beside it."""
    path = work / "spark.log"
    if path.exists():
        path.replace(work / "spark.log.1")
    with path.open("wb") as log:
        yield log


def _tail(path: Path, lines: int = 15) -> str:
    return "\n".join(path.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])


def _within(seconds: float, action: Callable[[], None]) -> None:
    """Run `action` in a spare thread and wait for it at most `seconds`: a call into a halted JVM never returns."""
    def run() -> None:
        with suppress(Exception):  # the JVM may die under the call, which is what is wanted here
            action()

    thread = threading.Thread(target=run, name="spark-stop", daemon=True)
    thread.start()
    thread.join(seconds)


def _end_jvm(gateway: Any, within_s: float) -> None:
    """Close the gateway; the JVM ends when its standard input does. One that has not in time is killed. Reaps the process."""
    process: subprocess.Popen[bytes] = gateway.proc
    for close in (gateway.shutdown, process.stdin.close if process.stdin else _nothing):
        with suppress(Exception):  # each raises when the JVM is gone already
            close()
    try:
        process.wait(within_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _reset_pyspark(context: SparkContext | None) -> None:
    """Forget the session that was: PySpark keeps it in class attributes, and asks a dead JVM for ever if they stay."""
    with SparkContext._lock:
        server = getattr(context, "_accumulatorServer", None)
        if server is not None:
            with suppress(OSError):
                server.shutdown()
                server.server_close()
        if context is not None:
            context._jsc = None
            context._accumulatorServer = None  # type: ignore[assignment]
        SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = SparkSession._activeSession = None
    SQLContext._instantiatedContext = None
    accumulators._accumulatorRegistry.clear()


def _nothing() -> None:
    """Stands where a process has no standard input to close."""


def _silent(message: str) -> None:
    """The `say` of callers that show no progress."""


def _say_all(text: str, say: Say) -> None:
    for line in text.splitlines():
        say(line)


def main() -> int:
    """Fetch, start, warm up and stop, with the seconds each took."""
    began = time.monotonic()

    def say(message: str) -> None:
        print(f"[{time.monotonic() - began:5.1f} s] {message}", flush=True)

    session = start_session(say=say)
    say("Spark runs, warming up")
    session.warm_up(say)
    say(f"ready{'' if session.graphframes else ' (without GraphFrames)'}")
    session.stop()
    say("stopped")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Start and end the JVM that Spark lives in, and what stands around it: PySpark's memory of it in class attributes, its scratch folders,
and our own code on a cluster's executors.

These have a Python of the driver's minor version with pyarrow and duckdb; the engine is sent to them as a zip file, so that nothing of ours
need be installed there. The data folder must be on a file system that all of them see (README, "A Spark cluster").
"""

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import pyspark
from pyspark import SparkConf, SparkContext, accumulators
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession, SQLContext

from engine.spark.java import Java
from engine.spark.settings import PROJECT

LOG = "spark.log"
PREFIX = "thalweg-spark-"
_LOCK = "in-use"
_SENT = ("engine", "grammar", "server")
_TAIL_LINES = 15      # lines at the end of what the JVM wrote


class SparkStartError(RuntimeError):
    """Spark did not start; the message has the end of what the JVM wrote."""


def launch(entries: Mapping[str, str], java: Java, work: Path, worker_python: str = sys.executable) -> tuple[SparkSession, Any]:
    """Start Spark with the configuration `entries`; returns PySpark's session and the gateway (its `proc` is the JVM's process). The JVM
    gets a process session of its own, so that a signal to this process's group (Ctrl-C, systemd) leaves it alone; it ends when its standard
    input does, so also by a kill -9 of this process. What it writes goes to spark.log in `work`."""
    conf = SparkConf(loadDefaults=False)
    for name, value in entries.items():
        conf.set(name, value)
    gateway = None
    with _process_environment(java, entries, worker_python), _log_file(work) as log:
        try:
            process = {"start_new_session": True, "stdout": log, "stderr": log}
            gateway = launch_gateway(conf, process)  # type: ignore[no-untyped-call]
            return SparkSession(SparkContext(conf=conf, gateway=gateway)), gateway
        except Exception as failure:  # Py4J's, PySpark's, the system's or the JVM's own: the JVM's log tells more than the type
            if gateway is not None:
                end_jvm(gateway, 3)
            reset_pyspark(None)
            told = (work / LOG).read_text(encoding="utf-8", errors="replace").splitlines()
            raise SparkStartError("\n".join([f"Spark did not start: {failure}", *told[-_TAIL_LINES:]])) from failure


def end_jvm(gateway: Any, within_s: float) -> None:
    """Close the gateway; the JVM ends when its standard input does. One that has not in time is killed. Reaps the process."""
    process: subprocess.Popen[bytes] = gateway.proc
    closers: list[Callable[[], object]] = [gateway.shutdown]
    if process.stdin:
        closers.append(process.stdin.close)
    for close in closers:
        with suppress(Exception):  # each raises when the JVM is gone already
            close()
    try:
        process.wait(within_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def reset_pyspark(context: SparkContext | None) -> None:
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


@contextmanager
def _process_environment(java: Java, entries: Mapping[str, str], worker_python: str) -> Iterator[None]:
    """What PySpark reads from the environment, set while it starts: its own Spark, the Java found, the Python for workers."""
    wanted = {"JAVA_HOME": str(java.home), "SPARK_HOME": os.path.dirname(pyspark.__file__), "PYSPARK_PYTHON": worker_python,
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


def _log_file(work: Path) -> BinaryIO:
    """spark.log, begun anew; the one of the start before is kept beside it."""
    path = work / LOG
    if path.exists():
        path.replace(path.with_name(LOG + ".1"))
    return path.open("wb")


class Scratch:
    """The work folder of a session: `given` by the user and kept, or a temporary one in `parent` (None: where the system has these) that
    `remove` removes, or a later session if the process was killed. A temporary one is this process's as long as its lock is held; the
    system drops the lock with the process."""

    def __init__(self, given: Path | None, parent: Path | None = None) -> None:
        self._lock: TextIO | None = None
        if given is not None:
            given.mkdir(parents=True, exist_ok=True)
            self.path = given.resolve()
            return
        parent = (parent or Path(tempfile.gettempdir())).resolve()
        parent.mkdir(parents=True, exist_ok=True)
        remove_abandoned(parent)
        # It gets its name only once it is locked: a folder of that name without a lock is nobody's.
        made = Path(tempfile.mkdtemp(prefix="thalweg-new-", dir=parent))
        self._lock = (made / _LOCK).open("w", encoding="utf-8")
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self.path = made.rename(made.with_name(made.name.replace("thalweg-new-", PREFIX)))

    def remove(self) -> None:
        """Remove a temporary folder with what is in it."""
        if self._lock is not None:
            shutil.rmtree(self.path, ignore_errors=True)
            self._lock.close()


def remove_abandoned(parent: Path) -> None:
    """Remove the folders in `parent` whose processes have ended without doing so (kill -9, a crash)."""
    for folder in parent.glob(PREFIX + "*"):
        try:
            with (folder / _LOCK).open("r+", encoding="utf-8") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            continue  # in use, another user's, or gone meanwhile


def zip_engine(target: Path) -> Path:
    """Write the project's Python files into the zip file `target`, importable from it: what reads records is the server's."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(path for name in _SENT for path in (PROJECT / name).rglob("*.py")):
            archive.write(path, path.relative_to(PROJECT))
    return target

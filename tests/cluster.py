"""Spark's standalone master and workers on this machine, which share one folder with the driver.

``python -m tests.cluster COMMAND...`` runs a command beside such a cluster, whose address and folder are in its environment; without one
it tells whether that can be done here. Each worker has a loopback address of its own (two on one address read each other's shuffle files)
and a mount namespace of its own, in which the project, the temporary folders and the home folder are empty: what only the driver has is
missing there, as on another machine. That needs root.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark

from engine.spark.java import ensure_java
from engine.spark.settings import PROJECT
from tests.jvm import OPTIONS

WORKERS = "THALWEG_TEST_WORKERS"    # the processes of the workers, for tests that end what these have started
_UNDER = Path("/var/tmp")
_START_S = 60.0
_MOUNTS = """set -e
mount --make-rprivate /
mount --bind "$PREFIX" "$PYTHON_THERE"
for hidden in $HIDDEN; do if [ -d "$hidden" ]; then mount -t tmpfs tmpfs "$hidden"; fi; done
mkdir -p /tmp/home /tmp/work
export HOME=/tmp/home
cd /tmp
exec "$SPARK_HOME/bin/spark-class" org.apache.spark.deploy.worker.Worker --host "$SPARK_LOCAL_IP" --cores 2 --memory 2g -d /tmp/work \
    --webui-port 0 "$MASTER"
"""


def refusal() -> str | None:
    """Why there can be no such cluster here."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        return "only root may give a process mounts of its own"
    found = subprocess.run(["unshare", "-m", "mount", "--make-rprivate", "/"], capture_output=True, text=True)
    return f"no mounts of its own for a process: {found.stderr.strip()}" if found.returncode else None


@dataclass(frozen=True, slots=True)
class Cluster:
    """`shared` is the folder that all see; `workers` are the processes of Spark's workers, whose children are the executors."""

    master: str
    shared: Path
    python: Path
    workers: tuple[int, ...]

    @property
    def environment(self) -> Mapping[str, str]:
        return {"THALWEG_MASTER": self.master, "THALWEG_WORKER_PYTHON": str(self.python), "THALWEG_CLUSTER_FOLDER": str(self.shared),
                "THALWEG_SHARDS": str(len(self.workers)), "TMPDIR": str(self.shared), "SPARK_LOCAL_IP": "127.0.0.1",
                WORKERS: ",".join(map(str, self.workers))}


@contextmanager
def cluster(workers: int = 2, pinned: bool = False) -> Iterator[Cluster]:
    """One that ends with the block. Its workers, if they are `pinned`, have a processor each, and their JVMs are as Spark makes them: for
    benchmarks; else they are as those of tests are."""
    home = Path(tempfile.mkdtemp(prefix="thalweg-cluster-", dir=_UNDER))
    shared, there, logs = (home / name for name in ("shared", "python", "logs"))
    for folder in (shared, there, logs):
        folder.mkdir()
    spark = Path(pyspark.__file__).parent
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    address, started = f"spark://127.0.0.1:{port}", list[subprocess.Popen[bytes]]()
    network = f"{1 + os.getpid() // 256 % 254}.{os.getpid() % 256}"     # of no other cluster that runs now
    hidden = dict.fromkeys(["/tmp", "/dev/shm", str(Path.home()), str(PROJECT), tempfile.gettempdir()])
    try:
        java = ensure_java(lambda message: None)
        common = {**os.environ, "JAVA_HOME": str(java.home), "SPARK_HOME": str(spark), "SPARK_LOCAL_IP": "127.0.0.1"}
        started.append(_started([str(spark / "bin" / "spark-class"), "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1",
                                 "--port", str(port), "--webui-port", "0"], common, logs / "master.log"))
        _await(started[0], logs / "master.log", "I have been elected leader")
        for number in range(workers):
            bound = ["taskset", "--cpu-list", str(number)] if pinned else ["env", f"JAVA_TOOL_OPTIONS={OPTIONS}"]
            own = {"SPARK_LOCAL_IP": f"127.{network}.{number + 1}", "SPARK_HOME": str(there / spark.relative_to(sys.prefix)),
                   "MASTER": address, "PREFIX": sys.prefix, "PYTHON_THERE": str(there), "HIDDEN": " ".join(hidden)}
            started.append(_started([*bound, "unshare", "-m", "bash", "-c", _MOUNTS], common | own, logs / f"worker-{number}.log"))
        for process, log in zip(started[1:], sorted(logs.glob("worker-*.log")), strict=True):
            _await(process, log, "Successfully registered with master")
        python = there / "bin" / Path(sys.executable).name
        yield Cluster(address, shared, python, tuple(process.pid for process in started[1:]))
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(home, ignore_errors=True)


@contextmanager
def inside(beside: Cluster) -> Iterator[None]:
    """This process as one that was started beside a cluster."""
    before = dict(os.environ)
    os.environ |= beside.environment
    tempfile.tempdir = str(beside.shared)
    try:
        yield
    finally:
        tempfile.tempdir = None
        os.environ.clear()
        os.environ |= before


def _started(command: list[str], environment: Mapping[str, str], log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as out:
        return subprocess.Popen(command, env=dict(environment), stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                                start_new_session=True)


def _await(process: subprocess.Popen[bytes], log: Path, said: str) -> None:
    until = time.monotonic() + _START_S
    while said not in log.read_text(errors="replace"):
        if time.monotonic() > until or process.poll() is not None:
            raise RuntimeError(f"{log.stem} did not say {said!r} within {_START_S:g} s: {log.read_text(errors='replace')[-2000:]}")
        time.sleep(0.1)


def main(command: list[str]) -> int:
    reason = refusal()
    if reason is not None:
        print(f"no cluster, nothing is run: {reason}", file=sys.stderr)
        return 1
    if not command:
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))    # the cluster ends with it
    with cluster() as beside:
        return subprocess.run(command, env={**os.environ, **beside.environment}).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
